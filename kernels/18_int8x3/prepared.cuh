// An operand that does not change, split once (int8x3.hpp). A call splits the other operand, and
// copies the statistics of this one to the workspace, where `refine` and the GEMM expect those of
// both. All of a call's kernels but copy_widths and checksum are those of other calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "int8x3.hpp"
#include "plan.hpp"

namespace tilegate::int8x3 {

constexpr unsigned kCopyThreads = 256;

// Widths to copy, a vector per group of rows.
struct WidthsToCopy {
  const float* from = nullptr;
  float* to = nullptr;
  std::int64_t groups = 0;
};

inline __global__ void copy_widths(WidthsToCopy widths) {
  device::wait_for_previous_kernel();
  device::launch_dependents();
  const std::int64_t group = std::int64_t{blockIdx.x} * kCopyThreads + threadIdx.x;
  if (group >= widths.groups) return;
  const auto of_group = device::load_vector<float4>(widths.from + group * kNumWidths);
  device::store_vector(widths.to + group * kNumWidths, of_group);
}

// A checksum of an operand has a word per thread of the grid. A thread's word changes with every
// element that the thread reads, because the factor is odd.
constexpr unsigned kChecksumBlocks = 256, kChecksumThreads = 256;
constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t) * kChecksumBlocks * kChecksumThreads;

struct ChecksumArgs {
  const float* from = nullptr;
  Extent extent{};
  std::int64_t ld = 0;
  std::uint32_t* words = nullptr;
  bool compares = false;  // instead of storing
};

inline __global__ void checksum(ChecksumArgs args) {
  const unsigned thread = blockIdx.x * kChecksumThreads + threadIdx.x;
  std::uint32_t word = 0;
  for (std::int64_t i = thread; i < args.extent.rows * args.extent.cols;
       i += std::int64_t{kChecksumBlocks} * kChecksumThreads) {
    const std::int64_t row = i / args.extent.cols;
    word = word * 0x9E3779B1U + bits_of(args.from[row * args.ld + (i - row * args.extent.cols)]);
  }
  if (!args.compares) {
    args.words[thread] = word;
  } else if (args.words[thread] != word) {
    device::fail("an operand has changed since PreparedOperand::prepare");
  }
}

// The problem with no rows of the other operand than `operand`.
inline Problem alone(Problem problem, Operand operand) {
  (operand == Operand::kA ? problem.shape.n : problem.shape.m) = 0;
  return problem;
}

namespace {  // as in plan.hpp

// Offsets in the memory of a prepared operand: those of a workspace without another operand. With
// wgmma it holds the tails, too.
struct PreparedLayout {
  Workspace workspace;
  Planes planes;
  std::int64_t groups;  // of rows, with widths each
  std::size_t tails, checksum, bytes;

  explicit PreparedLayout(const Prepared& of)
      : workspace(alone(of.problem, of.operand), of.device, !has_warpgroups(of.device)),
        planes(of.operand == Operand::kA ? workspace.a : workspace.b),
        groups(planes.rows() / workspace.split.rows),
        tails(aligned(workspace.bytes)),
        checksum(tails + (has_warpgroups(of.device) ? aligned(planes.bytes() / kPlanes) : 0)),
        bytes(checksum + (of.is_checked ? kChecksumBytes : 0)) {}
};

// Stores the checksum of the operand at `from`, or compares it.
inline Status enqueue_checksum(const Prepared& prepared, const float* from, bool compares,
                               Stream stream) {
  if (!prepared.is_checked) return {};
  const ChecksumArgs args{.from = from,
                          .extent = prepared.problem.extent(prepared.operand),
                          .ld = prepared.problem.ld(prepared.operand),
                          .words = reinterpret_cast<std::uint32_t*>(
                              prepared.memory + PreparedLayout(prepared).checksum),
                          .compares = compares};
  return device::launch(
      {.kernel = "checksum", .blocks = kChecksumBlocks, .threads_x = kChecksumThreads}, stream,
      checksum, args);
}

// The launch of copy_widths, which is taken to be that of an idle `refine`.
constexpr double kCopyWidths = kRefine;

inline Candidate prepared_candidate(const GemmConfig& config, const Prepared& prepared,
                                    const Problem& product) {
  const PreparedLayout layout(prepared);
  const Operand operand = prepared.operand;
  const bool of_a = operand == Operand::kA;
  const Operand other = of_a ? Operand::kB : Operand::kA;
  Workspace workspace(alone(product, other), prepared.device, config.uses_mma_sync);
  (of_a ? workspace.a : workspace.b) = layout.planes;
  workspace.bytes += sizeof(float) * kNumWidths * static_cast<std::size_t>(layout.groups);
  Launches launches = launches_of(config, product, prepared.device, Path::kSix, workspace,
                                  kNoWorkspaceLimit, operand);
  (of_a ? launches.a : launches.b) =
      split_job(product, operand, layout.planes, layout.workspace.split.rows);
  GemmParams& params = launches.params;
  params.widths.of_a = static_cast<unsigned>(launches.a.num_groups());
  params.widths.of_b = static_cast<unsigned>(launches.b.num_groups());
  const std::byte* const memory = prepared.memory;
  (of_a ? params.planes_a : params.planes_b) = memory + layout.workspace.planes_a;
  (of_a ? params.tails_a : params.tails_b) = memory + layout.tails;
  (of_a ? params.steps_a : params.steps_b) =
      reinterpret_cast<const float*>(memory + layout.workspace.steps_a);
  if (!config.uses_mma_sync && is_exact_with_ten(config, product.shape.k)) {
    params.allows_ten = true;
    Workspace& where = launches.workspace;
    const Planes& planes = of_a ? where.b : where.a;
    (of_a ? where.tails_b : where.tails_a) = aligned(where.bytes);
    where.bytes = aligned(where.bytes) + aligned(planes.bytes() / kPlanes);
    (of_a ? launches.refine_b : launches.refine_a) = refine_job(product, other, planes);
    launches.refine_blocks = blocks_of_refine(prepared.device);
  }
  Choice choice = choice_of(config, product, launches, Path::kSix);
  choice.kernels = {};
  const std::size_t widths =
      launches.workspace.widths +
      sizeof(float) * kNumWidths * static_cast<std::size_t>(of_a ? 0 : launches.a.num_groups());
  WidthsToCopy from;
  from.from = reinterpret_cast<const float*>(memory + layout.workspace.widths);
  from.groups = layout.groups;
  choice.enqueue = [=, overlaps = !config.uses_mma_sync, multiply = std::move(choice.enqueue)](
                       const KernelArgs& args, Stream stream) {
    WidthsToCopy copy = from;
    copy.to = reinterpret_cast<float*>(static_cast<std::byte*>(args.workspace) + widths);
    Status status = device::launch({.kernel = "copy widths",
                                    .blocks = ceil_div(copy.groups, std::int64_t{kCopyThreads}),
                                    .threads_x = kCopyThreads,
                                    .overlaps_previous = overlaps},
                                   stream, copy_widths, copy);
    return status.ok() ? multiply(args, stream) : status;
  };
  return {choice, call_seconds(config, launches, product) + kCopyWidths};
}

}  // namespace
}  // namespace tilegate::int8x3
