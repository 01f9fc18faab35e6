// Stages that round what they should not, that declare the wrong rounding chain, or that are wrong
// by a multiple of their bound in one element.
#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier_faults/faults.hpp"
#include "verifier_faults/planted_stage.cuh"
#include "verifier_faults/rounding_kernels.cuh"

namespace tilegate::faults {

constexpr std::int64_t kMostExtraRoundings = 16;  // as the verifier has it

constexpr bool sums_halves(RoundingFault fault) {
  return fault == RoundingFault::kSumsHalves || fault == RoundingFault::kRoundsPartialSum ||
         fault == RoundingFault::kTwiceInWorkspaceTail;
}

template <RoundingFault kFault>
Status enqueue_sum(const Sum& sum, Stream stream) {
  const std::int64_t elements = sum.args.batch * sum.args.shape.m * sum.args.shape.n;
  device::LaunchConfig launch{
      .kernel = "planted rounding", .blocks = ceil_div(elements, kThreads), .threads_x = kThreads};
  if constexpr (!sums_halves(kFault)) {
    return device::launch(launch, stream, sum_in_order<kFault>, sum);
  } else {
    launch.blocks = ceil_div(2 * elements, kThreads);
    if (Status s = device::launch(launch, stream, sum_half<kFault>, sum); !s.ok()) return s;
    launch.blocks = ceil_div(elements, kThreads);
    return device::launch(launch, stream, add_halves_of<kFault>, sum);
  }
}

template <RoundingFault kFault>
Choice choose_sum(const Problem& problem, const Device& /*device*/) {
  const auto [m, n, k] = problem.shape;
  Choice choice{.status = Grid::fits(problem.shape), .rounding_chain = k + 2};
  if (sums_halves(kFault)) {
    choice.rounding_chain = ceil_div(k, 2) + 1 + 2;
    choice.workspace_bytes = static_cast<std::size_t>(2 * problem.batch * m * n) * sizeof(float);
  }
  if (kFault == RoundingFault::kShortChain) choice.rounding_chain -= 1;
  if (kFault >= RoundingFault::kRoundsA && kFault <= RoundingFault::kRoundsPartialSum) {
    choice.rounding_chain = k + kMostExtraRoundings;
  }
  if (kFault == RoundingFault::kLongChain) choice.rounding_chain = k + kMostExtraRoundings + 1;
  choice.enqueue = [transposed_a = problem.op_a == Op::kT, transposed_b = problem.op_b == Op::kT,
                    chain = choice.rounding_chain](const KernelArgs& args, Stream stream) {
    return enqueue_sum<kFault>(Sum{args, transposed_a, transposed_b, chain}, stream);
  };
  return choice;
}

template <RoundingFault kFault>
constexpr Stage make_rounding(std::string_view name) {
  Stage stage = make_stage(name, kTileSizes, choose_sum<kFault>);
  stage.takes_transposed = stage.takes_batches = true;
  return stage;
}

std::span<const Stage> rounding_faults() {
  using enum RoundingFault;
  static constexpr Stage kStages[] = {
      make_rounding<kNone>("RightRounding"),
      make_rounding<kSumsHalves>("RightSumOfHalves"),
      make_rounding<kRoundsA>("RoundsAToTf32"),
      make_rounding<kRoundsB>("RoundsBToTf32"),
      make_rounding<kRoundsC>("RoundsCToTf32"),
      make_rounding<kRoundsPartialSum>("RoundsPartialSumToTf32"),
      make_rounding<kShortChain>("DeclaresShortChain"),
      make_rounding<kLongChain>("DeclaresLongChain"),
      make_rounding<kAddsTwice>("AddsOneProductTwice"),
      make_rounding<kHalfTheBound>("HalfTheBound"),
      make_rounding<kTwiceInFirstElement>("TwiceTheBoundInFirstElement"),
      make_rounding<kTwiceInLastRow>("TwiceTheBoundInLastRow"),
      make_rounding<kTwiceInLastColumn>("TwiceTheBoundInLastColumn"),
      make_rounding<kTwiceInLastElement>("TwiceTheBoundInLastElement"),
      make_rounding<kTwiceInWorkspaceTail>("TwiceTheBoundInWorkspaceTail"),
  };
  return kStages;
}

}  // namespace tilegate::faults
