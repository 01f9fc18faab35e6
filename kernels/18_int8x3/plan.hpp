// Int8x3: FP32 accuracy from INT8 tensor cores, by the Ozaki scheme.
//
// New against the rungs before: no FFMA. A split kernel scales each row of op(A) and column of
// op(B) and splits it into three signed 8-bit digits (split.cuh). A GEMM computes six of the nine
// digit products exactly in int32 accumulators, and folds them into FP32 once (gemm_sm90.cuh). The
// device decides from statistics whether six products are as accurate as FP32, or eight are, or
// ten with a fourth digit, or these without outliers (refine.cuh), or none; then it multiplies in
// FP64 (fp64_fallback.cuh).
// What limits it: the power of the tensor cores. Needs compute capability 7.5; 9.0 has its own
// kernels. All others take gemm_mma_sync.cuh, which has the same bits and no ten products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/fp64_fallback.cuh>
#include <tilegate/common/gpu_model.hpp>
#include <tilegate/common/operand_map.hpp>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/flag.cuh>
#include <tilegate/device/tensor_map.hpp>
#include <tilegate/stage.hpp>

#include "gemm_mma_sync.cuh"
#include "gemm_sm90.cuh"
#include "refine.cuh"
#include "split.cuh"

namespace tilegate::int8x3 {
// The stages and variants are in several sources, each of which has kernels of its own: nvcc gives
// templates of kernels internal linkage. So setup() and the launches must have it, too; else one
// source would allow shared memory for the kernels of another.
namespace {

// The split kernel of a problem. Each kernel below is an instance of a template in split.cuh.

using Long = LongConfig<256, 2>;
using Ahead = AheadConfig<16, 6, 1>;
using Many = AheadConfig<8, 6, 2>;

// Split kernel, and blocks per group of rows.
struct SplitPlan {
  // kAny: split_short<AnyRows>, for GPUs without clusters or with less shared memory. kFew:
  // split_short<FewRows>. kMany, kAhead: split_boxes or split_ahead, of Many or of Ahead. kLong:
  // split_long<Long>.
  enum class Kernel : std::uint8_t { kAny, kFew, kMany, kAhead, kLong } kernel = Kernel::kAny;
  int rows = AnyRows::kRows;  // per group
  unsigned cluster = 1;
  bool evicts_first = false;  // operands are read with L2 priority evict_first
  bool boxes = false;         // split_boxes, not split_ahead

  SplitPlan() = default;
  // `groups`: groups of Long::kRows rows; `c_bytes`: size of C; `by_tma`: TMA can copy both
  // operands.
  SplitPlan(std::int64_t groups, std::int64_t k, double c_bytes, int multiprocessors, bool by_tma)
      : kernel(kernel_for(groups, k, multiprocessors, by_tma)),
        rows(kernel == Kernel::kFew ? FewRows::kRows : Long::kRows),
        boxes(by_tma && (kernel == Kernel::kMany || kernel == Kernel::kAhead)) {
    if (kernel == Kernel::kLong) cluster = kMaxSplitCluster;
    if (kernel == Kernel::kMany) cluster = 2;
    if (kernel == Kernel::kAhead) {
      for (cluster = 2; ceil_div(k, kChunkK) > cluster * Ahead::kMaxChunks;) cluster *= 2;
    }
    const double elements = static_cast<double>(groups * Long::kRows) * static_cast<double>(k);
    evicts_first = (kernel == Kernel::kMany || kernel == Kernel::kAhead) && k <= kEvictFirstK &&
                   elements * (kPlanes + sizeof(float)) + c_bytes > kNearlyL2Bytes &&
                   elements * kPlanes <= kH200.l2_bytes;
  }

  // Blocks for `groups` groups. Persistent blocks are all resident, and process equally many
  // groups.
  std::int64_t blocks(std::int64_t groups, int multiprocessors) const {
    if (kernel != Kernel::kAhead && kernel != Kernel::kMany) return groups * cluster;
    const std::int64_t slots = kernel == Kernel::kMany
                                   ? multiprocessors * Many::kBlocksPerSm
                                   : multiprocessors - (cluster > 2 ? kLeftOver : 0);
    const std::int64_t clusters = std::max<std::int64_t>(slots / cluster, 1);
    return ceil_div(groups, ceil_div(groups, clusters)) * cluster;
  }

  // kLong does not: its clusters of eight would crowd on the multiprocessors that the previous
  // kernel leaves first.
  bool overlaps_previous() const { return kernel != Kernel::kAny && kernel != Kernel::kLong; }

  // Multiprocessors that clusters of more than two blocks do not fill. Measured on an NVIDIA H200,
  // as are the thresholds below.
  static constexpr std::int64_t kLeftOver = 12;

 private:
  static constexpr std::int64_t kFewRowsK = 1024, kManyK = 1408, kEvictFirstK = 2560;
  static_assert(kManyK <= 2 * Many::kMaxChunks * kChunkK);
  // From this many elements on split_ahead<Many> is faster than kFew; split_boxes<Many> always is.
  // A row costs as much as kRowElements more.
  static constexpr std::int64_t kManyElements = 2'500'000, kRowElements = 300;
  // Operands, digits and C together do not stay in L2 above this size. If the digits alone fit,
  // they should stay, because the GEMM reads them next.
  static constexpr double kNearlyL2Bytes = 36e6;

  static Kernel kernel_for(std::int64_t groups, std::int64_t k, int multiprocessors, bool by_tma) {
    if (k > Ahead::kMaxK) return Kernel::kLong;
    if (k > kFewRowsK) {  // kMany has twice as many resident clusters as kAhead
      return k <= kManyK && 2 * groups > multiprocessors ? Kernel::kMany : Kernel::kAhead;
    }
    const bool are_many = groups * Long::kRows * (k + kRowElements) >= kManyElements;
    return by_tma || are_many ? Kernel::kMany : Kernel::kFew;
  }
};

// The kernels of a call: workspace and parameters.

inline double bytes_of_c(const Problem& problem) {
  return sizeof(float) * static_cast<double>(problem.batch * problem.shape.m * problem.shape.n);
}

// Whether TMA can copy the operand, or it is not split (prepared.cuh).
inline bool copies_boxes(const Problem& problem, Operand operand) {
  return split_extent(problem, operand) == 0 || allows_boxes(problem, operand);
}

// Offsets in the workspace, in bytes. The decision comes first.
struct Workspace {
  Planes a, b;
  SplitPlan split;
  std::size_t planes_a = 0, planes_b = 0, steps_a = 0, steps_b = 0, pairs = 0, widths = 0,
              bytes = 0;
  std::size_t tails_a = 0, tails_b = 0, partials = 0, flags = 0;
  std::int64_t num_flags = 0;
  std::size_t outliers_a = 0, outliers_b = 0, widths_without_outliers = 0;

  Workspace() = default;
  // `uses_mma_sync`: the GEMM kernel is multiply_warps (gemm_mma_sync.cuh).
  Workspace(const Problem& problem, const Device& device, bool uses_mma_sync)
      : a(split_chunks<Planes>(problem, Operand::kA)),
        b(split_chunks<Planes>(problem, Operand::kB)) {
    if (!uses_mma_sync) {
      split = SplitPlan((a.matrices * a.rows() + b.matrices * b.rows()) / Long::kRows,
                        problem.shape.k, bytes_of_c(problem), device.multiprocessors,
                        copies_boxes(problem, Operand::kA) && copies_boxes(problem, Operand::kB));
    }
    planes_a = aligned(sizeof(Path));
    planes_b = planes_a + aligned(a.bytes());
    steps_a = planes_b + aligned(b.bytes());
    steps_b = steps_a + aligned(a.step_bytes());
    pairs = steps_b + aligned(b.step_bytes());
    widths = pairs + 2 * kPairsBytes;
    const std::int64_t groups = (a.matrices * a.rows() + b.matrices * b.rows()) / split.rows;
    bytes = widths + sizeof(float) * kNumWidths * static_cast<std::size_t>(groups);
  }

