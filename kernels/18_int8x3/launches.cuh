// The kernels of a call: what is where in the workspace, and what each of them gets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/common/plain_product.cuh>
#include <tilegate/common/tile_order.cuh>
#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "multiply.cuh"
#include "split.cuh"

namespace tilegate::int8x3 {

// K up to which the split pass has more, smaller blocks. With longer rows there is one at a time on
// a multiprocessor, so that caches hold what it has to read again.
constexpr std::int64_t kFewRowsK = 1024, kShortRowsK = 2048;
constexpr int split_rows(std::int64_t k) {
  return k <= kFewRowsK ? FewRows::kRows : k <= kShortRowsK ? ShortRows::kRows : LongRows::kRows;
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// What lies where in the workspace, in bytes from its start. The decision comes first.
struct Workspace {
  Planes a, b;
  std::size_t planes_a = 0, planes_b = 0, steps_a = 0, steps_b = 0, widths = 0, bytes = 0;

  Workspace() = default;
  explicit Workspace(const Problem& problem)
      : a(planes_of(problem, Operand::kA)), b(planes_of(problem, Operand::kB)) {
    planes_a = aligned(sizeof(Path));
    planes_b = planes_a + aligned(a.bytes());
    steps_a = planes_b + aligned(b.bytes());
    steps_b = steps_a + aligned(a.step_bytes());
    widths = steps_b + aligned(b.step_bytes());
    const std::int64_t blocks =
        (a.products * a.rows() + b.products * b.rows()) / split_rows(problem.shape.k);
    bytes = widths + sizeof(float) * static_cast<std::size_t>(blocks);
  }

  static Planes planes_of(const Problem& problem, Operand operand) {
    const bool is_shared = problem.batch > 1 && problem.stride(operand) == 0;
    return {operand == Operand::kA ? problem.shape.m : problem.shape.n, problem.shape.k,
            is_shared ? 1 : problem.batch};
  }
};

inline Job job_of(const Problem& problem, Operand operand, const Planes& planes) {
  const bool along_k = is_along_k(problem, operand);
  return {
      .planes = planes,
      .along_k = along_k,
      .vectors = along_k && allows_vectors(problem, operand),
      .rows = operand == Operand::kA ? problem.shape.m : problem.shape.n,
      .k = problem.shape.k,
      .blocks = Divisor(static_cast<std::uint32_t>(planes.rows() / split_rows(problem.shape.k)))};
}

// The k that a kernel in FP32 adds up one after another: all, or, where C is small, about as many
// as such kernels leave when they split K among blocks, which makes them more accurate.
inline float summed_in_fp32(const Problem& problem, const Device& device) {
  constexpr std::int64_t kSplitRun = 1024;
  const TileOrder tiles(problem.shape, kBlockM, 128);
  const std::int64_t k = problem.shape.k;
  const bool is_split = tiles.count * problem.batch < 2 * device.multiprocessors;
  return static_cast<float>(is_split ? std::min(k, kSplitRun) : k);
}

// All but the addresses.
inline MultiplyArgs multiply_args(const Problem& problem, const Device& device,
                                  const Workspace& workspace, Path least) {
  const auto blocks = [&](const Planes& p) {
    return static_cast<unsigned>(p.products * p.rows() / split_rows(problem.shape.k));
  };
  const auto [m, n, k] = problem.shape;
  return {.a = workspace.a,
          .b = workspace.b,
          .widths_a = blocks(workspace.a),
          .widths_b = blocks(workspace.b),
          .rows_a = static_cast<float>(m * workspace.a.products),
          .rows_b = static_cast<float>(n * workspace.b.products),
          .least = least,
          .summed = summed_in_fp32(problem, device),
          .pairs = n % 2 == 0 && problem.ldc % 2 == 0 && problem.offset_bytes[2] % 8 == 0 &&
                   (problem.batch == 1 || problem.stride_c % 2 == 0),
          .narrow = TileOrder(problem.shape, kBlockM, 64),
          .wide = fp32_args(problem)};
}

struct Launches {
  Workspace workspace;
  Job a, b;
  MultiplyArgs more;
  std::int64_t blocks = 0;  // of the second kernel
};

template <typename Config>
Status enqueue_split(const Launches& launches, const KernelArgs& args, Stream stream) {
  const Workspace& where = launches.workspace;
  auto* base = static_cast<std::byte*>(args.workspace);
  const auto floats = [&](std::size_t at) { return reinterpret_cast<float*>(base + at); };
  const SplitJobs jobs{.job = {launches.a, launches.b},
                       .place = {{args.a, args.lda, args.stride_a, base + where.planes_a,
                                  floats(where.steps_a), floats(where.widths)},
                                 {args.b, args.ldb, args.stride_b, base + where.planes_b,
                                  floats(where.steps_b), floats(where.widths)}},
                       .blocks_of_first = static_cast<unsigned>(launches.a.num_blocks())};
  return device::launch({.kernel = "split",
                         .blocks = launches.a.num_blocks() + launches.b.num_blocks(),
                         .threads_x = Config::kThreads,
                         .shared_bytes = sizeof(SplitStorage<Config>),
                         .overlaps_previous = true},
                        stream, split<Config>, jobs);
}

inline Status enqueue_split(const Launches& launches, const KernelArgs& args, Stream stream) {
  if (args.shape.k <= kFewRowsK) return enqueue_split<FewRows>(launches, args, stream);
  if (args.shape.k <= kShortRowsK) return enqueue_split<ShortRows>(launches, args, stream);
  return enqueue_split<LongRows>(launches, args, stream);
}

template <typename Six>
Status enqueue_multiply(const Launches& launches, KernelArgs args, Stream stream) {
  const Workspace& where = launches.workspace;
  auto* base = static_cast<std::byte*>(args.workspace);
  MultiplyArgs more = launches.more;
  more.planes_a = base + where.planes_a;
  more.planes_b = base + where.planes_b;
  more.steps_a = reinterpret_cast<float*>(base + where.steps_a);
  more.steps_b = reinterpret_cast<float*>(base + where.steps_b);
  more.widths = reinterpret_cast<float*>(base + where.widths);
  more.decision = reinterpret_cast<Path*>(base);
  for (more.first_chunk = 0; more.first_chunk < where.a.chunks_k; more.first_chunk += more.chunks) {
    more.chunks = std::min(where.a.chunks_k - more.first_chunk, kMaxExactK / kChunkK);
    if (Status s = device::launch({.kernel = "multiply digits",
                                   .blocks = launches.blocks,
                                   .threads_x = kNumThreads,
                                   .shared_bytes = sizeof(MultiplyStorage),
                                   .overlaps_previous = true},
                                  stream, multiply<Six>, args, more);
        !s.ok()) {
      return s;
    }
    args.beta = 1.0F;  // what exceeds the exact sums is added in FP32
  }
  return {};
}

}  // namespace tilegate::int8x3
