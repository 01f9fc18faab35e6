// Rectangular: an 8×4 thread tile, k unrolled by 4: fewer registers a thread, more warps an SM.
//
// New against Vectorized: a thread holds 32 results instead of 64, and a block of four warps a
// 64×64 tile. An SM runs five such blocks at a time: while some wait at a barrier or for memory,
// others compute. What limits it now: shared memory, 12 words for 32 multiply-adds instead of 16
// for 64, and twice the traffic from L2. Alignment as in Vectorized.
#include <tilegate/common/fragment.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_reader.cuh>
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::rectangular {

struct Tiles8x4 {
  static constexpr int kBlockM = 64, kBlockN = 64, kBlockK = 16;
  static constexpr int kThreadM = 8, kThreadN = 4;
  static constexpr int kSliceK = 8;       // columns of A that the block reads at a time
  static constexpr int kUnroll = 4;       // k steps
  static constexpr int kBlocksPerSm = 5;  // limits registers to 102
};

// For comparison: k unrolled less or further, and square thread tiles.
struct Unroll1 : Tiles8x4 {
  static constexpr int kUnroll = 1;
};
struct Unroll2 : Tiles8x4 {
  static constexpr int kUnroll = 2;
};
struct Unroll8 : Tiles8x4 {
  static constexpr int kUnroll = 8;
};
// More warps still, of fewer registers.
struct Blocks6 : Unroll8 {
  static constexpr int kBlocksPerSm = 6;
};
struct Square4x4 : Tiles8x4 {
  static constexpr int kThreadM = 4;
  static constexpr int kSliceK = 16;
  static constexpr int kBlocksPerSm = 4;
};
struct Square8x8 : Tiles8x4 {
  static constexpr int kThreadN = 8;
  static constexpr int kBlocksPerSm = 8;
};

template <typename Tiles>
struct Config : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kThreadM, Tiles::kThreadN;
  using Tiles::kSliceK, Tiles::kUnroll;
  static constexpr int kThreadsN = kBlockN / kThreadN;
  static constexpr int kNumThreads = kBlockM / kThreadM * kThreadsN;
  static constexpr int kStepM = kBlockM * 4 / kThreadM;  // between two vectors of a thread
  static constexpr int kStepN = kBlockN * 4 / kThreadN;
  static constexpr int kSlices = kBlockK / kSliceK;
  static constexpr int kPad = 4;  // as in Vectorized
  static_assert(kThreadM % 4 == 0 && kThreadN % 4 == 0, "fragments are vectors");
  static_assert(kPad % 4 == 0, "rows of A must stay aligned to 128-bit loads");
  static_assert(4 * (kBlockM + kPad) % 32 == 16, "the transposed stores would meet in banks");
  static_assert(kBlockK % kSliceK == 0, "columns of A that nobody reads");
  static_assert(kSliceK % kUnroll == 0, "k steps would be left over");

  using Grid = TileGrid<kBlockM, kBlockN>;
  template <bool kVector>
  using ReaderA = TileReader<kBlockM, kSliceK, kNumThreads, kVector>;
  template <bool kVector>
  using ReaderB = TileReader<kBlockK, kBlockN, kNumThreads, kVector>;
};

template <typename C>
struct SharedStorage {
  alignas(16) float a[C::kBlockK][C::kBlockM + C::kPad];  // transposed
  alignas(16) float b[C::kBlockK][C::kBlockN];

  using SliceA = float[C::kSliceK][C::kBlockM + C::kPad];
  __device__ SliceA& slice_a(int i) { return reinterpret_cast<SliceA&>(a[i * C::kSliceK]); }
};

// Where a thread works in its block's tile. Lanes l and l ^ 1 share their columns, l and l ^ 2
// their rows: half a warp is then served at a time, where other orders take a quarter.
template <typename C>
struct Position {
  int m, n;  // first row and column

  __device__ Position() {
    const unsigned pair = threadIdx.x / 2;
    m = static_cast<int>(pair / C::kThreadsN * 2 + threadIdx.x % 2) * 4;
    n = static_cast<int>(pair % C::kThreadsN) * 4;
  }
};

