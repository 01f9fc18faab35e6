// C in two parts, one launch after the other: the rows or columns up to a multiple of 32 to 256,
// often whole tiles or whole waves; then the rest. 4225 rows are 33 tiles of 128 rows and one row
// more, which would be a 34th tile.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/common/gpu_model.hpp>
#include <tilegate/device/launch_config.hpp>
#include <tilegate/stage.hpp>

namespace tilegate::sgemm {

// Cuts are before rows or columns whose index is a multiple of one of these. The least is a
// multiple of four: the second part has the alignment of the whole.
constexpr std::array<std::int64_t, 4> kCutSteps = {256, 128, 64, 32};

// Only plans of at least so many seconds are cut, and only if they are slower than that many FLOP
// per second, on as many multiprocessors as an NVIDIA H200 has.
constexpr double kLeastSecondsToCut = 6e-6, kFastEnough = 53e12;

// The expected time of two parts, beside that of each in a chain of equal launches: a gap before
// each part, and none finds in L2 what it has read before. From 54 timings on an H200.
constexpr double kSecondsOfGaps = 2.5e-6, kSlowerInTwo = 1.005;

struct Cut {
  bool is_row;  // before a row, else before a column
  std::int64_t at;

  Shape part(const Shape& whole, bool is_second) const {
    Shape part = whole;
    std::int64_t& extent = is_row ? part.m : part.n;
    extent = is_second ? extent - at : at;
    return part;
  }
  KernelArgs part(KernelArgs args, const Problem& problem, bool is_second) const {
    args.shape = part(args.shape, is_second);
    if (!is_second) return args;
    if (is_row) {
      args.a += at * (problem.op_a == Op::kN ? args.lda : 1);
    } else {
      args.b += at * (problem.op_b == Op::kT ? args.ldb : 1);
    }
    args.c += at * (is_row ? args.ldc : 1);
    return args;
  }
};

// One candidate for each part. Neither starts early: behind another kernel early blocks fill
// whatever slots it leaves free, two on some multiprocessors and none on others. 4225×86×3404 took
// 126 µs so, not 73.
inline Candidate in_two(const Problem& problem, const Cut& cut, Candidate first, Candidate second) {
  Choice &one = first.choice, &other = second.choice;
  Candidate both{
      .choice = {.configuration = one.configuration + (cut.is_row ? "_row" : "_column") +
                                  std::to_string(cut.at) + "_" + other.configuration,
                 .rounding_chain = std::max(one.rounding_chain, other.rounding_chain),
                 .workspace_bytes = std::max(one.workspace_bytes, other.workspace_bytes)},
      .seconds = kSlowerInTwo * (first.seconds + second.seconds) + kSecondsOfGaps};
  both.choice.kernels = [of_one = std::move(one.kernels), of_other = std::move(other.kernels)] {
    std::vector<PlannedKernel> kernels = of_one();
    std::ranges::move(of_other(), std::back_inserter(kernels));
    return kernels;
  };
  both.choice.enqueue = [=, one = std::move(one.enqueue), other = std::move(other.enqueue)](
                            const KernelArgs& args, Stream stream) {
    for (const bool is_second : {false, true}) {
      const device::StartsAlone alone;
      const auto& enqueue = is_second ? other : one;
      Status status = enqueue(cut.part(args, problem, is_second), stream);
      if (!status.ok()) return status;
    }
    return Status{};
  };
  return both;
}

// Where two parts are expected to take less than `seconds`, the time of the fastest FP32 candidate
// for all of C. fastest(part): the fastest Candidate for a part, or none (std::optional).
template <typename Fastest>
std::vector<Candidate> in_two_parts(const Problem& problem, const Device& device, double seconds,
                                    Fastest fastest) {
  const auto [m, n, k] = problem.shape;
  const double flop = 2.0 * static_cast<double>(m) * static_cast<double>(n) *
                      static_cast<double>(k) * kH200.multiprocessors / device.multiprocessors;
  if (problem.batch > 1 || std::min(m, n) <= kCutSteps.back() || seconds < kLeastSecondsToCut ||
      flop >= kFastEnough * seconds) {
    return {};
  }
  std::vector<Candidate> all;
  for (const bool is_row : {true, false}) {
    const std::int64_t extent = is_row ? m : n;
    std::int64_t last = 0;
    for (const std::int64_t step : kCutSteps) {
      const Cut cut{is_row, extent / step * step};
      if (cut.at == extent || cut.at == last) continue;
      last = cut.at;
      Problem part = problem;
      part.math = Math::fp32;
      part.shape = cut.part(problem.shape, false);
      std::optional<Candidate> first = fastest(part);
      part.shape = cut.part(problem.shape, true);
      std::optional<Candidate> second = fastest(part);
      if (!first || !second) continue;
      Candidate both = in_two(problem, cut, *std::move(first), *std::move(second));
      if (both.seconds < seconds) all.push_back(std::move(both));
    }
  }
  return all;
}

}  // namespace tilegate::sgemm
