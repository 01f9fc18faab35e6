// The command line of `bench`: our own flags; the others go to Google Benchmark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tilegate/stage.hpp>

namespace tilegate::bench {

// A slow-down put on one rung, to see whether the gate finds it.
struct Plant {
  std::string rung;
  double percent = 0.0;

  std::string to_string() const;  // as --plant has it
};

struct Flags {
  std::string shapes;  // empty: the device's default
  bool cold = false;
  bool variants = false;   // of each rung too
  bool alone = false;      // without the yardstick
  int configurations = 0;  // of each stage too, the quickest first
  int placements = 1;      // of a benchmark's operands
  std::uint64_t seed = 1;
  std::optional<Plant> plant;
  std::string samples;            // the file that every timed replay goes to; empty: none
  bool choose_yardstick = false;  // times what may be the best yardstick, into `samples`
  std::string yardstick;          // such a file; empty: cublasSgemm
  std::size_t workspace_limit = kNoWorkspaceLimit;  // of rungs, in bytes
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
