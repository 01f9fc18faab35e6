// A scaled float as the sum of two FP16 numbers, hi + lo (Ootomo and Yokota; citation: README.md).
// For host and device.
//
// hi is x rounded to FP16, lo is x − hi rounded. FP16 has 11 significant bits, so hi + lo has 23 of
// the 24 bits of x: the error is at most 2^-23·|x| + 2^-25, the second because FP16 numbers are
// multiples of 2^-24. lo·lo is left out of products: at most 2^-22·|x·y|, typically far less.
#pragma once

#include <cstdint>

#include <tilegate/common/fp16.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate::bf16x6 {

constexpr int kHalves = 2;

// Two numbers, one pair per half. From 65520 on halves are Inf and −Inf, so that products are NaN.
struct HalfSplit {
  std::uint32_t half[kHalves];

  __host__ __device__ HalfSplit(float first, float second) {
    half[0] = to_fp16x2(first, second);
    half[1] = to_fp16x2(first - from_fp16(half[0] & 0xFFFFU), second - from_fp16(half[0] >> 16));
  }
};

// Numbers of 24 bits are rounded to 23, hi + lo. Here of two numbers, 16 bits each: `low` are their
// low 16 bits. Whether they are rounded: what hi leaves, in units of the last bit, is odd and above
// 2^11, and becomes a multiple of four.
__host__ __device__ inline std::uint32_t are_rounded(std::uint32_t low) {
  return (low ^ low >> 1) >> 11 & low & 0x1'0001U;
}

// How, in units of the last bit: 0 down, 1 not at all, 2 up. `rounded`: are_rounded(low).
__host__ __device__ inline std::uint32_t roundings_of_halves(std::uint32_t low,
                                                             std::uint32_t rounded) {
  return 0x1'0001U - rounded + ((rounded & low >> 1) << 1);
}

}  // namespace tilegate::bf16x6
