// Skinny: tall-skinny GEMM, with few rows or few columns, at the speed of device memory.
//
// New against SplitK: where C's short extent is at most 32, reading the large operand takes longer
// than multiplying it. It is read once, by asynchronous copies that keep up to 160 KiB per
// multiprocessor in flight; split-K gives each multiprocessor a share. What limits it: device
// memory, and FFMA above 16 rows or columns. One row or column has kernels of its own (gemv.cuh). A
// larger C is cut into strips of 32, which is correct and slow.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/gpu_model.hpp>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "partial_sums.cuh"
#include "plan.hpp"

namespace tilegate::skinny {

constexpr std::int64_t kLargestStrip = 32;
constexpr std::int64_t kMaxKSplits = 512;
constexpr std::int64_t kMaxSplitK = std::int64_t{1} << 30;  // a block counts its k in 32 bits

// A kernel and its launch.
struct Partition {
  const Kernel* kernel;
  std::int64_t tiles;  // of the whole batch
  std::int64_t k_tiles;
  int k_splits;
  int depth;         // of the ring, in k tiles
  bool may_overlap;  // launches may: programmatic dependent launch
  bool overlaps;     // this one does

  bool is_gemv() const { return kernel->tiles_at_a_time > 0; }
  std::int64_t blocks() const { return tiles * k_splits; }

