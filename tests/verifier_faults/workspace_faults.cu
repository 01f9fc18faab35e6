// K in two halves, summed by different blocks into the workspace and added by a second kernel, with
// a fault of the workspace in each stage but the first.
#include <cmath>
#include <cstdint>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier_faults/faults.hpp"
#include "verifier_faults/planted_stage.cuh"

namespace tilegate::faults {

enum class WorkspaceFault {
  kNone,
  kTooSmall,        // by a partial sum
  kReadsUnwritten,  // a third partial sum, which would do no harm if it were zero
  kWritesAfter,     // the element after the workspace, with what is there
  kNeedsAlignment,  // to 32 bytes, where 16 are promised
  kKeepsLarger,     // of a sum and what was there; NaN is not
  kTrustsFlag,      // behind the sums: raised once they are there, and never lowered
};

constexpr int kHalves = 2;
constexpr int kThreads = 64;

template <WorkspaceFault kFault>
__global__ void sum_halves(KernelArgs args) {
  const auto [m, n, k_end] = args.shape;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= kHalves * m * n) return;
  const std::int64_t half = i / (m * n);
  const std::int64_t row = i / n % m;
  const std::int64_t col = i % n;
  float sum = 0.0F;
  for (std::int64_t k = half * (k_end / kHalves); k < (half == 0 ? k_end / kHalves : k_end); ++k) {
    sum += args.a[row * args.lda + k] * args.b[k * args.ldb + col];
  }
  auto* partial = static_cast<float*>(args.workspace);
  if (kFault == WorkspaceFault::kNeedsAlignment) {
    partial = reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(partial) / 32 * 32);
  }
  if (kFault == WorkspaceFault::kTrustsFlag) {
    auto* const flags = reinterpret_cast<unsigned*>(partial + kHalves * m * n);
    if (flags[i] == 1) return;
    flags[i] = 1;
  }
  partial[i] = kFault == WorkspaceFault::kKeepsLarger ? fmaxf(sum, partial[i]) : sum;
  if (kFault == WorkspaceFault::kWritesAfter && i == kHalves * m * n - 1) partial[i + 1] = sum;
}

template <WorkspaceFault kFault>
__global__ void add_halves(KernelArgs args) {
  const auto [m, n, k_end] = args.shape;
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= m * n) return;
  const auto* partial = static_cast<const float*>(args.workspace);
  if (kFault == WorkspaceFault::kNeedsAlignment) {
    partial = reinterpret_cast<const float*>(reinterpret_cast<std::uintptr_t>(partial) / 32 * 32);
  }
  float sum = partial[i] + partial[m * n + i];
  if (kFault == WorkspaceFault::kReadsUnwritten) sum += partial[kHalves * m * n + i];
  store_element(args, i / n, i % n, sum);
}

template <WorkspaceFault kFault>
Status enqueue_halves(const KernelArgs& args, Stream stream) {
  const std::int64_t elements = args.shape.m * args.shape.n;
  device::LaunchConfig launch{.kernel = "planted halves",
                              .blocks = ceil_div(kHalves * elements, kThreads),
                              .threads_x = kThreads};
  if (Status s = device::launch(launch, stream, sum_halves<kFault>, args); !s.ok()) return s;
  launch.kernel = "planted sum of halves";
  launch.blocks = ceil_div(elements, kThreads);
  return device::launch(launch, stream, add_halves<kFault>, args);
}

template <WorkspaceFault kFault>
Choice choose_halves(const Problem& problem, const Device& /*device*/) {
  Choice choice = serial_choice<Grid>(problem, enqueue_halves<kFault>);
  const auto [m, n, k] = problem.shape;
  const std::int64_t parts = kFault == WorkspaceFault::kReadsUnwritten ? kHalves + 1
                             : kFault == WorkspaceFault::kTrustsFlag   ? kHalves + kHalves
                                                                       : kHalves;
  const std::int64_t missing = kFault == WorkspaceFault::kTooSmall ? m * n : 0;
  choice.workspace_bytes = static_cast<std::size_t>(parts * m * n - missing) * sizeof(float);
  return choice;
}

template <WorkspaceFault kFault>
constexpr Stage make_halves(std::string_view name) {
  return make_stage(name, kTileSizes, choose_halves<kFault>);
}

std::span<const Stage> workspace_faults() {
  using enum WorkspaceFault;
  static constexpr Stage kStages[] = {
      make_halves<kNone>("RightHalves"),
      make_halves<kTooSmall>("WorkspaceTooSmall"),
      make_halves<kReadsUnwritten>("ReadsUnwrittenWorkspace"),
      make_halves<kWritesAfter>("WritesAfterWorkspace"),
      make_halves<kNeedsAlignment>("NeedsAlignedWorkspace"),
      make_halves<kKeepsLarger>("KeepsLargerOfWorkspace"),
      make_halves<kTrustsFlag>("TrustsFlagOfEarlierCall"),
  };
  return kStages;
}

}  // namespace tilegate::faults
