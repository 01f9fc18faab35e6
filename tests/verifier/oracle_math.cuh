// Arithmetic of the oracle, for its host functions and its kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"

namespace tilegate::verifier {

// The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): every bit depends on all others.
__host__ __device__ inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

__host__ __device__ inline float value_at(Inputs inputs, std::uint64_t seed, std::uint64_t index) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;  // 2^64 over the golden ratio, odd
  const std::uint64_t bits = mix(mix(seed + kGolden) + index * kGolden);
  if (inputs == Inputs::kIntegers) {
    return static_cast<float>(static_cast<int>((bits >> 32) * 7 >> 32) - 3);
  }
  if (inputs == Inputs::kPicksFromA || inputs == Inputs::kPicksFromB) {
    // The first bit and the last are set, so that no shorter format holds the value.
    const auto significand = static_cast<int>(bits >> 40 | 1U << 23 | 1U);
    return static_cast<float>((bits & 1) != 0 ? significand : -significand) * 0x1p-23F;
  }
  // 24 random bits, so that the value is exact: a multiple of 2^-23 in [-1, 1).
  return static_cast<float>(static_cast<int>(bits >> 40) - (1 << 23)) * 0x1p-23F;
}

__host__ __device__ inline bool reads_a_and_b(const Product& product) {
  return product.alpha != 0.0F && product.shape.k != 0;
}

struct Expected {
  double value, scale;
};

// One element of the reference from its sums over k; `c` is not dereferenced if beta == 0.
__host__ __device__ inline Expected expected_element(const Product& product, double sum,
                                                     double abs_sum, const float* c) {
  Expected e{0.0, 0.0};
  if (reads_a_and_b(product)) {
    const double alpha = product.alpha;
    e = {alpha * sum, fabs(alpha) * abs_sum};
  }
  if (product.beta != 0.0F) {
    const double addend = static_cast<double>(product.beta) * static_cast<double>(*c);
    e.value += addend;
    e.scale += fabs(addend);
  }
  return e;
}

// The largest magnitude of row `line` of op(A) or, from line m on, of column `line` - m of op(B).
__host__ __device__ inline double largest_of(const Product& product, std::int64_t line) {
  const std::int64_t col = line - product.shape.m;
  const float* from = col < 0 ? product.a + line * product.a_row : product.b + col * product.b_col;
  const std::int64_t next = col < 0 ? product.a_col : product.b_row;
  double largest = 0.0;
  for (std::int64_t k = 0; reads_a_and_b(product) && k < product.shape.k; ++k) {
    largest = fmax(largest, fabs(static_cast<double>(from[k * next])));
  }
  return largest;
}

__host__ __device__ inline bool is_within(float got, double value, double scale,
                                          const Tolerance& tolerance, double largest) {
  const double g = got;
  if (std::isnan(value)) return std::isnan(g);
  if (std::isinf(value)) return g == value;
  const double error = fabs(g - value);  // NaN if `got` is, and no comparison with NaN holds
  return std::isfinite(error) &&
         error <= tolerance.gamma * scale + tolerance.underflow + tolerance.operands * largest;
}

}  // namespace tilegate::verifier
