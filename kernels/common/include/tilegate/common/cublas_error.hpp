// How accurate cuBLAS is in FP32, as its errors on an NVIDIA H200 show (`ci/gate accuracy`): what
// rungs that split operands are held to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/problem.hpp>

namespace tilegate {

// Its relative error (Frobenius norm) is this times the root of how many products it adds up one
// after another; 1.79e-8 with normal operands.
constexpr float kCublasError = 1.7e-8F;

// How many those are, or a few less: all of K, but parts of it where C is small or rows are not
// vectors.
inline float summed_in_fp32(const Problem& problem) {
  const std::int64_t k = problem.shape.k;
  const std::int64_t tiles =
      problem.batch * ceil_div(problem.shape.m, 128) * ceil_div(problem.shape.n, 128);
  const auto part = [&] {
    if (k <= 128) return k;
    if (tiles < 16) return std::int64_t{64};
    if (tiles < 64) return std::int64_t{112};
    if (!allows_vectors(problem, Operand::kA) || !allows_vectors(problem, Operand::kB))
      return tiles < 256 ? std::min<std::int64_t>(k / 5, 350) : k / 5;
    return tiles >= 256 || k <= 1024 ? k : std::max<std::int64_t>(512, k / 6);
  };
  return static_cast<float>(std::max<std::int64_t>(part(), 64));
}

// As many products as have the error of all: those of a part of K, and of adding the parts up.
inline float products_in_fp32(const Problem& problem) {
  const float part = summed_in_fp32(problem);
  return part + static_cast<float>(problem.shape.k) / part;
}

// The same where all products have one sign. Then a sum grows with its length, not with the root of
// it. A part of L products, of K in all, has the error of 2/3·L of them, and as it is L / K of the
// whole, all K / L parts together have that of 2/3·L²/K; adding them up, 2/3·K/L more. L is not
// known: of all from summed_in_fp32() on, that with the least error.
inline float products_of_one_sign_in_fp32(const Problem& problem) {
  const auto k = static_cast<double>(problem.shape.k);
  const double part = std::max<double>(summed_in_fp32(problem), std::cbrt(k * k / 2));
  return static_cast<float>((part * part / k + k / part) * 2 / 3);
}

}  // namespace tilegate
