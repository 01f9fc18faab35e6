// Warptile: the tile of a block is split into warp tiles, these into sub-warp tiles, these into
// thread tiles, and every level has its own reason.
//
// New against Swizzle: a warp covers a nearly square part of C (64×32), so that each k step costs
// it 96 words of shared memory instead of 144, and its lanes are laid out so that each 128-bit
// shared load takes two wavefronts, not four. What limits it now: issue slots. Of the instructions
// of the main loop about 64 in 72 are FFMA.
#include <tilegate/common/fragment.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_reader.cuh>
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::warptile {

struct Tiles128x128 {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 16;
  static constexpr int kWarpM = 64, kWarpN = 32;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kBlocksPerSm = 2;
};

struct Tiles64x256 {
  static constexpr int kBlockM = 64, kBlockN = 256, kBlockK = 16;
  static constexpr int kWarpM = 32, kWarpN = 64;
  static constexpr int kLanesM = 4, kLanesN = 8;
  static constexpr int kBlocksPerSm = 2;
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

template <typename C, bool kVector>
__global__ void __launch_bounds__(C::kNumThreads, C::kBlocksPerSm) sgemm(SgemmArgs args) {
  auto& smem = simt::shared_storage<SharedStorage<C>>();
  const Shape& shape = args.shape;
  const auto origin = C::Grid::origin(shape);
  const Position<C> at;
  typename C::template ReaderA<kVector> reader_a(args.a, args.lda, shape.m, shape.k, origin.row, 0);
  typename C::template ReaderB<kVector> reader_b(args.b, args.ldb, shape.k, shape.n, 0, origin.col);
  typename C::template ReaderA<kVector>::Registers next_a;
  typename C::template ReaderB<kVector>::Registers next_b;
  Fragments<C> frag[2];
  float acc[C::kFragmentM][C::kFragmentN]{};

  reader_a.read(next_a);
  reader_b.read(next_b);
  store_tiles<C>(smem, 0, reader_a, next_a, reader_b, next_b);
  __syncthreads();  // the first tile is stored before anyone reads it
  frag[0].load(smem, 0, 0, at);

  int buffer = 0;
  for (std::int64_t k_left = shape.k; k_left > 0; k_left -= C::kBlockK) {
    reader_a.advance_cols(C::kBlockK);
    reader_b.advance_rows(C::kBlockK);
    reader_a.read(next_a);  // zeros after the last tile
    reader_b.read(next_b);
#pragma unroll
    for (int k = 0; k < C::kBlockK - 1; ++k) {
      frag[(k + 1) % 2].load(smem, buffer, k + 1, at);
      multiply_fragments(frag[k % 2].a, frag[k % 2].b, acc);
    }
    buffer ^= 1;
    store_tiles<C>(smem, buffer, reader_a, next_a, reader_b, next_b);
    // The next tile is stored before anyone reads it, and this one is read before the next round
    // overwrites it.
    __syncthreads();
    frag[0].load(smem, buffer, 0, at);
    multiply_fragments(frag[1].a, frag[1].b, acc);
  }
  store_parts<kVector>(args, origin.row + at.m, origin.col + at.n, C::kSubWarpM, C::kSubWarpN, acc);
}

template <typename Tiles>
Status enqueue(const SgemmArgs& args, Stream stream) {
  using C = Config<Tiles>;
  const simt::LaunchConfig launch{.kernel = "warptile",
                                  .blocks = C::Grid::num_blocks(args.shape),
                                  .threads_x = C::kNumThreads,
                                  .shared_bytes = sizeof(SharedStorage<C>)};
  return simt::launch(launch, stream, allows_vectors(args) ? sgemm<C, true> : sgemm<C, false>,
                      args);
}

using Default = Config<Tiles128x128>;

constexpr std::int64_t kTileSizes[] = {4, Default::kSubWarpN, Default::kSubWarpM, Default::kWarpM,
                                       Default::kBlockM};

extern const Stage stage;
const Stage stage{
    .name = "Warptile",
    .idea = "block, warp, sub-warp and thread tiles",
    .tile_sizes = kTileSizes,
    .rounding_chain = serial_rounding_chain,
    .restrictions = Default::Grid::fits,
    .enqueue = enqueue<Tiles128x128>,
};

}  // namespace tilegate::warptile
