// The hierarchy of tiles and the main loop over it, for every rung that builds on Warptile.
#pragma once

#include <cstdint>

#include <tilegate/common/fragment.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_reader.cuh>
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::warptile {

// 16×8 results a thread: of the instructions of a k step 128 are FFMA and 6 are loads.
struct Tiles128x256 {
  static constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 16;
  static constexpr int kWarpM = 64, kWarpN = 64;
  static constexpr int kLanesM = 4, kLanesN = 8;
  static constexpr int kBlocksPerSm = 1;
};

struct Tiles128x128 {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kWarpM = 64, kWarpN = 32;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kBlocksPerSm = 2;
};

struct Tiles64x64 {
  static constexpr int kBlockM = 64, kBlockN = 64, kBlockK = 8;
  static constexpr int kWarpM = 32, kWarpN = 32;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kBlocksPerSm = 4;
};

struct Tiles32x64 {
  static constexpr int kBlockM = 32, kBlockN = 64, kBlockK = 16;
  static constexpr int kWarpM = 32, kWarpN = 16;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kBlocksPerSm = 6;
};

template <typename Tiles>
struct Config : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kWarpM, Tiles::kWarpN;
  using Tiles::kLanesM, Tiles::kLanesN;
  static constexpr int kThreadM = 4, kThreadN = 4;      // one 128-bit access each way
  static constexpr int kSubWarpM = kLanesM * kThreadM;  // what a warp covers at a time
  static constexpr int kSubWarpN = kLanesN * kThreadN;
  static constexpr int kFragmentM = kWarpM / kLanesM;  // of a thread, over all sub-warp tiles
  static constexpr int kFragmentN = kWarpN / kLanesN;
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kNumThreads = 32 * (kBlockM / kWarpM) * kWarpsN;
  // A row of A in a tile is kBlockK / 4 vectors; this many words apart, their transposed stores
  // fall into different banks.
  static constexpr int kSwizzleWords = 128 / kBlockK;
  static_assert(kLanesM * kLanesN == 32, "a warp has 32 lanes");
  static_assert(kWarpM % kSubWarpM == 0 && kWarpN % kSubWarpN == 0, "uncovered parts of the tile");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0, "uncovered parts of the tile");
  static_assert(kSwizzleWords % kThreadM == 0, "the swizzle would tear 128-bit loads apart");
  static_assert(kBlockM % 32 == 0, "the swizzle permutes words within groups of 32");

  using Grid = TileGrid<kBlockM, kBlockN>;
  template <bool kVector>
  using ReaderA = TileReader<kBlockM, kBlockK, kNumThreads, kVector>;
  template <bool kVector>
  using ReaderB = TileReader<kBlockK, kBlockN, kNumThreads, kVector>;

  // Column of A's element (m, k) in row k of the transposed tile.
  static __device__ int swizzle(int m, int k) { return m ^ (k / 4 * kSwizzleWords); }
};

template <typename C>
struct SharedStorage {
  alignas(16) float a[2][C::kBlockK][C::kBlockM];  // transposed and swizzled
  alignas(16) float b[2][C::kBlockK][C::kBlockN];
};

// Where a thread works in its block's tile.
template <typename C>
struct Position {
  int m, n;  // first row and column

  // Lanes l and l ^ 1 share their rows, l and l ^ 2 their columns: then the hardware serves a
  // 128-bit shared load in two wavefronts.
  __device__ Position() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int bit4_m = C::kLanesM == 8 ? lane >> 4 : 0;
    const int bit4_n = C::kLanesN == 8 ? lane >> 4 : 0;
    const int lane_m = (lane >> 1 & 1) | (lane >> 3 & 1) << 1 | bit4_m << 2;
    const int lane_n = (lane & 1) | (lane >> 2 & 1) << 1 | bit4_n << 2;
    m = warp / C::kWarpsN * C::kWarpM + lane_m * C::kThreadM;
    n = warp % C::kWarpsN * C::kWarpN + lane_n * C::kThreadN;
  }
};

// The operands of one k step.
template <typename C>
struct Fragments {
  float a[C::kFragmentM], b[C::kFragmentN];

  __device__ void load(const SharedStorage<C>& smem, int buffer, int k, const Position<C>& at) {
    load_fragment(a, smem.a[buffer][k],
                  [&](int i) { return C::swizzle(at.m + i * C::kSubWarpM, k); });
    load_fragment(b, smem.b[buffer][k], [&](int j) { return at.n + j * C::kSubWarpN; });
  }
};

// Stores what the readers have read as tile `buffer`.
template <typename C, typename ReaderA, typename ReaderB>
__device__ void store_tiles(SharedStorage<C>& smem, int buffer, const ReaderA& reader_a,
                            const typename ReaderA::Registers& a, const ReaderB& reader_b,
                            const typename ReaderB::Registers& b) {
  reader_a.store_transposed(smem.a[buffer], a, C::swizzle);
  reader_b.store(smem.b[buffer], b);
}

// acc += A·B over the k tiles first, first + stride, …, for the block's tile of C at `origin`.
template <typename C, bool kVector>
__device__ void accumulate(const SgemmArgs& args, typename C::Grid::Origin origin,
                           const Position<C>& at, int first, int stride,
                           float (&acc)[C::kFragmentM][C::kFragmentN]) {
  auto& smem = simt::shared_storage<SharedStorage<C>>();
  const Shape& shape = args.shape;
  const int step = stride * C::kBlockK;
  const std::int64_t k_begin = std::int64_t{first} * C::kBlockK;
  typename C::template ReaderA<kVector> reader_a(args.a, args.lda, shape.m, shape.k, origin.row,
                                                 k_begin);
  typename C::template ReaderB<kVector> reader_b(args.b, args.ldb, shape.k, shape.n, k_begin,
                                                 origin.col);
  typename C::template ReaderA<kVector>::Registers next_a;
  typename C::template ReaderB<kVector>::Registers next_b;
  Fragments<C> frag[2];

  reader_a.read(next_a);
  reader_b.read(next_b);
  store_tiles<C>(smem, 0, reader_a, next_a, reader_b, next_b);
  __syncthreads();  // the first tile is stored before anyone reads it
  frag[0].load(smem, 0, 0, at);

  int buffer = 0;
  for (std::int64_t k_left = shape.k - k_begin; k_left > 0; k_left -= step) {
    reader_a.advance_cols(step);
    reader_b.advance_rows(step);
    reader_a.read(next_a);  // zeros after the last tile
    reader_b.read(next_b);
#pragma unroll
    for (int i = 0; i < C::kBlockK - 1; ++i) {
      frag[(i + 1) % 2].load(smem, buffer, i + 1, at);
      multiply_fragments(frag[i % 2].a, frag[i % 2].b, acc);
    }
    buffer ^= 1;
    store_tiles<C>(smem, buffer, reader_a, next_a, reader_b, next_b);
    // The next tile is stored before anyone reads it, and this one is read before the next round
    // overwrites it.
    __syncthreads();
    frag[0].load(smem, buffer, 0, at);
    multiply_fragments(frag[1].a, frag[1].b, acc);
  }
}

}  // namespace tilegate::warptile
