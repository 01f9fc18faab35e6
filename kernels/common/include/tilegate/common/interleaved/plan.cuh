// What the plans of the interleaved kernels are made of: limits, expected times, and the kernel for
// the operands' layout. The plan itself: a rung's `candidates` lists configurations with expected
// times, and `pick` (core/stage.cpp) takes one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/gpu_model.hpp>
#include <tilegate/common/instruction_order.cuh>
#include <tilegate/common/interleaved/config.cuh>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::interleaved {

// Whether all operands allow vectors, and 32-bit offsets in vectors reach all of A and B: 64 GB
// each.
inline bool allows_counted_vectors(const Problem& problem) {
  constexpr std::int64_t kReach = std::int64_t{4} << 32;
  return allows_vectors(problem) && problem.span(Operand::kA) <= kReach &&
         problem.span(Operand::kB) <= kReach;
}

// f(Layout<…>{}) for the operands of the problem.
template <typename F>
auto with_layout(const Problem& problem, F f) {
  const auto with_vectors = [&]<bool kVector> {
    const bool a_along_k = problem.op_a == Op::kN, b_along_k = problem.op_b == Op::kT;
    if (a_along_k) {
      return b_along_k ? f(Layout<true, true, kVector>{}) : f(Layout<true, false, kVector>{});
    }
    return b_along_k ? f(Layout<false, true, kVector>{}) : f(Layout<false, false, kVector>{});
  };
  return allows_counted_vectors(problem) ? with_vectors.template operator()<true>()
                                         : with_vectors.template operator()<false>();
}

// Ok if 32-bit counts of rows, columns and k tiles suffice.
inline Status check_extents(const Problem& problem) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() - 256;  // plus a tile: fits an int
  const auto [m, n, k] = problem.shape;
  if (std::max({m, n, k}) <= kMost) return {};
  return Status::unsupported("M, N or K is above " + std::to_string(kMost));
}

// Tiles of the whole batch; 0 if a grid has fewer blocks.
template <typename Config>
std::int64_t count_tiles(const Problem& problem) {
  using Grid = TileGrid<Config::kBlockM, Config::kBlockN>;
  if (!Grid::fits(problem.shape).ok()) return 0;
  const std::int64_t tiles = Grid::num_blocks(problem.shape);
  return problem.batch <= kMaxBlocks / tiles ? tiles * problem.batch : 0;
}

template <typename Config>
TileScheduler scheduler_of(const Shape& shape) {
  constexpr unsigned kGroup = 8;  // rows of tiles
  return {shape, Config::kBlockM, Config::kBlockN, kGroup};
}

// Rounding chain of a block with `k_tiles` k tiles: a slice's share of them, the sum of the slices,
// alpha and C.
template <typename Config>
std::int64_t rounding_chain(const Shape& shape, std::int64_t k_tiles) {
  return std::min(shape.k, k_tiles * Config::kBlockK / Config::kSlices) + Config::kSlices - 1 + 2;
}

// Of a block with `k_tiles` k tiles.
template <typename Config>
PlannedKernel planned_kernel(const Problem& problem, std::int64_t k_tiles) {
  constexpr int kBuffers = 2;
  const TileScheduler scheduler = scheduler_of<Config>(problem.shape);
  return {.name = Config::kName + (" " + form_name(problem)) +
                  (allows_counted_vectors(problem) ? " vectors" : " words"),
          .parameters = {parameter::rows(Config::kBlockM), parameter::columns(Config::kBlockN),
                         parameter::depth(Config::kBlockK),
                         parameter::ring("k tiles of a block", k_tiles, kBuffers),
                         scheduling(scheduler), columns_of_groups(scheduler)}};
}

inline Status too_many_tiles() {
  return Status::unsupported("C has more tiles than a CUDA grid has blocks");
}

// Expected seconds of `count` blocks of `k_tiles` k tiles each.
template <typename Config>
double block_seconds(std::int64_t count, std::int64_t k_tiles, const Device& device) {
  const double flop =
      2.0 * Config::kBlockM * Config::kBlockN * Config::kBlockK * static_cast<double>(k_tiles);
  return cost::block_seconds(static_cast<double>(count), {.flop = flop}, Config::kCost,
                             Config::kBlocksPerSm, device);
}

// Fills in the waves of a plan, and the share of its tiles inside C.
template <typename Config>
void describe_blocks(const Problem& problem, const Device& device, std::int64_t tiles,
                     std::int64_t blocks, Parts& parts) {
  parts.waves = static_cast<double>(blocks) / (device.multiprocessors * Config::kBlocksPerSm);
  parts.tiles =
      cost::tile_share(problem, static_cast<double>(tiles), Config::kBlockM, Config::kBlockN);
}

// A kernel and its dynamic shared memory in bytes; nullptr: none for this layout.
template <typename... Parameters>
struct KernelOf {
  void (*kernel)(Parameters...);
  std::size_t shared_bytes;
};

// Opts in to the shared memory of every kernel(Layout<…>{}).
template <typename Kernel>
Status allow_shared_memory(Kernel kernel) {
  for (const auto& [function, bytes] :
       {kernel(Layout<false, false, false>{}), kernel(Layout<false, false, true>{}),
        kernel(Layout<false, true, false>{}), kernel(Layout<false, true, true>{}),
        kernel(Layout<true, false, false>{}), kernel(Layout<true, false, true>{}),
        kernel(Layout<true, true, false>{}), kernel(Layout<true, true, true>{})}) {
    if (function == nullptr) continue;
    if (Status s = device::allow_shared_memory(function, bytes); !s.ok()) return s;
  }
  return {};
}

// A stage's tile_sizes: extents of all the tiles, and of a vector.
constexpr std::int64_t kTileSizes[] = {4, 8, 16, 32, 64, 128, 256};

}  // namespace tilegate::interleaved
