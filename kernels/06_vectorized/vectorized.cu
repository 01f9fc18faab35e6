// Vectorized: 128-bit accesses wherever data moves: global memory, shared memory, fragments.
//
// New against Blocktile2D: a tile travels in a quarter of the instructions, and A is transposed on
// its way into shared memory, so that a thread reads its 8 + 8 operands of one k as four vectors
// and holds no more. What limits it now: nothing is computed while a tile is on its way, but for
// the other block of the SM. Needs 16-byte aligned rows; other operands take the same kernel with
// 32-bit global accesses.
#include <tilegate/common/fragment.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_reader.cuh>
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::vectorized {

struct TilesK8 {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kBlocksPerSm = 2;  // limits registers to 128
};

// Half as many barriers, twice as many loads in flight.
struct TilesK16 : TilesK8 {
  static constexpr int kBlockK = 16;
};

template <typename Tiles>
struct Config : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK;
  static constexpr int kThreadM = 8, kThreadN = 8;  // two vectors each way
  static constexpr int kThreadsN = kBlockN / kThreadN;
  static constexpr int kNumThreads = kBlockM / kThreadM * kThreadsN;
  // A is read in slices of 8 columns: a warp reads 16 rows of two vectors and stores them
  // transposed. With the padding, rows k and k + 4 of shared memory are 16 banks apart, so that
  // the 32 words of each store fall into 32 banks.
  static constexpr int kSliceK = 8;
  static constexpr int kSlices = kBlockK / kSliceK;
  static constexpr int kPad = 4;
  static_assert(kPad % 4 == 0, "rows of A must stay aligned to 128-bit loads");
  static_assert(4 * (kBlockM + kPad) % 32 == 16, "the transposed stores would meet in banks");
  static_assert(kBlockK % kSliceK == 0, "columns of A that nobody reads");

  using Grid = TileGrid<kBlockM, kBlockN>;
  template <bool kVector>
  using ReaderA = TileReader<kBlockM, kSliceK, kNumThreads, kVector>;
  template <bool kVector>
  using ReaderB = TileReader<kBlockK, kBlockN, kNumThreads, kVector>;
};

template <typename C>
struct SharedStorage {
  alignas(16) float a[C::kSlices][C::kSliceK][C::kBlockM + C::kPad];  // transposed
  alignas(16) float b[C::kBlockK][C::kBlockN];
};

// Reads the next tile of A and of B into shared memory.
template <typename C, typename ReaderA, typename ReaderB>
__device__ void load_tiles(SharedStorage<C>& smem, ReaderA& reader_a, ReaderB& reader_b) {
  // All loads before the first store, so that they are in flight together.
  typename ReaderA::Registers a[C::kSlices];
  typename ReaderB::Registers b;
#pragma unroll
  for (int slice = 0; slice < C::kSlices; ++slice) {
    reader_a.read(a[slice]);
    reader_a.advance_cols(C::kSliceK);
  }
  reader_b.read(b);
  reader_b.advance_rows(C::kBlockK);
#pragma unroll
  for (int slice = 0; slice < C::kSlices; ++slice) {
    reader_a.store_transposed(smem.a[slice], a[slice], [](int row, int) { return row; });
  }
  reader_b.store(smem.b, b);
}

// acc += the thread's rows of the A tile · its columns of the B tile. Either are two groups of
// four, half a tile apart: the lanes of a warp read neighbouring vectors, and no bank twice.
template <typename C>
__device__ void multiply_tile(const SharedStorage<C>& smem, int m, int n,
                              float (&acc)[C::kThreadM][C::kThreadN]) {
#pragma unroll
  for (int k = 0; k < C::kBlockK; ++k) {
    float frag_a[C::kThreadM], frag_b[C::kThreadN];
    load_fragment(frag_a, &smem.a[k / C::kSliceK][k % C::kSliceK][m],
                  [](int i) { return i * C::kBlockM / 2; });
    load_fragment(frag_b, &smem.b[k][n], [](int j) { return j * C::kBlockN / 2; });
    multiply_fragments(frag_a, frag_b, acc);
  }
}

template <typename C, bool kVector>
__global__ void __launch_bounds__(C::kNumThreads, C::kBlocksPerSm) sgemm(SgemmArgs args) {
  auto& smem = simt::shared_storage<SharedStorage<C>>();
  const Shape& shape = args.shape;
  const auto origin = C::Grid::origin(shape);
  const int m = static_cast<int>(threadIdx.x / C::kThreadsN) * 4;
  const int n = static_cast<int>(threadIdx.x % C::kThreadsN) * 4;
  typename C::template ReaderA<kVector> reader_a(args.a, args.lda, shape.m, shape.k, origin.row, 0);
  typename C::template ReaderB<kVector> reader_b(args.b, args.ldb, shape.k, shape.n, 0, origin.col);

  float acc[C::kThreadM][C::kThreadN]{};
  for (std::int64_t k_left = shape.k; k_left > 0; k_left -= C::kBlockK) {
    load_tiles<C>(smem, reader_a, reader_b);
    __syncthreads();  // a tile is complete before anyone reads what others stored
    multiply_tile<C>(smem, m, n, acc);
    __syncthreads();  // everyone has read this tile before anyone stores the next over it
  }
  store_parts<kVector>(args, origin.row + m, origin.col + n, C::kBlockM / 2, C::kBlockN / 2, acc);
}

template <typename Tiles>
Status enqueue(const SgemmArgs& args, Stream stream) {
  using C = Config<Tiles>;
  const simt::LaunchConfig launch{.kernel = "vectorized",
                                  .blocks = C::Grid::num_blocks(args.shape),
                                  .threads_x = C::kNumThreads,
                                  .shared_bytes = sizeof(SharedStorage<C>)};
  return simt::launch(launch, stream, allows_vectors(args) ? sgemm<C, true> : sgemm<C, false>,
                      args);
}

template <typename Tiles>
constexpr std::int64_t kTileSizes[] = {4, Tiles::kBlockK, Tiles::kBlockM / 2, Tiles::kBlockM};

template <typename Tiles>
constexpr Stage make_stage(std::string_view name, std::span<const Stage* const> variants = {}) {
  return {
      .name = name,
      .idea = "128-bit loads and stores, A transposed in padded shared memory",
      .tile_sizes = kTileSizes<Tiles>,
      .rounding_chain = serial_rounding_chain,
      .restrictions = Config<Tiles>::Grid::fits,
      .enqueue = enqueue<Tiles>,
      .variants = variants,
  };
}

constexpr Stage kStageK16 = make_stage<TilesK16>("Vectorized.k16");
constexpr const Stage* kVariants[] = {&kStageK16};

extern const Stage stage;
const Stage stage = make_stage<TilesK8>("Vectorized", kVariants);

}  // namespace tilegate::vectorized
