#include "checks.hpp"

#include <string>

#include "errors.hpp"
#include "platform.hpp"

namespace tilegate::bench {
namespace {

constexpr std::size_t kMemoryShare = 4;  // references may take 1/4 of the device's memory

std::string describe(const verifier::Comparison& comparison, const verifier::Product& product,
                     const Problem& problem, std::int64_t index, bool exact) {
  const std::int64_t first_row = comparison.first_row * product.c_row / problem.ldc;
  return "wrong result: " + std::to_string(comparison.mismatches) + " of " +
         std::to_string(product.shape.m * product.shape.n) + " elements of C" +
         (problem.batch > 1 ? " number " + std::to_string(index) : "") + " are " +
         (exact ? "not exact on integers" : "outside the error bound") + ", the first at row " +
         std::to_string(first_row) + ", column " + std::to_string(comparison.first_col);
}

}  // namespace

Checks::Checks(std::uint64_t seed)
    : seed_(seed), references_(device::current().total_memory / kMemoryShare) {}

void Checks::launch_and_verify(const Workload& work, const Memory& memory,
                               verifier::Inputs inputs) {
  memory.reset_result(inputs, seed_);
  // Computed before the launch, because the reference may need C, which the launch overwrites.
  references_.get(work.problem, inputs, seed_, memory.rung().front());
  Batch(work.plan, memory.rung(), static_cast<int>(memory.rung().size())).replay();
  verify(work, memory, inputs);
}

void Checks::verify(const Workload& work, const Memory& memory, verifier::Inputs inputs) {
  const bool exact = inputs == verifier::Inputs::kIntegers;
  const Problem& problem = work.problem;
  check(device::synchronize());
  for (const Operands& operands : memory.rung()) {
    const Reference& reference = references_.get(problem, inputs, seed_, operands);
    const verifier::Tolerance tolerance =
        exact ? verifier::Tolerance{}
              : verifier::forward_error(work.plan.rounding_chain(), problem,
                                        work.plan.operand_error());
    for (std::int64_t index = 0; index < problem.batch; ++index) {
      const verifier::Product product = compared(problem, inputs, operands, index);
      const std::int64_t first = index * product.shape.m * product.shape.n;
      verifier::Comparison comparison;
      check(verifier::compare_on_device(product, reference.value_data() + first,
                                        exact ? nullptr : reference.scale_data() + first, tolerance,
                                        &comparison));
      if (comparison.mismatches > 0) {
        throw Failure(describe(comparison, product, problem, index, exact));
      }
    }
  }
}

}  // namespace tilegate::bench
