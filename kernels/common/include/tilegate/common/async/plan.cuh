// Plans of the kernels with asynchronous copies: kernel, split of K, workspace, rounding chain,
// expected time, launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tilegate/common/async/config.cuh>
#include <tilegate/common/async/split_k.cuh>
#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/gpu_model.hpp>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// A kernel as plans see it.
struct AsyncKernel {
  const char* name;  // of the tile
  int block_m, block_n, block_k, slices, stages;
  unsigned num_threads;
  int blocks_per_sm;
  bool checks_edges;
  Feed feed_a, feed_b;
  std::size_t shared_bytes;
  cost::BlockCost cost, vector_store_cost;
  void (*run)(KernelArgs, SplitK);
};

template <typename Config>
constexpr cost::BlockCost cost_of() {
  if constexpr (Config::kOnlyVectors) {
    return Config::kVectorCost;
  } else {
    return Config::kWordCost;
  }
}

// Of blocks that store vectors, C or partial sums: cost::BlockWork counts only bytes of words.
template <typename Config>
constexpr cost::BlockCost vector_store_cost_of() {
  if constexpr (requires { Config::kVectorStoreCost; }) {
    return Config::kVectorStoreCost;
  } else {
    return cost_of<Config>();
  }
}

template <typename Config>
constexpr AsyncKernel async_kernel(void (*run)(KernelArgs, SplitK)) {
  return {.name = Config::kName,
          .block_m = Config::kBlockM,
          .block_n = Config::kBlockN,
          .block_k = Config::kBlockK,
          .slices = Config::kSlices,
          .stages = Config::kStages,
          .num_threads = Config::kNumThreads,
          .blocks_per_sm = Config::kBlocksPerSm,
          .checks_edges = Config::kChecksEdges,
          .feed_a = Config::kFeedA,
          .feed_b = Config::kFeedB,
          .shared_bytes = sizeof(typename Config::SharedStorage),
          .cost = cost_of<Config>(),
          .vector_store_cost = vector_store_cost_of<Config>(),
          .run = run};
}

namespace async_plan {

constexpr std::int64_t kMaxK = std::int64_t{1} << 30;  // blocks count k in 32 bits
constexpr std::int64_t kMaxKSplits = 256;              // per tile

// Whether the feed supports an operand whose rows lie along k, or along x, and allow vectors or
// not.
constexpr bool takes(Feed feed, bool along_k, bool vectors) {
  switch (feed) {
    case Feed::kVectors:
      return !along_k && vectors;
    case Feed::kWords:
      return !along_k;
    case Feed::kTransposed:
      return along_k;
    case Feed::kKept:
      return along_k && vectors;
  }
  return false;
}

// Tiles of the whole batch; in floating point, as the product may overflow.
inline double count_tiles(const AsyncKernel& kernel, const Problem& problem) {
  return static_cast<double>(ceil_div(problem.shape.m, kernel.block_m)) *
         static_cast<double>(ceil_div(problem.shape.n, kernel.block_n)) *
         static_cast<double>(problem.batch);
}

// Whether the device has enough shared memory, and a grid enough blocks.
inline bool fits(const AsyncKernel& kernel, const Problem& problem, const Device& device) {
  return kernel.shared_bytes <= shared_bytes_per_block(device) && problem.shape.k <= kMaxK &&
         count_tiles(kernel, problem) <= static_cast<double>(kMaxBlocks);
}

inline bool takes(const AsyncKernel& kernel, const Problem& problem) {
  const Shape& shape = problem.shape;
  return takes(kernel.feed_a, problem.op_a == Op::kN, allows_vectors(problem, Operand::kA)) &&
         takes(kernel.feed_b, problem.op_b == Op::kT, allows_vectors(problem, Operand::kB)) &&
         (kernel.checks_edges || (shape.m >= kernel.block_m && shape.n >= kernel.block_n));
}

// Blocks of a problem's tiles: one for each of the first `whole`, `k_splits` for each other.
struct Partition {
  std::int64_t tiles, k_tiles;
  std::int64_t whole, k_splits;

