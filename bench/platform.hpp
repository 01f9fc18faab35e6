// Timing on the device of this build: CUDA graphs between events (platform_cuda.cpp), or the CPU's
// steady clock (platform_host.cpp). Errors throw Failure.
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
  bool is_cuda;         // of this build; known without a device
  double min_time_s;    // per benchmark
  double min_replay_s;  // per replay, unless it has one launch per copy
  std::vector<Shape> shapes;
};
const Defaults& defaults();

// The stream of all work; nullptr on the CPU.
Stream stream();

// Enqueues 0xFF in every byte: NaN in every float.
void poison(const device::Buffer& buffer);

// Size of the cache that `--cold` must exceed, in bytes; 0 on the CPU.
std::size_t cache_bytes();

// The measured peak of float32 FMAs; 0 on the CPU.
double measure_peak_gflops();

// Google Benchmark's context: name and value.
std::vector<std::pair<std::string, std::string>> device_context();

// Exact memory counters of one call (kernels/device/README.md): name and value. Empty on CUDA, in
// builds without instrumented kernels, and for problems that would take long.
std::vector<std::pair<std::string, double>> exact_counters(const NamedProblem& named);

// The symbols of the kernels of a launch, each once, separated by spaces; empty if the device of
// this build has no symbols.
std::string kernel_symbols(const Plan& plan, const Operands& operands);

// A replay of a rung and the next replay of the yardstick; seconds per launch.
struct Sample {
  double rung_s = 0.0;
  double yardstick_s = 0.0;  // 0 without a yardstick
};

// A batch of launches of one plan, recorded once and started as a whole.
class Batch {
 public:
  // Launch i uses calls[i % calls.size()]. After the last one the device waits for `delay_s`.
  Batch(const Plan& plan, std::span<const Operands> calls, int launches, double delay_s = 0.0);
  ~Batch();
  Batch(Batch&& other) noexcept;
  Batch& operator=(Batch&& other) noexcept;

  // Runs the batch and waits for it.
  void replay();

  int launches() const { return launches_; }
  // Seconds of the last replay(), including the start on an idle device: only an estimate.
  double replay_s() const { return replay_s_; }

 private:
  friend std::vector<Sample> replay_in_turn(const Batch& rung, const Batch* yardstick, int count);
  struct Recording;
  std::unique_ptr<Recording> recording_;
  int launches_;
  double replay_s_ = 0.0;
};

// Replays both alternately, `count` times. The device is busy from before the first sample until
// after the last, so that no sample contains the start of a graph on an idle device. `yardstick`
// may be null.
std::vector<Sample> replay_in_turn(const Batch& rung, const Batch* yardstick, int count);

}  // namespace tilegate::bench
