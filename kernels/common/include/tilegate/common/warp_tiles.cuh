// Hierarchy of tiles: block, warp, sub-warp, thread. WarpTiles derives the Config of the
// double-buffered main loop from a stage's Tiles:
//
//   kBlockM kBlockN kBlockK    block tile
//   kWarpM kWarpN              warp tile
//   kBlocksPerSm               limits registers
//   kPermutedLanes             permuted lane layout: see lane_layout.cuh
#pragma once

#include <cstdint>

#include <tilegate/common/double_buffered.cuh>
#include <tilegate/common/lane_layout.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

template <typename Tiles>
struct WarpTiles : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kWarpM, Tiles::kWarpN;
  // idea:begin Warptile
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kThreadM = 4, kThreadN = 4;      // one 128-bit access each way
  static constexpr int kSubWarpM = kLanesM * kThreadM;  // tile of a warp in one step
  static constexpr int kSubWarpN = kLanesN * kThreadN;
  static constexpr int kFragmentM = kWarpM / kLanesM;  // per thread, over all sub-warp steps
  static constexpr int kFragmentN = kWarpN / kLanesN;
  static constexpr int kStepM = kSubWarpM, kStepN = kSubWarpN;  // from one thread tile to the next
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kNumThreads = 32 * (kBlockM / kWarpM) * kWarpsN;
  // idea:end
  // A row of A in a k tile is kBlockK / 4 vectors, whose transposed stores must go to different
  // banks. With two vectors, padding moves one of them by 16 banks. With four, no padding does so
  // and keeps rows aligned to vectors, so columns have the XOR swizzle of rung Swizzle.
  static constexpr int kPad = kBlockK == 8 ? 4 : 0;
  static constexpr int kSwizzleWords = kPad == 0 ? 128 / kBlockK : 0;
  static_assert(kLanesM * kLanesN == 32, "a warp has 32 lanes");
  static_assert(kWarpM % kSubWarpM == 0 && kWarpN % kSubWarpN == 0,
                "elements of the tile without a thread");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0,
                "elements of the tile without a thread");
  static_assert(kSwizzleWords % kThreadM == 0, "the swizzle would tear 128-bit loads apart");
  static_assert(kBlockM % 32 == 0, "the swizzle permutes words within groups of 32");

  using Grid = TileGrid<kBlockM, kBlockN>;

  // Column of A's element (m, k) in row k of the transposed tile.
  static __device__ int column(int m, int k) { return m ^ (k / 4 * kSwizzleWords); }

  static __device__ double_buffered::Position position() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane_m = lane_row<kLanesN, Tiles::kPermutedLanes>(lane);
    const int lane_n = lane_column<kLanesN, Tiles::kPermutedLanes>(lane);
    return {warp / kWarpsN * kWarpM + lane_m * kThreadM,
            warp % kWarpsN * kWarpN + lane_n * kThreadN};
  }
};

// The tile of Warptile and of the rungs that keep it.
struct Tiles128x128 {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kWarpM = 64, kWarpN = 32;
  static constexpr int kBlocksPerSm = 2;
  static constexpr bool kPermutedLanes = false;
};

// A stage's tile_sizes: the extents at which its kernels have edge cases.
template <typename... Tiles>
constexpr std::int64_t kWarpTileSizes[] = {4,
                                           Tiles::kBlockK...,
                                           WarpTiles<Tiles>::kSubWarpM...,
                                           WarpTiles<Tiles>::kSubWarpN...,
                                           Tiles::kBlockM...,
                                           Tiles::kBlockN...};

}  // namespace tilegate