  // Adds room for the tails.
  void add_tails() {
    tails_a = aligned(bytes);
    tails_b = tails_a + aligned(a.bytes() / kPlanes);
    bytes = tails_b + aligned(b.bytes() / kPlanes);
  }

  // Adds room for outliers, for the widths without them, and for the flags of the samplers.
  void add_outliers() {
    const auto rows_a = static_cast<std::size_t>(a.matrices * a.rows()),
               rows_b = static_cast<std::size_t>(b.matrices * b.rows());
    outliers_a = aligned(bytes);
    outliers_b = outliers_a + rows_a * kMaxOutliers * sizeof(Outlier);
    widths_without_outliers = outliers_b + rows_b * kMaxOutliers * sizeof(Outlier);
    bytes = widths_without_outliers +
            (rows_a + rows_b) / RowsAlongK::kRows * kNumWidths * sizeof(float);
    num_flags += kSamplers;
    flags = bytes;
    bytes += sizeof(unsigned) * static_cast<std::size_t>(num_flags);
  }

  // The same memory for a panel of no more rows, columns and matrices, and of the same K. Both
  // operands' regions stay in place, so that one panel's digits of an operand serve the next.
  Workspace for_panel(const Problem& panel) const {
    Workspace part = *this;
    part.a = split_chunks<Planes>(panel, Operand::kA);
    part.b = split_chunks<Planes>(panel, Operand::kB);
    const std::int64_t fewer = (a.matrices * a.rows() - part.a.matrices * part.a.rows()) /
                               split.rows;  // groups of A, whose widths end where B's begin
    part.widths += sizeof(float) * kNumWidths * static_cast<std::size_t>(fewer);
    return part;
  }

