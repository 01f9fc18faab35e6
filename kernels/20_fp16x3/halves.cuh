// A float as the sum of two FP16 numbers, and back: what the split pass, the epilogue and the tests
// share, on host and device.
//
// A row of op(A), or a column of op(B), is multiplied by a power of two that brings its largest
// element into [2^14, 2^15). Then x ≈ hi + lo, hi = x and lo = x − hi, each rounded to FP16. Both
// are multiples of 2^-24, the least that FP16 holds; so the error is at most 2^-23·|x| + 2^-25.
#pragma once

#include <cmath>
#include <cstdint>

#include <tilegate/common/split_scaling.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate::fp16x3 {

constexpr int kPlanes = 2;  // hi, lo

// How far a product of two elements may be off, in units of the largest element of the row times
// the largest of the column, beyond what is relative to the product: 2^-39 by each operand, with
// room for the rounding of the sum.
constexpr double kOperandError = 0x1p-37;

// To the nearest FP16, to the even one of two; |value| < 65520.
__host__ __device__ inline std::uint32_t half_of(float value) {
#if defined(__CUDA_ARCH__)
  std::uint16_t half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
#else
  const std::uint32_t sign = bits_of(value) >> 16 & 0x8000U;
  const float magnitude = std::fabs(value);
  if (magnitude < 0x1p-14F)
    return sign | static_cast<std::uint32_t>(std::lrint(magnitude * 0x1p24F));
  const std::uint32_t bits = bits_of(magnitude);
  return sign | (((bits + 0xFFFU + (bits >> 13 & 1U)) >> 13) - (112U << 10));
#endif
}

__host__ __device__ inline float value_of_half(std::uint32_t half) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<std::uint16_t>(half)));
  return value;
#else
  const std::uint32_t magnitude = half & 0x7FFFU;
  const float value = magnitude < 0x400U ? static_cast<float>(magnitude) * 0x1p-24F
                                         : float_of((magnitude << 13) + (112U << 23));
  return (half & 0x8000U) != 0 ? -value : value;
#endif
}

// What has been seen of a row.
struct Seen {
  float largest = 0.0F, sum = 0.0F;  // of magnitudes; the sum is NaN or Inf where an element is
  float signed_sum = 0.0F;

  __host__ __device__ void add(float value) {
    const float magnitude = std::fabs(value);
    largest = std::fmax(largest, magnitude);
    sum += magnitude;
    signed_sum += value;
  }
  __host__ __device__ void add(const Seen& other) {
    largest = std::fmax(largest, other.largest);
    sum += other.sum;
    signed_sum += other.signed_sum;
  }
};

// The power of two that one unit of a scaled row is worth; 0 for a row that is zero, Inf for one
// that cannot be scaled.
__host__ __device__ inline float step_of(const Seen& seen) {
  if (!is_scalable(seen)) return INFINITY;
  if (seen.largest == 0.0F) return 0.0F;
  return float_of(((bits_of(seen.largest) >> 23) - 14U) << 23);
}

// Scaled elements from here on, which are 2^-20 of their row's largest or more, count: smaller ones
// hardly change a sum, nor round it.
constexpr float kLeastCounted = 0x1p-6F;

// The halves of a scaled element.
struct Halves {
  std::uint32_t hi, lo;
};

__host__ __device__ inline Halves split_element(float scaled) {
  const std::uint32_t hi = half_of(scaled);
  return {hi, half_of(scaled - value_of_half(hi))};
}

}  // namespace tilegate::fp16x3
