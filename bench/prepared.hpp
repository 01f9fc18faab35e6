// The rows Prepared/<problem>: products with a prepared B.
#pragma once

#include <optional>
#include <string>

#include <tilegate/prepared.hpp>
#include <tilegate/stage.hpp>

#include "memory.hpp"

namespace tilegate::bench {

// Their name and configurations; it makes no plans.
const Stage& prepared_b();

class PreparedB {
 public:
  explicit PreparedB(const Problem& problem);

  // `configuration`: one of prepared_b(), or empty.
  Plan plan(const Problem& problem, const std::string& configuration, std::size_t limit) const;

  // Enqueues the split of B. Its copies are equal.
  void prepare(const Memory& memory);

  // Of one call, from the host's clock over several.
  double prepare_s(const Memory& memory);

 private:
  PreparedOperand operand_;
  device::Buffer digits_;
};

}  // namespace tilegate::bench
