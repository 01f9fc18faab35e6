// The command line of `bench`: our own flags; the others go to Google Benchmark.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tilegate::bench {

struct Flags {
  std::string shapes;  // empty: the device's default
  bool cold = false;
  std::uint64_t seed = 1;
  bool help = false;
  bool list = false;                 // of Google Benchmark: only names are wanted, no device
  std::optional<double> min_time_s;  // of Google Benchmark; none: it counts iterations ("7x")

  // For Google Benchmark, --benchmark_min_time included, in the form that its version expects.
  std::vector<std::string> passed_on;
};

// `args` without the program's name. Throws UsageError.
Flags parse_flags(const std::vector<std::string>& args, double default_min_time_s);

// What --help says about our flags.
std::string flags_help();

}  // namespace tilegate::bench
