#include "samples.hpp"

#include <algorithm>
#include <ostream>

#include "errors.hpp"

namespace tilegate::bench {
namespace {

double flops(const Problem& problem) {
  const auto [m, n, k] = problem.shape;
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
         static_cast<double>(problem.batch);
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::ranges::max_element(values.begin(), middle)) / 2.0;
}

double compulsory_bytes(const Problem& problem) {
  const auto elements = [&](Operand operand) {
    const auto [rows, cols] = problem.extent(operand);
    const bool is_shared = problem.batch > 1 && problem.stride(operand) == 0;
    return static_cast<double>(rows * cols * (is_shared ? 1 : problem.batch));
  };
  const double c = elements(Operand::kC) * (problem.beta == 0.0F ? 1.0 : 2.0);
  return sizeof(float) * (elements(Operand::kA) + elements(Operand::kB) + c);
}

// What decides is the place where the operands lie best: the same in every process, where the rest
// is luck.
void report_speed(benchmark::State& state, const Samples& samples, const Problem& problem,
                  double peak_gflops) {
  const bool beside = samples.front().front().yardstick_s > 0.0;
  // What cuBLAS takes beside it knows the clocks of the moment, so it says which place is the best.
  const auto speed = [&](const Sample& s) { return (beside ? s.yardstick_s : 1.0) / s.rung_s; };
  const auto slower = [&](const std::vector<Sample>& a, const std::vector<Sample>& b) {
    return median_of(a, speed) < median_of(b, speed);
  };
  const auto [worst, best] = std::ranges::minmax_element(samples, slower);
  const double gflops =
      median_of(*best, [&](const Sample& s) { return flops(problem) / s.rung_s / 1e9; });
  state.counters["GFLOPS"] = gflops;
  if (beside) state.counters["ratio_to_cublas"] = median_of(*best, speed);
  if (peak_gflops > 0.0) {
    state.counters["pct_peak"] = 100.0 * gflops / peak_gflops;
  }
  state.counters["bytes"] = compulsory_bytes(problem);
  if (samples.size() > 1) {
    state.counters["placement_pct"] =
        100.0 * (median_of(*best, speed) / median_of(*worst, speed) - 1.0);
  }
}

void write_samples(std::ostream& to, std::string_view name, const Samples& samples) {
  for (std::size_t place = 0; place < samples.size(); ++place) {
    for (const Sample& sample : samples[place]) {
      to << name << ',' << place << ',' << sample.rung_s << ',' << sample.yardstick_s << '\n';
    }
  }
  if (!to.flush()) throw Failure("--samples: the file cannot be written");
}

}  // namespace tilegate::bench