  std::int64_t split_tiles() const { return tiles - whole; }
  std::int64_t blocks() const { return whole + split_tiles() * k_splits; }
  std::int64_t longest_split() const { return ceil_div(k_tiles, k_splits); }
};

inline std::size_t partial_bytes(const AsyncKernel& kernel, const Partition& partition) {
  return sizeof(float) * static_cast<std::size_t>(partition.split_tiles() * partition.k_splits) *
         static_cast<std::size_t>(kernel.block_m * kernel.block_n);
}

inline Parts parts(const AsyncKernel& kernel, const Problem& problem, const Device& device,
                   const Partition& partition) {
  const double tile = static_cast<double>(kernel.block_m) * kernel.block_n;
  const std::int64_t stored = std::min<std::int64_t>(kernel.block_m, problem.shape.m) *
                              std::min<std::int64_t>(kernel.block_n, problem.shape.n);
  const bool by_words = !allows_vectors(problem, Operand::kC);
  const auto blocks = [&](std::int64_t count, std::int64_t k_tiles, bool stores_c, bool follows) {
    const bool stores_words = stores_c && by_words;  // partial sums are vectors
    const cost::BlockWork work{
        .flop = 2.0 * tile * kernel.block_k * static_cast<double>(k_tiles),
        .word_bytes = stores_words ? sizeof(float) * static_cast<double>(stored) : 0.0};
    return cost::block_seconds(static_cast<double>(count), work,
                               stores_words ? kernel.cost : kernel.vector_store_cost,
                               kernel.blocks_per_sm, device, follows);
  };
  Parts parts =
      cost::parts(problem, device,
                  blocks(partition.whole, partition.k_tiles, true, false) +
                      blocks(partition.split_tiles() * partition.k_splits,
                             partition.longest_split(), false, partition.whole > 0),
                  true,
                  partition.split_tiles() == 0
                      ? 0.0
                      : cost::add_seconds(static_cast<double>(partial_bytes(kernel, partition)),
                                          partition.k_splits));
  parts.waves = static_cast<double>(partition.blocks()) /
                (static_cast<double>(device.multiprocessors) * kernel.blocks_per_sm);
  parts.tiles = cost::tile_share(problem, static_cast<double>(partition.tiles), kernel.block_m,
                                 kernel.block_n);
  return parts;
}

// Whether the kernel that adds partial sums lets the next launch start early. If that is the same
// plan, blocks that add still hold some multiprocessors, and others get two of its blocks where
// each would have one. So only in three cases: each multiprocessor gets as many blocks as fit;
// there is a multiprocessor for each block of both kernels; or blocks are small, and at most a
// quarter of the multiprocessors have two blocks that add. A multiprocessor with one of them has
// room for its block of the next launch (200 timings of split plans on an H200, in chains of equal
// launches).
inline bool lets_next_start(const AsyncKernel& kernel, const Partition& partition,
                            const Device& device) {
  const std::int64_t adders =
      partition.split_tiles() * split_sums::blocks(kernel.block_m * kernel.block_n);
  const bool are_small = kernel.block_m * kernel.block_n <= 32 * 64 && kernel.blocks_per_sm == 2;
  return ceil_div(partition.blocks(), device.multiprocessors) >= kernel.blocks_per_sm ||
         partition.blocks() + adders <= device.multiprocessors ||
         (are_small && 4 * adders <= 5 * device.multiprocessors);
}

// `is_first`: the plan launches no other kernel before.
inline double seconds(const AsyncKernel& kernel, const Problem& problem, const Device& device,
                      const Partition& partition, bool is_first = true) {
  const bool overlaps =
      (!is_first || cost::spreads_evenly(partition.blocks(), kernel.blocks_per_sm, device)) &&
      (partition.split_tiles() == 0 || lets_next_start(kernel, partition, device));
  return cost::total(parts(kernel, problem, device, partition), overlaps);
}

// Without a split; with all tiles split; with full waves and the partial wave split. For the last
// two, the number of splits with the least expected time.
inline std::vector<Partition> partitions_of(const AsyncKernel& kernel, const Problem& problem,
                                            const Device& device) {
  const auto tiles = static_cast<std::int64_t>(count_tiles(kernel, problem));
  const std::int64_t k_tiles = ceil_div(problem.shape.k, kernel.block_k);
  const std::int64_t slots = std::int64_t{device.multiprocessors} * kernel.blocks_per_sm;
  std::vector<Partition> partitions = {{tiles, k_tiles, tiles, 1}};
  const auto add_fastest = [&](std::int64_t whole) {
    const std::int64_t rest = tiles - whole;
    if (rest == 0) return;
    std::vector<Partition> tried;
    const std::int64_t most = std::min({k_tiles, kMaxKSplits, 2 * slots / rest});
    for (std::int64_t k_splits = 2; k_splits <= most; ++k_splits) {
      tried.push_back({tiles, k_tiles, whole, k_splits});
      if (tried.back().blocks() > kMaxBlocks) tried.pop_back();
    }
    if (tried.empty()) return;
    partitions.push_back(*std::ranges::min_element(tried, {}, [&](const Partition& partition) {
      return seconds(kernel, problem, device, partition);
    }));
  };
  add_fastest(0);
  if (tiles > slots) add_fastest(tiles / slots * slots);
  return partitions;
}

}  // namespace async_plan

}  // namespace tilegate