  // Adds room for partial sums, of digits or of so many blocks in FP64, and for flags.
  void add_partials(std::size_t bytes_of_digits, std::int64_t flags_of_digits,
                    std::int64_t fp64_blocks) {
    num_flags = std::max(flags_of_digits, fp64_blocks);
    partials = aligned(bytes);
    flags = partials +
            std::max(bytes_of_digits, static_cast<std::size_t>(fp64_blocks) * kFp64PartialBytes);
    bytes = flags + sizeof(unsigned) * static_cast<std::size_t>(num_flags);
  }
};

// Parameters of the GEMM without addresses. `block_m`, `block_n`: of a tile with six products;
// `cluster`: blocks per cluster. To the tile schedulers the tiles of a cluster, which are
// neighbours in a row, are one tile.
inline GemmParams gemm_params(const Problem& problem, const Workspace& workspace, int block_m,
                              int block_n, unsigned cluster, Path least) {
  const auto groups = [&](const Planes& p) {
    return static_cast<unsigned>(p.matrices * p.rows() / workspace.split.rows);
  };
  const auto [m, n, k] = problem.shape;
  const int blocks = static_cast<int>(cluster);  // each has a tile
  return {.a = workspace.a,
          .b = workspace.b,
          .widths = {.of_a = groups(workspace.a), .of_b = groups(workspace.b)},
          .rows_a = static_cast<float>(m * workspace.a.matrices),
          .rows_b = static_cast<float>(n * workspace.b.matrices),
          .least = least,
          .allowed = squared_error_of(summed_in_fp32(problem)),
          .allowed_of_ten = squared_error_of(summed_in_fp32(problem)),
          .float2_c = allows_float2_of_c(problem),
          .evicts_first = allows_float2_of_c(problem) &&
                          (workspace.split.evicts_first || bytes_of_c(problem) > kH200.l2_bytes),
          .six = TileScheduler(problem.shape, block_m, blocks * block_n),
          .eight = TileScheduler(problem.shape, kBlockM, blocks * Eight::kBlockN),
          .fp32 = fp32_args(problem)};
}

// What a plan keeps for its launches.
struct Launches {
  Workspace workspace;
  Job a, b;
  GemmParams params;
  std::int64_t split_blocks = 0, blocks = 0;  // of the split kernel, and of the GEMM
  std::size_t partial_bytes = 0;              // of digits
  Job refine_a{}, refine_b{};                 // where ten products are allowed
  std::int64_t refine_blocks = 0, outlier_blocks = 0;
  bool splits_a = true, splits_b = true;  // false: the operand's digits are there
  bool adds_to_c = false;                 // another panel along K precedes
  bool samples_pairs = true;              // both operands are there, as floats
  float most_spread = std::numeric_limits<float>::infinity();  // see SplitJobs
};

// The parameters of the GEMM with addresses. Those of a prepared operand (prepared.cuh) are known.
inline GemmParams with_addresses(const Launches& launches, const KernelArgs& args) {
  const Workspace& where = launches.workspace;
  auto* base = static_cast<std::byte*>(args.workspace);
  GemmParams params = launches.params;
  if (params.planes_a == nullptr) {
    params.planes_a = base + where.planes_a;
    params.tails_a = base + where.tails_a;
    params.steps_a = reinterpret_cast<float*>(base + where.steps_a);
  }
  if (params.planes_b == nullptr) {
    params.planes_b = base + where.planes_b;
    params.tails_b = base + where.tails_b;
    params.steps_b = reinterpret_cast<float*>(base + where.steps_b);
  }
  if (launches.samples_pairs) {
    params.pairs = reinterpret_cast<float4*>(base + where.pairs);
    params.pairs_without_outliers = reinterpret_cast<float4*>(base + where.pairs + kPairsBytes);
    const auto floats = [](const Job& job, const float* from, std::int64_t ld,
                           std::int64_t stride) -> Floats {
      return {from, job.along_k ? ld : 1, job.along_k ? 1 : ld, stride, job.k};
    };
    params.floats_a = floats(launches.a, args.a, args.lda, args.stride_a);
    params.floats_b = floats(launches.b, args.b, args.ldb, args.stride_b);
  }
  params.widths.widths = reinterpret_cast<float*>(base + where.widths);
  params.widths_without_outliers.widths =
      reinterpret_cast<float*>(base + where.widths_without_outliers);
  params.partials = base + where.partials;
  params.flags = reinterpret_cast<unsigned*>(base + where.flags);
  params.decision = reinterpret_cast<Path*>(base);
  params.without_outliers = reinterpret_cast<std::int32_t*>(base + sizeof(Path));
  params.refined = reinterpret_cast<Path*>(base + 2 * sizeof(Path));
  params.are_apart = reinterpret_cast<std::int32_t*>(base + 3 * sizeof(Path));
  params.samples = reinterpret_cast<float4*>(base + 4 * sizeof(Path));
  if (params.allows_outliers) params.sample_flags = params.flags + where.num_flags - kSamplers;
  params.fp64.partials = reinterpret_cast<float*>(base + where.partials);
  params.fp64.flags = params.flags;
  return params;
}

// Operands, digits and statistics for split kernels and `refine`.
inline std::pair<Pointers, Pointers> pointers_of(const Launches& launches, const KernelArgs& args) {
  const Workspace& where = launches.workspace;
  auto* base = static_cast<std::byte*>(args.workspace);
  const auto floats = [&](std::size_t at) { return reinterpret_cast<float*>(base + at); };
  return {{{args.a, args.lda, args.stride_a, base + where.planes_a, floats(where.steps_a)},
           floats(where.widths),
           base + where.tails_a},
          {{args.b, args.ldb, args.stride_b, base + where.planes_b, floats(where.steps_b)},
           floats(where.widths) + kNumWidths * launches.a.num_groups(),
           base + where.tails_b}};
}

template <typename Storage, typename... Maps>
Status enqueue_split(const Launches& launches, const KernelArgs& args, Stream stream, int threads,
                     void (*kernel)(SplitJobs, Maps...), const Maps&... maps) {
  const Workspace& where = launches.workspace;
  const auto [a, b] = pointers_of(launches, args);
  const unsigned cluster = where.split.cluster;
  // Blocks of split_short that sample pairs.
  const bool is_short = where.split.kernel == SplitPlan::Kernel::kFew ||
                        where.split.kernel == SplitPlan::Kernel::kAny;
  const std::int64_t pair_blocks = is_short && launches.samples_pairs ? kPairs : 0;
  const SplitJobs jobs{
      .job = {launches.a, launches.b},
      .pointers = {a, b},
      .pairs = launches.samples_pairs ? reinterpret_cast<float4*>(
                                            static_cast<std::byte*>(args.workspace) + where.pairs)
                                      : nullptr,
      .groups_of_first = static_cast<unsigned>(launches.splits_a ? launches.a.num_groups() : 0),
      .groups_of_second = static_cast<unsigned>(launches.splits_b ? launches.b.num_groups() : 0),
      .evicts_first = where.split.evicts_first,
      .flags = with_addresses(launches, args).flags,
      .num_flags = static_cast<unsigned>(where.num_flags),
      .cluster = cluster,
      .chunks = ceil_div(where.a.chunks_k, cluster),
      .most_spread = launches.most_spread};
  return device::launch({.kernel = "split",
                         .blocks = pair_blocks + launches.split_blocks,
                         .threads_x = static_cast<unsigned>(threads),
                         .shared_bytes = sizeof(Storage),
                         .overlaps_previous = where.split.overlaps_previous(),
                         .cluster = cluster},
                        stream, kernel, jobs, maps...);
}

// The tensor map of an operand, whose boxes are the slots of split_boxes.
inline Status make_slot_map(const Job& job, const SplitPointers& pointers, device::TensorMap* map) {
  // Across k a row of a box has 64 bytes. Above this K it is faster if L2 fetches the whole line of
  // 128 bytes (EXPERIMENTS.md).
  constexpr std::int64_t kWholeLinesK = 4096;
  const bool along_k = job.along_k;
  device::TensorLayout layout =
      layout_of_matrices(along_k ? job.k : job.rows, along_k ? job.rows : job.k, pointers.ld,
                         job.planes.matrices, pointers.stride);
  layout.data = const_cast<float*>(pointers.from);
  if (along_k) {
    layout.box = {kChunkK, Ahead::kRows, 1};
    layout.swizzle = device::Swizzle::k128Bytes;  // as word_of
  } else {
    layout.box = {Ahead::kRows, kChunkK, 1};
    layout.l2_promotion_bytes = job.k > kWholeLinesK ? 128 : 64;
  }
  return device::make_tensor_map(layout, map);
}

// An operand that is not split needs no map.
template <typename Config>
Status enqueue_boxes(const Launches& launches, const KernelArgs& args, Stream stream) {
  const auto [a, b] = pointers_of(launches, args);
  device::TensorMap map_a{}, map_b{};
  if (launches.splits_a) {
    if (Status s = make_slot_map(launches.a, a, &map_a); !s.ok()) return s;
  }
  if (launches.splits_b) {
    if (Status s = make_slot_map(launches.b, b, &map_b); !s.ok()) return s;
  }
  return enqueue_split<AheadStorage<Config>>(launches, args, stream, Config::kThreads,
                                             split_boxes<Config>, map_a, map_b);
}

// split_boxes or split_ahead.
template <typename Config>
Status enqueue_ahead(const Launches& launches, const KernelArgs& args, Stream stream) {
  if (launches.workspace.split.boxes) return enqueue_boxes<Config>(launches, args, stream);
  return enqueue_split<AheadStorage<Config>>(launches, args, stream, Config::kThreads,
                                             split_ahead<Config>);
}

inline Status enqueue_split(const Launches& launches, const KernelArgs& args, Stream stream) {
  switch (launches.workspace.split.kernel) {
    case SplitPlan::Kernel::kFew:
      return enqueue_split<ShortStorage<FewRows>>(launches, args, stream, FewRows::kThreads,
                                                  split_short<FewRows>);
    case SplitPlan::Kernel::kMany:
      return enqueue_ahead<Many>(launches, args, stream);
    case SplitPlan::Kernel::kAhead:
      return enqueue_ahead<Ahead>(launches, args, stream);
    case SplitPlan::Kernel::kLong:
      return enqueue_split<LongStorage<Long>>(launches, args, stream, Long::kThreads,
                                              split_long<Long>);
    case SplitPlan::Kernel::kAny:
      break;
  }
  return enqueue_split<ShortStorage<AnyRows>>(launches, args, stream, AnyRows::kThreads,
                                              split_short<AnyRows>);
}

// The first kSamplers blocks sample. From kDecider on, the last of them, blocks may set outliers
// apart, each of one operand.
inline std::int64_t blocks_of_refine(const Device& device) {
  return std::max<std::int64_t>(std::int64_t{kRefineBlocksPerSm} * device.multiprocessors,
                                kSamplers + 1);
}
inline std::int64_t blocks_that_set_apart(const Launches& launches) {
  return launches.refine_blocks - kDecider;
}

// Where outliers are allowed: the first so many of these blocks set those of op(A) apart, all
// others those of op(B). In proportion to their rows, but the operand with more rows has no more
// blocks than it needs for as many rounds.
inline std::int64_t blocks_apart(const Launches& launches) {
  const auto rows = [](const Planes& planes) { return planes.matrices * planes.rows(); };
  const std::int64_t rows_a = rows(launches.workspace.a), rows_b = rows(launches.workspace.b),
                     blocks = blocks_that_set_apart(launches);
  const bool most_a = rows_a > rows_b;
  const std::int64_t groups = (most_a ? launches.refine_a : launches.refine_b).num_groups();
  const auto share = std::clamp<std::int64_t>(blocks * std::max(rows_a, rows_b) / (rows_a + rows_b),
                                              1, blocks - 1);
  const std::int64_t even = ceil_div(groups, ceil_div(groups, share));
  return most_a ? even : blocks - even;
}

// Enqueues `refine`, where ten products are allowed.
inline Status enqueue_refine(const Launches& launches, const KernelArgs& args, Stream stream) {
  if (!launches.params.allows_ten) return {};
  auto [a, b] = pointers_of(launches, args);
  const Workspace& where = launches.workspace;
  auto* base = static_cast<std::byte*>(args.workspace);
  a.outliers = reinterpret_cast<Outlier*>(base + where.outliers_a);
  b.outliers = reinterpret_cast<Outlier*>(base + where.outliers_b);
  a.widths_without_outliers = reinterpret_cast<float*>(base + where.widths_without_outliers);
  b.widths_without_outliers =
      a.widths_without_outliers + kNumWidths * launches.refine_a.num_groups();
  const auto slices = [](const Job& job) {
    const int block_k = job.along_k ? RowsAlongK::kBlockK : RowsAcrossK::kBlockK;
    const std::int64_t all_k = std::max<std::int64_t>(job.planes.chunks_k * kChunkK, 1);
    return Divisor(static_cast<std::uint32_t>(ceil_div(all_k, std::int64_t{block_k})));
  };
  const RefineJobs jobs{.job = {launches.refine_a, launches.refine_b},
                        .pointers = {a, b},
                        .groups = {static_cast<unsigned>(launches.refine_a.num_groups()),
                                   static_cast<unsigned>(launches.refine_b.num_groups())},
                        .slices = {slices(launches.refine_a), slices(launches.refine_b)},
                        .first_apart = launches.params.allows_outliers
                                           ? static_cast<unsigned>(blocks_apart(launches))
                                           : 0};
  return device::launch_in_order({.kernel = "refine",
                                  .blocks = launches.refine_blocks,
                                  .threads_x = kRefineThreads,
                                  .shared_bytes = sizeof(RefineStorage),
                                  .overlaps_previous = true},
                                 stream, refine, jobs, with_addresses(launches, args));
}

// Enqueues `add_outliers`, where outliers may be set apart.
inline Status enqueue_add_outliers(const Launches& launches, const KernelArgs& args,
                                   Stream stream) {
  if (!launches.params.allows_outliers) return {};
  const auto [a, b] = pointers_of(launches, args);
  const Workspace& where = launches.workspace;
  const auto* base = static_cast<const std::byte*>(args.workspace);
  const std::int64_t strips_m = ceil_div(args.shape.m, kStripRows),
                     strips_n = ceil_div(args.shape.n, kStripCols);
  const OutlierJobs jobs{.a = launches.refine_a,
                         .b = launches.refine_b,
                         .from_a = a,
                         .from_b = b,
                         .outliers_a = reinterpret_cast<const Outlier*>(base + where.outliers_a),
                         .outliers_b = reinterpret_cast<const Outlier*>(base + where.outliers_b),
                         .without_outliers = with_addresses(launches, args).without_outliers,
                         .strips_m = strips_m,
                         .strips_n = strips_n,
                         .strips = args.batch * strips_m * strips_n};
  return device::launch({.kernel = "add outliers",
                         .blocks = std::min(jobs.strips, launches.outlier_blocks),
                         .threads_x = kStripThreads,
                         .shared_bytes = sizeof(StripStorage),
                         .overlaps_previous = true,
                         .adds_to_c = true},
                        stream, add_outliers, args, jobs);
}

// Enqueues the GEMM: one launch per max_exact_k of K.
inline Status enqueue_multiply(const Launches& launches, KernelArgs args, Stream stream,
                               device::LaunchConfig launch,
                               void (*kernel)(KernelArgs, GemmParams)) {
  const Workspace& where = launches.workspace;
  GemmParams params = with_addresses(launches, args);
  const std::int64_t most_chunks = max_exact_k(params.allows_ten) / kChunkK;
  launch.adds_to_c = launches.adds_to_c;
  for (params.first_chunk = 0; params.first_chunk < where.a.chunks_k;
       params.first_chunk += params.chunks) {
    params.chunks = std::min(where.a.chunks_k - params.first_chunk, most_chunks);
    Status status = where.flags > 0 ? device::launch_in_order(launch, stream, kernel, args, params)
                                    : device::launch(launch, stream, kernel, args, params);
    if (!status.ok()) return status;
    args.beta = 1.0F;  // results of further launches are added in FP32
    launch.adds_to_c = true;
  }
  return {};
}

template <typename Six, unsigned kCluster,
          Decomposition kDecomposition = Decomposition::kDataParallel>
Status enqueue_multiply(const Launches& launches, const KernelArgs& args, Stream stream) {
  return enqueue_multiply(launches, args, stream,
                          {.kernel = "multiply digits",
                           .blocks = launches.blocks,
                           .threads_x = kNumThreads,
                           .shared_bytes = sizeof(GemmStorage),
                           .overlaps_previous = true,
                           .cluster = kCluster},
                          multiply<Six, kCluster, kDecomposition>);
}

inline Status enqueue_split_k(const Launches& launches, const KernelArgs& args, Stream stream) {
  constexpr auto enqueue_parts = enqueue_multiply<Tiles<64, 6>, 1, Decomposition::kSplitK>;
  if (Status s = enqueue_parts(launches, args, stream); !s.ok()) return s;
  return device::launch({.kernel = "add partial sums",
                         .blocks = args.batch * launches.params.six.count * kAddBlocks,
                         .threads_x = kAdders * kWarpgroup,
                         .shared_bytes = sizeof(AddStorage),
                         .overlaps_previous = true,
                         .adds_to_c = launches.adds_to_c},
                        stream, add_partials, args, with_addresses(launches, args));
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

// For smaller K the plan takes FP32: its sums have so few roundings that digits would be as
// accurate for few operands only.
constexpr std::int64_t kLeastK = 128;

// Expected seconds of a tile: of its chunks as fitted on an NVIDIA H200, of its end as on an H100,
// but of ping-pong on an H200 (EXPERIMENTS.md). Those of gemm_mma_sync.cuh are estimated from its
// instructions: it was not timed.
struct TileSeconds {
  double chunk;          // per 32 k, with six products
  double end;            // epilogue
  double no_vectors;     // additional, where C allows no float2
  double beyond_l2 = 0;  // additional per chunk, where the digits exceed L2
};
constexpr TileSeconds kWide{0.45e-6, 3.5e-6, 2.9e-6}, kWidePairs{0.446e-6, 4.5e-6, 0.0},
    kStreamKPairs{0.452e-6, 4.5e-6, 0.0}, kNarrow{0.218e-6, 1.5e-6, 1.8e-6, 0.025e-6},
    kPingpong{0.218e-6, 2.2e-6, 1.8e-6, 0.023e-6}, kMmaSync{0.7e-6, 2.1e-6, 2.7e-6};

// Configuration of the GEMM.
struct GemmConfig {
  const char* name;
  int block_m, block_n;
  unsigned cluster;  // blocks that share rows of A
  int stages;
  Decomposition decomposition;
  bool uses_mma_sync;  // multiply_warps (gemm_mma_sync.cuh)
  TileSeconds seconds;
  Status (*enqueue)(const Launches& launches, const KernelArgs& args, Stream stream);

  bool splits_k() const { return decomposition == Decomposition::kSplitK; }
  bool stream_k() const { return decomposition == Decomposition::kStreamK; }
  bool is_pingpong() const { return block_m == Pingpong::kBlockM; }
};
constexpr auto kDataParallel = Decomposition::kDataParallel, kSplitK = Decomposition::kSplitK,
               kStreamK = Decomposition::kStreamK;
constexpr GemmConfig kGemmConfigs[] = {
    {"128x128streamk", 128, 128, 1, Tiles<128, 6>::kStages, kStreamK, false, kWide,
     enqueue_multiply<Tiles<128, 6>, 1, kStreamK>},
    {"128x128pairs", 128, 128, 2, Tiles<128, 6, true>::kStages, kDataParallel, false, kWidePairs,
     enqueue_multiply<Tiles<128, 6, true>, 2>},
    {"128x128pairsstreamk", 128, 128, 2, Tiles<128, 6, true>::kStages, kStreamK, false,
     kStreamKPairs, enqueue_multiply<Tiles<128, 6, true>, 2, kStreamK>},
    {"64x128pingpong", 64, 128, 1, Pingpong::kStages, kDataParallel, false, kPingpong,
     enqueue_multiply<Pingpong, 1>},
    {"128x64", 128, 64, 1, Tiles<64, 6>::kStages, kDataParallel, false, kNarrow,
     enqueue_multiply<Tiles<64, 6>, 1>},
    {"128x64splitk", 128, 64, 1, Tiles<64, 6>::kStages, kSplitK, false, kNarrow, enqueue_split_k},
    {"128x64warps", kBlockM, kWarpsN, 1, kWarpsStages, kDataParallel, true, kMmaSync,
     enqueue_multiply_warps}};

// Ping-pong: a tile that another one follows takes kTurn longer than its products. Where C allows
// no float2, the epilogue may take longer than the other warpgroup's products. Then a tile takes
// half of its products and epilogue.
constexpr double kTurn = 0.7e-6, kTurnWords = 8e-6;
// The staged epilogue of a tile in pairs, clusters of two blocks; and the part of it that the next
// tile never hides.
constexpr double kStaged = 8.7e-6, kLeastStaged = 2.7e-6;
// Costs of stream-K: once; per block whose partial sums another block adds; and as a share of the
// main loop's time, because the clock is lower when all multiprocessors are busy.
constexpr double kStreamKOnce = 6e-6, kStreamKSums = 4e-6, kStreamKSlowdown = 0.015;
// Costs of split-K: once, for the launch of add_partials; per byte of room for partial sums of four
// levels, of which six products use three.
constexpr double kSplitKOnce = 2e-6, kSplitKSums = 4e-13;

// Ten products cost the launch of `refine` in every call, kRefine seconds. They are allowed in two
// cases: the call is expected to take kLeastForTen seconds; or it has kLeastForNormal FLOP (25 µs),
// and normal operands need ten.
constexpr double kRefine = 1.3e-6, kLeastForTen = 90e-6, kLeastForNormal = 2e9;
// The same of setting outliers apart, which costs the launch of `add_outliers`.
constexpr double kAddOutliers = 1.9e-6, kLeastForOutliers = 150e-6;
// Where `refine` sets them apart, a block takes kApart seconds per element of its groups: 1.0e-9
// where few blocks have groups (540 µs at 1024×1024×16384, NVIDIA H100), 1.7e-9 where all have (220
// µs at 4096³, NVIDIA H200). That pays up to kMostApart of the time in FP64, which has kFp64
// multiply-adds per second. `add_outliers` takes kAddToElement seconds per element of C: 213 µs at
// 4096³, 814 µs at 8192×8192×4096, where (U − ½)·e^2N has up to 16 + 16 outliers, NVIDIA H200.
constexpr double kApart = 1.3e-9, kMostApart = 0.35, kFp64 = 28e12, kAddToElement = 12.5e-12;

// Costs of the split pass per element of an operand, see split_seconds. split_long reads rows
// twice.
constexpr double kSplitSeconds = 2.4e-12, kSplitLong = 4e-12;

// Expected seconds of the GEMM.
inline double gemm_seconds(const GemmConfig& config, const Launches& launches,
                           const Problem& problem) {
  const GemmParams& params = launches.params;
  const double tiles = static_cast<double>(params.six.count) * static_cast<double>(problem.batch);
  const double clusters = static_cast<double>(launches.blocks / config.cluster);
  const double waves = tiles / clusters, whole = std::ceil(waves);
  const bool exceed_l2 = static_cast<double>(params.a.bytes() + params.b.bytes()) > kH200.l2_bytes;
  const double products = static_cast<double>(params.a.chunks_k) *
                          (config.seconds.chunk + (exceed_l2 ? config.seconds.beyond_l2 : 0.0));
  const double end = config.seconds.end + (params.float2_c ? 0.0 : config.seconds.no_vectors);
  const double words = params.float2_c ? 0.0 : (kTurnWords - products) / 2;
  const double before = config.cluster > 1     ? std::max(kLeastStaged, kStaged - products)
                        : config.is_pingpong() ? std::max(kTurn, words)
                                               : end;
  double multiply = whole * products;
  if (config.splits_k()) {
    multiply = products / params.parts_per_tile + kSplitKOnce +
               static_cast<double>(launches.partial_bytes) * kSplitKSums;
  }
  if (config.stream_k()) {
    multiply = waves * products * (1 + kStreamKSlowdown) + kStreamKOnce +
               std::ceil(1 / waves) * kStreamKSums;
  }
  return multiply + (whole - 1) * before + end + (params.allows_ten ? kRefine : 0.0) +
         (params.allows_outliers ? kAddOutliers : 0.0);
}

// The same with the split kernel.
inline double call_seconds(const GemmConfig& config, const Launches& launches,
                           const Problem& problem) {
  const bool is_long = launches.workspace.split.kernel == SplitPlan::Kernel::kLong;
  return gemm_seconds(config, launches, problem) +
         split_seconds(problem, is_long ? kSplitLong : kSplitSeconds, 1.0,
                       launches.splits_a ? 1.0 : 0.0, launches.splits_b ? 1.0 : 0.0);
}

inline double flop(const Problem& problem) {
  const auto [m, n, k] = problem.shape;
  return 2.0 * static_cast<double>(problem.batch) * static_cast<double>(m) *
         static_cast<double>(n) * static_cast<double>(k);
}

// The decision that is expected for normal operands. Their widths follow from the largest of K
// numbers, the largest width from the largest of all numbers.
inline Path path_of_normal(const Problem& problem) {
  constexpr double kCertain = 0.98;      // for others so close to the limit the decision may differ
  const auto width = [](double count) {  // the mean square of the largest of so many
    double largest = 3.0;
    for (int i = 0; i < 6; ++i) largest = std::sqrt(2.0 * std::log(1.42 * count / largest));
    return static_cast<float>(largest * largest);
  };
  const auto k = static_cast<double>(problem.shape.k);
  const auto widths = [&](std::int64_t rows) {
    const float mean = width(k);
    return Widths{mean, mean, width(k * static_cast<double>(problem.batch * rows))};
  };
  const float allowed = static_cast<float>(kCertain) * squared_error_of(summed_in_fp32(problem));
  return decide(widths(problem.shape.m), widths(problem.shape.n), Match{}, {}, false,
                static_cast<float>(k), allowed, allowed, Path::kSix,
                flop(problem) >= kLeastForNormal);
}

// The expected time of normal operands: the candidate's, which Sgemm compares with FP32. Where they
// take no digits, it is longer than that of FP32 alone.
inline double normal_seconds(const GemmConfig& config, const Launches& launches,
                             const Problem& problem) {
  // What short calls take beyond the model; per 32 k of tiles of 64 columns, more than six
  // products.
  constexpr double kCall = 3e-6, kEight = 0.075e-6, kTen = 0.15e-6;
  const GemmParams& params = launches.params;
  const double tiles = static_cast<double>(problem.batch * params.eight.count * config.cluster),
               waves = std::ceil(tiles / static_cast<double>(launches.blocks)),
               chunks = static_cast<double>(params.a.chunks_k) * waves / params.parts_per_tile;
  const double seconds = call_seconds(config, launches, problem) + kCall;
  const Path path = path_of_normal(problem);
  switch (path == Path::kTen && !params.allows_ten ? Path::kFp64 : path) {
    case Path::kSix:
      return seconds;
    case Path::kEight:
      return seconds + chunks * kEight;
    case Path::kTen:
      return seconds + chunks * kTen + split_seconds(problem, kSplitSeconds);
    case Path::kFp32:
    case Path::kFp64:
      break;
  }
  return seconds + plain_candidate(problem).seconds;
}

// The expected time of a call that takes FP64, where stream-K gives all multiprocessors the same
// work. Fitted to 45 problems on an NVIDIA H200, when all tiles had 128 columns. Calls of a wave or
// more take at most 12 % longer. With tiles of 64 columns calls take up to 20 % less time than
// expected, up to 45 % less where that is below 25 µs.
inline double fp64_seconds(const Problem& problem, const Device& device) {
  constexpr double kCall = 14e-6, kElement = 2.6e-12, kChunk = 2.33e-6;
  constexpr double kShare = 2.5e-6, kMostShares = 4.0;  // of blocks that share a tile
  constexpr double kWords = 4e-6, kChunkOfWords = 0.06e-6, kTileOfWords = 3e-6;
  const auto [m, n, k] = problem.shape;
  const auto batch = static_cast<double>(problem.batch),
             tiles = batch * static_cast<double>(ceil_div(m, kFp64Tile) * ceil_div(n, kFp64Tile)),
             of_block = tiles / device.multiprocessors;
  double call = kCall, chunk = kChunk;
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    if (allows_vectors(problem, operand)) continue;
    call += kWords;
    chunk += kChunkOfWords;
  }
  if (!allows_float2_of_c(problem)) call += of_block * kTileOfWords;
  if (of_block < 1) call += std::min(1 / of_block - 1, kMostShares) * kShare;
  const double elements = batch * static_cast<double>(m + n) * static_cast<double>(k);
  return call + elements * kElement + of_block * static_cast<double>(ceil_div(k, kChunkK)) * chunk;
}

// Stream-K: the fewest chunks of a shared tile that a block takes.
constexpr unsigned kLeastStreamKChunks = 4;
// Stream-K with fewer tiles than blocks: how many blocks may share a tile of `chunks` chunks of K.
// Each gets at least 16 chunks. At most 8 share a tile, because one of them adds all partial sums.
constexpr std::int64_t max_blocks_of_tile(std::int64_t chunks) {
  return std::clamp<std::int64_t>(chunks / 16, 1, 8);
}

// Split-K: how many blocks share each of `tiles` tiles. Each computes one part of it, of at least
// kLeastPartChunks chunks.
constexpr std::int64_t kLeastPartChunks = 8;
constexpr std::int64_t parts_of_tile(std::int64_t tiles, std::int64_t chunks,
                                     const Device& device) {
  return std::clamp<std::int64_t>(device.multiprocessors / tiles, 1,
                                  std::max<std::int64_t>(chunks / kLeastPartChunks, 1));
}

// The operand's job of `refine`.
inline Job refine_job(const Problem& problem, Operand operand, const Planes& planes) {
  return split_job(problem, operand, planes,
                   is_along_k(problem, operand) ? RowsAlongK::kRows : RowsAcrossK::kRows);
}

// Where the workspace has room for the tails.
inline void allow_ten(const Problem& problem, const Device& device, std::size_t workspace_limit,
                      Launches& launches) {
  Workspace workspace = launches.workspace;
  workspace.add_tails();
  if (workspace.bytes > workspace_limit) return;
  launches.workspace = workspace;
  launches.params.allows_ten = true;
  launches.refine_a = refine_job(problem, Operand::kA, launches.workspace.a);
  launches.refine_b = refine_job(problem, Operand::kB, launches.workspace.b);
  launches.refine_blocks = blocks_of_refine(device);
}

// Where ten products are allowed.
inline void allow_outliers(const Device& device, Launches& launches) {
  launches.workspace.add_outliers();
  GemmParams& params = launches.params;
  params.allows_outliers = true;
  params.widths_without_outliers.of_a = static_cast<unsigned>(launches.refine_a.num_groups());
  params.widths_without_outliers.of_b = static_cast<unsigned>(launches.refine_b.num_groups());
  launches.outlier_blocks = std::int64_t{kStripBlocksPerSm} * device.multiprocessors;
}

// From so many tiles of 128×128 on, ten products may have the error of one FP32 sum of all K, also
// where cuBLAS splits K: the prediction for ten is far too high on wide data.
constexpr std::int64_t kLargeC = 256;

inline bool is_exact_with_ten(const GemmConfig& config, std::int64_t k) {
  return config.decomposition == kDataParallel || k <= max_exact_k(true);
}

// One configuration for one problem: workspace, split kernel, GEMM parameters, grids. `prepared`:
// an operand that is not split, and has no tails in the workspace.
inline Launches launches_of(const GemmConfig& config, const Problem& problem, const Device& device,
                            Path least, const Workspace& workspace,
                            std::size_t workspace_limit = kNoWorkspaceLimit,
                            std::optional<Operand> prepared = {}) {
  const int rows = workspace.split.rows;
  Launches launches{
      workspace, split_job(problem, Operand::kA, workspace.a, rows),
      split_job(problem, Operand::kB, workspace.b, rows),
      gemm_params(problem, workspace, config.block_m, config.block_n, config.cluster, least)};
  launches.splits_a = prepared != Operand::kA;
  launches.splits_b = prepared != Operand::kB;
  const std::int64_t groups = (launches.splits_a ? launches.a.num_groups() : 0) +
                              (launches.splits_b ? launches.b.num_groups() : 0);
  launches.split_blocks = workspace.split.blocks(groups, device.multiprocessors);
  const std::int64_t tiles = problem.batch * launches.params.six.count;
  const std::int64_t most =
      tiles * (config.stream_k() ? max_blocks_of_tile(workspace.a.chunks_k) : 1);
  const std::int64_t most_clusters = device.multiprocessors / config.cluster;
  const std::int64_t clusters = std::min(most, most_clusters);
  launches.blocks = config.cluster * clusters;
  if (config.splits_k()) {
    GemmParams& params = launches.params;
    const std::int64_t parts_per_tile = parts_of_tile(tiles, workspace.a.chunks_k, device);
    params.parts_per_tile = static_cast<unsigned>(parts_per_tile);
    launches.blocks = tiles * parts_per_tile;
    launches.partial_bytes = static_cast<std::size_t>(launches.blocks) * kPartialBytes<Eight>;
  }
  if (config.uses_mma_sync) return launches;
  // Without digits: FP64 with stream-K, so that all clusters have equal parts.
  Fp64Args& fp64 = launches.params.fp64;
  fp64 = fp64_args(problem, fp64_columns(problem, device, config.cluster), config.cluster);
  const std::int64_t fp64_tiles = problem.batch * fp64.scheduler.count;
  const std::int64_t fp64_of =
      fp64_clusters(fp64_tiles, fp64.k_tiles, config.stream_k() ? clusters : most_clusters);
  const StreamKTiles shared = fp64_stream_k(fp64_tiles, fp64_of, fp64.k_tiles);
  const std::int64_t fp64_blocks = std::max(config.cluster * fp64_of, launches.blocks),
                     fp64_partials = shared.count > 0 ? fp64_blocks : 0;
  if (config.stream_k()) {
    launches.params.stream_k =
        StreamKTiles(static_cast<unsigned>(tiles), static_cast<unsigned>(clusters),
                     static_cast<unsigned>(workspace.a.chunks_k), kLeastStreamKChunks);
    launches.partial_bytes =
        static_cast<std::size_t>(launches.blocks) * kPartialBytes<Tiles<128, 6>>;
  }
  if (config.decomposition != kDataParallel) {
    launches.workspace.add_partials(launches.partial_bytes, config.stream_k() ? launches.blocks : 0,
                                    fp64_partials);
    launches.blocks = fp64_blocks;
    fp64.stream_k = shared;
  }
  const double seconds = call_seconds(config, launches, problem);
  if (problem.batch * launches.params.fp32.scheduler.count >= kLargeC) {
    const float serial = squared_error_of(static_cast<float>(problem.shape.k));
    launches.params.allowed_of_ten = std::max(launches.params.allowed, serial);
  }
  if (is_exact_with_ten(config, problem.shape.k) && !prepared && least != Path::kFp64 &&
      (least == Path::kTen || seconds >= kLeastForTen || path_of_normal(problem) == Path::kTen)) {
    allow_ten(problem, device, workspace_limit, launches);
  }
  if (config.decomposition == kDataParallel) {
    Workspace with_partials = launches.workspace;
    if (fp64_partials > 0) with_partials.add_partials(0, 0, fp64_partials);
    if (with_partials.bytes <= workspace_limit) {
      launches.workspace = with_partials;
      launches.blocks = fp64_blocks;
      fp64.stream_k = shared;
    }
  }
  return launches;
}

inline const char* name_of(SplitPlan::Kernel kernel) {
  switch (kernel) {
    case SplitPlan::Kernel::kAny:
      return "any";
    case SplitPlan::Kernel::kFew:
      return "few";
    case SplitPlan::Kernel::kMany:
      return "many";
    case SplitPlan::Kernel::kAhead:
      return "ahead";
    case SplitPlan::Kernel::kLong:
      return "long";
  }
  return "";
}

inline std::vector<PlannedKernel> planned_kernels(const GemmConfig& config, const Problem& problem,
                                                  const Launches& launches, Path least) {
  const SplitPlan& split = launches.workspace.split;
  const GemmParams& params = launches.params;
  const std::string to = params.float2_c ? " to float2" : " to words";
  const std::int64_t clusters = launches.blocks / config.cluster;
  std::vector<PlannedKernel> kernels;
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    PlannedKernel kernel =
        planned_split(problem, operand, split.rows, name_of(split.kernel), split.boxes);
    const std::int64_t groups = launches.a.num_groups() + launches.b.num_groups();
    const std::int64_t chunks = ceil_div(params.a.chunks_k, std::int64_t{split.cluster});
    kernel.parameters.push_back(parameter::each("blocks of a cluster", split.cluster));
    kernel.parameters.push_back(
        parameter::tiles("chunks of a cluster", params.a.chunks_k, std::int64_t{split.cluster}));
    kernel.parameters.push_back(parameter::count(
        "groups of a block", ceil_div(groups * split.cluster, launches.split_blocks)));
    if (split.kernel == SplitPlan::Kernel::kAny || split.kernel == SplitPlan::Kernel::kFew) {
      const int kept = split.kernel == SplitPlan::Kernel::kAny ? AnyRows::kKept : FewRows::kKept;
      kernel.parameters.push_back(parameter::ring(
          "turns of a block", ceil_div(params.a.chunks_k * kChunkK, FewRows::kBlockK), kept + 1));
    } else if (split.kernel == SplitPlan::Kernel::kLong) {
      kernel.parameters.push_back(
          parameter::tiles("chunks of a block", chunks, std::int64_t{Long::kChunks}));
    } else {
      const int warps = split.kernel == SplitPlan::Kernel::kMany ? Many::kWarps : Ahead::kWarps;
      kernel.parameters.push_back(
          parameter::tiles("chunks of a block", chunks, std::int64_t{warps}));
    }
    kernels.push_back(std::move(kernel));
  }
  if (least != Path::kFp64) {
    const bool six = least == Path::kSix;
    const TileScheduler& scheduler = six ? params.six : params.eight;
    const int block_m = six ? config.block_m : Eight::kBlockM,
              block_n = six ? config.block_n : Eight::kBlockN;
    const std::int64_t tiles = problem.batch * scheduler.count;
    const std::int64_t waves = ceil_div(tiles, clusters), chunks = params.a.chunks_k;
    const char* products = six ? "" : least == Path::kEight ? " eight" : " ten";
    PlannedKernel kernel{.name = config.name + std::string(products) + to,
                         .parameters = {parameter::rows(block_m), parameter::columns(block_n),
                                        scheduling(scheduler), columns_of_groups(scheduler)},
                         .decision = static_cast<int>(least)};
    const int stages = six || config.uses_mma_sync ? config.stages
                       : least == Path::kEight     ? Eight::kStages
                                                   : Ten::kStages;
    if (!config.splits_k()) {
      kernel.parameters.push_back(parameter::tiles("chunks of k", chunks, 1));
      kernel.parameters.push_back(parameter::count("tiles of a block", waves));
    }
    if (config.splits_k()) {
      const std::int64_t parts = params.parts_per_tile;
      kernel.parameters.push_back(parameter::count("splits of a tile", parts));
      kernel.parameters.push_back(parameter::each("equal splits", chunks % parts == 0));
      kernel.parameters.push_back(
          parameter::ring("chunks of a block", ceil_div(chunks, parts), stages));
    } else if (config.stream_k()) {
      const StreamKTiles& shared = params.stream_k;
      kernel.parameters.push_back(parameter::count("shared tiles", shared.count));
      kernel.parameters.push_back(parameter::each("has whole waves", shared.full_waves > 0));
      kernel.parameters.push_back(
          parameter::tiles("chunks among clusters", shared.count * chunks, clusters));
      kernel.parameters.push_back(parameter::ring(
          "chunks of a block", shared.full_waves * chunks + shared.chunks_per_cluster, stages));
    } else {
      kernel.parameters.push_back(parameter::ring("chunks of a block", waves * chunks, stages));
    }
    if (config.cluster > 1) {
      kernel.parameters.push_back(parameter::columns(std::int64_t{config.cluster} * block_n));
    }
    kernels.push_back(std::move(kernel));
  }
  if (config.uses_mma_sync) {
    PlannedKernel fp32 = planned_kernel(problem, params.fp32);
    fp32.name += " by warps";
    fp32.decision = static_cast<int>(Path::kFp32);
    fp32.parameters.push_back(parameter::count(
        "tiles of a block", ceil_div(problem.batch * params.fp32.scheduler.count, clusters)));
    kernels.push_back(std::move(fp32));
  } else {
    add_planned_fp64(problem, params.fp64, config.cluster, clusters, static_cast<int>(Path::kFp64),
                     kernels);
  }
  return kernels;
}

// Of digits: their own roundings, further launches along K, and the products of outliers. Or of
// what replaces digits.
inline std::int64_t rounding_chain(const GemmConfig& config, const Problem& problem,
                                   const GemmParams& params) {
  const std::int64_t launches = ceil_div(problem.shape.k, max_exact_k(params.allows_ten));
  return std::max(
      kDigitsRoundingChain + launches - 1 + (params.allows_outliers ? 2 * kMaxOutliers : 0),
      config.uses_mma_sync ? fp32_rounding_chain(problem) : kFp64RoundingChain);
}

inline Choice choice_of(const GemmConfig& config, const Problem& problem, const Launches& launches,
                        Path least) {
  return {.configuration = config.name,
          .rounding_chain = rounding_chain(config, problem, launches.params),
          .operand_error = kOperandError,
          .workspace_bytes = launches.workspace.bytes,
          .decides_on_device = true,
          .enqueue =
              [launches, multiply = config.enqueue](const KernelArgs& args, Stream stream) {
                if (Status s = enqueue_split(launches, args, stream); !s.ok()) return s;
                if (Status s = enqueue_refine(launches, args, stream); !s.ok()) return s;
                if (Status s = multiply(launches, args, stream); !s.ok()) return s;
                return enqueue_add_outliers(launches, args, stream);
              },
          .kernels = [=, &config] { return planned_kernels(config, problem, launches, least); }};
}

// Whether a call is so long that outliers may be set apart, and FP64 would take clearly longer.
inline bool outliers_pay(const GemmConfig& config, const Problem& problem,
                         const Launches& launches) {
  const auto apart_with = [&](const Job& job, std::int64_t blocks) {
    const int rows = job.along_k ? RowsAlongK::kRows : RowsAcrossK::kRows;
    return static_cast<double>(ceil_div(job.num_groups(), blocks) * rows * problem.shape.k) *
           kApart;
  };
  const std::int64_t blocks_a = blocks_apart(launches),
                     blocks_b = blocks_that_set_apart(launches) - blocks_a;
  const double apart =
      std::max(apart_with(launches.refine_a, blocks_a), apart_with(launches.refine_b, blocks_b)) +
      static_cast<double>(problem.batch * problem.shape.m) * static_cast<double>(problem.shape.n) *
          kAddToElement;
  return call_seconds(config, launches, problem) >= kLeastForOutliers &&
         apart <= kMostApart * flop(problem) / 2 / kFp64;
}

// Pairs come after 128x64 where C has less than a wave of tiles. There both take as long with
// digits (within 1 %, eight problems of a C without float2, NVIDIA H200), but FP64 has tiles of 64
// columns in configurations without pairs alone: 1023×1025×1027 takes 64 µs, 71 in pairs.
inline double pairs_seconds(const GemmConfig& config, const Problem& problem,
                            const Device& device) {
  constexpr double kLater = 4e-6;
  return config.cluster > 1 && fp64_columns(problem, device, 1) < kFp64Tile ? kLater : 0.0;
}

// `outliers`: they may be set apart in small calls, too.
inline Candidate candidate(const GemmConfig& config, const Problem& problem, const Device& device,
                           Path least, bool outliers) {
  Launches launches =
      launches_of(config, problem, device, least, Workspace(problem, device, config.uses_mma_sync));
  if (outliers && !launches.params.allows_ten) {
    allow_ten(problem, device, kNoWorkspaceLimit, launches);
  }
  if (outliers || (launches.params.allows_ten && outliers_pay(config, problem, launches))) {
    allow_outliers(device, launches);
  }
  // The digits are for this call alone.
  if (!launches.params.allows_ten) {
    launches.most_spread = most_spread_of_eight(launches.params.allowed);
  }
  return {
      .choice = choice_of(config, problem, launches, least),
      .seconds = normal_seconds(config, launches, problem) + pairs_seconds(config, problem, device),
      .fallback_seconds = has_warpgroups(device) ? fp64_seconds(problem, device) : 0.0};
}

// The split kernel has up to 16 blocks per chunk of 128 rows; for long rows up to 64.
inline Status check_size(const Problem& problem) {
  return check_split_size(problem, Eight::kBlockN,
                          problem.shape.k > Ahead::kMaxK ? 8.0 * kMaxSplitCluster : 16.0);
}

// Whether the device can run the configuration.
inline bool can_run(const GemmConfig& config, const Problem& problem, const Device& device,
                    Path least) {
  const auto [m, n, k] = problem.shape;
  if (static_cast<unsigned>(device.multiprocessors) < config.cluster) return false;
  if (config.decomposition != kDataParallel && k > max_exact_k(config.splits_k())) return false;
  if (config.stream_k() && least != Path::kSix) return false;
  // Split-K: two blocks or more share each tile, and all run at the same time.
  const std::int64_t tiles =
      problem.batch * ceil_div(m, config.block_m) * ceil_div(n, config.block_n);
  if (config.splits_k() &&
      (k < 2 * kLeastPartChunks * kChunkK || 2 * tiles > device.multiprocessors)) {
    return false;
  }
  return config.uses_mma_sync || has_warpgroups(device);
}

// Candidates that take at least kLeast products: all configurations of the GEMM that can run.
// `pick` (core/stage.cpp) takes tuned ones first, then the least seconds. `kOutliers`: outliers are
// set apart in small calls, too.
template <Path kLeast, bool kOutliers = false>
std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  if (Status s = check_size(problem); !s.ok()) return {{{.status = std::move(s)}}};
  if (problem.shape.k < kLeastK) return {plain_candidate(problem, has_warpgroups(device))};
  std::vector<Candidate> all;
  for (const GemmConfig& config : kGemmConfigs) {
    if (!can_run(config, problem, device, kLeast)) continue;
    if (kOutliers && (config.uses_mma_sync || config.decomposition != kDataParallel)) continue;
    all.push_back(candidate(config, problem, device, kLeast, kOutliers));
  }
  return all;
}

