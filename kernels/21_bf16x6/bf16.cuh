// A float as the exact sum of three BF16 numbers. For host and device.
//
// BF16 has the exponents of FP32 and 8 significant bits. x = p0 + p1 + p2, where p0 is x rounded to
// BF16, p1 is x − p0 rounded, and p2 is the rest: |p1| <= 2^-8·|x|, |p2| <= 2^-17·|x|. Of the nine
// products of x and y three are left out. Together they are at most 2^-24·|x·y|.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate::bf16x6 {

constexpr int kPlanes = 3;

// From this magnitude on, and for 0, the three planes are exact. Below, p1 or p2 may be less than
// the smallest BF16 number, 2^-133; they lose at most kLost.
constexpr float kSmallestExact = 0x1p-110F, kLost = 0x1p-134F;

// Rounds two numbers to BF16, ties to even; the first goes to the lower 16 bits. Magnitudes from
// 2^128 − 2^119 on become Inf.
__host__ __device__ inline std::uint32_t to_bf16x2(float first, float second) {
#if defined(__CUDA_ARCH__)
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  const auto round = [](float value) {
    const std::uint32_t bits = bits_of(value);
    if ((bits & 0x7FFF'FFFFU) > 0x7F80'0000U) return 0x7FFFU;  // NaN
    return (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16;
  };
  return round(first) | round(second) << 16;
#endif
}

__host__ __device__ inline float first_of(std::uint32_t pair) { return float_of(pair << 16); }
__host__ __device__ inline float second_of(std::uint32_t pair) {
  return float_of(pair & 0xFFFF'0000U);
}

// Two numbers, one pair per plane. NaN where a number is NaN, Inf or rounds to Inf.
struct Split {
  std::uint32_t plane[kPlanes];

  __host__ __device__ Split(float first, float second) {
    for (int p = 0; p < kPlanes; ++p) {
      plane[p] = to_bf16x2(first, second);
      first -= first_of(plane[p]);
      second -= second_of(plane[p]);
    }
  }
};

// Of two numbers of 16 bits each.
__host__ __device__ inline std::uint32_t larger_of_pairs(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  return __vmaxu2(a, b);
#else
  constexpr std::uint32_t kLow = 0xFFFF, kHigh = 0xFFFF'0000;
  return std::max(a & kLow, b & kLow) | std::max(a & kHigh, b & kHigh);
#endif
}
__host__ __device__ inline std::uint32_t smaller_of_pairs(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  return __vminu2(a, b);
#else
  return ~larger_of_pairs(~a, ~b);
#endif
}

// Magnitudes of elements.
struct Range {
  std::uint32_t largest = 0;     // of the first numbers of pairs, and of the second, in BF16
  std::uint32_t smallest = ~0U;  // 2·bits − 1 of the smallest but 0

  __host__ __device__ void add(float first, float second, const Split& split) {
    const std::uint32_t magnitudes = split.plane[0] & 0x7FFF'7FFFU;
    largest = larger_of_pairs(largest, magnitudes);
    for (const float value : {first, second}) {
      const std::uint32_t less_1 = 2 * bits_of(value) - 1;  // the largest number for 0
      smallest = smallest < less_1 ? smallest : less_1;
    }
  }
  // Both in one word: the larger magnitude as BF16, and above it whether an element is so small
  // that its planes may be inexact.
  __host__ __device__ std::uint32_t word() const {
    const bool is_small = smallest < 2 * bits_of(kSmallestExact) - 1;
    const std::uint32_t first = largest & 0xFFFFU, second = largest >> 16;
    return (first > second ? first : second) | (is_small ? 0x1'0000U : 0U);
  }
  static __host__ __device__ float largest_of(std::uint32_t word) { return first_of(word); }
  static __host__ __device__ bool may_lose(std::uint32_t word) { return word >> 16 != 0; }
};

// Magnitude from which on a sum of `k` products is not affected by what small elements lose: 2^24
// times the most that they can lose. `x`, `y`: the largest magnitudes. NaN or Inf where no sum is
// safe.
__host__ __device__ inline float least_safe_sum(float x, float y, int k) {
  return kLost * 0x1p24F * (x + y) * static_cast<float>(k);
}

}  // namespace tilegate::bf16x6
