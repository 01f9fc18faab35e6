// Which products a call takes: decided on the device, from what the split pass has seen.
//
// With W = (largest / mean magnitude)² of a row of op(A) or a column of op(B), averaged over all of
// them, six products have a relative error (Frobenius norm) of about
//
//   √(kLeftOut·W_A·W_B + kRounded·(W_A + W_B) + kFolded):
//
// the first term is of mid·lo and lo·mid, which are left out, the second of the rounding to
// integers, which eight products have too, the third of the last steps in FP32. A serial sum of K
// products in FP32 has about kCublasError·√K. The rung takes the fewest products whose error is
// below that.
#pragma once

#include <cstdint>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/device/device.cuh>

#include "digits.cuh"

namespace tilegate::int8x3 {

enum class Path : std::int32_t { kSix = 6, kEight = 8, kFp32 = 32 };

// For digits that are evenly distributed and elements that are normal, whose mean magnitude is
// √(2/π) of their root mean square: hence the factors (2/π)² and 2/π of W. The standard deviation
// of a digit is 73.9, of a rounding √(1/12).
constexpr float kNormal = 0.6366F;
constexpr float kLeftOut = 7.9e-16F * kNormal * kNormal;  // 2·(73.9 / 2^15 · 73.9 / 2^23)²
constexpr float kLowest = 1.2e-20F;              // (73.9 / 2^23 · 73.9 / 2^23)², with margin
constexpr float kRounded = 1.45e-15F * kNormal;  // (√(1/12) / 2^23)², and a quarter more for
                                                 // the rounding to float before it
constexpr float kFolded = 3.6e-15F;              // (1 / 2^24)²

// W of a row; infinite where it cannot be scaled.
__host__ __device__ inline float width_of(const Seen& seen, const Scale& scale, float k) {
  if (!is_scalable(seen)) return INFINITY;
  if (seen.largest == 0.0F) return 0.0F;
  const float ratio = scale.step * (kFull / 65536.0F) * k / seen.sum;
  return ratio * ratio;
}

// Of the mean widths, to be as accurate as a sum of `summed` products in FP32. `least`: products
// below which a variant does not go.
__host__ __device__ inline Path decide(float width_a, float width_b, float summed, Path least) {
  const float allowed = kCublasError * kCublasError * summed;
  const float rounded = kRounded * (width_a + width_b) + kFolded;
  const float product = width_a * width_b;
  if (least == Path::kSix && kLeftOut * product + rounded <= allowed) return Path::kSix;
  if (least != Path::kFp32 && kLowest * product + rounded <= allowed) return Path::kEight;
  return Path::kFp32;  // also where a width is infinite, or a product of two is
}

}  // namespace tilegate::int8x3
