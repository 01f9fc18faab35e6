// What is benchmarked: which problems, and what a benchmark of one is called.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tilegate/problem.hpp>

namespace tilegate::bench {

// The canonical name: "<Rung>[@<configuration>]/<problem>[/cold]".
std::string benchmark_name(const NamedProblem& named, bool cold);

// The value of --shapes: problems as to_string writes them, separated by commas, or a table of
// them, "@file.csv" or "@file.csv:set,set". Each problem is returned once. Throws UsageError.
std::vector<Problem> parse_shapes(std::string_view text);

}  // namespace tilegate::bench
