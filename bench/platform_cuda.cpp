// Timing on CUDA: a batch is a graph of kernel nodes, captured from Plan::launch, and its time is
// that between two events. One graph launch for many kernels leaves out what the host does for each
// launch, which is most of the noise at small sizes.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "cuda_check.hpp"
#include "delay.hpp"
#include "errors.hpp"
#include "peak.hpp"
#include "platform.hpp"

namespace tilegate::bench {
namespace {

// A batch that lasts as long is not replayed only to warm up and to keep the device busy.
constexpr double kNoWarmUpFrom = 0.1;  // seconds

struct GraphDeleter {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using Graph = std::unique_ptr<CUgraph_st, GraphDeleter>;
using ExecutableGraph = std::unique_ptr<CUgraphExec_st, GraphDeleter>;

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record() { check(cudaEventRecord(event_, stream()), "event"); }
  void wait() { check(cudaEventSynchronize(event_), "replay"); }
  double seconds_since(const Event& start) const {
    float milliseconds = 0.0F;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "event");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// What a kernel that waits costs: seconds a cycle, and a node of a graph by itself.
struct SpinCost {
  double cycle_s;
  double node_s;
};

SpinCost measure_spin_cost() {
  constexpr int kNodes = 20;
  const auto node_seconds = [](long long cycles) {
    Event start;
    Event stop;
    check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed), "capture");
    for (int i = 0; i < kNodes; ++i) enqueue_spin(cycles, stream());
    cudaGraph_t captured = nullptr;
    check(cudaStreamEndCapture(stream(), &captured), "capture");
    const Graph graph(captured);
    cudaGraphExec_t instance = nullptr;
    check(cudaGraphInstantiateWithFlags(&instance, graph.get(), 0), "graph");
    const ExecutableGraph executable(instance);
    check(cudaGraphLaunch(instance, stream()), "delay");  // loads the kernel, hides the start
    start.record();
    check(cudaGraphLaunch(instance, stream()), "delay");
    stop.record();
    stop.wait();
    return stop.seconds_since(start) / kNodes;
  };
  constexpr long long kShort = 20'000;
  constexpr long long kLong = 200'000;
  const double of_short = node_seconds(kShort);
  const double cycle_s = (node_seconds(kLong) - of_short) / static_cast<double>(kLong - kShort);
  return {cycle_s, of_short - cycle_s * static_cast<double>(kShort)};
}

// Enqueues what keeps the device for `seconds`.
void enqueue_delay(double seconds) {
  static const SpinCost kCost = measure_spin_cost();
  const double cycles = (seconds - kCost.node_s) / kCost.cycle_s;
  enqueue_spin(static_cast<long long>(std::max(cycles, 0.0)), stream());
}

// Relaxed, because a kernel's first launch may load its module, and a library's may allocate.
Graph capture(const Plan& plan, std::span<const Operands> calls, int launches, double delay_s) {
  if (delay_s > 0.0) enqueue_delay(delay_s);  // measures, which a capture does not allow
  check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed), "capture");
  Status status;
  for (int i = 0; i < launches && status.ok(); ++i) {
    status = plan.launch(calls[static_cast<std::size_t>(i) % calls.size()], stream());
  }
  if (delay_s > 0.0 && status.ok()) enqueue_delay(delay_s);
  cudaGraph_t captured = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream(), &captured);
  Graph graph(captured);
  check(status);
  check(error, "capture");
  return graph;
}

}  // namespace

struct Batch::Recording {
  ExecutableGraph graph;

  void launch() const { check(cudaGraphLaunch(graph.get(), stream()), "replay"); }
};

const Defaults& defaults() {
  static const Defaults kDefaults{
      .is_cuda = true,
      .min_time_s = 0.1,
      .min_replay_s = 2e-3,
      .shapes = {{128, 128, 128},
                 {256, 256, 256},
                 {512, 512, 512},
                 {1024, 1024, 1024},
                 {2048, 2048, 2048},
                 {4096, 4096, 4096},
                 {8192, 8192, 8192}},
  };
  return kDefaults;
}

Stream stream() {
  // Never destroyed: at exit the CUDA runtime may be gone before it.
  static const Stream kStream = [] {
    cudaStream_t created = nullptr;
    check(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking), "stream");
    return created;
  }();
  return kStream;
}

void poison(const device::Buffer& buffer) {
  check(cudaMemsetAsync(buffer.data(), 0xFF, buffer.size(), stream()), "poison");
}

std::size_t cache_bytes() {
  int device = 0;
  int bytes = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device), "device");
  return static_cast<std::size_t>(bytes);
}

double measure_peak_gflops() {
  return measure_ffma_gflops(device::current().multiprocessors, stream());
}

std::vector<std::pair<std::string, double>> exact_counters(const NamedProblem& /*named*/) {
  return {};
}

std::string kernel_symbols(const Plan& plan, const Operands& operands) {
  std::set<std::string> symbols;
#if CUDART_VERSION >= 12030  // names of functions
  const Graph graph = capture(plan, {&operands, 1}, 1, 0.0);
  std::size_t count = 0;
  check(cudaGraphGetNodes(graph.get(), nullptr, &count), "graph");
  std::vector<cudaGraphNode_t> nodes(count);
  check(cudaGraphGetNodes(graph.get(), nodes.data(), &count), "graph");
  for (const cudaGraphNode_t node : nodes) {
    cudaKernelNodeParams parameters{};
    const char* name = nullptr;
    check(cudaGraphKernelNodeGetParams(node, &parameters), "graph");
    check(cudaFuncGetName(&name, parameters.func), "name of a kernel");
    symbols.insert(name);
  }
#endif
  std::string joined;
  for (const std::string& symbol : symbols) joined += (joined.empty() ? "" : " ") + symbol;
  return joined;
}

Batch::Batch(const Plan& plan, std::span<const Operands> calls, int launches, double delay_s)
    : recording_(std::make_unique<Recording>()), launches_(launches) {
  const Graph graph = capture(plan, calls, launches, delay_s);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiateWithFlags(&executable, graph.get(), 0), "graph");
  recording_->graph.reset(executable);
  check(cudaGraphUpload(executable, stream()), "graph");
}

Batch::~Batch() = default;
Batch::Batch(Batch&& other) noexcept = default;
Batch& Batch::operator=(Batch&& other) noexcept = default;

void Batch::replay() {
  Event start;
  Event stop;
  start.record();
  recording_->launch();
  stop.record();
  stop.wait();
  replay_s_ = stop.seconds_since(start);
}

std::vector<Sample> replay_in_turn(const Batch& rung, const Batch* yardstick, int count) {
  // While an untimed replay runs, the host enqueues the timed ones. It is the yardstick's, so that
  // the first replay of the rung follows one of the yardstick, as all others do.
  const Batch& untimed = yardstick == nullptr ? rung : *yardstick;
  if (untimed.replay_s_ < kNoWarmUpFrom) untimed.recording_->launch();
  std::vector<Event> before(static_cast<std::size_t>(count));
  std::vector<Event> between(static_cast<std::size_t>(count));
  std::vector<Event> after(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < before.size(); ++i) {
    before[i].record();
    rung.recording_->launch();
    between[i].record();
    if (yardstick != nullptr) yardstick->recording_->launch();
    after[i].record();
  }
  after.back().wait();

  std::vector<Sample> samples(before.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].rung_s = between[i].seconds_since(before[i]) / rung.launches_;
    if (yardstick != nullptr) {
      samples[i].yardstick_s = after[i].seconds_since(between[i]) / yardstick->launches_;
    }
  }
  return samples;
}

}  // namespace tilegate::bench