  std::int64_t block_k_tiles() const { return ceil_div(k_tiles, k_splits); }
};

Status enqueue(const KernelArgs& args, const Roles& roles, const Partition& partition,
               Stream stream) {
  Status status = device::launch({.kernel = "skinny",
                                  .blocks = partition.blocks(),
                                  .threads_x = kNumThreads,
                                  .shared_bytes = partition.kernel->shared_bytes(partition.depth),
                                  .overlaps_previous = partition.overlaps},
                                 stream, partition.kernel->run,
                                 make_task(args, roles, partition.k_splits, partition.depth));
  if (!status.ok() || partition.k_splits == 1) return status;
  return partial_sums::enqueue_add(args, partition.k_splits, partition.may_overlap, stream);
}

// "rows4x128_split33": tiles of 4×128, 33 splits of K; "columns128x4": tiles of 128×4, one split;
// "gemv32": a block has 32 elements of C.
std::string name_of(const Partition& partition, const Roles& roles) {
  const std::string s = std::to_string(partition.kernel->tile.s),
                    x = std::to_string(partition.kernel->tile.x);
  const std::string name = partition.is_gemv() ? "gemv" + x
                           : roles.short_is_m  ? "rows" + s + "x" + x
                                               : "columns" + x + "x" + s;
  return partition.k_splits == 1 ? name : name + "_split" + std::to_string(partition.k_splits);
}

std::int64_t rounding_chain(const Shape& shape, const Partition& partition) {
  const Kernel& kernel = *partition.kernel;
  // Zeros past the end of K do not round.
  const std::int64_t sum =
      std::min(partition.block_k_tiles() * kernel.tile_additions + kernel.last_additions, shape.k);
  return sum + (partition.k_splits > 1 ? partial_sums::rounding_chain(partition.k_splits) : 0) + 2;
}

std::vector<PlannedKernel> planned_kernels(const Shape& shape, const Roles& roles,
                                           const Partition& partition) {
  const Kernel& kernel = *partition.kernel;
  Partition unsplit = partition;
  unsplit.k_splits = 1;
  const auto s_and_x =
      roles.short_is_m
          ? std::array{parameter::rows(kernel.tile.s), parameter::columns(kernel.tile.x)}
          : std::array{parameter::columns(kernel.tile.s), parameter::rows(kernel.tile.x)};
  PlannedKernel multiply{
      .name = name_of(unsplit, roles) +
              (kernel.aligned        ? " aligned"
               : partition.is_gemv() ? " words"
                                     : " shifted") +
              (kernel.along == Along::kK ? " along k" : ""),
      .parameters = {s_and_x[0], s_and_x[1], parameter::depth(kernel.tile.k),
                     parameter::each("small operand along k", roles.small_along_k)}};
  const std::int64_t block_tiles = partition.block_k_tiles();
  if (partition.is_gemv()) {
    multiply.parameters.push_back(
        parameter::tiles("k tiles of a block", block_tiles, kernel.tiles_at_a_time));
  } else {
    multiply.parameters.push_back(
        parameter::ring("k tiles of a block", block_tiles, partition.depth));
    multiply.parameters.push_back(parameter::each("stages", partition.depth));
  }
  if (partition.k_splits == 1) return {multiply};
  multiply.parameters.push_back(parameter::count("splits", partition.k_splits, kMaxKSplits));
  multiply.parameters.push_back(
      parameter::tiles("k tiles among splits", partition.k_tiles, partition.k_splits));
  return {
      multiply,
      {.name = "add partial sums",
       .parameters = {
           parameter::tiles("splits of a warp", partition.k_splits, partial_sums::kAddWarps),
           parameter::tiles("elements", partial_sums::elements(shape), partial_sums::kElements)}}};
}

Candidate candidate(const Problem& problem, const Device& device, const Roles& roles,
                    const Partition& partition) {
  const Kernel& kernel = *partition.kernel;
  const Shape& shape = problem.shape;
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n),
             k = static_cast<double>(shape.k), batch = static_cast<double>(problem.batch);
  const double bytes = sizeof(float) * batch * (m * k + k * n + m * n);
  Choice choice{.configuration = name_of(partition, roles),
                .rounding_chain = rounding_chain(shape, partition),
                .workspace_bytes =
                    partition.k_splits > 1 ? partial_sums::bytes(problem, partition.k_splits) : 0,
                .enqueue = [=](const KernelArgs& args,
                               Stream stream) { return enqueue(args, roles, partition, stream); },
                .kernels = [=] { return planned_kernels(problem.shape, roles, partition); }};
  if (kernel.tile.s == 1) {
    const bool has_ring = !partition.is_gemv();
    const std::int64_t at_a_time = has_ring ? 1 : kernel.tiles_at_a_time;
    return predicted(std::move(choice),
                     GemvWork{.bytes = bytes,
                              .blocks = partition.blocks(),
                              .block_steps = ceil_div(partition.block_k_tiles(), at_a_time),
                              .k_splits = partition.k_splits,
                              .has_ring = has_ring,
                              .is_narrow = kernel.along == Along::kX && kernel.tile.x < 32,
                              .along = kernel.along,
                              .aligned = kernel.aligned,
                              .overlaps = partition.overlaps},
                     device);
  }
  const double row_words = static_cast<double>(std::min<std::int64_t>(kernel.tile.x, roles.x));
  const Work work{.bytes = bytes,
                  .blocks = partition.blocks(),
                  .block_tiles = partition.block_k_tiles(),
                  .tile_bytes = sizeof(float) * row_words * kernel.tile.k,
                  .tile_ffma = double{1} * kernel.tile.s * kernel.tile.x * kernel.tile.k / 32,
                  .results = double{1} * kernel.tile.s * kernel.tile.x,
                  .column_results = roles.short_is_m
                                        ? 0.0
                                        : row_words * static_cast<double>(std::min<std::int64_t>(
                                                          kernel.tile.s, roles.s)),
                  .wavefronts = wavefronts(kernel.tile, kernel.along, kernel.aligned),
                  .blocks_per_sm = kernel.tile.blocks_per_sm,
                  .k_splits = partition.k_splits,
                  .along = kernel.along,
                  .aligned = kernel.aligned};
  return predicted(std::move(choice), work, device);
}