// Reads the next tile of A and of B into shared memory.
template <typename C, typename ReaderA, typename ReaderB>
__device__ void load_tiles(SharedStorage<C>& smem, ReaderA& reader_a, ReaderB& reader_b) {
  // All loads before the first store, so that they are in flight together.
  typename ReaderA::Registers a[C::kSlices];
  typename ReaderB::Registers b;
#pragma unroll
  for (int i = 0; i < C::kSlices; ++i) {
    reader_a.read(a[i]);
    reader_a.advance_cols(C::kSliceK);
  }
  reader_b.read(b);
  reader_b.advance_rows(C::kBlockK);
#pragma unroll
  for (int i = 0; i < C::kSlices; ++i) {
    reader_a.store_transposed(smem.slice_a(i), a[i], [](int row, int) { return row; });
  }
  reader_b.store(smem.b, b);
}

// acc += the thread's rows of the A tile · its columns of the B tile.
template <typename C>
__device__ void multiply_tile(const SharedStorage<C>& smem, const Position<C>& position,
                              float (&acc)[C::kThreadM][C::kThreadN]) {
#pragma unroll C::kUnroll
  for (int k = 0; k < C::kBlockK; ++k) {
    float frag_a[C::kThreadM], frag_b[C::kThreadN];
    load_fragment(frag_a, &smem.a[k][position.m], [](int i) { return i * C::kStepM; });
    load_fragment(frag_b, &smem.b[k][position.n], [](int j) { return j * C::kStepN; });
    multiply_fragments(frag_a, frag_b, acc);
  }
}

template <typename C, bool kVector>
__global__ void __launch_bounds__(C::kNumThreads, C::kBlocksPerSm) sgemm(SgemmArgs args) {
  auto& smem = simt::shared_storage<SharedStorage<C>>();
  const Shape& shape = args.shape;
  const auto origin = C::Grid::origin(shape);
  const Position<C> position;
  typename C::template ReaderA<kVector> reader_a(args.a, args.lda, shape.m, shape.k, origin.row, 0);
  typename C::template ReaderB<kVector> reader_b(args.b, args.ldb, shape.k, shape.n, 0, origin.col);

  float acc[C::kThreadM][C::kThreadN]{};
  for (std::int64_t k_left = shape.k; k_left > 0; k_left -= C::kBlockK) {
    load_tiles<C>(smem, reader_a, reader_b);
    __syncthreads();  // a tile is complete before anyone reads what others stored
    multiply_tile<C>(smem, position, acc);
    __syncthreads();  // everyone has read this tile before anyone stores the next over it
  }
  store_parts<kVector>(args, origin.row + position.m, origin.col + position.n, C::kStepM, C::kStepN,
                       acc);
}

template <typename Tiles>
Status enqueue(const SgemmArgs& args, Stream stream) {
  using C = Config<Tiles>;
  const simt::LaunchConfig launch{.kernel = "rectangular",
                                  .blocks = C::Grid::num_blocks(args.shape),
                                  .threads_x = C::kNumThreads,
                                  .shared_bytes = sizeof(SharedStorage<C>)};
  return simt::launch(launch, stream, allows_vectors(args) ? sgemm<C, true> : sgemm<C, false>,
                      args);
}

template <typename Tiles>
constexpr std::int64_t kTileSizes[] = {4, Tiles::kBlockK, Config<Tiles>::kStepM, Tiles::kBlockM};

template <typename Tiles>
constexpr Stage make_stage(std::string_view name, std::span<const Stage* const> variants = {}) {
  return {
      .name = name,
      .idea = "8×4 results a thread, more warps to hide latency",
      .tile_sizes = kTileSizes<Tiles>,
      .rounding_chain = serial_rounding_chain,
      .restrictions = Config<Tiles>::Grid::fits,
      .enqueue = enqueue<Tiles>,
      .variants = variants,
  };
}

constexpr Stage kUnroll1 = make_stage<Unroll1>("Rectangular.unroll1");
constexpr Stage kUnroll2 = make_stage<Unroll2>("Rectangular.unroll2");
constexpr Stage kUnroll8 = make_stage<Unroll8>("Rectangular.unroll8");
constexpr Stage kBlocks6 = make_stage<Blocks6>("Rectangular.unroll8_blocks6");
constexpr Stage kSquare4x4 = make_stage<Square4x4>("Rectangular.square4x4");
constexpr Stage kSquare8x8 = make_stage<Square8x8>("Rectangular.square8x8");
constexpr const Stage* kVariants[] = {&kUnroll1, &kUnroll2,   &kUnroll8,
                                      &kBlocks6, &kSquare4x4, &kSquare8x8};

extern const Stage stage;
const Stage stage = make_stage<Tiles8x4>("Rectangular", kVariants);

}  // namespace tilegate::rectangular