namespace tilegate::async_plan {

inline std::string name_of(const AsyncKernel& kernel, const Partition& partition) {
  if (partition.split_tiles() == 0) return kernel.name;
  return kernel.name + std::string(partition.whole == 0 ? "_split" : "_tail") +
         std::to_string(partition.k_splits);
}

// A slice sums its share of a k tile's k; then the slices are added, the partial sums, alpha and C.
// Adding zeros past the end of K does not round.
inline std::int64_t rounding_chain(const AsyncKernel& kernel, const Shape& shape,
                                   const Partition& partition) {
  const auto slices_of = [&](std::int64_t k_tiles) {
    return k_tiles * (kernel.block_k / kernel.slices) + kernel.slices - 1;
  };
  const std::int64_t whole = partition.whole > 0 ? slices_of(partition.k_tiles) : 0;
  const std::int64_t split = partition.split_tiles() > 0
                                 ? slices_of(partition.longest_split()) + partition.k_splits - 1
                                 : 0;
  return std::min(shape.k, std::max(whole, split)) + 2;
}

// The kernel's parameter. Tiles of a kernel that checks no edges may read `end_m` rows of op(A) and
// `end_n` columns of op(B).
inline SplitK split_k_of(const AsyncKernel& kernel, const Problem& problem,
                         const Partition& partition, std::int64_t end_m, std::int64_t end_n) {
  return {.block_m = kernel.block_m,
          .block_n = kernel.block_n,
          .end_m = kernel.checks_edges ? SplitK::kNoEnd : end_m,
          .end_n = kernel.checks_edges ? SplitK::kNoEnd : end_n,
          .raster = RasterAlongN(problem.shape, kernel.block_m, kernel.block_n),
          .whole = static_cast<unsigned>(partition.whole),
          .k_splits = Divisor(static_cast<std::uint32_t>(partition.k_splits)),
          .k_tiles = static_cast<int>(partition.k_tiles),
          .vectors = allows_vectors(problem, Operand::kC)};
}

// `overlaps`: programmatic dependent launch.
inline Status enqueue(const AsyncKernel& kernel, const KernelArgs& args, const SplitK& split_k,
                      const Partition& partition, bool overlaps, split_sums::Overlap sum_overlap,
                      Stream stream) {
  const Status status = device::launch({.kernel = kernel.name,
                                        .blocks = partition.blocks(),
                                        .threads_x = kernel.num_threads,
                                        .shared_bytes = kernel.shared_bytes,
                                        .overlaps_previous = overlaps},
                                       stream, kernel.run, args, split_k);
  if (!status.ok() || partition.split_tiles() == 0) return status;
  return split_sums::enqueue(args, split_k, partition.split_tiles(), sum_overlap, stream);
}

inline const char* name_of(Feed feed) {
  switch (feed) {
    case Feed::kVectors:
      return "vectors";
    case Feed::kWords:
      return "words";
    case Feed::kTransposed:
      return "transposed";
    case Feed::kKept:
      return "kept";
  }
  return "";
}

inline std::vector<PlannedKernel> planned_kernels(const AsyncKernel& kernel, const Problem& problem,
                                                  const Partition& partition) {
  const bool vectors = allows_vectors(problem, Operand::kC);
  const std::string to = vectors ? " to vectors" : " to words";
  const std::string name =
      std::string(kernel.name) + " " + name_of(kernel.feed_a) + "·" + name_of(kernel.feed_b);
  const PlannedKernel whole{
      .name = name + to,
      .parameters = {parameter::rows(kernel.block_m), parameter::columns(kernel.block_n),
                     parameter::depth(kernel.block_k),
                     parameter::ring("k tiles of a block", partition.k_tiles, kernel.stages)}};
  if (partition.split_tiles() == 0) return {whole};
  PlannedKernel part = whole;
  part.name = name + " to parts";
  part.parameters.back().value = partition.longest_split();
  part.parameters.push_back(
      parameter::tiles("k tiles among parts", partition.k_tiles, partition.k_splits));
  part.parameters.push_back(parameter::count("parts", partition.k_splits));
  part.parameters.push_back(parameter::count("split tiles", partition.split_tiles()));
  const PlannedKernel sum{
      .name = "add parts" + to,
      .parameters = {parameter::rows(kernel.block_m), parameter::columns(kernel.block_n),
                     parameter::tiles("sums in flight", partition.k_splits - 1, kPartialsInFlight),
                     parameter::count("split tiles", partition.split_tiles())}};
  if (partition.whole == 0) return {part, sum};
  return {whole, part, sum};
}

inline Candidate candidate(const AsyncKernel& kernel, const Problem& problem, const Device& device,
                           const Partition& partition, const SplitK& split_k,
                           bool is_first = true) {
  const bool can_overlap = device.compute_capability >= 90;
  const bool overlaps = can_overlap && is_first &&
                        cost::spreads_evenly(partition.blocks(), kernel.blocks_per_sm, device);
  const split_sums::Overlap sum_overlap{.previous = can_overlap,
                                        .next = lets_next_start(kernel, partition, device)};
  Choice choice{.configuration = name_of(kernel, partition),
                .rounding_chain = rounding_chain(kernel, problem.shape, partition),
                .workspace_bytes = partial_bytes(kernel, partition),
                .enqueue =
                    [=](const KernelArgs& args, Stream stream) {
                      return enqueue(kernel, args, split_k, partition, overlaps, sum_overlap,
                                     stream);
                    },
                .kernels = [=] { return planned_kernels(kernel, problem, partition); }};
  return {std::move(choice), seconds(kernel, problem, device, partition, is_first),
          parts(kernel, problem, device, partition)};
}

inline Status no_kernel() {
  return Status::unsupported("C needs more blocks than a CUDA grid has, or K is above " +
                             std::to_string(kMaxK));
}

// Candidates of the kernels that support the problem. Kernels with the same tile are neighbours in
// `kernels`, the fastest first; of these only the first that supports the problem is used.
inline std::vector<Candidate> candidates(std::span<const AsyncKernel> kernels,
                                         const Problem& problem, const Device& device) {
  std::vector<Candidate> all;
  std::string_view tile;
  for (const AsyncKernel& kernel : kernels) {
    if (kernel.name == tile || !takes(kernel, problem) || !fits(kernel, problem, device)) continue;
    tile = kernel.name;
    for (const Partition& partition : partitions_of(kernel, problem, device)) {
      const SplitK split_k =
          split_k_of(kernel, problem, partition, problem.shape.m, problem.shape.n);
      all.push_back(candidate(kernel, problem, device, partition, split_k));
    }
  }
  if (all.empty()) all.push_back({.choice = {.status = no_kernel()}});
  return all;
}

// Opts in to more than 48 KiB of shared memory per block, where the device has it.
inline Status allow_shared_memory(std::span<const AsyncKernel> kernels) {
  for (const AsyncKernel& kernel : kernels) {
    if (kernel.shared_bytes > shared_bytes_per_block(device::current())) continue;
    if (Status s = device::allow_shared_memory(kernel.run, kernel.shared_bytes); !s.ok()) return s;
  }
  return {};
}

}  // namespace tilegate::async_plan
