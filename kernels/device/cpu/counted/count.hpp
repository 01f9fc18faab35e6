// Counts one call of a stage on generated operands.
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

// Plans for the 132 multiprocessors of an H200, so that the counts are for the launches there.
Outcome count(const Stage& stage, const Problem& problem, std::string_view configuration = {});

// The same for "<Stage>[@<configuration>]/<problem>". Not ok: unknown stage, or not a problem.
Outcome count(const std::string& name);

// The outcome as one line of JSON.
std::string to_json(const std::string& name, const Outcome& outcome);

}  // namespace tilegate::simt::counted
