#include "server.hpp"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

#include <tilegate/stage.hpp>

#include "../plan_cache.hpp"
#include "passes.hpp"
#include "workspaces.hpp"

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

// The value of TILEGATE_WORKSPACE_LIMIT; nullopt where it is not valid.
std::optional<std::size_t> read_workspace_limit() {
  const char* text = std::getenv("TILEGATE_WORKSPACE_LIMIT");
  if (text == nullptr) return kNoWorkspaceLimit;
  const char* const end = text + std::strlen(text);
  std::size_t bytes = 0;
  const auto [stop, error] = std::from_chars(text, end, bytes);
  if (error == std::errc() && stop == end) return bytes;
  std::fprintf(stderr,
               "tilegate: TILEGATE_WORKSPACE_LIMIT=%s is no number of bytes: cuBLAS computes all\n",
               text);
  return std::nullopt;
}

std::optional<std::size_t> workspace_limit() {
  static const std::optional<std::size_t> kLimit = read_workspace_limit();
  return kLimit;
}

// A column-major product is a row-major product of the transposes: A and B are exchanged. If the
// scalars are in device memory, the problem is only A·B, dense, in the workspace.
Problem problem_of(const Product& p, Math math) {
  Problem problem{.shape = {p.n, p.m, p.k},
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
                  .math = math};
  if (p.scalars_on_device) {
    problem.ldc = (p.m + 3) / 4 * 4;  // whole vectors
    problem.stride_c = problem.ldc * p.n;
    problem.offset_bytes[2] = 0;
  } else {
    problem.alpha = *p.alpha;
    problem.beta = *p.beta;
  }
  return problem;
}

// Whether a pass over C, of so many bytes per element, takes a small part of the time that the
// product would take in FP32. The speeds are an H200's.
bool is_worth_a_pass(const Plan& plan, int bytes_per_element) {
  constexpr double kFlops = 55.8e12, kBytesPerS = 4.2e12, kFixedS = 2e-6;
  const Problem& problem = plan.problem();
  const double elements = static_cast<double>(problem.batch) *
                          static_cast<double>(problem.shape.m) *
                          static_cast<double>(problem.shape.n);
  const double product_s = 2.0 * elements * static_cast<double>(problem.shape.k) / kFlops;
  const double pass_s = elements * bytes_per_element / kBytesPerS;
  // Kernels that split operands are several times as fast as cuBLAS, but not in products that take
  // little more than their launches. In FP32 cuBLAS is a tenth slower than Sgemm, at all sizes.
  return plan.operand_error() > 0.0 ? kFixedS + pass_s <= 0.5 * product_s
                                    : pass_s <= 0.07 * product_s;
}

// Why the product's passes over C cost too much; nullptr: they do not, or there are none.
const char* find_costly_pass(const Product& product, const Plan& plan) {
  constexpr int kWriteAndRead = 8, kWriteReadAndScale = 16;  // bytes
  if (product.scalars_on_device) {
    return is_worth_a_pass(plan, kWriteReadAndScale) ? nullptr
                                                     : "scalars in device memory, and K is short";
  }
  if (product.bias == nullptr || is_worth_a_pass(plan, kWriteAndRead)) return nullptr;
  return "a bias, and K is short";
}

bool is_float_pointer(const void* pointer) {
  return pointer != nullptr && reinterpret_cast<std::uintptr_t>(pointer) % alignof(float) == 0;
}

thread_local std::string configuration;  // of the last product that was computed here

}  // namespace

std::string compute(const Product& product) {
  if (!math()) return "TILEGATE_MATH is unknown";
  if (!workspace_limit()) return "TILEGATE_WORKSPACE_LIMIT is unknown";
  if (product.m <= 0 || product.n <= 0 || product.batch <= 0 || product.k < 0) {
    return "nothing to multiply";
  }
  for (const float* operand : {product.a, product.b, static_cast<const float*>(product.c)}) {
    if (!is_float_pointer(operand)) return "a null or misaligned pointer";
  }
  if (product.bias != nullptr && !is_float_pointer(product.bias)) return "a misaligned bias";
  const Problem problem = problem_of(product, *math());
  const bool to_workspace = product.scalars_on_device;
  constexpr std::size_t kAlignment = 256;
  const std::size_t elements =
      to_workspace ? static_cast<std::size_t>(problem.span(Operand::kC)) : 0;
  const std::size_t product_bytes =
      (elements * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  if (product_bytes > *workspace_limit()) {
    return "scalars in device memory, and A*B exceeds TILEGATE_WORKSPACE_LIMIT";
  }
  static thread_local PlanCache plans;
  const Plan& plan = plans.find(problem, *workspace_limit() - product_bytes);
  if (!plan.ok()) return plan.status().message();
  if (const char* reason = find_costly_pass(product, plan); reason != nullptr) return reason;

  const std::size_t needed = product_bytes + plan.workspace_bytes();
  void* workspace = product.workspace;
  if (product.workspace_bytes < needed) {
    workspace = get_workspace(device::current().ordinal, product.stream, needed);
    if (workspace == nullptr) {
      return "no room for a workspace of " + std::to_string(needed) + " bytes";
    }
  }
  const Operands operands{.a = product.b,
                          .b = product.a,
                          .c = to_workspace ? static_cast<float*>(workspace) : product.c,
                          .workspace = static_cast<std::byte*>(workspace) + product_bytes,
                          .workspace_bytes = plan.workspace_bytes()};
  if (Status s = plans.prepare(); !s.ok()) return s.message();
  if (Status s = plan.launch(operands, product.stream); !s.ok()) return s.message();
  if (product.bias != nullptr && !to_workspace) {
    if (Status s = enqueue_bias(product.bias, product.n, product.m, product.c, product.ldc,
                                product.stream);
        !s.ok()) {
      return s.message();
    }
  }
  if (to_workspace) {
    const Scaling scaling{
        .product = operands.c,
        .ld = problem.ldc,
        .stride = problem.stride_c,
        .alpha = product.alpha,
        .beta = product.beta,
        .bias = product.bias,
        .c = {product.c, product.n, product.m, product.ldc, product.batch, product.stride_c}};
    if (Status s = enqueue_scaling(scaling, product.stream); !s.ok()) return s.message();
  }
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
    std::fprintf(stderr, "tilegate: workspaces held up to %zu bytes\n", peak_of_workspaces());
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::size_t> calls_;
};

std::string_view log_text() {
  const char* text = std::getenv("TILEGATE_LOG");
  return text == nullptr ? "" : text;
}

// The summary that is printed at exit, or nullptr without TILEGATE_LOG.
Summary* summary() {
  static Summary* const kSummary = []() -> Summary* {
    const std::string_view text = log_text();
    if (text.empty() || text == "0") return nullptr;
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
  const std::string what = reason.empty() ? "computed" : "passed on: " + reason;
  all->add(std::string(function) + ' ' + what);
  static const bool kOnlySummary = log_text() == "summary";
  if (kOnlySummary) return;
  const std::string problem =
      product == nullptr ? "" : ' ' + to_string(problem_of(*product, math().value_or(Math::fp32)));
  std::fprintf(stderr, "tilegate: %s%s%s%s %s%s%s\n", function, problem.c_str(),
               product != nullptr && product->scalars_on_device ? " with device scalars" : "",
               product != nullptr && product->bias != nullptr ? " with bias" : "", what.c_str(),
               reason.empty() ? " by " : "", reason.empty() ? configuration.c_str() : "");
}

}  // namespace tilegate::preload
