// Configurations of the interleaved kernels (mainloop.cuh). A stage's Tiles have
//   kBlockM kBlockN      block tile of C
//   kThreadM kThreadN    results per thread, in 4×4 thread tiles
//   kLanesM              lanes of a warp along M; 32 / kLanesM along N
//   kSlices              slices of each k tile, for different warps of a block (CUTLASS: sliced-K)
//   kHalves              1, or 2: an iteration multiplies half of a k tile
//   kBlocksPerSm         limits registers
//   kSpread              stores and global loads are spread between the FFMA, or bunched
//   kCost                the cost model's constants: TFLOPS of an H200 at full occupancy; µs of
//                        prologue and epilogue; speed with 1, 2, … resident blocks, over full speed
//   Order                instruction order: the compiler's or the source's
#pragma once

#include <cstdint>

#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/instruction_order.cuh>
#include <tilegate/common/lane_layout.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

template <typename Tiles>
struct InterleavedTiles : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kThreadM, Tiles::kThreadN;
  using Tiles::kSlices, Tiles::kHalves, Tiles::kLanesM;
  static constexpr int kSteps = 8;  // k steps of a thread per iteration of the main loop
  static constexpr int kBlockK = kSteps * kSlices * kHalves;
  static constexpr int kLanesN = 32 / kLanesM;
  static constexpr int kPartStepM = 4 * kLanesM;  // rows from one 4×4 thread tile to the next
  static constexpr int kPartStepN = 4 * kLanesN;
  static constexpr int kWarpM = kLanesM * kThreadM, kWarpN = kLanesN * kThreadN;
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kSliceThreads = 32 * (kBlockM / kWarpM) * kWarpsN;
  static constexpr int kNumThreads = kSliceThreads * kSlices;
  static_assert(kThreadM % 4 == 0 && kThreadN % 4 == 0, "fragments are 128-bit loads");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0,
                "elements of the tile without a thread");
  static_assert(kSlices == 1 || kHalves == 1, "a slice is 8 k steps in a row");

  // First row and column of a thread's results in the tile. Row-major lane layout.
  struct Position {
    int m, n;
  };
  static __device__ Position position() {
    const int thread = static_cast<int>(threadIdx.x) % kSliceThreads;
    const int lane = thread % 32, warp = thread / 32;
    return {warp / kWarpsN * kWarpM + lane_row<kLanesN, false>(lane) * 4,
            warp % kWarpsN * kWarpN + lane_column<kLanesN, false>(lane) * 4};
  }
  static __device__ int slice() { return static_cast<int>(threadIdx.x) / kSliceThreads; }
};

namespace interleaved {

// For large C. One block per multiprocessor; a thread's 16×8 results take half of the wavefronts
// that shared memory allows. Not for NT, where the rows of both operands lie along k: at 4096³/NT
// it is 0.7 % slower than the tile below. At 4096³/TT it is 2 % faster.
struct Tiles128x256x8 {
  static constexpr const char* kName = "128x256x8";
  static constexpr int kBlockM = 128, kBlockN = 256;
  static constexpr int kThreadM = 16, kThreadN = 8, kLanesM = 8;
  static constexpr int kSlices = 1, kHalves = 1, kBlocksPerSm = 1;
  static constexpr cost::BlockCost kCost = {.teraflops = 58.4, .microseconds = 4.8};
  static constexpr bool kSpread = true;
  using Order = SourceOrder;
  template <typename Layout>
  static constexpr bool kTakes = Layout::kVector && !(Layout::kAAlongK && Layout::kBAlongK);
};

// For NT: rows of 16 along k, in two halves that share the code of the main loop.
struct Tiles128x256x16 {
  static constexpr const char* kName = "128x256x16";
  static constexpr int kBlockM = 128, kBlockN = 256;
  static constexpr int kThreadM = 16, kThreadN = 8, kLanesM = 8;
  static constexpr int kSlices = 1, kHalves = 2, kBlocksPerSm = 1;
  static constexpr cost::BlockCost kCost = {.teraflops = 57.0, .microseconds = 4.8};
  static constexpr bool kSpread = true;
  using Order = SourceOrder;
  template <typename Layout>
  static constexpr bool kTakes = Layout::kVector && Layout::kAAlongK && Layout::kBAlongK;
};

// For C of some dozens to hundreds of tiles: two slices double the warps per tile.
struct Tiles128x128x16s2 {
  static constexpr const char* kName = "128x128x16s2";
  static constexpr int kBlockM = 128, kBlockN = 128;
  static constexpr int kThreadM = 16, kThreadN = 8, kLanesM = 8;
  static constexpr int kSlices = 2, kHalves = 1, kBlocksPerSm = 1;
  static constexpr cost::BlockCost kCost = {.teraflops = 57.2, .microseconds = 4.1};
  static constexpr bool kSpread = true;
  using Order = SourceOrder;
  template <typename Layout>
  static constexpr bool kTakes = Layout::kVector;
};

// For smaller C. Also for operands without whole vectors, whatever C: no other tile takes them. A
// second tile for them would not pay, as AsyncCopy is faster there.
struct Tiles64x128x32s4 {
  static constexpr const char* kName = "64x128x32s4";
  static constexpr int kBlockM = 64, kBlockN = 128;
  static constexpr int kThreadM = 16, kThreadN = 8, kLanesM = 4;
  static constexpr int kSlices = 4, kHalves = 1, kBlocksPerSm = 1;
  static constexpr cost::BlockCost kCost = {.teraflops = 54.6, .microseconds = 3.5};
  static constexpr bool kSpread = true;
  using Order = SourceOrder;
  template <typename Layout>
  static constexpr bool kTakes = true;
};

// For small K, where the stores of C take longer than the FFMA: of four small blocks per
// multiprocessor some multiply while others store. 128 registers are too few for SourceOrder.
struct Tiles64x128x8 {
  static constexpr const char* kName = "64x128x8";
  static constexpr int kBlockM = 64, kBlockN = 128;
  static constexpr int kThreadM = 8, kThreadN = 8, kLanesM = 8;
  static constexpr int kSlices = 1, kHalves = 1, kBlocksPerSm = 4;
  static constexpr cost::BlockCost kCost = {
      .teraflops = 45.1, .microseconds = 0.8, .speed = {0.385, 0.81, 0.81, 1.0}};
  static constexpr bool kSpread = true;
  using Order = CompilerOrder;
  template <typename Layout>
  static constexpr bool kTakes = Layout::kVector;
};

template <bool kAAlongK_, bool kBAlongK_, bool kVector_>
struct Layout {
  static constexpr bool kAAlongK = kAAlongK_, kBAlongK = kBAlongK_, kVector = kVector_;
};

// A range [begin, end) of the problem's k tiles. k tile 0 may be partial: it has first_size k.
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

// `args` with C from the tile's first element on, and the shape of what is left of it.
template <typename Config>
__device__ KernelArgs from_tile(KernelArgs args, const TileCoord& tile) {
  const std::int64_t row = std::int64_t{tile.row} * Config::kBlockM;
  const std::int64_t col = std::int64_t{tile.col} * Config::kBlockN;
  args.c += tile.batch_index * args.stride_c + row * args.ldc + col;
  args.shape.m -= row;
  args.shape.n -= col;
  return args;
}

}  // namespace interleaved

}  // namespace tilegate
