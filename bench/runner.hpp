// Runs the benchmarks: owns everything that outlives Google Benchmark's callback, which is called
// several times for one benchmark.
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
#include "samples.hpp"
#include "yardstick.hpp"

namespace tilegate::bench {

struct Settings {
  bool cold = false;
  bool alone = false;  // no yardstick
  std::uint64_t seed = 1;
  // What a callback measures at the least; none: as many iterations as Google Benchmark asks for.
  std::optional<double> min_time_s;
  int placements = 1;        // of the operands, at different addresses
  double peak_gflops = 0.0;  // 0: unknown
  std::optional<Plant> plant;
  std::ostream* samples = nullptr;           // takes every replay, one CSV line each; may be null
  std::optional<YardstickChoice> yardstick;  // none: cublasSgemm for all problems
  std::size_t workspace_limit = kNoWorkspaceLimit;  // of rungs
};

class Runner {
 public:
  explicit Runner(const Settings& settings);

  // The callback of one benchmark; `stage` is the one that `named` names. An iteration is a launch;
  // the loop goes by replays of a batch of them.
  void run(benchmark::State& state, const Stage& stage, const NamedProblem& named);

  // True once a benchmark was in error.
  bool failed() const { return failed_; }

 private:
  // A rung and its yardstick, ready to be timed on operands that lie in one place.
  struct Placement {
    device::Buffer spacer;  // keeps the operands away from where those of the other places lie
    Memory memory;
    Batch rung;
    std::optional<Batch> yardstick;
  };
  struct Prepared {
    std::string name;  // of the benchmark
    Workload work;
    std::vector<Placement> placements;
    std::optional<double> planted_percent;  // by how much it slows the rung down, by the clock
    std::vector<std::pair<std::string, double>> exact_counters;
    std::string kernels;  // their symbols, where a configuration was asked for
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
  std::optional<Prepared> current_;  // of the last benchmark that ran
  bool failed_ = false;
};

}  // namespace tilegate::bench
