// The kernels of a call: what is where in the workspace, and what each of them gets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/plain_plan.cuh>
#include <tilegate/common/split_plan.hpp>
#include <tilegate/common/tile_order.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/flag.cuh>
#include <tilegate/stage.hpp>

#include "multiply.cuh"
#include "multiply_warps.cuh"
#include "split_form.cuh"

namespace tilegate::int8x3 {

inline double bytes_of_c(const Problem& problem) {
  return sizeof(float) * static_cast<double>(problem.batch * problem.shape.m * problem.shape.n);
}

// What lies where in the workspace, in bytes from its start. The decision comes first.
struct Workspace {
  Planes a, b;
  SplitForm form;
  std::size_t planes_a = 0, planes_b = 0, steps_a = 0, steps_b = 0, widths = 0, bytes = 0;
  std::size_t sums = 0, flags = 0;  // of a streamed form

  Workspace() = default;
  // `by_warps`: for multiply_warps, on any GPU.
  Workspace(const Problem& problem, const Device& device, bool by_warps)
      : a(split_chunks<Planes>(problem, Operand::kA)),
        b(split_chunks<Planes>(problem, Operand::kB)) {
    if (!by_warps) {
      form = SplitForm((a.products * a.rows() + b.products * b.rows()) / Long::kRows,
                       problem.shape.k, bytes_of_c(problem), device.multiprocessors);
    }
    planes_a = aligned(sizeof(Path));
    planes_b = planes_a + aligned(a.bytes());
    steps_a = planes_b + aligned(b.bytes());
    steps_b = steps_a + aligned(a.step_bytes());
    widths = steps_b + aligned(b.step_bytes());
    const std::int64_t blocks = (a.products * a.rows() + b.products * b.rows()) / form.rows;
    bytes = widths + sizeof(float) * static_cast<std::size_t>(blocks);
  }

