// Blocktile2D: each thread computes an 8×8 outer product of registers for every k.
//
// New against Blocktile1D: a thread's results form a square, so 8 + 8 words from shared memory
// serve 64 multiply-adds, and a block's tile grows to 128×128: twice the use of each byte from
// global memory. What limits it now: the loads into shared memory, one word an instruction, and
// reads of A along k that tie up 32 registers.
#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::blocktile_2d {

struct Tiles128 {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kThreadM = 8, kThreadN = 8;
  static constexpr int kBlocksPerSm = 2;  // limits registers to 128
};

// Half as many barriers, twice as many loads in flight.
struct Tiles128K16 : Tiles128 {
  static constexpr int kBlockK = 16;
};

// Four times as many blocks: for a C that 128×128 tiles do not spread over the GPU.
struct Tiles64 : Tiles128 {
  static constexpr int kBlockM = 64, kBlockN = 64;
  static constexpr int kBlocksPerSm = 8;
};

template <typename Tiles>
struct Config : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kThreadM, Tiles::kThreadN;
  static constexpr int kThreadsN = kBlockN / kThreadN;
  static constexpr int kNumThreads = kBlockM / kThreadM * kThreadsN;
  static_assert(kBlockM % kThreadM == 0 && kBlockN % kThreadN == 0, "results without a thread");
  static_assert(kBlockK % 4 == 0, "A is read four elements at a time");

  using Grid = TileGrid<kBlockM, kBlockN>;
  using LoaderA = TileLoader<kNumThreads, kBlockM, kBlockK>;
  using LoaderB = TileLoader<kNumThreads, kBlockK, kBlockN>;
};

template <typename C>
struct SharedStorage {
  alignas(16) float a[C::kBlockM][C::kBlockK];
  float b[C::kBlockK][C::kBlockN];
};

// acc(i, j) += row m + i of the A tile · column n + j·kThreadsN of the B tile. Columns of a thread
// are kThreadsN apart, so that the lanes of a warp read and store neighbouring words.
template <typename C>
__device__ void multiply_tile(const SharedStorage<C>& smem, int m, int n,
                              float (&acc)[C::kThreadM][C::kThreadN]) {
#pragma unroll
  for (int k = 0; k < C::kBlockK; k += 4) {
    float4 frag_a[C::kThreadM];  // four columns of A
#pragma unroll
    for (int i = 0; i < C::kThreadM; ++i) {
      frag_a[i] = simt::load_vector<float4>(&smem.a[m + i][k]);
    }
#pragma unroll
    for (int j = 0; j < C::kThreadN; ++j) {
      const int col = n + j * C::kThreadsN;
      const float b0 = smem.b[k + 0][col];
      const float b1 = smem.b[k + 1][col];
      const float b2 = smem.b[k + 2][col];
      const float b3 = smem.b[k + 3][col];
#pragma unroll
      for (int i = 0; i < C::kThreadM; ++i) {
        acc[i][j] += frag_a[i].x * b0;
        acc[i][j] += frag_a[i].y * b1;
        acc[i][j] += frag_a[i].z * b2;
        acc[i][j] += frag_a[i].w * b3;
      }
    }
  }
}

template <typename C>
__device__ void store_c_tile(const SgemmArgs& args, std::int64_t row, std::int64_t col,
                             const float (&acc)[C::kThreadM][C::kThreadN]) {
#pragma unroll
  for (int i = 0; i < C::kThreadM; ++i) {
    if (row + i >= args.shape.m) return;
#pragma unroll
    for (int j = 0; j < C::kThreadN; ++j) {
      const std::int64_t c = col + j * C::kThreadsN;
      if (c < args.shape.n) store_element(args, row + i, c, acc[i][j]);
    }
  }
}

template <typename C>
__global__ void __launch_bounds__(C::kNumThreads, C::kBlocksPerSm) sgemm(SgemmArgs args) {
  auto& smem = simt::shared_storage<SharedStorage<C>>();
  const Shape& shape = args.shape;
  const auto origin = C::Grid::origin(shape);
  typename C::LoaderA a_tiles(args.a + origin.row * args.lda, args.lda);
  typename C::LoaderB b_tiles(args.b + origin.col, args.ldb);
  const int rows = clip<C::kBlockM>(shape.m - origin.row);
  const int cols = clip<C::kBlockN>(shape.n - origin.col);
  const int m = static_cast<int>(threadIdx.x / C::kThreadsN) * C::kThreadM;
  const int n = static_cast<int>(threadIdx.x % C::kThreadsN);

  float acc[C::kThreadM][C::kThreadN]{};
  for (std::int64_t k_left = shape.k; k_left > 0; k_left -= C::kBlockK) {
    const int depth = clip<C::kBlockK>(k_left);
    a_tiles.load(smem.a, rows, depth);
    b_tiles.load(smem.b, depth, cols);
    a_tiles.advance_cols();
    b_tiles.advance_rows();
    __syncthreads();  // a tile is complete before anyone reads what others stored
    multiply_tile<C>(smem, m, n, acc);
    __syncthreads();  // everyone has read this tile before anyone stores the next over it
  }
  store_c_tile<C>(args, origin.row + m, origin.col + n, acc);
}

template <typename Tiles>
Status enqueue(const SgemmArgs& args, Stream stream) {
  using C = Config<Tiles>;
  const simt::LaunchConfig launch{.kernel = "blocktile_2d",
                                  .blocks = C::Grid::num_blocks(args.shape),
                                  .threads_x = C::kNumThreads,
                                  .shared_bytes = sizeof(SharedStorage<C>)};
  return simt::launch(launch, stream, sgemm<C>, args);
}

template <typename Tiles>
constexpr std::int64_t kTileSizes[] = {Tiles::kThreadM, Tiles::kBlockK, Config<Tiles>::kThreadsN,
                                       Tiles::kBlockM};

template <typename Tiles>
constexpr Stage make_stage(std::string_view name, std::span<const Stage* const> variants = {}) {
  return {
      .name = name,
      .idea = "an 8×8 outer product in registers",
      .tile_sizes = kTileSizes<Tiles>,
      .rounding_chain = serial_rounding_chain,
      .restrictions = Config<Tiles>::Grid::fits,
      .enqueue = enqueue<Tiles>,
      .variants = variants,
  };
}

constexpr Stage kStageK16 = make_stage<Tiles128K16>("Blocktile2D.k16");
constexpr Stage kStage64 = make_stage<Tiles64>("Blocktile2D.tile64");
constexpr const Stage* kVariants[] = {&kStageK16, &kStage64};

extern const Stage stage;
const Stage stage = make_stage<Tiles128>("Blocktile2D", kVariants);

}  // namespace tilegate::blocktile_2d
