// What timing needs from the device of this build: CUDA graphs between events (platform_cuda.cpp),
// or the CPU's steady clock (platform_host.cpp). What fails throws Failure.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/stage.hpp>

namespace tilegate::bench {

struct Defaults {
  bool is_cuda;         // of this build; known without asking a device
  double min_time_s;    // of a benchmark
  double min_replay_s;  // a replay lasts as long, or is a single round of launches
  std::vector<Shape> shapes;
};
const Defaults& defaults();

// The stream that all work goes through; nullptr on the CPU.
Stream stream();

// Enqueues 0xFF in every byte: NaN in every float.
void poison(const device::Buffer& buffer);

// What `--cold` outruns, in bytes; 0 on the CPU, where times mean little.
std::size_t cache_bytes();

// Of float32 FMAs, as measured now; 0 on the CPU.
double measure_peak_gflops();

// Google Benchmark's context: name and value.
std::vector<std::pair<std::string, std::string>> device_context();

// What one call does to memory, counted exactly (kernels/device/README.md): name and value. Empty
// on CUDA, in builds without counted kernels, and for problems that would take long.
std::vector<std::pair<std::string, double>> exact_counters(const NamedProblem& named);

// The symbols of the kernels that a launch runs, each once, with spaces between them; empty where
// the device of this build has no such names.
std::string kernel_symbols(const Plan& plan, const Operands& operands);

// One replay of a rung and one of the yardstick, right after it; seconds per launch.
struct Sample {
  double rung_s = 0.0;
  double yardstick_s = 0.0;  // 0 without a yardstick
};

// A number of launches of one plan, recorded once and then started as a whole.
class Batch {
 public:
  // Launch i works on calls[i % calls.size()]. After the last one the device waits for `delay_s`.
  Batch(const Plan& plan, std::span<const Operands> calls, int launches, double delay_s = 0.0);
  ~Batch();
  Batch(Batch&& other) noexcept;
  Batch& operator=(Batch&& other) noexcept;

  // Runs it and waits.
  void replay();

  int launches() const { return launches_; }
  // Seconds of the last replay(), the start on an idle device included: good for an estimate.
  double replay_s() const { return replay_s_; }

 private:
  friend std::vector<Sample> replay_in_turn(const Batch& rung, const Batch* yardstick, int count);
  struct Recording;
  std::unique_ptr<Recording> recording_;
  int launches_;
  double replay_s_ = 0.0;
};

// Replays the two in turn, `count` times. The device is kept busy from before the first sample to
// after the last, so that no sample contains the start of a graph on an idle device. `yardstick`
// may be null.
std::vector<Sample> replay_in_turn(const Batch& rung, const Batch* yardstick, int count);

}  // namespace tilegate::bench
