// Problems of the benchmarks, and names of benchmarks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tilegate/problem.hpp>

namespace tilegate::bench {

// The canonical name: "<Rung>[@<configuration>]/<problem>[/cold]".
std::string benchmark_name(const NamedProblem& named, bool cold);

// The problems of --shapes: a list in the format of to_string, separated by commas, or a table,
// "@file.csv" or "@file.csv:set,set". Without duplicates. Throws UsageError.
std::vector<Problem> parse_shapes(std::string_view text);

}  // namespace tilegate::bench
