// Int8x3: FP32 operands as three digits of 8 bits, multiplied exactly on the tensor cores.
//
// New against the rungs before: no FFMA. A first kernel scales each row of op(A) and column of
// op(B) and splits it into signed digits (split.cuh); a second multiplies the digits, six products
// of the nine, into int32 accumulators, and folds them into FP32 once (multiply.cuh). The device
// decides from what the first kernel saw whether six products are as accurate as FP32, or eight are,
// or neither; then it multiplies in FP32 (fp32.cuh). What limits it: the power that the tensor cores
// take. Needs compute capability 9.0, and no other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tilegate/common/grid.cuh>
#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "fp32.cuh"
#include "multiply.cuh"
#include "split.cuh"

namespace tilegate::int8x3 {

// Below it few operands are narrow enough for digits to be as accurate as FP32.
constexpr std::int64_t kLeastK = 128;

// K up to which the split pass has more, smaller blocks. With longer rows there is one at a time on
// a multiprocessor, so that caches hold what it has to read again.
constexpr std::int64_t kFewRowsK = 1024, kShortRowsK = 2048;
constexpr int split_rows(std::int64_t k) {
  return k <= kFewRowsK ? FewRows::kRows : k <= kShortRowsK ? ShortRows::kRows : LongRows::kRows;
}

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 33;
constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;

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

inline bool is_along_k(const Problem& problem, Operand operand) {
  return operand == Operand::kA ? problem.op_a == Op::kN : problem.op_b == Op::kT;
}

inline Job job_of(const Problem& problem, Operand operand, const Planes& planes) {
  const bool along_k = is_along_k(problem, operand);
  return {.planes = planes,
          .along_k = along_k,
          .vectors = along_k && allows_vectors(problem, operand),
          .rows = operand == Operand::kA ? problem.shape.m : problem.shape.n,
          .k = problem.shape.k,
          .blocks = Divisor(static_cast<std::uint32_t>(planes.rows() / split_rows(problem.shape.k)))};
}

// The k that a kernel in FP32 adds up one after another: all, or, where C is small, about as many as
// such kernels leave when they split K among blocks, which makes them more accurate.
inline float summed_in_fp32(const Problem& problem, const Device& device) {
  constexpr std::int64_t kSplitRun = 1024;
  const TileOrder tiles(problem.shape, kBlockM, 128);
  const std::int64_t k = problem.shape.k;
  const bool is_split = tiles.count * problem.batch < 2 * device.multiprocessors;
  return static_cast<float>(is_split ? std::min(k, kSplitRun) : k);
}

inline Fp32Args fp32_args(const Problem& problem) {
  return {is_along_k(problem, Operand::kA), is_along_k(problem, Operand::kB),
          TileOrder(problem.shape, kFp32Tile, kFp32Tile)};
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

// Seconds of the second kernel on an NVIDIA H200, as far as it ranks the two tiles.
template <typename Six>
double seconds(const MultiplyArgs& more, const Problem& problem, const Device& device) {
  const TileOrder& order = six_order<Six>(more);
  const double tiles = static_cast<double>(order.count) * static_cast<double>(problem.batch);
  const double per_chunk = Six::kBlockN == kChunkRows ? 0.45e-6 : 0.26e-6;
  return std::ceil(tiles / device.multiprocessors) *
         (static_cast<double>(more.a.chunks_k) * per_chunk + 3e-6);
}

template <typename Six>
Launches launches_of(const Problem& problem, const Device& device, Path least) {
  const Workspace workspace(problem);
  Launches launches{workspace, job_of(problem, Operand::kA, workspace.a),
                    job_of(problem, Operand::kB, workspace.b),
                    multiply_args(problem, device, workspace, least), 0};
  const TileOrder& order = six_order<Six>(launches.more);
  launches.blocks = std::min<std::int64_t>(problem.batch * order.count, device.multiprocessors);
  return launches;
}

template <typename Six>
Candidate candidate(const char* name, const Problem& problem, const Device& device, Path least) {
  const Launches launches = launches_of<Six>(problem, device, least);
  return {{.configuration = name,
           .rounding_chain = fp32_rounding_chain(problem.shape.k),
           .operand_error = kOperandError,
           .workspace_bytes = launches.workspace.bytes,
           .enqueue = [launches](const KernelArgs& args, Stream stream) {
             if (Status s = enqueue_split(launches, args, stream); !s.ok()) return s;
             return enqueue_multiply<Six>(launches, args, stream);
           }},
          seconds<Six>(launches.more, problem, device)};
}

inline Candidate plain_candidate(const Problem& problem) {
  return {{.configuration = "fp32",
           .rounding_chain = fp32_rounding_chain(problem.shape.k),
           .enqueue = [more = fp32_args(problem)](const KernelArgs& args, Stream stream) {
             return device::launch({.kernel = "plain product",
                                    .blocks = args.batch * more.order.count,
                                    .threads_x = kFp32Threads,
                                    .shared_bytes = sizeof(Fp32Storage),
                                    .overlaps_previous = true},
                                   stream, plain, args, more);
           }}};
}

// Tiles of 64 columns are the smallest; the split pass has at least 8 rows per block.
inline bool fits(const Problem& problem) {
  const auto [m, n, k] = problem.shape;
  const auto tiles = [](std::int64_t extent, int tile) {
    return static_cast<double>(ceil_div(extent, tile));
  };
  const double blocks = static_cast<double>(problem.batch) *
                        std::max(tiles(m, kBlockM) * tiles(n, 64) * TileOrder::kGroup,
                                 (tiles(m, kChunkRows) + tiles(n, kChunkRows)) * 16.0);
  return blocks <= static_cast<double>(kMaxBlocks);
}

// With at least so many products.
template <Path kLeast>
std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  if (std::max(problem.shape.m, problem.shape.n) > kMaxExtent) {
    return {{{.status = Status::unsupported("M or N is above " + std::to_string(kMaxExtent))}}};
  }
  if (!fits(problem)) {
    return {{{.status = Status::unsupported("C needs more tiles than a CUDA grid has blocks")}}};
  }
  if (problem.shape.k < kLeastK) return {plain_candidate(problem)};
  return {candidate<Tiles<128, 6>>("128x128", problem, device, kLeast),
          candidate<Tiles<64, 6>>("128x64", problem, device, kLeast)};
}

template <typename Config>
Status allow_split() {
  return device::allow_shared_memory(split<Config>, sizeof(SplitStorage<Config>));
}

inline Status setup() {
  for (auto* kernel : {multiply<Tiles<128, 6>>, multiply<Tiles<64, 6>>}) {
    if (Status s = device::allow_shared_memory(kernel, sizeof(MultiplyStorage)); !s.ok()) return s;
  }
  if (Status s = device::allow_shared_memory(plain, sizeof(Fp32Storage)); !s.ok()) return s;
  if (Status s = allow_split<FewRows>(); !s.ok()) return s;
  if (Status s = allow_split<ShortRows>(); !s.ok()) return s;
  return allow_split<LongRows>();
}

inline constexpr std::int64_t kTileSizes[] = {8, 32, 64, 128};

template <Path kLeast>
constexpr Stage make_stage(std::string_view name, std::string_view idea) {
  return {.name = name,
          .idea = idea,
          .requirements = {.compute_capability = 90, .no_later = true, .not_on_simt = {}},
          .takes_transposed = true,
          .takes_batches = true,
          .tile_sizes = kTileSizes,
          .candidates = candidates<kLeast>,
          .setup = setup};
}

}  // namespace tilegate::int8x3
