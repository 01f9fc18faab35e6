// Swizzle: shared memory without padding and without bank conflicts.
//
// New against Prefetch: the column of A's transposed tile is XORed with a pattern of k, so that the
// scattered stores of a warp fall into 32 different banks; the lanes of a warp are dealt to the
// threads' tiles so that every 128-bit load takes two wavefronts, the least there is for 32 lanes
// of 16 bytes each. What limits it now:
// instructions that are not FFMA, and that a warp of 2×16 threads is far from square.
#include <tilegate/common/fragment.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_reader.cuh>
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::swizzle {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kThreadM = 8, kThreadN = 8;  // two vectors each way
  static constexpr int kThreadsN = kBlockN / kThreadN;
  static constexpr int kNumThreads = kBlockM / kThreadM * kThreadsN;
  static constexpr int kBlocksPerSm = 2;
  // A row of A in a tile is kBlockK / 4 vectors; shifted by this many words against each other,
  // the stores of a warp fall into different banks.
  static constexpr int kSwizzleWords = 128 / kBlockK;
  static_assert(kSwizzleWords % 4 == 0, "the swizzle would tear 128-bit loads apart");
  static_assert(kBlockM % 32 == 0, "the swizzle permutes words within groups of 32");
  static_assert(kThreadM == 8 && kThreadN == 8, "fragments are two vectors, half a tile apart");

  // Column of A's element (m, k) in row k of the transposed tile.
  static __device__ int swizzle(int m, int k) { return m ^ (k / 4 * kSwizzleWords); }

  using Grid = TileGrid<kBlockM, kBlockN>;
  template <bool kVector>
  using ReaderA = TileReader<kBlockM, kBlockK, kNumThreads, kVector>;
  template <bool kVector>
  using ReaderB = TileReader<kBlockK, kBlockN, kNumThreads, kVector>;
};

struct SharedStorage {
  alignas(16) float a[2][Config::kBlockK][Config::kBlockM];  // transposed and swizzled
  alignas(16) float b[2][Config::kBlockK][Config::kBlockN];
};

// The operands of one k step.
struct Fragments {
  float a[Config::kThreadM], b[Config::kThreadN];

  __device__ void load(const SharedStorage& smem, int buffer, int k, int m, int n) {
    load_fragment(a, smem.a[buffer][k],
                  [=](int i) { return Config::swizzle(m + i * Config::kBlockM / 2, k); });
    load_fragment(b, &smem.b[buffer][k][n], [](int j) { return j * Config::kBlockN / 2; });
  }
};

// First row and column of a thread in the tile of its block. A warp is 2×16 threads; lanes l and
// l ^ 1 share their rows, l and l ^ 2 their columns: then half a warp is served at a time.
struct Position {
  int m, n;

  __device__ Position() {
    const int thread = static_cast<int>(threadIdx.x);
    m = (thread / 32 * 2 + (thread >> 1 & 1)) * 4;
    n = ((thread & 1) | (thread >> 2 & 7) << 1) * 4;
  }
};

// Stores what the readers have read as tile `buffer`.
template <typename ReaderA, typename ReaderB>
__device__ void store_tiles(SharedStorage& smem, int buffer, const ReaderA& reader_a,
                            const typename ReaderA::Registers& a, const ReaderB& reader_b,
                            const typename ReaderB::Registers& b) {
  reader_a.store_transposed(smem.a[buffer], a, Config::swizzle);
  reader_b.store(smem.b[buffer], b);
}

template <bool kVector>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm) sgemm(SgemmArgs args) {
  auto& smem = simt::shared_storage<SharedStorage>();
  const Shape& shape = args.shape;
  const auto origin = Config::Grid::origin(shape);
  const Position position;
  const int m = position.m, n = position.n;
  Config::ReaderA<kVector> reader_a(args.a, args.lda, shape.m, shape.k, origin.row, 0);
  Config::ReaderB<kVector> reader_b(args.b, args.ldb, shape.k, shape.n, 0, origin.col);
  typename Config::ReaderA<kVector>::Registers next_a;
  typename Config::ReaderB<kVector>::Registers next_b;
  Fragments frag[2];
  float acc[Config::kThreadM][Config::kThreadN]{};

  reader_a.read(next_a);
  reader_b.read(next_b);
  store_tiles(smem, 0, reader_a, next_a, reader_b, next_b);
  __syncthreads();  // the first tile is stored before anyone reads it
  frag[0].load(smem, 0, 0, m, n);

  int buffer = 0;
  for (std::int64_t k_left = shape.k; k_left > 0; k_left -= Config::kBlockK) {
    reader_a.advance_cols(Config::kBlockK);
    reader_b.advance_rows(Config::kBlockK);
    reader_a.read(next_a);  // zeros after the last tile
    reader_b.read(next_b);
#pragma unroll
    for (int k = 0; k < Config::kBlockK - 1; ++k) {
      frag[(k + 1) % 2].load(smem, buffer, k + 1, m, n);
      multiply_fragments(frag[k % 2].a, frag[k % 2].b, acc);
    }
    buffer ^= 1;
    store_tiles(smem, buffer, reader_a, next_a, reader_b, next_b);
    // The next tile is stored before anyone reads it, and this one is read before the next round
    // overwrites it.
    __syncthreads();
    frag[0].load(smem, buffer, 0, m, n);
    multiply_fragments(frag[1].a, frag[1].b, acc);
  }
  store_parts<kVector>(args, origin.row + m, origin.col + n, Config::kBlockM / 2,
                       Config::kBlockN / 2, acc);
}

Status enqueue(const SgemmArgs& args, Stream stream) {
  const simt::LaunchConfig launch{.kernel = "swizzle",
                                  .blocks = Config::Grid::num_blocks(args.shape),
                                  .threads_x = Config::kNumThreads,
                                  .shared_bytes = sizeof(SharedStorage)};
  return simt::launch(launch, stream, allows_vectors(args) ? sgemm<true> : sgemm<false>, args);
}

constexpr std::int64_t kTileSizes[] = {4, Config::kBlockK, Config::kBlockM / 2, Config::kBlockM};

extern const Stage stage;
const Stage stage{
    .name = "Swizzle",
    .idea = "XOR-swizzled shared memory: no padding, no bank conflicts",
    .tile_sizes = kTileSizes,
    .rounding_chain = serial_rounding_chain,
    .restrictions = Config::Grid::fits,
    .enqueue = enqueue,
};

}  // namespace tilegate::swizzle
