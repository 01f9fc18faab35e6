// The hierarchy of tiles, for every rung that builds on Warptile. The main loop is Prefetch's.
#pragma once

#include <08_prefetch/prefetch.cuh>
#include <cstdint>

#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::warptile {

// In which order a kernel's instructions stand. ptxas reorders them, unless the kernel's symbol
// contains the name of this type: then they stay as the source has them, and the FFMA of a fragment
// run through its rows back and forth, as multiply_fragments has it. NVIDIA documents nothing of
// it; seen with CUDA 13.0. It costs a few registers.
struct cutlass {};
struct AnyOrder {};

struct Tiles128x128 {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kWarpM = 64, kWarpN = 32;
  static constexpr int kBlocksPerSm = 2;
  static constexpr bool kDealtLanes = false;
  using Order = cutlass;
};

struct Tiles128x64 {
  static constexpr int kBlockM = 128, kBlockN = 64, kBlockK = 8;
  static constexpr int kWarpM = 64, kWarpN = 32;
  static constexpr int kBlocksPerSm = 4;
  static constexpr bool kDealtLanes = true;
  using Order = cutlass;
};

struct Tiles32x64 {
  static constexpr int kBlockM = 32, kBlockN = 64, kBlockK = 16;
  static constexpr int kWarpM = 32, kWarpN = 16;
  static constexpr int kBlocksPerSm = 6;
  static constexpr bool kDealtLanes = true;
  using Order = AnyOrder;  // has no register to spare
};

template <typename Tiles>
struct Config : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kWarpM, Tiles::kWarpN;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kThreadM = 4, kThreadN = 4;      // one 128-bit access each way
  static constexpr int kSubWarpM = kLanesM * kThreadM;  // what a warp covers at a time
  static constexpr int kSubWarpN = kLanesN * kThreadN;
  static constexpr int kFragmentM = kWarpM / kLanesM;  // of a thread, over all sub-warp tiles
  static constexpr int kFragmentN = kWarpN / kLanesN;
  static constexpr int kStepM = kSubWarpM, kStepN = kSubWarpN;  // from one thread tile to the next
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kNumThreads = 32 * (kBlockM / kWarpM) * kWarpsN;
  // A row of A in a tile is kBlockK / 4 vectors, whose transposed stores must fall into different
  // banks. Of two a pad moves one by 16 banks; for four there is none that keeps rows aligned, and
  // they are XORed as in Swizzle.
  static constexpr int kPad = kBlockK == 8 ? 4 : 0;
  static constexpr int kSwizzleWords = kPad == 0 ? 128 / kBlockK : 0;
  static_assert(kLanesM * kLanesN == 32, "a warp has 32 lanes");
  static_assert(kWarpM % kSubWarpM == 0 && kWarpN % kSubWarpN == 0, "uncovered parts of the tile");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0, "uncovered parts of the tile");
  static_assert(kSwizzleWords % kThreadM == 0, "the swizzle would tear 128-bit loads apart");
  static_assert(kBlockM % 32 == 0, "the swizzle permutes words within groups of 32");

  using Grid = TileGrid<kBlockM, kBlockN>;

  // Column of A's element (m, k) in row k of the transposed tile.
  static __device__ int column(int m, int k) { return m ^ (k / 4 * kSwizzleWords); }

  // Lanes row by row, or dealt: l and l ^ 1 share their rows, l and l ^ 2 their columns, and the
  // hardware serves every 128-bit shared load in two wavefronts, where B's take four otherwise.
  static __device__ prefetch::Position position() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    int lane_m = lane / kLanesN, lane_n = lane % kLanesN;
    if constexpr (Tiles::kDealtLanes) {
      lane_m = (lane >> 1 & 1) | (lane >> 3 & 1) << 1 | (lane >> 4) << 2;
      lane_n = (lane & 1) | (lane >> 2 & 1) << 1;
    }
    return {warp / kWarpsN * kWarpM + lane_m * kThreadM,
            warp % kWarpsN * kWarpN + lane_n * kThreadN};
  }
};

// acc += A·B over the k tiles first, first + stride, …, for the block's tile of C at `origin`.
template <typename C, bool kVector>
__device__ void accumulate(const SgemmArgs& args, typename C::Grid::Origin origin,
                           const prefetch::Position& at, int first, int stride,
                           float (&acc)[C::kFragmentM][C::kFragmentN]) {
  const Shape& shape = args.shape;
  const std::int64_t k_begin = std::int64_t{first} * C::kBlockK;
  prefetch::ReaderA<C, kVector> reader_a(args.a, args.lda, shape.m, shape.k, origin.row, k_begin);
  prefetch::ReaderB<C, kVector> reader_b(args.b, args.ldb, shape.k, shape.n, k_begin, origin.col);
  prefetch::multiply_tiles<C, kVector>(reader_a, reader_b, shape.k - k_begin, at, acc,
                                       stride * C::kBlockK);
}

}  // namespace tilegate::warptile
