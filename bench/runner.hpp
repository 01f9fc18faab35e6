// Runs the benchmarks. Google Benchmark calls the callback of a benchmark several times; the runner
// owns the state that outlives a call.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <tilegate/stage.hpp>

#include "checks.hpp"
#include "flags.hpp"
#include "memory.hpp"
#include "platform.hpp"
#include "prepared.hpp"
#include "samples.hpp"
#include "yardstick.hpp"

namespace tilegate::bench {

struct Settings {
  bool cold = false;
  bool alone = false;  // no yardstick
  std::uint64_t seed = 1;
  // The least time that a callback measures; none: the number of iterations of Google Benchmark.
  std::optional<double> min_time_s;
  int placements = 1;        // different addresses of the operands
  double peak_gflops = 0.0;  // 0: unknown
  std::optional<Plant> plant;
  std::ostream* samples = nullptr;                  // gets one CSV line per replay; may be null
  std::optional<YardstickChoice> yardstick;         // none: cublasSgemm for all problems
  std::size_t workspace_limit = kNoWorkspaceLimit;  // of rungs
};

class Runner {
 public:
  explicit Runner(const Settings& settings);

  // The callback of one benchmark; `stage` is the stage of `named`. An iteration is a launch; the
  // loop runs replays, batches of launches.
  void run(benchmark::State& state, const Stage& stage, const NamedProblem& named);

  // Whether a benchmark has failed.
  bool failed() const { return failed_; }

 private:
  // A rung and its yardstick, ready to be timed, with operands at one placement.
  struct Placement {
    device::Buffer spacer;  // moves the operands to other addresses than earlier placements
    Memory memory;
    Batch rung;
    std::optional<Batch> yardstick;
  };
  struct Prepared {
    std::string name;  // the benchmark's
    Workload work;
    std::vector<Placement> placements;
    std::optional<double> planted_percent;                 // injected slow-down of the rung
    std::vector<std::pair<std::string, double>> counters;  // exact ones; of a prepared B its time
    std::string kernels;  // symbols of the kernels, if a configuration was requested; of a prepared
                          // B the configuration
    std::optional<PreparedB> b;  // whose digits the plan reads
  };

  void measure(benchmark::State& state, const Stage& stage, const NamedProblem& named);
  Prepared prepare(const Stage& stage, const NamedProblem& named);
  std::optional<Plan> plan_yardstick(const Problem& problem) const;
  Placement like(const Placement& first, Memory memory, const Plan& plan,
                 const std::optional<Plan>& against) const;
  static std::vector<Sample> replay_at(const Placement& placement, std::int64_t count);
  std::int64_t replays(const Batch& rung, std::int64_t iterations) const;
  std::size_t places(const Problem& problem, const Batch& rung) const;
  void plant(Prepared& prepared) const;
  void report(benchmark::State& state, const Samples& samples) const;

  Settings settings_;
  Checks checks_;
  std::optional<Prepared> current_;  // the last benchmark that ran
  bool failed_ = false;
};

}  // namespace tilegate::bench