  // For the sums that blocks leave for others.
  void add_sums(std::int64_t blocks, std::size_t block_bytes) {
    sums = aligned(bytes);
    flags = sums + static_cast<std::size_t>(blocks) * block_bytes;
    bytes = flags + sizeof(unsigned) * static_cast<std::size_t>(blocks);
  }
};

// All but the addresses. `block_n`: columns of a tile of six products; `cluster`: blocks that have
// tiles beside each other.
inline MultiplyArgs multiply_args(const Problem& problem, const Workspace& workspace, int block_n,
                                  unsigned cluster, Path least) {
  const auto blocks = [&](const Planes& p) {
    return static_cast<unsigned>(p.products * p.rows() / workspace.form.rows);
  };
  const auto [m, n, k] = problem.shape;
  const int tiles = static_cast<int>(cluster);
  return {.a = workspace.a,
          .b = workspace.b,
          .widths_a = blocks(workspace.a),
          .widths_b = blocks(workspace.b),
          .rows_a = static_cast<float>(m * workspace.a.products),
          .rows_b = static_cast<float>(n * workspace.b.products),
          .least = least,
          .summed = summed_in_fp32(problem),
          .pairs = allows_pairs_of_c(problem),
          .once = allows_pairs_of_c(problem) &&
                  (workspace.form.is_once || bytes_of_c(problem) > kL2Bytes),
          .six = TileOrder(problem.shape, kBlockM, tiles * block_n),
          .eight = TileOrder(problem.shape, kBlockM, tiles * Eight::kBlockN),
          .fp32 = fp32_args(problem)};
}

struct Launches {
  Workspace workspace;
  Job a, b;
  MultiplyArgs more;
  std::int64_t split_blocks = 0, blocks = 0;  // of the first kernel, and of the second
};

template <typename Storage>
Status enqueue_split(const Launches& launches, const KernelArgs& args, Stream stream, int threads,
                     void (*kernel)(SplitJobs)) {
  const Workspace& where = launches.workspace;
  auto* base = static_cast<std::byte*>(args.workspace);
  const auto floats = [&](std::size_t at) { return reinterpret_cast<float*>(base + at); };
  const std::int64_t groups_a = launches.a.num_groups();
  const unsigned cluster = where.form.cluster;
  const SplitJobs jobs{.job = {launches.a, launches.b},
                       .place = {{args.a, args.lda, args.stride_a, base + where.planes_a,
                                  floats(where.steps_a), floats(where.widths)},
                                 {args.b, args.ldb, args.stride_b, base + where.planes_b,
                                  floats(where.steps_b), floats(where.widths) + groups_a}},
                       .groups_of_first = static_cast<unsigned>(groups_a),
                       .groups_of_second = static_cast<unsigned>(launches.b.num_groups()),
                       .once = where.form.is_once,
                       .flags = reinterpret_cast<unsigned*>(base + where.flags),
                       .num_flags = where.flags == 0 ? 0 : static_cast<unsigned>(launches.blocks),
                       .cluster = cluster,
                       .chunks = ceil_div(where.a.chunks_k, cluster)};
  return device::launch({.kernel = "split",
                         .blocks = launches.split_blocks,
                         .threads_x = static_cast<unsigned>(threads),
                         .shared_bytes = sizeof(Storage),
                         .overlaps_previous = where.form.kernel != SplitForm::Kernel::kAny,
                         .cluster = cluster},
                        stream, kernel, jobs);
}

inline Status enqueue_split(const Launches& launches, const KernelArgs& args, Stream stream) {
  switch (launches.workspace.form.kernel) {
    case SplitForm::Kernel::kFew:
      return enqueue_split<ShortStorage<FewRows>>(launches, args, stream, FewRows::kThreads,
                                                  split_short<FewRows>);
    case SplitForm::Kernel::kMany:
      return enqueue_split<AheadStorage<Many>>(launches, args, stream, Many::kThreads,
                                               split_ahead<Many>);
    case SplitForm::Kernel::kAhead:
      return enqueue_split<AheadStorage<Ahead>>(launches, args, stream, Ahead::kThreads,
                                                split_ahead<Ahead>);
    case SplitForm::Kernel::kLong:
      return enqueue_split<LongStorage<Long>>(launches, args, stream, Long::kThreads,
                                              split_long<Long>);
    case SplitForm::Kernel::kAny:
      break;
  }
  return enqueue_split<ShortStorage<AnyRows>>(launches, args, stream, AnyRows::kThreads,
                                              split_short<AnyRows>);
}

// `launch` has what the kernel wants of a launch.
inline Status enqueue_multiply(const Launches& launches, KernelArgs args, Stream stream,
                               device::LaunchConfig launch,
                               void (*kernel)(KernelArgs, MultiplyArgs)) {
  const Workspace& where = launches.workspace;
  auto* base = static_cast<std::byte*>(args.workspace);
  MultiplyArgs more = launches.more;
  more.planes_a = base + where.planes_a;
  more.planes_b = base + where.planes_b;
  more.steps_a = reinterpret_cast<float*>(base + where.steps_a);
  more.steps_b = reinterpret_cast<float*>(base + where.steps_b);
  more.widths = reinterpret_cast<float*>(base + where.widths);
  more.sums = base + where.sums;
  more.flags = reinterpret_cast<unsigned*>(base + where.flags);
  more.decision = reinterpret_cast<Path*>(base);
  more.fp32.parts.sums = reinterpret_cast<float*>(more.sums);
  more.fp32.parts.flags = more.flags;
  for (more.first_chunk = 0; more.first_chunk < where.a.chunks_k; more.first_chunk += more.chunks) {
    more.chunks = std::min(where.a.chunks_k - more.first_chunk, kMaxExactK / kChunkK);
    Status status = where.flags > 0 ? device::launch_in_order(launch, stream, kernel, args, more)
                                    : device::launch(launch, stream, kernel, args, more);
    if (!status.ok()) return status;
    args.beta = 1.0F;  // what exceeds the exact sums is added in FP32
    launch.adds_to_c = true;
  }
  return {};
}

template <typename Six, unsigned kCluster, bool kStreams = false>
Status enqueue_multiply(const Launches& launches, const KernelArgs& args, Stream stream) {
  return enqueue_multiply(launches, args, stream,
                          {.kernel = "multiply digits",
                           .blocks = launches.blocks,
                           .threads_x = kNumThreads,
                           .shared_bytes = sizeof(MultiplyStorage),
                           .overlaps_previous = true,
                           .cluster = kCluster},
                          multiply<Six, kCluster, kStreams>);
}

inline Status enqueue_multiply_warps(const Launches& launches, const KernelArgs& args,
                                     Stream stream) {
  return enqueue_multiply(launches, args, stream,
                          {.kernel = "multiply digits by warps",
                           .blocks = launches.blocks,
                           .threads_x = kWarpsThreads,
                           .shared_bytes = sizeof(WarpsStorage)},
                          multiply_warps);
}

}  // namespace tilegate::int8x3
