// Conversions between FP32 and FP16, for host and device.
#pragma once

#include <cmath>
#include <cstdint>

#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// Rounds to the nearest FP16 number, ties to even. Magnitudes from 65520 on become Inf.
__host__ __device__ inline std::uint32_t to_fp16(float value) {
#if defined(__CUDA_ARCH__)
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  const std::uint32_t sign = bits_of(value) >> 16 & 0x8000U;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7FFFU;
  if (magnitude >= 65520.0F) return sign | 0x7C00U;
  if (magnitude < 0x1p-14F)
    return sign | static_cast<std::uint32_t>(std::lrint(magnitude * 0x1p24F));
  const std::uint32_t bits = bits_of(magnitude);
  return sign | (((bits + 0xFFFU + (bits >> 13 & 1U)) >> 13) - (112U << 10));
#endif
}

__host__ __device__ inline float from_fp16(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<std::uint16_t>(bits)));
  return value;
#else
  const std::uint32_t magnitude = bits & 0x7FFFU;
  float value = 0.0F;
  if (magnitude < 0x400U) {
    value = static_cast<float>(magnitude) * 0x1p-24F;
  } else {
    value = float_of((magnitude << 13) + ((magnitude < 0x7C00U ? 112U : 224U) << 23));
  }
  return (bits & 0x8000U) != 0 ? -value : value;
#endif
}

// The same for two numbers; the first is in the lower 16 bits.
__host__ __device__ inline std::uint32_t to_fp16x2(float first, float second) {
#if defined(__CUDA_ARCH__)
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return to_fp16(first) | to_fp16(second) << 16;
#endif
}

}  // namespace tilegate
