// The command line of `bench`. Unknown --benchmark_ flags are passed to Google Benchmark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tilegate/stage.hpp>

namespace tilegate::bench {

// A slow-down that is injected into one rung, to test the gate.
struct Plant {
  std::string rung;
  double percent = 0.0;

  std::string to_string() const;  // the value of --plant
};

struct Flags {
  std::string shapes;  // empty: the device's default
  bool cold = false;
  bool variants = false;   // also run the variants of each rung
  bool alone = false;      // without the yardstick
  bool prepared = false;   // also with a prepared B
  int configurations = 0;  // also run so many configurations of each stage, the fastest first
  int placements = 1;      // of a benchmark's operands
  std::uint64_t seed = 1;
  std::optional<Plant> plant;
  std::string samples;            // file for every timed replay; empty: none
  bool choose_yardstick = false;  // times all candidates for the best yardstick, into `samples`
  std::string yardstick;          // such a file; empty: cublasSgemm
  std::size_t workspace_limit = kNoWorkspaceLimit;  // of rungs, in bytes
  bool help = false;
  bool list = false;                 // Google Benchmark's: prints only names, uses no device
  std::optional<double> min_time_s;  // Google Benchmark's; none: a number of iterations ("7x")

  // Flags for Google Benchmark, with --benchmark_min_time in the format of its version.
  std::vector<std::string> passed_on;
};

// `args` without the program's name. Throws UsageError.
Flags parse_flags(const std::vector<std::string>& args, double default_min_time_s);

// The help text.
std::string flags_help();

}  // namespace tilegate::bench
