// One call of one stage on operands of its own, counted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <tilegate/sgemm.hpp>

#include "counters.hpp"

namespace tilegate::simt::counted {

// alpha is 1. Written as a benchmark's name, `Warptile/256x256x256[/ld256x256x260][/off4]`, with
// `/beta0.5` after it if beta is not 0.
struct Case {
  std::string stage;
  Shape shape;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t offset = 0;  // bytes, of each operand from a 256-byte boundary
  float beta = 0.0F;

  // nullopt: not of that form.
  static std::optional<Case> parse(std::string_view name);
};

struct Outcome {
  Status status;  // not ok: a hazard, or a call that the stage refuses; counters are then void
  Counters counters;
};

Outcome count(const Stage& stage, const Case& what);

// The outcome as one line of JSON.
std::string to_json(const std::string& name, const Outcome& outcome);

}  // namespace tilegate::simt::counted
