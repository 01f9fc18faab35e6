// Fp16x3: FP32 accuracy from FP16 tensor cores, by splitting operands into two halves (Ootomo and
// Yokota; citation: 18_int8x3/README.md).
//
// New against Int8x3: halves are floating-point numbers, so that small elements of a row keep their
// precision down to 2^-16 of its largest, and three products suffice instead of six. A split kernel
// scales each row of op(A) and column of op(B) by a power of two and splits it (split.cuh); a GEMM
// multiplies the halves and accumulates in FP32 (gemm_sm90.cuh). For NaN, Inf and numbers near the
// ends of the range the device multiplies in FP64 (fp64_fallback.cuh). What limits it: the power of
// the tensor cores. Needs compute capability 9.0, no later one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/fp64_fallback.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "gemm_sm90.cuh"
#include "split.cuh"

namespace tilegate::fp16x3 {

constexpr std::int64_t kLeastK = 128;  // for smaller K FP32 is more accurate

// K up to which the split kernel has more, smaller blocks. For longer rows a multiprocessor has one
// resident block, so that caches hold what it reads again.
constexpr std::int64_t kFewRowsK = 2048;
constexpr int split_rows(std::int64_t k) {
  return k <= kFewRowsK ? FewRows::kRows : ManyRows::kRows;
}

// Rounding chain, in units of 2^-24 relative to (|A||B|)ij. A chunk of a run is 6 wgmma, each of
// which truncates up to 17 numbers at 2^-25 of the largest and the sum at 2^-23: 126 · 2^-25 in
// all. The halves have errors of 2^-23 each, lo·lo is 2^-22. Then come the sums of the runs, alpha
// and beta.
constexpr std::int64_t rounding_chain(std::int64_t k) {
  std::int64_t chain = 0;
  for (const Run& run : {kLongRun, kShortRun}) {
    if (static_cast<float>(k) < run.least_k) continue;
    chain = std::max(chain, 63 * run.chunks + ceil_div(k, std::int64_t{run.chunks} * kChunkK));
  }
  return chain + 8 + 4;
}

// Offsets in the workspace, in bytes. The decision comes first.
struct Workspace {
  Planes a, b;
  std::size_t planes_a = 0, planes_b = 0, steps_a = 0, steps_b = 0, stats = 0, bytes = 0;

  explicit Workspace(const Problem& problem)
      : a(split_chunks<Planes>(problem, Operand::kA)),
        b(split_chunks<Planes>(problem, Operand::kB)) {
    planes_a = aligned(sizeof(Path));
    planes_b = planes_a + aligned(a.bytes());
    steps_a = planes_b + aligned(b.bytes());
    steps_b = steps_a + aligned(a.step_bytes());
    stats = steps_b + aligned(b.step_bytes());
    bytes = stats + sizeof(OperandStats) * static_cast<std::size_t>(split_blocks(problem.shape.k));
  }

  std::int64_t split_blocks(std::int64_t k) const {
    return (a.matrices * a.rows() + b.matrices * b.rows()) / split_rows(k);
  }
};

// Parameters of a call's kernels, without addresses.
struct Launches {
  Workspace where;
  SplitJobs split;
  GemmParams multiply;
  std::int64_t blocks = 0;  // of the GEMM

  Launches(const Problem& problem, const Device& device) : where(problem) {
    const int rows = split_rows(problem.shape.k);
    split.job[0] = split_job(problem, Operand::kA, where.a, rows);
    split.job[1] = split_job(problem, Operand::kB, where.b, rows);
    split.groups_of_first = static_cast<unsigned>(split.job[0].num_groups());
    multiply.a = where.a;
    multiply.b = where.b;
    multiply.groups_a = split.groups_of_first;
    multiply.groups_b = static_cast<unsigned>(split.job[1].num_groups());
    multiply.rows_a = static_cast<float>(problem.shape.m * where.a.matrices);
    multiply.rows_b = static_cast<float>(problem.shape.n * where.b.matrices);
    multiply.summed = {static_cast<float>(problem.shape.k), products_in_fp32(problem),
                       products_of_one_sign_in_fp32(problem)};
    multiply.float2_c = allows_float2_of_c(problem);
    multiply.scheduler = TileScheduler(problem.shape, kBlockM, kBlockN);
    multiply.fp64 = fp64_args(problem, kBlockN, 1);
    // FP64 has tiles of the same size.
    blocks =
        std::min<std::int64_t>(problem.batch * multiply.scheduler.count, device.multiprocessors);
  }

