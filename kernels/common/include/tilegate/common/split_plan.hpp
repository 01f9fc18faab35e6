// What rungs that split operands plan with: how long the split takes, and how accurate FP32 is.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/problem.hpp>

namespace tilegate {

// Of the kernel that splits A and B, with both launches, on an NVIDIA H200. `per_element`: seconds,
// of operands that are read as vectors.
inline double split_seconds(const Problem& problem, double per_element) {
  constexpr double kLaunches = 2.7e-6, kPerWord = 3.5e-12;
  double seconds = kLaunches;
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    const auto [rows, cols] = problem.extent(operand);
    const bool is_shared = problem.batch > 1 && problem.stride(operand) == 0;
    const double elements = static_cast<double>(rows) * static_cast<double>(cols) *
                            static_cast<double>(is_shared ? 1 : problem.batch);
    seconds += elements * (per_element + (allows_vectors(problem, operand) ? 0.0 : kPerWord));
  }
  return seconds;
}

// The k that cuBLAS in FP32 adds up one after another, or a few less, as its errors on an NVIDIA
// H200 show (`ci/gate accuracy`): all of them, but parts of K where C is small or rows are not
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

}  // namespace tilegate