// The same in panels, which share a workspace of at most so many bytes (panels.hpp).
template <Path kLeast>
std::vector<Candidate> panels(const Problem& problem, const Device& device,
                              std::size_t workspace_limit);

inline Status setup() {
  if (Status s = device::allow_shared_memory(multiply_warps, sizeof(WarpsStorage)); !s.ok()) {
    return s;
  }
  if (!has_warpgroups(device::current())) return {};
  for (auto* kernel :
       {multiply<Pingpong, 1, kDataParallel>, multiply<Tiles<64, 6>, 1, kSplitK>,
        multiply<Tiles<128, 6>, 1, kStreamK>, multiply<Tiles<128, 6, true>, 2, kDataParallel>,
        multiply<Tiles<128, 6, true>, 2, kStreamK>, multiply<Tiles<64, 6>, 1, kDataParallel>}) {
    if (Status s = device::allow_shared_memory(kernel, sizeof(GemmStorage)); !s.ok()) return s;
  }
  if (Status s = device::allow_shared_memory(add_outliers, sizeof(StripStorage)); !s.ok()) return s;
  constexpr std::size_t kFewBytes = sizeof(ShortStorage<FewRows>),
                        kManyBytes = sizeof(AheadStorage<Many>);
  if (Status s = device::allow_shared_memory(split_short<FewRows>, kFewBytes); !s.ok()) return s;
  if (Status s = device::allow_shared_memory(split_ahead<Many>, kManyBytes); !s.ok()) return s;
  if (Status s = device::allow_shared_memory(split_boxes<Many>, kManyBytes); !s.ok()) return s;
  constexpr std::size_t kAheadBytes = sizeof(AheadStorage<Ahead>);
  if (Status s = device::allow_shared_memory(split_ahead<Ahead>, kAheadBytes); !s.ok()) return s;
  return device::allow_shared_memory(split_boxes<Ahead>, kAheadBytes);
}

inline constexpr std::int64_t kTileSizes[] = {8, 32, 64, 128};

template <Path kLeast, bool kOutliers = false>
constexpr Stage make_stage(std::string_view name, std::string_view idea) {
  return {.name = name,
          .idea = idea,
          .requirements = {.compute_capability = 75},
          .math = Math::fp32_split,
          .takes_transposed = true,
          .takes_batches = true,
          .tile_sizes = kTileSizes,
          .candidates = candidates<kLeast, kOutliers>,
          .panels = panels<kLeast>,
          .setup = setup};
}

}  // namespace
}  // namespace tilegate::int8x3
