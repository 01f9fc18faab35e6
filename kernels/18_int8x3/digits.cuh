// The Ozaki scheme in INT8 (citations: README.md): a float as three signed 8-bit digits, the fold
// of digit products, and the decision how many products a call needs. For host and device.
//
// Each row of op(A) and column of op(B) is scaled and rounded to integers x = hi·2^16 + mid·2^8 +
// lo with digits in [-128, 127]. So |x| <= 0x7F7F7F: above it the top digit would be 128.
#pragma once

#include <cmath>
#include <cstdint>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate::int8x3 {

constexpr int kPlanes = 3;                   // hi, mid, lo
constexpr std::int32_t kLargest = 0x7F7F7F;  // largest integer of three digits
constexpr float kFull = 8355700.0F;  // scaled largest element, less than kLargest after rounding
constexpr std::uint32_t kShortBits = 0xFFF;  // low bits that are 0 in a short significand

// Rounds to the nearest integer, ties to even.
__host__ __device__ inline std::int32_t round_to_int(float value) {
#if defined(__CUDA_ARCH__)
  return __float2int_rn(value);
#else
  return static_cast<std::int32_t>(std::lrint(value));
#endif
}

// Error bound of a product of two elements, relative to the row's largest element times the
// column's: each operand is rounded to 2^-22 of its largest, once to float and once to an integer;
// the digit products that are left out sum to 2^23 + 2^14 of 2^44 at most.
constexpr double kOperandError = 2 * 0x1p-22 + 0x1.01p-21;

// Statistics of a row, from which its scale and the decision are computed.
struct RowStats {
  float largest = 0.0F, sum = 0.0F;  // of magnitudes; the sum is NaN or Inf where an element is
  std::uint32_t bits = 0;            // bitwise or of all elements

  __host__ __device__ void add(float value) {
    const float magnitude = std::fabs(value);
    largest = std::fmax(largest, magnitude);
    sum += magnitude;
    bits |= bits_of(value);
  }
  __host__ __device__ void add(const RowStats& other) {
    largest = std::fmax(largest, other.largest);
    sum += other.sum;
    bits |= other.bits;
  }
};

// Quantization of a row: the factor from elements to integers, and the dequantization step, in
// units of the top digit.
struct Scale {
  float to_integer = 0.0F, step = 0.0F;
};

// Rows with short significands, such as integers below 4096, are scaled by a power of two: nothing
// is rounded. Other rows are scaled to the full range of the digits. A power of two could leave one
// bit unused, and the products left out would then weigh more. The step is rounded up to 12 bits,
// so that the product of a row's and a column's step is exact.
__host__ __device__ inline Scale scale_of(const RowStats& stats) {
  if (stats.largest == 0.0F || !is_scalable(stats)) return {};
  Scale scale;
  if ((stats.bits & kShortBits) != 0) {
    const std::uint32_t step = bits_of(stats.largest * (65536.0F / kFull));
    scale.step = float_of((step + kShortBits) & ~kShortBits);
    scale.to_integer = 65536.0F / scale.step;
  } else {
    // The largest element takes 22 bits before the point, or 21 where the top digit would be 128.
    const std::uint32_t exponent = bits_of(stats.largest) >> 23;
    scale.to_integer = float_of((127U + 127U + 22U - exponent) << 23);
    if (round_to_int(stats.largest * scale.to_integer) > kLargest) scale.to_integer *= 0.5F;
    scale.step = 65536.0F / scale.to_integer;
  }
  return scale;
}

__host__ __device__ inline std::int32_t integer_of(float value, const Scale& scale) {
  return round_to_int(value * scale.to_integer);
}

// The digits of x, each plus 128, in the three low bytes of a word: then no carries propagate.
__host__ __device__ inline std::uint32_t biased_digits(std::int32_t x) {
  return static_cast<std::uint32_t>(x) + 0x808080U;
}

// PTX prmt: four of the eight bytes of `low` and `high`, selected by the selector's hex digits.
__host__ __device__ inline std::uint32_t select_bytes(std::uint32_t low, std::uint32_t high,
                                                      std::uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(low, high, selector);
#else
  const std::uint64_t all = std::uint64_t{high} << 32 | low;
  std::uint32_t selected = 0;
  for (int i = 0; i < 32; i += 8) {
    selected |= static_cast<std::uint32_t>(all >> (selector >> i / 2 & 7) * 8 & 0xFFU) << i;
  }
  return selected;
#endif
}

