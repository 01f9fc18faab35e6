// The table of cases that the counted kernels have beside the ladder's.
#pragma once

#include <string>
#include <vector>

#include <tilegate/stage.hpp>

#include "ladder/cases.hpp"

namespace tilegate::ladder {

// Without how K is shared, "_split4" or "_tail2": that depends on the problem.
std::string tile_of(const std::string& configuration);

// Whether a stage has it from another rung, as "<Rung>:<configuration>": it is that one's to try.
bool is_borrowed(const std::string& configuration);

std::vector<Case> path_cases(const Stage& stage);

}  // namespace tilegate::ladder
