// Which rows of an operand can be scaled before they are split, and the bits of a float, on host
// and device.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include <tilegate/device/device.cuh>

namespace tilegate {

__host__ __device__ inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

__host__ __device__ inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// From the smallest on, the product of two scales of Int8x3 is exact: it is no subnormal number.
constexpr float kSmallestScaled = 0x1p-56F, kLargestScaled = 0x1p60F;

// Whether a row can be scaled at all: zero, or far from the ends of float's range. `seen` has the
// largest magnitude, and the sum of all, which is NaN or Inf where an element is.
template <typename Seen>
__host__ __device__ bool is_scalable(const Seen& seen) {
  return seen.sum < INFINITY && (seen.largest == 0.0F || (seen.largest >= kSmallestScaled &&
                                                          seen.largest <= kLargestScaled));
}

}  // namespace tilegate
