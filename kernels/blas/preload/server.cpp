#include "server.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <cuda_runtime_api.h>

#include <tilegate/stage.hpp>

#include "../plan_cache.hpp"
#include "bias.hpp"

namespace tilegate::preload {
namespace {

// The value of TILEGATE_MATH; nullopt where it is not valid.
std::optional<Math> read_math() {
  const char* text = std::getenv("TILEGATE_MATH");
  const std::string_view word = text == nullptr ? "fp32" : text;
  if (word == "fp32") return Math::fp32;
  if (word == "fp32_split") return Math::fp32_split;
  std::fprintf(stderr,
               "tilegate: TILEGATE_MATH=%s is neither fp32 nor fp32_split: cuBLAS computes all\n",
               text);
  return std::nullopt;
}

std::optional<Math> math() {
  static const std::optional<Math> kMath = read_math();
  return kMath;
}

// One workspace per device and stream, as concurrent streams cannot share one. It grows outside of
// captures only. A workspace that a captured graph uses is never freed, as the graph may be
// launched at any time.
class Workspaces {
 public:
  // A workspace of at least `bytes`, or nullptr: out of memory, or too small during a capture.
  void* get(int device, cudaStream_t stream, bool is_capturing, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    Block& block = blocks_[{device, stream}];
    if (block.bytes < bytes) {
      if (is_capturing) return nullptr;
      void* memory = nullptr;
      if (cudaMallocAsync(&memory, bytes, stream) != cudaSuccess) {
        cudaGetLastError();  // clears the error, so that the program does not see it
        return nullptr;
      }
      if (block.memory != nullptr && !block.is_captured) {
        cudaFreeAsync(block.memory, stream);
        held_ -= block.bytes;
      }
      block = {memory, bytes, false};
      held_ += bytes;
      peak_ = std::max(peak_, held_);
    }
    block.is_captured |= is_capturing;
    return block.memory;
  }

  std::size_t peak() {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  struct Block {
    void* memory = nullptr;
    std::size_t bytes = 0;
    bool is_captured = false;
  };

  std::mutex mutex_;
  std::map<std::pair<int, cudaStream_t>, Block> blocks_;
  std::size_t held_ = 0, peak_ = 0;  // bytes
};

// Never destroyed: threads may outlive main.
Workspaces& workspaces() {
  static auto& all = *new Workspaces;
  return all;
}

// Row-major, the transpose of cuBLAS's column-major product: A and B are swapped.
Problem problem_of(const Product& p, Math math) {
  return {.shape = {p.n, p.m, p.k},
          .op_a = p.transposed_b ? Op::kT : Op::kN,
          .op_b = p.transposed_a ? Op::kT : Op::kN,
          .lda = p.ldb,
          .ldb = p.lda,
          .ldc = p.ldc,
          .batch = p.batch,
          .stride_a = p.stride_b,
          .stride_b = p.stride_a,
          .stride_c = p.stride_c,
          .offset_bytes = {offset_of(p.b), offset_of(p.a), offset_of(p.c)},
          .alpha = p.alpha,
          .beta = p.bias == nullptr ? p.beta : 1.0F,
          .math = math};
}

thread_local std::string configuration;  // of the last product that was computed here

}  // namespace

std::string compute(const Product& product) {
  if (!math()) return "TILEGATE_MATH is unknown";
  if (product.m <= 0 || product.n <= 0 || product.batch <= 0 || product.k < 0) {
    return "nothing to multiply";
  }
  static thread_local PlanCache plans;
  const Problem problem = problem_of(product, *math());
  const Plan& plan = plans.find(problem);
  if (!plan.ok()) return plan.status().message();
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(product.stream, &capture) != cudaSuccess) {
    cudaGetLastError();
    return "the stream's state is unknown";
  }
  Operands operands{.a = product.b,
                    .b = product.a,
                    .c = product.c,
                    .workspace = product.workspace,
                    .workspace_bytes = product.workspace_bytes};
  const std::size_t needed = plan.workspace_bytes();
  if (operands.workspace_bytes < needed) {
    operands.workspace = workspaces().get(device::current().ordinal, product.stream,
                                          capture != cudaStreamCaptureStatusNone, needed);
    operands.workspace_bytes = needed;
    if (operands.workspace == nullptr) {
      return "no room for a workspace of " + std::to_string(needed) + " bytes";
    }
  }
  if (Status s = plans.prepare(); !s.ok()) return s.message();
  if (product.bias != nullptr) {
    if (Status s = enqueue_bias(product.bias, product.n, product.m, product.c, product.ldc,
                                product.stream);
        !s.ok()) {
      return s.message();
    }
  }
  if (Status s = plan.launch(operands, product.stream); !s.ok()) return s.message();
  configuration = plan.configuration();
  return {};
}

namespace {

// Counts of computed and passed-on calls, by function and reason.
class Summary {
 public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    ++calls_[line];
  }

  void print() {
    const std::lock_guard lock(mutex_);
    for (const auto& [line, count] : calls_) {
      std::fprintf(stderr, "tilegate: %zu x %s\n", count, line.c_str());
    }
    std::fprintf(stderr, "tilegate: workspaces held up to %zu bytes\n", workspaces().peak());
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::size_t> calls_;
};

// The summary that is printed at exit, or nullptr without TILEGATE_LOG.
Summary* summary() {
  static Summary* const kSummary = []() -> Summary* {
    const char* text = std::getenv("TILEGATE_LOG");
    if (text == nullptr || *text == '\0' || std::string_view(text) == "0") return nullptr;
    static auto* const made = new Summary;
    std::atexit([] { made->print(); });
    return made;
  }();
  return kSummary;
}

}  // namespace

void log_call(const char* function, const Product* product, const std::string& reason) {
  Summary* const all = summary();
  if (all == nullptr) return;
  const std::string problem =
      product == nullptr ? "" : ' ' + to_string(problem_of(*product, math().value_or(Math::fp32)));
  const std::string what = reason.empty() ? "computed" : "passed on: " + reason;
  std::fprintf(stderr, "tilegate: %s%s%s %s%s%s\n", function, problem.c_str(),
               product != nullptr && product->bias != nullptr ? " with bias" : "", what.c_str(),
               reason.empty() ? " by " : "", reason.empty() ? configuration.c_str() : "");
  all->add(std::string(function) + ' ' + what);
}

}  // namespace tilegate::preload
