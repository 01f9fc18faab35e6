// Prefetch: double buffering at both levels, so that memory works while the FMA pipe does.
//
// New against Vectorized: the next tile travels global memory → registers → the other shared buffer
// while this one is multiplied, and the next fragments travel shared memory → registers while these
// are. One barrier a tile instead of two. What limits it now: shared memory; a warp of 2×16 threads
// reads 144 different words a k step, in twelve wavefronts or more.
#include <tilegate/common/fragment.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_reader.cuh>
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::prefetch {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kThreadM = 8, kThreadN = 8;  // two vectors each way
  static constexpr int kThreadsN = kBlockN / kThreadN;
  static constexpr int kNumThreads = kBlockM / kThreadM * kThreadsN;
  // Limits registers to 128; the narrow path needs a few more for its conditions.
  template <bool kVector>
  static constexpr int kBlocksPerSm = kVector ? 2 : 1;
  static constexpr int kPad = 4;  // transposed stores of A: rows k and k + 4 fall 16 banks apart
  static_assert(kPad % 4 == 0, "rows of A must stay aligned to 128-bit loads");
  static_assert(kThreadM == 8 && kThreadN == 8, "fragments are two vectors, half a tile apart");

  using Grid = TileGrid<kBlockM, kBlockN>;
  template <bool kVector>
  using ReaderA = TileReader<kBlockM, kBlockK, kNumThreads, kVector>;
  template <bool kVector>
  using ReaderB = TileReader<kBlockK, kBlockN, kNumThreads, kVector>;
};

struct SharedStorage {
  alignas(16) float a[2][Config::kBlockK][Config::kBlockM + Config::kPad];  // transposed
  alignas(16) float b[2][Config::kBlockK][Config::kBlockN];
};

// The operands of one k step.
struct Fragments {
  float a[Config::kThreadM], b[Config::kThreadN];

  __device__ void load(const SharedStorage& smem, int buffer, int k, int m, int n) {
    load_fragment(a, &smem.a[buffer][k][m], [](int i) { return i * Config::kBlockM / 2; });
    load_fragment(b, &smem.b[buffer][k][n], [](int j) { return j * Config::kBlockN / 2; });
  }
};

// Stores what the readers have read as tile `buffer`.
template <typename ReaderA, typename ReaderB>
__device__ void store_tiles(SharedStorage& smem, int buffer, const ReaderA& reader_a,
                            const typename ReaderA::Registers& a, const ReaderB& reader_b,
                            const typename ReaderB::Registers& b) {
  reader_a.store_transposed(smem.a[buffer], a, [](int row, int) { return row; });
  reader_b.store(smem.b[buffer], b);
}

template <bool kVector>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm<kVector>)
    sgemm(SgemmArgs args) {
  auto& smem = simt::shared_storage<SharedStorage>();
  const Shape& shape = args.shape;
  const auto origin = Config::Grid::origin(shape);
  const int m = static_cast<int>(threadIdx.x) / Config::kThreadsN * 4;
  const int n = static_cast<int>(threadIdx.x) % Config::kThreadsN * 4;
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
  const simt::LaunchConfig launch{.kernel = "prefetch",
                                  .blocks = Config::Grid::num_blocks(args.shape),
                                  .threads_x = Config::kNumThreads,
                                  .shared_bytes = sizeof(SharedStorage)};
  return simt::launch(launch, stream, allows_vectors(args) ? sgemm<true> : sgemm<false>, args);
}

constexpr std::int64_t kTileSizes[] = {4, Config::kBlockK, Config::kBlockM / 2, Config::kBlockM};

extern const Stage stage;
const Stage stage{
    .name = "Prefetch",
    .idea = "the next tile and the next fragments load while these multiply",
    .tile_sizes = kTileSizes,
    .rounding_chain = serial_rounding_chain,
    .restrictions = Config::Grid::fits,
    .enqueue = enqueue,
};

}  // namespace tilegate::prefetch
