// Error model of cuBLAS in FP32: the accuracy that rungs which split operands must reach. Fitted to
// the errors of cuBLAS 13: on an NVIDIA H200 for a C of less than 256 tiles, on an H100 for others.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include <tilegate/common/gpu_model.hpp>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/problem.hpp>

namespace tilegate {

// Its relative error (Frobenius norm) is this times the square root of the number of products that
// it adds one after another. With normal operands 1.79e-8 was measured.
constexpr float kCublasError = 1.7e-8F;

// The parts into which cuBLAS may split K where C has at least 256 tiles of 128×128: usually too
// many. It splits K where the last wave of its tiles, 128×256, would be short. Its number of parts
// balances that wave against the exchange of partial sums, and depends on op(A) and op(B).
//
// Fitted to 10,100 random problems with K of 2^9 to 2^14 (normal operands, NVIDIA H100 80GB HBM3,
// cuBLAS 13). Its error was that of 1.5 times as many parts, or more, in 1.3 % of them, of twice as
// many in 0.4 %.
inline std::int64_t parts_in_fp32(const Problem& problem) {
  constexpr auto kSms = static_cast<std::int64_t>(kH200.multiprocessors);
  constexpr double kWholeWave = 0.15;      // of a wave idle, at most
  constexpr std::int64_t kManyWaves = 12;  // then the last one does not matter
  constexpr double kPartialSums = 60.0;    // cost of their exchange, in k per part and wave
  constexpr double kAboutAsFast = 1.04;    // it may take any number of parts in this range
  const std::int64_t m = problem.shape.m, n = problem.shape.n, k = problem.shape.k;
  const bool t_a = problem.op_a == Op::kT, t_b = problem.op_b == Op::kT;
  const bool nt = !t_a && t_b, tn = t_a && !t_b, tt = t_a && t_b;
  const std::int64_t tiles = problem.batch * ceil_div(m, 128) * ceil_div(n, 128);
  if (nt && tiles >= 512) return 1;
  const std::array cublas_tiles = {problem.batch * ceil_div(m, 128) * ceil_div(n, 256),
                                   problem.batch * ceil_div(m, 256) * ceil_div(n, 128)};
  const bool whole_waves = std::ranges::all_of(cublas_tiles, [](std::int64_t of) {
    return of >= kManyWaves * kSms ||
           static_cast<double>(ceil_div(of, kSms) * kSms - of) <= kWholeWave * kSms;
  });
  if (whole_waves && (!tt || tiles >= 512)) {
    return tn || nt ? std::clamp<std::int64_t>(k / 1024, 1, 3) : 1;
  }
  const auto cost = [&](std::int64_t parts) {
    double least = std::numeric_limits<double>::infinity();
    for (const std::int64_t of : cublas_tiles) {
      const auto waves = static_cast<double>(ceil_div(of * parts, kSms));
      const double sums = parts == 1 ? 0.0 : kPartialSums * static_cast<double>(of * parts) / kSms;
      least = std::min(least, waves * static_cast<double>(k) / static_cast<double>(parts) + sums);
    }
    return least;
  };
  const std::int64_t shortest = tiles < 512 ? 300 : tiles < 1024 && tn ? 380 : 650;  // part of K
  std::int64_t parts = std::clamp<std::int64_t>(k / shortest, 1, tiles < 512 ? 8 : 4);
  double least = cost(1);
  for (std::int64_t i = 2; i <= parts; ++i) least = std::min(least, cost(i));
  while (cost(parts) > kAboutAsFast * least) --parts;
  return parts;
}

// The products that cuBLAS adds one after another, usually fewer than it does: K or a part of it,
// 64 at least.
inline float summed_in_fp32(const Problem& problem) {
  const std::int64_t k = problem.shape.k;
  const std::int64_t tiles =
      problem.batch * ceil_div(problem.shape.m, 128) * ceil_div(problem.shape.n, 128);
  const auto length = [&] {
    if (k <= 128) return k;
    if (tiles < 16) return std::int64_t{64};
    if (tiles < 64) return std::int64_t{112};
    if (tiles >= 256) return k / parts_in_fp32(problem);
    if (!allows_vectors(problem, Operand::kA) || !allows_vectors(problem, Operand::kB)) {
      return std::min<std::int64_t>(k / 5, 350);
    }
    if (k > 1024) return std::max<std::int64_t>(512, k / 6);
    // With more tiles than multiprocessors K may be in two parts: of 768×3072×768 it is, of
    // 8812×204×680 it is not (NVIDIA H200).
    if (tiles > static_cast<std::int64_t>(kH200.multiprocessors) && k >= 768) return k / 2;
    if (tiles >= 128 || k <= 512) return k;
    if (problem.op_a == Op::kT && problem.op_b == Op::kN) return k / 4;
    return tiles == 64 && problem.shape.m == problem.shape.n ? k : k / 3;  // 1024³: all of K
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