// Kernels for the layout of the large operand: those whose tiles cover min(s, 32) with the least
// waste, and a narrower one that wastes up to half.
std::vector<const Kernel*> useful_kernels(const Roles& roles) {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : kKernels) {
    const bool covers = kernel.tile.s >= std::min(roles.s, kLargestStrip);
    if (!covers || kernel.along != roles.along || kernel.aligned != roles.aligned) continue;
    const Tile& least = kernels.empty() ? kernel.tile : kernels.front()->tile;
    const bool narrower = kernel.tile.s <= 2 * least.s && kernel.tile.x < least.x;
    if (kernel.tile.s == least.s || narrower) kernels.push_back(&kernel);
  }
  return kernels;
}

// One split, and as many as give the device one, two, three or four waves.
std::vector<int> useful_k_splits(const Partition& partition, const Shape& shape,
                                 const Device& device) {
  const std::int64_t slots =
      std::int64_t{device.multiprocessors} * partition.kernel->tile.blocks_per_sm;
  std::vector<int> k_splits = {1};
  for (int waves = 1; waves <= 4; ++waves) {
    const std::int64_t wanted =
        std::min({waves * slots / partition.tiles, partition.k_tiles, kMaxKSplits});
    if (wanted > k_splits.back() && partial_sums::fits(shape)) {
      k_splits.push_back(static_cast<int>(wanted));
    }
  }
  return k_splits;
}

// Whether the kernel's 32-bit counts of blocks, and of k per block, suffice.
bool fits(const Partition& partition) {
  return partition.tiles <= kMaxBlocks / partition.k_splits &&
         partition.block_k_tiles() <= kMaxSplitK / partition.kernel->tile.k;
}

// Tiles of the whole batch; at most one more than a grid has blocks.
std::int64_t count_tiles(const Tile& tile, const Roles& roles, std::int64_t batch) {
  const double tiles = static_cast<double>(ceil_div(roles.s, tile.s)) *
                       static_cast<double>(ceil_div(roles.x, tile.x)) * static_cast<double>(batch);
  return static_cast<std::int64_t>(std::min(tiles, static_cast<double>(kMaxBlocks) + 1.0));
}

std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  const Roles roles = roles_of(problem);
  std::vector<Candidate> all;
  for (const Kernel* kernel : useful_kernels(roles)) {
    Partition partition{.kernel = kernel,
                        .tiles = count_tiles(kernel->tile, roles, problem.batch),
                        .k_tiles = ceil_div(problem.shape.k, kernel->tile.k),
                        .k_splits = 1,
                        .depth = ring_depth(*kernel, device),
                        .may_overlap = device.compute_capability >= 90,
                        .overlaps = false};
    for (const int k_splits : useful_k_splits(partition, problem.shape, device)) {
      partition.k_splits = k_splits;
      partition.overlaps =
          partition.may_overlap &&
          cost::spreads_evenly(partition.blocks(), kernel->tile.blocks_per_sm, device);
      if (fits(partition)) all.push_back(candidate(problem, device, roles, partition));
    }
  }
  if (all.empty()) {
    all.push_back({.choice = {.status = Status::unsupported(
                                  "needs more blocks than a CUDA grid has, or more than 2^30 k per "
                                  "block")}});
  }
  return all;
}

// Opts in to more than 48 KiB of shared memory per block.
Status setup() {
  const std::size_t bytes = shared_bytes_per_block(device::current());
  for (const Kernel& kernel : kKernels) {
    if (Status s = device::allow_shared_memory(kernel.run, bytes); !s.ok()) return s;
  }
  return {};
}

extern const Stage stage;
const Stage stage{
    .name = "Skinny",
    .idea = "tall-skinny GEMM: the large operand is read once, K split over all blocks",
    .requirements = {.compute_capability = 80, .not_on_simt = {}},
    .takes_transposed = true,
    .takes_batches = true,
    .tile_sizes = kTileSizes,
    .candidates = candidates,
    .setup = setup,
};

}  // namespace tilegate::skinny
