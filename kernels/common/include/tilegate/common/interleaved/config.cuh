// Tiles of the interleaved loop (mainloop.cuh). A stage gives Tiles:
//
//   kBlockM kBlockN      the block's tile of C
//   kThreadM kThreadN    a thread's results, in parts of 4×4
//   kLanesM              lanes of a warp along M; 32 / kLanesM along N
//   kSlices              parts of each k tile that different threads of a block multiply
//   kHalves              parts of each k tile that a thread multiplies in turn: 1 or 2
//   kBlocksPerSm         limits registers
//   kSpread              stores and global loads stand between the FFMA, or one after another
//   kCost                what the cost model knows of a block
//   Order                who decides the order of the machine instructions
#pragma once

#include <cstdint>

#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

template <typename Tiles>
struct InterleavedTiles : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kThreadM, Tiles::kThreadN;
  using Tiles::kSlices, Tiles::kHalves, Tiles::kLanesM;
  static constexpr int kSteps = 8;  // k steps of a thread in a round of the loop
  static constexpr int kBlockK = kSteps * kSlices * kHalves;
  static constexpr int kLanesN = 32 / kLanesM;
  static constexpr int kPartStepM = 4 * kLanesM;  // rows from one part of a thread's to the next
  static constexpr int kPartStepN = 4 * kLanesN;
  static constexpr int kWarpM = kLanesM * kThreadM, kWarpN = kLanesN * kThreadN;
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kSliceThreads = 32 * (kBlockM / kWarpM) * kWarpsN;
  static constexpr int kNumThreads = kSliceThreads * kSlices;
  static_assert(kThreadM % 4 == 0 && kThreadN % 4 == 0, "fragments are 128-bit loads");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0, "uncovered parts of the tile");
  static_assert(kSlices == 1 || kHalves == 1, "a slice is 8 k steps in a row");

  // First row and column of a thread's results in the tile: lanes in order, row by row.
  struct Position {
    int m, n;
  };
  static __device__ Position position() {
    const int thread = static_cast<int>(threadIdx.x) % kSliceThreads;
    const int lane = thread % 32, warp = thread / 32;
    return {warp / kWarpsN * kWarpM + lane / kLanesN * 4,
            warp % kWarpsN * kWarpN + lane % kLanesN * 4};
  }
  static __device__ int slice() { return static_cast<int>(threadIdx.x) / kSliceThreads; }
};

namespace interleaved {

// k tiles [begin, end) of a problem's. Tile 0 is the one that may be partial: it has first_size
// steps.
template <typename Config>
struct KTiles {
  int begin, end;
  int first_size;

  static __device__ KTiles all(std::int64_t k) {
    const auto tiles = static_cast<int>(ceil_div(k, Config::kBlockK));
    return {0, tiles, static_cast<int>(k - (tiles - 1) * std::int64_t{Config::kBlockK})};
  }
  __device__ std::int64_t first_k() const {
    return begin == 0 ? 0 : first_size + (begin - 1) * std::int64_t{Config::kBlockK};
  }
};

// C from a tile's first element on, and what is left of it: what store4 needs to stay inside.
template <typename Config>
__device__ KernelArgs from_tile(KernelArgs args, const TileCoord& tile) {
  const std::int64_t row = std::int64_t{tile.row} * Config::kBlockM;
  const std::int64_t col = std::int64_t{tile.col} * Config::kBlockN;
  args.c += tile.product * args.stride_c + row * args.ldc + col;
  args.shape.m -= row;
  args.shape.n -= col;
  return args;
}

}  // namespace interleaved

}  // namespace tilegate
