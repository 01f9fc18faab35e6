// One call of one stage on operands of its own, counted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tilegate/sgemm.hpp>

#include "counters.hpp"

namespace tilegate::simt::counted {

// Leading dimensions are the widths, alpha is 1. Written `Warptile/256x256x256[/beta0.5]`.
struct Case {
  std::string stage;
  Shape shape;
  float beta = 0.0F;

  // nullopt: not of that form.
  static std::optional<Case> parse(std::string_view name);
};

struct Outcome {
  Status status;  // not ok: a hazard, or a call that the stage refuses; counters are then void
  Counters counters;
};

Outcome count(const Stage& stage, const Shape& shape, float beta);

// The outcome as one line of JSON.
std::string to_json(const std::string& name, const Outcome& outcome);

}  // namespace tilegate::simt::counted
