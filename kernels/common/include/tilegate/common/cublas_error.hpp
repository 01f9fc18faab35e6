// Error model of cuBLAS in FP32, fitted to its errors on an NVIDIA H200 (`ci/gate check accuracy`):
// the accuracy that rungs which split operands must reach.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/problem.hpp>

namespace tilegate {

// Its relative error (Frobenius norm) is this times the square root of the number of products that
// it adds one after another. With normal operands 1.79e-8 was measured.
constexpr float kCublasError = 1.7e-8F;

// A lower estimate of that number: K, or a fraction of K where cuBLAS splits K, because C is small
// or the operands allow no vectors.
inline float summed_in_fp32(const Problem& problem) {
  const std::int64_t k = problem.shape.k;
  const std::int64_t tiles =
      problem.batch * ceil_div(problem.shape.m, 128) * ceil_div(problem.shape.n, 128);
  const auto length = [&] {
    if (k <= 128) return k;
    if (tiles < 16) return std::int64_t{64};
    if (tiles < 64) return std::int64_t{112};
    if (!allows_vectors(problem, Operand::kA) || !allows_vectors(problem, Operand::kB))
      return tiles < 256 ? std::min<std::int64_t>(k / 5, 350) : k / 5;
    return tiles >= 256 || k <= 1024 ? k : std::max<std::int64_t>(512, k / 6);
  };
  return static_cast<float>(std::max<std::int64_t>(length(), 64));
}

// Effective number of products in the error of an element: L products of one split of K, then K / L
// partial sums.
inline float products_in_fp32(const Problem& problem) {
  const float length = summed_in_fp32(problem);
  return length + static_cast<float>(problem.shape.k) / length;
}

// The same where all products have one sign. Then a sum grows with its length, not with the square
// root of its length. The serial sum of L of K products counts as 2/3·L products. Its weight in the
// result is L / K, so all K / L sums together count as 2/3·L²/K. Adding them up counts as 2/3·K/L.
// L is unknown: take the L with the least error, but not below summed_in_fp32().
inline float products_of_one_sign_in_fp32(const Problem& problem) {
  const auto k = static_cast<double>(problem.shape.k);
  const double length = std::max<double>(summed_in_fp32(problem), std::cbrt(k * k / 2));
  return static_cast<float>((length * length / k + k / length) * 2 / 3);
}

}  // namespace tilegate
