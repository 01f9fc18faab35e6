// Timing on the CPU, where the SIMT executor runs kernels: a steady clock around each launch. The
// times are those of the executor and say nothing about a GPU.
#include <chrono>
#include <cstring>

#include "errors.hpp"
#include "platform.hpp"
#include "yardstick.hpp"

#if TILEGATE_COUNTERS
#include <counted.h>
#endif

namespace tilegate::bench {

struct Batch::Recording {
  Plan plan;
  std::vector<Operands> calls;
  int launches;
  double delay_s;

  double run() const {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) {
      check(plan.launch(calls[static_cast<std::size_t>(i) % calls.size()]));
    }
    const auto seconds = [&start] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const double until = seconds() + delay_s;
    while (delay_s > 0.0 && seconds() < until) {
    }
    return seconds();
  }
};

const Defaults& defaults() {
  static const Defaults kDefaults{
      .is_cuda = false,
      .min_time_s = 0.01,
      .min_replay_s = 0.0,
      .shapes = {{64, 64, 64}, {96, 96, 96}, {128, 128, 128}, {65, 67, 63}},
  };
  return kDefaults;
}

Stream stream() { return nullptr; }

void poison(const device::Buffer& buffer) { std::memset(buffer.data(), 0xFF, buffer.size()); }

std::size_t cache_bytes() { return 0; }

const Stage* cublas_lt() { return nullptr; }

double measure_peak_gflops() { return 0.0; }

std::string kernel_symbols(const Plan& /*plan*/, const Operands& /*operands*/) { return {}; }

std::vector<std::pair<std::string, std::string>> device_context() {
  return {{"device_kind", "simt"}, {"device_name", device::current().name}};
}

#if TILEGATE_COUNTERS

constexpr double kMaxCountedFma = 1 << 25;  // about a second in the slowest rung

std::vector<std::pair<std::string, double>> exact_counters(const NamedProblem& named) {
  std::vector<std::pair<std::string, double>> counters;
  const auto [m, n, k] = named.problem.shape;
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) > kMaxCountedFma) {
    return counters;
  }
  const auto visit = [](void* context, const char* name, double value) {
    static_cast<decltype(counters)*>(context)->emplace_back(name, value);
  };
  const std::string name = to_string(named);
  if (const char* error = tilegate_count_case(name.c_str(), visit, &counters)) {
    throw Failure(error);
  }
  return counters;
}

#else

std::vector<std::pair<std::string, double>> exact_counters(const NamedProblem& /*named*/) {
  return {};
}

#endif

Batch::Batch(const Plan& plan, std::span<const Operands> calls, int launches, double delay_s)
    : recording_(std::make_unique<Recording>(
          Recording{plan, {calls.begin(), calls.end()}, launches, delay_s})),
      launches_(launches) {}

Batch::~Batch() = default;
Batch::Batch(Batch&& other) noexcept = default;
Batch& Batch::operator=(Batch&& other) noexcept = default;

void Batch::replay() { replay_s_ = recording_->run(); }

std::vector<Sample> replay_in_turn(const Batch& rung, const Batch* yardstick, int count) {
  std::vector<Sample> samples(static_cast<std::size_t>(count));
  for (Sample& sample : samples) {
    sample.rung_s = rung.recording_->run() / rung.launches_;
    if (yardstick != nullptr) {
      sample.yardstick_s = yardstick->recording_->run() / yardstick->launches_;
    }
  }
  return samples;
}

}  // namespace tilegate::bench