  Launches at(const KernelArgs& args) const {
    Launches placed = *this;
    auto* base = static_cast<std::byte*>(args.workspace);
    const auto floats = [&](std::size_t offset) { return reinterpret_cast<float*>(base + offset); };
    placed.split.pointers[0] = {args.a, args.lda, args.stride_a, base + where.planes_a,
                                floats(where.steps_a)};
    placed.split.pointers[1] = {args.b, args.ldb, args.stride_b, base + where.planes_b,
                                floats(where.steps_b)};
    placed.split.stats = reinterpret_cast<OperandStats*>(base + where.stats);
    placed.multiply.planes_a = base + where.planes_a;
    placed.multiply.planes_b = base + where.planes_b;
    placed.multiply.steps_a = floats(where.steps_a);
    placed.multiply.steps_b = floats(where.steps_b);
    placed.multiply.stats = floats(where.stats);
    placed.multiply.decision = reinterpret_cast<Path*>(base);
    return placed;
  }
};

template <typename Config>
Status enqueue_split(const Launches& launches, Stream stream) {
  return device::launch({.kernel = "split",
                         .blocks = launches.multiply.groups_a + launches.multiply.groups_b,
                         .threads_x = Config::kThreads,
                         .shared_bytes = sizeof(SplitStorage<Config>),
                         .overlaps_previous = true},
                        stream, split<Config>, launches.split);
}

inline Status enqueue(const Launches& launches, const KernelArgs& args, Stream stream) {
  Status status = args.shape.k <= kFewRowsK ? enqueue_split<FewRows>(launches, stream)
                                            : enqueue_split<ManyRows>(launches, stream);
  if (!status.ok()) return status;
  return device::launch({.kernel = "multiply halves",
                         .blocks = launches.blocks,
                         .threads_x = kNumThreads,
                         .shared_bytes = sizeof(GemmStorage),
                         .overlaps_previous = true},
                        stream, multiply, args, launches.multiply);
}

// Expected seconds with halves on an NVIDIA H200.
inline double seconds(const Problem& problem, std::int64_t tiles, const Device& device) {
  constexpr double kChunkSeconds = 0.6e-6;  // per 32 k of a tile
  const std::int64_t waves = ceil_div(tiles, std::int64_t{device.multiprocessors});
  return static_cast<double>(waves * ceil_div(problem.shape.k, kChunkK)) * kChunkSeconds +
         split_seconds(problem, 3.5e-12);
}

inline std::vector<PlannedKernel> planned_kernels(const Problem& problem,
                                                  const Launches& launches) {
  const GemmParams& params = launches.multiply;
  const int rows = split_rows(problem.shape.k);
  const std::string kernel = rows == FewRows::kRows ? "few" : "many";
  const std::int64_t block_k = rows == FewRows::kRows ? FewRows::kBlockK : ManyRows::kBlockK;
  std::vector<PlannedKernel> kernels;
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    kernels.push_back(planned_split(problem, operand, rows, kernel));
    kernels.back().parameters.push_back(parameter::ring(
        "turns of a block", ceil_div(params.a.chunks_k * kChunkK, block_k), FewRows::kKept + 1));
  }
  const std::int64_t chunks = params.a.chunks_k;
  const std::int64_t tiles = problem.batch * params.scheduler.count;
  const std::int64_t waves = ceil_div(tiles, launches.blocks);
  kernels.push_back(
      {.name = params.float2_c ? "halves to float2" : "halves to words",
       .parameters = {parameter::rows(kBlockM), parameter::columns(kBlockN),
                      parameter::tiles("chunks of k", chunks, 1),
                      parameter::tiles("chunks of a sum", chunks, kRunsOfSum),
                      parameter::count("tiles of a block", waves),
                      parameter::ring("chunks of a block", waves * chunks, kStages),
                      scheduling(params.scheduler), columns_of_groups(params.scheduler)},
       .decision = static_cast<int>(Path::kThree)});
  add_planned_fp64(problem, params.fp64, 1, launches.blocks, static_cast<int>(Path::kFp64),
                   kernels);
  return kernels;
}

inline Candidate candidate(const Problem& problem, const Device& device) {
  const std::int64_t k = problem.shape.k;
  const Launches launches(problem, device);
  return {
      {.configuration = "128x128",
       .rounding_chain = std::max(rounding_chain(k), kFp64RoundingChain),
       .operand_error = kOperandError,
       .workspace_bytes = launches.where.bytes,
       .decides_on_device = true,
       .enqueue = [launches](const KernelArgs& args,
                             Stream stream) { return enqueue(launches.at(args), args, stream); },
       .kernels = [=] { return planned_kernels(problem, launches); }},
      seconds(problem, launches.multiply.scheduler.count * problem.batch, device)};
}

inline std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  constexpr double kSplitBlocks = static_cast<double>(kChunkRows) / FewRows::kRows;  // at most
  if (Status s = check_split_size(problem, kFp32Tile, kSplitBlocks); !s.ok()) {
    return {{{.status = std::move(s)}}};
  }
  if (problem.shape.k < kLeastK) return {plain_candidate(problem)};
  return {candidate(problem, device)};
}

inline Status setup() {
  if (Status s = device::allow_shared_memory(multiply, sizeof(GemmStorage)); !s.ok()) return s;
  if (Status s = device::allow_shared_memory(split<FewRows>, sizeof(SplitStorage<FewRows>));
      !s.ok()) {
    return s;
  }
  return device::allow_shared_memory(split<ManyRows>, sizeof(SplitStorage<ManyRows>));
}

inline constexpr std::int64_t kTileSizes[] = {8, 16, 32, 64, 128};

}  // namespace tilegate::fp16x3
