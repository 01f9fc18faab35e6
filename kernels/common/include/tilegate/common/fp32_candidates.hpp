// FP32 by other rungs, for rungs that split operands: kernels in launches of their own, which do
// nothing unless the device decides so.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/problem.hpp>
#include <tilegate/stage.hpp>

namespace tilegate {

// The device's decision is the first word of the workspace. The workspace of FP32 begins here, and
// lies over that of the planes.
constexpr std::size_t kFp32Workspace = 256;
constexpr std::int32_t kDecidedFp32 = 32;

// Enqueues kernels that compute the product if the device has decided for FP32. `longest_sum`: see
// Choice::enqueue_if.
inline Status enqueue_fp32(const Choice& fp32, std::int64_t longest_sum, KernelArgs args,
                           Stream stream) {
  const Condition decided{static_cast<const std::int32_t*>(args.workspace), kDecidedFp32};
  args.workspace = static_cast<std::byte*>(args.workspace) + kFp32Workspace;
  return fp32.enqueue_if(args, decided, longest_sum, stream);
}

// The products that FP32 may add one after another: fewer than the estimate for cuBLAS, which is
// too long for some problems (cublas_error.hpp).
inline std::int64_t longest_sum_of(const Problem& problem) {
  return std::max<std::int64_t>(static_cast<std::int64_t>(summed_in_fp32(problem)) * 3 / 4, 1);
}

// The candidates of other rungs.
struct Fp32Candidates {
  // The launches may take this share of the expected time where the device takes planes.
  static constexpr double kShare = 0.025;
  // A candidate slower than the fastest by more than this factor is not taken.
  static constexpr double kSlower = 1.25;
  // With fewer tiles of 128×128 a candidate must be as accurate as cuBLAS; with more, such a
  // candidate is preferred.
  static constexpr std::int64_t kLargeC = 256;
  static constexpr double kLongerChain = 1.1;

  std::vector<Candidate> all = {};
  double least_seconds = std::numeric_limits<double>::infinity();
  std::int64_t longest_sum = 0;  // of cuBLAS
  bool is_large = false;
  bool always = false;  // for any expected time, in any workspace

  static Fp32Candidates of(std::span<const Stage* const> stages, Problem problem,
                           const Device& device) {
    Fp32Candidates candidates;
    problem.math = Math::fp32;
    for (const Stage* stage : stages) {
      for (Candidate& candidate : stage->candidates(problem, device)) {
        candidates.least_seconds = std::min(candidates.least_seconds, candidate.seconds);
        if (candidate.choice.enqueue_if) candidates.all.push_back(std::move(candidate));
      }
    }
    candidates.longest_sum = static_cast<std::int64_t>(summed_in_fp32(problem));
    candidates.is_large = problem.batch * TileScheduler(problem.shape, 128, 128).count >= kLargeC;
    return candidates;
  }

  // Whether it adds no more products one after another than cuBLAS.
  bool has_short_chain(const Choice& choice) const {
    return static_cast<double>(choice.rounding_chain) <=
           kLongerChain * static_cast<double>(longest_sum);
  }
  bool is_as_accurate(const Choice& choice) const {
    return choice.limits_sums || has_short_chain(choice);
  }

  // The fastest, of accurate ones if there are any, in the workspace of planes that take so many
  // seconds.
  std::optional<Candidate> best(double seconds, std::size_t workspace_bytes) const {
    const Candidate* taken = nullptr;
    for (const Candidate& candidate : all) {
      const Choice& choice = candidate.choice;
      const bool pays = choice.idle_seconds <= kShare * seconds &&
                        candidate.seconds <= kSlower * least_seconds &&
                        (is_large || has_short_chain(choice)) &&
                        kFp32Workspace + choice.workspace_bytes <= workspace_bytes;
      if (!pays && !always) continue;
      // Of inaccurate ones, half the chain is worth 3.5 % of the time.
      const auto rank = [&](const Candidate& of) {
        const bool accurate = is_as_accurate(of.choice);
        const auto chain = static_cast<double>(of.choice.rounding_chain);
        return std::pair(accurate, -of.seconds * (accurate ? 1.0 : std::pow(chain, 0.05)));
      };
      if (taken == nullptr || rank(candidate) > rank(*taken)) taken = &candidate;
    }
    return taken == nullptr ? std::nullopt : std::optional(*taken);
  }
};

}  // namespace tilegate