// Digit `plane` of four integers as four int8, the first in the low byte.
__host__ __device__ inline std::uint32_t pack_digits(const std::uint32_t (&biased)[4], int plane) {
  // One prmt selects the upper two digits of two integers.
  const std::uint32_t of_two = plane == kPlanes - 1 ? 0x0040 : 0x6251;
  return select_bytes(select_bytes(biased[0], biased[1], of_two),
                      select_bytes(biased[2], biased[3], of_two), plane == 0 ? 0x7632 : 0x5410) ^
         0x80808080U;
}

// Levels: Σ hi·hi, Σ (hi·mid + mid·hi), Σ (hi·lo + mid·mid + lo·hi), and, with eight products,
// Σ (mid·lo + lo·mid). Exact in int32 for K up to kMaxExactK, the fold included.
constexpr std::int64_t kMaxExactK = (std::int64_t{1} << 31) / (3 * 128 * 128 + 128 + 1) / 32 * 32;

// The sum of the levels, in units of hi·hi. The lower levels are added as integers first, rounded
// to the unit of level 1: an error of 2^-9 units, once.
template <int kLevels>
__host__ __device__ inline float fold(const std::int32_t (&level)[kLevels]) {
  std::int32_t low = level[2];
  if constexpr (kLevels == 4) low += (level[3] + 128) >> 8;
  low = level[1] + ((low + 128) >> 8);
  return static_cast<float>(level[0]) + static_cast<float>(low) * 0x1p-8F;
}

// The decision: the device chooses the products of a call from the row statistics of the split
// pass.
//
// The width of a row is (largest / mean magnitude)². W_A and W_B are the mean widths of the rows of
// op(A) and of the columns of op(B). Six products have a relative error (Frobenius norm) of about
//
//   √(kLeftOut·W_A·W_B + kRounded·(W_A + W_B) + kFolded):
//
// The first term is the error of leaving out mid·lo and lo·mid; eight products do not have it. The
// second is the error of rounding to integers, the third that of the last steps in FP32. A serial
// sum of K products in FP32 has an error of about kCublasError·√K. The decision is the fewest
// products whose error is below that.

enum class Path : std::int32_t { kSix = 6, kEight = 8, kFp32 = 32 };

// The constants are for uniformly distributed digits, of standard deviation 73.9, and for rounding
// errors of standard deviation √(1/12). Elements are normally distributed: their mean magnitude is
// √(2/π) of their root mean square, hence the factors (2/π)² and 2/π.
constexpr float kNormal = 0.6366F;
constexpr float kLeftOut = 7.9e-16F * kNormal * kNormal;  // 2·(73.9 / 2^15 · 73.9 / 2^23)²
constexpr float kLowest = 1.2e-20F;              // (73.9 / 2^23 · 73.9 / 2^23)², with margin
constexpr float kRounded = 1.45e-15F * kNormal;  // (√(1/12) / 2^23)², and a quarter more for
                                                 // the rounding to float before it
constexpr float kFolded = 3.6e-15F;              // (1 / 2^24)²

// Width of a row; infinite if it cannot be scaled.
__host__ __device__ inline float width_of(const RowStats& stats, const Scale& scale, float k) {
  if (!is_scalable(stats)) return INFINITY;
  if (stats.largest == 0.0F) return 0.0F;
  const float ratio = scale.step * (kFull / 65536.0F) * k / stats.sum;
  return ratio * ratio;
}

// The decision for mean widths W. `summed`: products in one serial sum of cuBLAS, K or fewer
// (summed_in_fp32). `least`: the fewest products that a variant takes.
__host__ __device__ inline Path decide(float width_a, float width_b, float summed, Path least) {
  const float allowed = kCublasError * kCublasError * summed;
  const float rounded = kRounded * (width_a + width_b) + kFolded;
  const float product = width_a * width_b;
  if (least == Path::kSix && kLeftOut * product + rounded <= allowed) return Path::kSix;
  if (least != Path::kFp32 && kLowest * product + rounded <= allowed) return Path::kEight;
  return Path::kFp32;  // also where a width, or the product of both, is infinite
}

}  // namespace tilegate::int8x3
