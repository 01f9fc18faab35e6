// Which products a call takes: decided on the device, from what the split pass has seen.
//
// The relative error (Frobenius norm) of halves is that of a run, and of adding runs up. That of
// cuBLAS in FP32 is small where it adds up few products one after another (cublas_error.hpp), and
// smaller where most products do not count, or all have one sign. The rung takes halves where their
// error is below that, in long runs where it is well below, and else multiplies in FP32, more
// accurately than cuBLAS.
#pragma once

#include <cmath>
#include <cstdint>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/split_chunks.cuh>
#include <tilegate/device/device.cuh>

#include "halves.cuh"

namespace tilegate::fp16x3 {

// Which products a call took: three of halves, or FP32.
enum class Path : std::int32_t { kHalves = 3, kFp32 = 32 };

// What the tensor cores sum before it is added in FP32: so many chunks of K. A long run is quicker,
// a short one more accurate.
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

// Of an operand, on average over its rows.
struct SeenRows {
  float counted = 0.0F;   // elements that count; Inf if a row cannot be scaled
  float one_sign = 0.0F;  // |sum| / sum of magnitudes: 1 where a row has one sign
};

__host__ __device__ inline float one_sign_of(const Seen& seen) {
  return seen.sum > 0.0F ? std::fabs(seen.signed_sum) / seen.sum : 0.0F;
}

// What the plan knows: K, and how many products' errors cuBLAS has, where they have either sign,
// and where all have one.
struct Summed {
  float k = 0.0F, either_sign = 0.0F, one_sign = 0.0F;
};

// The chunks of a run; 0: multiply in FP32. The longer a run, the further its error, squared, has
// to be below cuBLAS's. An element of C consists of a random part, and of `grown` times as much,
// squared, that has grown with K, as all products had one sign.
__host__ __device__ inline int decide(const SeenRows& a, const SeenRows& b, const Summed& summed) {
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
