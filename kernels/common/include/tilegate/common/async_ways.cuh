// The kernels with asynchronous copies as plans see them: which of them can do a problem, how its
// tiles can be shared out among blocks, and how long that should take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tilegate/common/async_config.cuh>
#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/k_split.cuh>
#include <tilegate/common/shared_memory.hpp>
#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

struct AsyncKernel {
  const char* name;  // of its tile
  int block_m, block_n, block_k, slices;
  unsigned num_threads;
  int blocks_per_sm;
  bool checks_edges;
  Feed feed_a, feed_b;
  std::size_t shared_bytes;
  cost::BlockCost cost;
  void (*run)(KernelArgs, KSplit);
};

template <typename Config>
constexpr cost::BlockCost cost_of() {
  if constexpr (Config::kOnlyVectors) {
    return Config::kVectorCost;
  } else {
    return Config::kWordCost;
  }
}

template <typename Config>
constexpr AsyncKernel async_kernel(void (*run)(KernelArgs, KSplit)) {
  return {.name = Config::kName,
          .block_m = Config::kBlockM,
          .block_n = Config::kBlockN,
          .block_k = Config::kBlockK,
          .slices = Config::kSlices,
          .num_threads = Config::kNumThreads,
          .blocks_per_sm = Config::kBlocksPerSm,
          .checks_edges = Config::kChecksEdges,
          .feed_a = Config::kFeedA,
          .feed_b = Config::kFeedB,
          .shared_bytes = sizeof(typename Config::SharedStorage),
          .cost = cost_of<Config>(),
          .run = run};
}

namespace async_plan {

constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kMaxK = std::int64_t{1} << 30;  // blocks count k in 32 bits
constexpr std::int64_t kMaxParts = 256;                // of a tile, along K

// Whether the feed takes an operand whose rows run along k, or along x, of vectors or not.
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

// Tiles over all products of the batch; in floating point, because their product may overflow.
inline double count_tiles(const AsyncKernel& kernel, const Problem& problem) {
  return static_cast<double>(ceil_div(problem.shape.m, kernel.block_m)) *
         static_cast<double>(ceil_div(problem.shape.n, kernel.block_n)) *
         static_cast<double>(problem.batch);
}

// Whether the kernel and a grid are large enough.
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

// How the tiles of a problem are shared out: the first `whole` to one block each, the others to
// `parts` blocks each.
struct Way {
  std::int64_t tiles, k_tiles;
  std::int64_t whole, parts;

  std::int64_t split_tiles() const { return tiles - whole; }
  std::int64_t blocks() const { return whole + split_tiles() * parts; }
  std::int64_t longest_part() const { return ceil_div(k_tiles, parts); }
};

inline std::size_t partial_bytes(const AsyncKernel& kernel, const Way& way) {
  return sizeof(float) * static_cast<std::size_t>(way.split_tiles() * way.parts) *
         static_cast<std::size_t>(kernel.block_m * kernel.block_n);
}

inline Parts parts(const AsyncKernel& kernel, const Problem& problem, const Device& device,
                   const Way& way) {
  const double tile = static_cast<double>(kernel.block_m) * kernel.block_n;
  const bool by_words = !allows_vectors(problem, Operand::kC);
  const auto blocks = [&](std::int64_t count, std::int64_t k_tiles, bool stores_c) {
    const cost::BlockWork work{.flop = 2.0 * tile * kernel.block_k * static_cast<double>(k_tiles),
                               .word_bytes = stores_c && by_words ? sizeof(float) * tile : 0.0};
    return cost::block_seconds(static_cast<double>(count), work, kernel.cost, kernel.blocks_per_sm,
                               device);
  };
  Parts parts = cost::parts(problem, device,
                            blocks(way.whole, way.k_tiles, true) +
                                blocks(way.split_tiles() * way.parts, way.longest_part(), false),
                            true, static_cast<double>(partial_bytes(kernel, way)));
  parts.rounds = static_cast<double>(way.blocks()) /
                 (static_cast<double>(device.multiprocessors) * kernel.blocks_per_sm);
  parts.tiles =
      cost::tile_share(problem, static_cast<double>(way.tiles), kernel.block_m, kernel.block_n);
  return parts;
}

inline double seconds(const AsyncKernel& kernel, const Problem& problem, const Device& device,
                      const Way& way) {
  return cost::total(parts(kernel, problem, device, way), way.split_tiles() == 0);
}

// Without a split; with all tiles split; with whole rounds of the device and the rest split: of the
// last two the number of parts that should be quickest.
inline std::vector<Way> ways_of(const AsyncKernel& kernel, const Problem& problem,
                                const Device& device) {
  const auto tiles = static_cast<std::int64_t>(count_tiles(kernel, problem));
  const std::int64_t k_tiles = ceil_div(problem.shape.k, kernel.block_k);
  const std::int64_t slots = std::int64_t{device.multiprocessors} * kernel.blocks_per_sm;
  std::vector<Way> ways = {{tiles, k_tiles, tiles, 1}};
  const auto add_quickest = [&](std::int64_t whole) {
    const std::int64_t rest = tiles - whole;
    if (rest == 0) return;
    std::vector<Way> tried;
    const std::int64_t most = std::min({k_tiles, kMaxParts, 2 * slots / rest});
    for (std::int64_t parts = 2; parts <= most; ++parts) {
      tried.push_back({tiles, k_tiles, whole, parts});
      if (tried.back().blocks() > kMaxBlocks) tried.pop_back();
    }
    if (tried.empty()) return;
    ways.push_back(*std::ranges::min_element(
        tried, {}, [&](const Way& way) { return seconds(kernel, problem, device, way); }));
  };
  add_quickest(0);
  if (tiles > slots) add_quickest(tiles / slots * slots);
  return ways;
}

}  // namespace async_plan
}  // namespace tilegate
