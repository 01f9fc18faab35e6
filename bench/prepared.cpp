#include "prepared.hpp"

#include <chrono>
#include <vector>

#include <tilegate/sgemm.hpp>

#include "18_int8x3/int8x3.hpp"
#include "errors.hpp"
#include "platform.hpp"

namespace tilegate::bench {
namespace {

std::vector<Candidate> candidates_of_prepared_b(const Problem& problem, const Device& device) {
  return int8x3::Prepared{problem, Operand::kB, device}.candidates(problem);
}

}  // namespace

const Stage& prepared_b() {
  static const Stage kStage{.name = "Prepared",
                            .takes_transposed = true,
                            .candidates = candidates_of_prepared_b,
                            .setup = [] { return sgemm::stage.prepare(); }};
  return kStage;
}

// Plans need a prepared operand, and memory for operands needs a plan: so any values at first.
PreparedB::PreparedB(const Problem& problem)
    : operand_(problem, Operand::kB, device::current(), false), digits_(operand_.bytes()) {
  check(operand_.status());
  const Matrices any(problem, Operand::kB, 1);
  check(operand_.prepare(any.copy(0), digits_.data(), digits_.size(), stream()));
  check(device::synchronize());
}

Plan PreparedB::plan(const Problem& problem, const std::string& configuration,
                     std::size_t limit) const {
  return operand_.plan(problem, configuration.empty() ? "" : "Prepared:" + configuration, limit);
}

void PreparedB::prepare(const Memory& memory) {
  const float* const b = memory.rung().front().b;
  check(operand_.prepare(b, digits_.data(), digits_.size(), stream()));
}

double PreparedB::prepare_s(const Memory& memory) {
  const int calls = defaults().is_cuda ? 20 : 1;
  check(device::synchronize());
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) prepare(memory);
  check(device::synchronize());
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
  return all.count() / calls;
}

}  // namespace tilegate::bench
