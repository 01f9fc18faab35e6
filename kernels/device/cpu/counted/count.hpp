// One call of one stage on operands of its own, counted.
#pragma once

#include <string>
#include <string_view>

#include <tilegate/stage.hpp>

#include "counters.hpp"

namespace tilegate::simt::counted {

struct Outcome {
  Status status;  // not ok: a hazard, or a call that the stage refuses; counters are then void
  Counters counters;
};

// Plans as for an H200 (132 multiprocessors), because counts are of the launches that run there.
Outcome count(const Stage& stage, const Problem& problem, std::string_view configuration = {});

// The same for "<Stage>[@<configuration>]/<problem>"; not ok: no stage of the catalogue, or no
// problem.
Outcome count(const std::string& name);

// The outcome as one line of JSON.
std::string to_json(const std::string& name, const Outcome& outcome);

}  // namespace tilegate::simt::counted
