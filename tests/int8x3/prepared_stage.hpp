// PreparedOperand as a stage: a call prepares the operand in its workspace, behind that of the
// product, and launches the product.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/int8x3.hpp>
#include <tilegate/prepared.hpp>
#include <tilegate/stage.hpp>

#include "18_int8x3/int8x3.hpp"

namespace tilegate::int8x3 {

// With checksums.
template <Operand kOperand>
std::vector<Candidate> prepared_candidates(const Problem& problem, const Device& device) {
  const PreparedOperand operand(problem, kOperand, device, true);
  std::vector<Candidate> all = Prepared{problem, kOperand, device, true}.candidates(problem);
  for (Candidate& candidate : all) {
    Choice& choice = candidate.choice;
    const std::size_t own = (choice.workspace_bytes + 255) / 256 * 256;
    choice.workspace_bytes = own + operand.bytes();
    choice.enqueue = [=, name = "Prepared:" + choice.configuration](const KernelArgs& args,
                                                                    Stream stream) {
      PreparedOperand prepared = operand;
      auto* const workspace = static_cast<std::byte*>(args.workspace);
      const float* const from = kOperand == Operand::kA ? args.a : args.b;
      Status status = prepared.prepare(from, workspace + own, prepared.bytes(), stream);
      if (!status.ok()) return status;
      return prepared.plan(problem, name)
          .launch({.a = args.a,
                   .b = args.b,
                   .c = args.c,
                   .workspace = workspace,
                   .workspace_bytes = own},
                  stream);
    };
  }
  return all;
}

template <Operand kOperand>
constexpr Stage prepared_stage() {
  return {.name = kOperand == Operand::kA ? "PreparedA" : "PreparedB",
          .requirements = {.compute_capability = 75},
          .math = Math::fp32_split,
          .takes_transposed = true,
          .candidates = prepared_candidates<kOperand>,
          .setup = [] { return stage.prepare(); }};
}

inline constexpr Stage kPreparedA = prepared_stage<Operand::kA>(),
                       kPreparedB = prepared_stage<Operand::kB>();

}  // namespace tilegate::int8x3
