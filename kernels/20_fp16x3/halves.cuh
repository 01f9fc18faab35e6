// A float as the sum of two FP16 numbers, and back: what the split pass, the epilogue and the tests
// share, on host and device.
//
// A row of op(A), or a column of op(B), is multiplied by a power of two that brings its largest
// element into [2^14, 2^15). Then x ≈ hi + lo, hi = x and lo = x − hi, each rounded to FP16. Both
// are multiples of 2^-24, the least that FP16 holds; so the error is at most 2^-23·|x| + 2^-25.
#pragma once

#include <cmath>
#include <cstdint>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/split_operands.cuh>
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

// Statistics of a row: they decide its scale, and how the call is computed.
struct RowStats {
  float largest = 0.0F, sum = 0.0F;  // of magnitudes; the sum is NaN or Inf where an element is
  float signed_sum = 0.0F;

  __host__ __device__ void add(float value) {
    const float magnitude = std::fabs(value);
    largest = std::fmax(largest, magnitude);
    sum += magnitude;
    signed_sum += value;
  }
  __host__ __device__ void add(const RowStats& other) {
    largest = std::fmax(largest, other.largest);
    sum += other.sum;
    signed_sum += other.signed_sum;
  }
};

// The power of two that one unit of a scaled row is worth; 0 for a row that is zero, Inf for one
// that cannot be scaled.
__host__ __device__ inline float step_of(const RowStats& stats) {
  if (!is_scalable(stats)) return INFINITY;
  if (stats.largest == 0.0F) return 0.0F;
  return float_of(((bits_of(stats.largest) >> 23) - 14U) << 23);
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

// Which products a call takes: decided on the device, from what the split pass has seen.
//
// The relative error (Frobenius norm) of halves is that of a run, and of adding runs up. That of
// cuBLAS in FP32 is small where it adds up few products one after another (cublas_error.hpp), and
// smaller where most products do not count, or all have one sign. The rung takes halves where their
// error is below that, in long runs where it is well below, and else multiplies in FP32, more
// accurately than cuBLAS.

// Which products a call took: three of halves, or FP32.
enum class Path : std::int32_t { kHalves = 3, kFp32 = 32 };

// A run: so many chunks of K that the tensor cores sum before the sum is added in FP32. A long run
// is quicker, a short one more accurate.
struct Run {
  int chunks;
  float least_k;
  // Of a run, with normal operands, and with operands from 0 to 1, where what tensor cores cut off
  // always makes a sum smaller. Computed with the executor's arithmetic, which has the bits of an
  // NVIDIA H200.
  float error, error_of_one_sign;
};
constexpr Run kLongRun = {2, 1024.0F, 2.35e-7F, 2.5e-7F};
constexpr Run kShortRun = {1, 0.0F, 1.06e-7F, 0.86e-7F};

// Runs that are added up before their sum is added to the total.
constexpr int kRunsOfSum = 16;

// Statistics of an operand, averaged over its rows.
struct OperandStats {
  float counted = 0.0F;   // elements that count; Inf if a row cannot be scaled
  float one_sign = 0.0F;  // |sum| / sum of magnitudes: 1 where a row has one sign
};

__host__ __device__ inline float one_sign_of(const RowStats& stats) {
  return stats.sum > 0.0F ? std::fabs(stats.signed_sum) / stats.sum : 0.0F;
}

// The plan's input: K, and how many products have cuBLAS's error, where they have either sign, and
// where all have one.
struct Summed {
  float k = 0.0F, either_sign = 0.0F, one_sign = 0.0F;
};

// The chunks of a run; 0: multiply in FP32. The longer a run, the further its error, squared, has
// to be below cuBLAS's. An element of C consists of a random part, and of `grown` times as much,
// squared, that has grown with K, as all products had one sign.
__host__ __device__ inline int decide(const OperandStats& a, const OperandStats& b,
                                      const Summed& summed) {
  const float share = a.counted * b.counted / (summed.k * summed.k);  // of products that count
  if (!(share < INFINITY)) return 0;
  const float one_sign = a.one_sign * b.one_sign;
  // Of one sign, the mean product squared is about half of the mean squared product.
  const float grown = 0.5F * one_sign * one_sign * summed.k;
  constexpr float kSquared = kCublasError * kCublasError;
  const float products = share * (summed.either_sign + grown * summed.one_sign);
  for (const Run& run : {kLongRun, kShortRun}) {
    const float runs = summed.k / static_cast<float>(kChunkK * run.chunks);
    const float added = kSquared * ((runs < kRunsOfSum ? runs : kRunsOfSum) + runs / kRunsOfSum);
    const float random = run.error * run.error + added;
    const float biased = run.error_of_one_sign * run.error_of_one_sign + added * 2.0F / 3.0F;
    const float least = static_cast<float>(run.chunks) * (random + grown * biased);
    if (summed.k >= run.least_k && kSquared * products >= least) return run.chunks;
  }
  return 0;
}

}  // namespace tilegate::fp16x3
