// A float as the sum of two FP16 numbers (Ootomo and Yokota; citation: 18_int8x3/README.md), and
// the decision between halves and FP64. For host and device.
//
// Each row of op(A) and column of op(B) is scaled by a power of two so that its largest element is
// in [2^14, 2^15). Then x ≈ hi + lo with hi = fp16(x), lo = fp16(x − hi). Both are multiples of
// 2^-24, the smallest FP16 number, so that the error is at most 2^-23·|x| + 2^-25.
#pragma once

#include <cmath>
#include <cstdint>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/fp16.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate::fp16x3 {

constexpr int kPlanes = 2;  // hi, lo

// Error bound of a product of two elements, relative to the row's largest element times the
// column's, beyond the error relative to the product itself: 2^-39 per operand, with margin for the
// rounding of the sum.
constexpr double kOperandError = 0x1p-37;

// Statistics of a row, from which its scale and the decision are computed.
struct RowStats {
  float largest = 0.0F, sum = 0.0F;  // of magnitudes; the sum is NaN or Inf where an element is
  float signed_sum = 0.0F, squares = 0.0F;

  __host__ __device__ void add(float value) {
    const float magnitude = std::fabs(value);
    largest = std::fmax(largest, magnitude);
    sum += magnitude;
    signed_sum += value;
    squares += value * value;
  }
  __host__ __device__ void add(const RowStats& other) {
    largest = std::fmax(largest, other.largest);
    sum += other.sum;
    signed_sum += other.signed_sum;
    squares += other.squares;
  }
};

// Dequantization step of a row, a power of two; 0 for a row of zeros, Inf for one that cannot be
// scaled.
__host__ __device__ inline float step_of(const RowStats& stats) {
  if (!is_scalable(stats)) return INFINITY;
  if (stats.largest == 0.0F) return 0.0F;
  return float_of(((bits_of(stats.largest) >> 23) - 14U) << 23);
}

// Scaled elements from here on count, that is 2^-16 of the row's largest or more: the halves of
// smaller ones lose bits, and they change a sum and its rounding error hardly.
constexpr float kLeastCounted = 0x1p-2F;

// Least share of a row's elements that count. Where fewer do, most elements of the row lose bits.
// Where they meet a large element of the other operand, they make up an element of C.
constexpr float kLeastShare = 0.125F;

__host__ __device__ inline bool counts_enough(float counted, float k) {
  return counted >= kLeastShare * k;
}

// The halves of a scaled element.
struct Fp16Split {
  std::uint32_t hi, lo;
};

__host__ __device__ inline Fp16Split split_element(float scaled) {
  const std::uint32_t hi = to_fp16(scaled);
  return {hi, to_fp16(scaled - from_fp16(hi))};
}

// The decision: the device chooses the products of a call from the row statistics of the split
// pass.
//
// The relative error (Frobenius norm) of halves is that of a run, plus that of adding runs. The
// error of cuBLAS in FP32 is small where it adds few products one after another (cublas_error.hpp),
// and smaller where most products do not count, all have one sign, or few make up an element of C.
// The decision is halves where their error is below that, with long runs where it is well below,
// else FP64, more accurate than cuBLAS.

// Three products of halves, or FP64.
enum class Path : std::int32_t { kThree = 3, kFp64 = 64 };

// A run: chunks of K that the tensor cores sum before the sum is added in FP32. Long runs are
// faster, short ones more accurate.
struct Run {
  int chunks;
  float least_k;
  // Relative error of a run with normally distributed operands, and with operands in [0, 1], where
  // truncation always makes sums smaller. Computed with the executor's tensor-core arithmetic,
  // which matches an NVIDIA H200 bit for bit.
  float error, error_of_one_sign;
};
constexpr Run kLongRun = {2, 1024.0F, 2.35e-7F, 2.5e-7F};
constexpr Run kShortRun = {1, 0.0F, 1.06e-7F, 0.86e-7F};

// Runs that are added to a sum before it is added to the total.
constexpr int kRunsOfSum = 16;

// Where the norm of an operand is that of `few` elements per row, each as large as the row's
// largest, few products make up an element of C. cuBLAS rounds little before the first of them
// arrives, and their errors in halves do not average. The squared error of halves must be smaller
// by 1 + kFewProducts / few.
constexpr float kFewProducts = 6.0F;

// From this share of K on, `few` means that a row's elements are almost equal. If they have one
// sign, too, all roundings of a run go the same way: no model of random errors applies.
constexpr float kAlmostEqual = 0.997F, kLeastOneSign = 0.5F;

// Statistics of an operand.
struct OperandStats {
  // Averages over its rows. Number of elements that count: Inf if a row cannot be scaled, or has
  // too few and is not zero. |sum| / sum of magnitudes: 1 where a row has one sign.
  float counted = 0.0F, one_sign = 0.0F;
  // Sums over its rows: of all squares, and of the squares of the largest elements.
  float squares = 0.0F, largest_squares = 0.0F;

  __host__ __device__ void add(const OperandStats& other) {
    counted += other.counted;
    one_sign += other.one_sign;
    squares += other.squares;
    largest_squares += other.largest_squares;
  }
  // NaN for zeros.
  __host__ __device__ float few() const { return squares / largest_squares; }
};

__host__ __device__ inline float one_sign_of(const RowStats& stats) {
  return stats.sum > 0.0F ? std::fabs(stats.signed_sum) / stats.sum : 0.0F;
}

// Input from the plan: K, and cuBLAS's effective number of products, with products of either sign
// and of one sign (cublas_error.hpp).
struct Summed {
  float k = 0.0F, either_sign = 0.0F, one_sign = 0.0F;
};

// Chunks per run; 0: multiply in FP64. The longer a run, the further its squared error must be
// below cuBLAS's. An element of C has a random component and a biased one, from products of one
// sign, which is `grown` times as large, squared.
__host__ __device__ inline int decide(const OperandStats& a, const OperandStats& b,
                                      const Summed& summed) {
  const float share = a.counted * b.counted / (summed.k * summed.k);  // of products that count
  // Where squares overflow, `few` is unknown.
  if (!(share < INFINITY && a.squares < INFINITY && b.squares < INFINITY)) return 0;
  const float one_sign = a.one_sign * b.one_sign;
  const float few_a = a.few(), few_b = b.few(), few = few_a < few_b ? few_a : few_b;
  if (few >= kAlmostEqual * summed.k && one_sign >= kLeastOneSign) return 0;
  // For one sign, the squared mean of products is about half of their mean square.
  const float grown = 0.5F * one_sign * one_sign * summed.k;
  constexpr float kSquared = kCublasError * kCublasError;
  const float products = share * (summed.either_sign + grown * summed.one_sign);
  const float allowed = kSquared * products / (1.0F + kFewProducts / few);
  for (const Run& run : {kLongRun, kShortRun}) {
    const float runs = summed.k / static_cast<float>(kChunkK * run.chunks);
    const float added = kSquared * ((runs < kRunsOfSum ? runs : kRunsOfSum) + runs / kRunsOfSum);
    const float random = run.error * run.error + added;
    const float biased = run.error_of_one_sign * run.error_of_one_sign + added * 2.0F / 3.0F;
    const float least = static_cast<float>(run.chunks) * (random + grown * biased);
    if (summed.k >= run.least_k && allowed >= least) return run.chunks;
  }
  return 0;
}

}  // namespace tilegate::fp16x3
