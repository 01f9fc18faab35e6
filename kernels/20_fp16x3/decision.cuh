// Which products a call takes: decided on the device, from what the split pass has seen.
//
// The relative error (Frobenius norm) of halves is that of a run, and of adding runs up. That of
// cuBLAS in FP32 is small where it adds up few products one after another (cublas_error.hpp), and
// smaller where most products do not count, or all have one sign. The rung takes halves where their
// error is below that, and else multiplies in FP32, more accurately than cuBLAS.
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

// Runs of 32 k that are added up before their sum is added to the total.
constexpr int kRuns = 16;

// Of a run, with normal operands, and with operands from 0 to 1, where what tensor cores cut off
// always makes a sum smaller. Found by the executor, which has the bits of an NVIDIA H200.
constexpr float kRunError = 1.06e-7F, kRunErrorOfOneSign = 0.86e-7F;

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

// An element of C consists of a random part, and of `grown` times as much, squared, that has grown
// with K, as all products had one sign.
__host__ __device__ inline Path decide(const SeenRows& a, const SeenRows& b, const Summed& summed) {
  const float share = a.counted * b.counted / (summed.k * summed.k);  // of products that count
  if (!(share < INFINITY)) return Path::kFp32;
  const float one_sign = a.one_sign * b.one_sign;
  // Of one sign, the mean product squared is about half of the mean squared product.
  const float grown = 0.5F * one_sign * one_sign * summed.k;
  constexpr float kSquared = kCublasError * kCublasError;
  const float products = share * (summed.either_sign + grown * summed.one_sign);
  const float runs = summed.k / kChunkK;
  const float added = (runs < kRuns ? runs : kRuns) + runs / kRuns;
  const float random = kRunError * kRunError + kSquared * added;
  const float biased = kRunErrorOfOneSign * kRunErrorOfOneSign + kSquared * added * 2.0F / 3.0F;
  return kSquared * products >= random + grown * biased ? Path::kHalves : Path::kFp32;
}

}  // namespace tilegate::fp16x3
