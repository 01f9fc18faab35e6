// The replays of a benchmark, and the counters that follow from them.
#pragma once

#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include <tilegate/problem.hpp>

#include "platform.hpp"

namespace tilegate::bench {

// The replays, by placement of the operands.
using Samples = std::vector<std::vector<Sample>>;

double median(std::vector<double> values);

template <typename Value>
double median_of(std::span<const Sample> samples, Value value) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(value(sample));
  return median(std::move(values));
}

// Bytes that even a perfect cache has to move: A and B in, C out, and C in if beta is not 0. An
// operand that a batch shares counts once.
double compulsory_bytes(const Problem& problem);

// Counters that follow from times. `peak_gflops`: 0 if unknown.
void report_speed(benchmark::State& state, const Samples& samples, const Problem& problem,
                  double peak_gflops);

// One CSV line per replay.
void write_samples(std::ostream& to, std::string_view name, const Samples& samples);

}  // namespace tilegate::bench
