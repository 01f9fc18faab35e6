// Sgemm's own tiles: three sizes of InstructionOrder's kernel, for compute capability 7.0 and
// later. Tiles128x128 is in warp_tiles.cuh; tile grid, main loop and epilogue are those of
// double_buffered::multiply_block.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <tilegate/common/gpu_model.hpp>
#include <tilegate/common/instruction_order.cuh>
#include <tilegate/common/warp_tiles.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::sgemm {

struct Tiles128x64 {
  static constexpr int kBlockM = 128, kBlockN = 64, kBlockK = 8;
  static constexpr int kWarpM = 64, kWarpN = 32;
  static constexpr int kBlocksPerSm = 4;
  static constexpr bool kPermutedLanes = true;
};

struct Tiles32x64 {
  static constexpr int kBlockM = 32, kBlockN = 64, kBlockK = 16;
  static constexpr int kWarpM = 32, kWarpN = 16;
  static constexpr int kBlocksPerSm = 6;
  static constexpr bool kPermutedLanes = true;
};

// `Order` is unused: SourceOrder is struct cutlass, and ptxas keeps the source's order in kernels
// whose symbol contains that name.
template <typename Config, bool kVector, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args) {
  double_buffered::multiply_block<Config, kVector>(args);
}

// What the time of a tile's kernel depends on.
struct TileCost {
  std::int64_t (*num_blocks)(const Shape& shape);
  double block_m, block_n, block_k;
  double blocks_per_sm;
  double throughput;  // at full occupancy, relative to the best tile: NVIDIA H200, 4096³
};

// Expected times. The constants were fitted to 360 timings (NVIDIA H200, driver 580.159.04, CUDA
// 13.0), most with K up to 128, with an error of 10 % (root mean square of the logarithm).
inline Parts parts(const TileCost& tile, const Problem& problem, const Device& device) {
  constexpr double kStart = 1.5e-6;
  // Per multiprocessor and second: FLOP with the best tile; bytes; bytes of vector stores, and of
  // 32-bit stores whose lanes are four words apart.
  constexpr double kFlops = 51.7e12 / kH200.multiprocessors;
  constexpr double kBandwidth = 4e12 / kH200.multiprocessors;
  constexpr double kVectorStores = 6.7e12 / kH200.multiprocessors;
  constexpr double kWordStores = 1.14e12 / kH200.multiprocessors;
  constexpr double kAlone = 0.79;  // the share of kFlops that a single block reaches
  constexpr double kWithoutVectors = 0.85;
  // Latency of a k tile, from the load to the last multiply-add: operands in L2, in device memory.
  constexpr double kWarmTile = 0.21e-6, kColdTile = 0.41e-6;

  const auto m = static_cast<double>(problem.shape.m), n = static_cast<double>(problem.shape.n),
             k = static_cast<double>(problem.shape.k);
  const double multiprocessors = std::max(device.multiprocessors, 1);
  const double blocks = static_cast<double>(tile.num_blocks(problem.shape));
  const double busiest = std::ceil(blocks / multiprocessors);
  const double multiply = std::max(busiest, 1.0 / kAlone) * 2.0 * tile.block_m * tile.block_n * k /
                          (tile.throughput * kFlops) /
                          (allows_vectors(problem) ? 1.0 : kWithoutVectors);
  const double inputs = sizeof(float) * (m * k + k * n);
  const double wait = std::ceil(busiest / tile.blocks_per_sm) * std::ceil(k / tile.block_k) *
                      (inputs < kH200.warm_operand_bytes ? kWarmTile : kColdTile);
  const double outputs = sizeof(float) * m * n;
  const double move = (inputs + outputs) / (kBandwidth * multiprocessors);
  const double stored =
      sizeof(float) * busiest * std::min(tile.block_m, m) * std::min(tile.block_n, n);
  const double store = stored / (allows_vectors(problem) ? kVectorStores : kWordStores);
  return {.waves = busiest / tile.blocks_per_sm,
          .tiles = m * n / (blocks * tile.block_m * tile.block_n),
          .multiply = kStart + std::max(multiply, wait) + store,
          .move = kStart + move};
}

template <typename Tiles, typename Order>
Candidate candidate(const char* name, double throughput, const Problem& problem,
                    const Device& device) {
  using Config = WarpTiles<Tiles>;
  Choice choice = double_buffered::choose<Config>("sgemm", problem, sgemm<Config, true, Order>,
                                                  sgemm<Config, false, Order>);
  choice.configuration = name;
  choice.kernels = [name, kernels = std::move(choice.kernels)] {
    std::vector<PlannedKernel> named = kernels();
    for (PlannedKernel& kernel : named) kernel.name = name + (" " + kernel.name);
    return named;
  };
  const TileCost cost{.num_blocks = Config::Grid::num_blocks,
                      .block_m = Config::kBlockM,
                      .block_n = Config::kBlockN,
                      .block_k = Config::kBlockK,
                      .blocks_per_sm = Tiles::kBlocksPerSm,
                      .throughput = throughput};
  const Parts expected = parts(cost, problem, device);
  return {std::move(choice), std::max(expected.multiply, expected.move), expected};
}

inline std::vector<Candidate> tile_candidates(const Problem& problem, const Device& device) {
  return {candidate<Tiles128x128, SourceOrder>("128x128", 1.0, problem, device),
          candidate<Tiles128x64, SourceOrder>("128x64", 0.95, problem, device),
          // No register to spare for SourceOrder.
          candidate<Tiles32x64, CompilerOrder>("32x64", 0.68, problem, device)};
}

inline constexpr Stage kTiles{
    .name = "Tiles",
    .tile_sizes = kWarpTileSizes<Tiles128x128, Tiles128x64, Tiles32x64>,
    .candidates = tile_candidates,
};

}  // namespace tilegate::sgemm
