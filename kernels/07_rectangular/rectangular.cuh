// Rectangular: an 8×4 thread tile, k unrolled by 4: fewer registers per thread, more warps per SM.
//
// New against Vectorized: a thread holds 32 results, not 64, and a block of four warps computes a
// tile of 64×64. An SM runs five such blocks at a time: while some wait at a barrier or for memory,
// others compute. What limits it now: shared memory, 12 words per 32 multiply-adds where 8×8
// results take 16 words per 64. Alignment as in Vectorized.
#pragma once

#include <tilegate/common/fragment.cuh>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::rectangular {

struct Tiles8x4 {
  // idea:begin Rectangular
  static constexpr int kBlockM = 64, kBlockN = 64, kBlockK = 16;
  static constexpr int kThreadM = 8, kThreadN = 4;
  static constexpr int kSliceK = 8;       // columns of A that the block reads at a time
  static constexpr int kUnroll = 4;       // k steps
  static constexpr int kBlocksPerSm = 5;  // limits registers to 102
  // idea:end
};

template <typename Tiles>
struct TileConfig : Tiles {
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
  static_assert(4 * (kBlockM + kPad) % 32 == 16, "transposed stores have bank conflicts");
  static_assert(kBlockK % kSliceK == 0, "columns of A without a read");
  static_assert(kSliceK % kUnroll == 0, "the unrolled loop leaves k steps over");

  using Grid = TileGrid<kBlockM, kBlockN>;
  template <bool kVector>
  using ReaderA = TileReader<kBlockM, kSliceK, kNumThreads, kVector>;
  template <bool kVector>
  using ReaderB = TileReader<kBlockK, kBlockN, kNumThreads, kVector>;
};

template <typename Config>
struct SharedStorage {
  alignas(16) float a[Config::kBlockK][Config::kBlockM + Config::kPad];  // transposed
  alignas(16) float b[Config::kBlockK][Config::kBlockN];

  using SliceA = float[Config::kSliceK][Config::kBlockM + Config::kPad];
  __device__ SliceA& slice_a(int i) { return reinterpret_cast<SliceA&>(a[i * Config::kSliceK]); }
};

// First row and column of a thread's results in the tile. Permuted lane layout: lanes l and l ^ 1
// share columns, l and l ^ 2 share rows, so that a wavefront serves half a warp; with other layouts
// it serves a quarter.
template <typename Config>
struct Position {
  int m, n;

  // idea:begin Rectangular
  __device__ Position() {
    const unsigned pair = threadIdx.x / 2;
    m = static_cast<int>(pair / Config::kThreadsN * 2 + threadIdx.x % 2) * 4;
    n = static_cast<int>(pair % Config::kThreadsN) * 4;
  }
  // idea:end
};

// Reads the next tile of A and of B into shared memory.
template <typename Config, typename ReaderA, typename ReaderB>
__device__ void load_tiles(SharedStorage<Config>& smem, ReaderA& reader_a, ReaderB& reader_b) {
  // All loads before the first store, so that they are in flight together.
  typename ReaderA::Registers a[Config::kSlices];
  typename ReaderB::Registers b;
#pragma unroll
  for (int i = 0; i < Config::kSlices; ++i) {
    reader_a.read(a[i]);
    reader_a.advance_cols(Config::kSliceK);
  }
  reader_b.read(b);
  reader_b.advance_rows(Config::kBlockK);
#pragma unroll
  for (int i = 0; i < Config::kSlices; ++i) {
    reader_a.store_transposed(smem.slice_a(i), a[i], [](int row, int) { return row; });
  }
  reader_b.store(smem.b, b);
}

// acc += the thread's rows of the A tile · its columns of the B tile.
template <typename Config>
__device__ void multiply_tile(const SharedStorage<Config>& smem, const Position<Config>& position,
                              float (&acc)[Config::kThreadM][Config::kThreadN]) {
#pragma unroll Config::kUnroll
  for (int k = 0; k < Config::kBlockK; ++k) {
    float frag_a[Config::kThreadM], frag_b[Config::kThreadN];
    load_fragment(frag_a, &smem.a[k][position.m], [](int i) { return i * Config::kStepM; });
    load_fragment(frag_b, &smem.b[k][position.n], [](int j) { return j * Config::kStepN; });
    multiply_fragments(frag_a, frag_b, acc);
  }
}

template <typename Config, bool kVector>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args) {
  auto& smem = device::shared_storage<SharedStorage<Config>>();
  const Shape& shape = args.shape;
  const auto origin = Config::Grid::origin(shape);
  const Position<Config> position;
  typename Config::template ReaderA<kVector> reader_a(args.a, args.lda, shape.m, shape.k,
                                                      origin.row, 0);
  typename Config::template ReaderB<kVector> reader_b(args.b, args.ldb, shape.k, shape.n, 0,
                                                      origin.col);

  float acc[Config::kThreadM][Config::kThreadN]{};
  for (std::int64_t k_left = shape.k; k_left > 0; k_left -= Config::kBlockK) {
    load_tiles<Config>(smem, reader_a, reader_b);
    __syncthreads();  // all threads have stored the tile before any thread reads it
    multiply_tile<Config>(smem, position, acc);
    __syncthreads();  // all threads have read the tile before the next one overwrites it
  }
  store_thread_tiles<kVector>(args, origin.row + position.m, origin.col + position.n,
                              Config::kStepM, Config::kStepN, acc);
}

template <typename Tiles, bool kVector>
Status enqueue(const KernelArgs& args, Stream stream) {
  using Config = TileConfig<Tiles>;
  const device::LaunchConfig launch{.kernel = "rectangular",
                                    .blocks = Config::Grid::num_blocks(args.shape),
                                    .threads_x = Config::kNumThreads,
                                    .shared_bytes = sizeof(SharedStorage<Config>)};
  return device::launch(launch, stream, sgemm<Config, kVector>, args);
}

template <typename Tiles>
Choice choose(const Problem& problem, const Device& /*device*/) {
  return serial_choice<typename TileConfig<Tiles>::Grid>(
      problem, allows_vectors(problem) ? enqueue<Tiles, true> : enqueue<Tiles, false>);
}

template <typename Tiles>
constexpr std::int64_t kTileSizes[] = {4, Tiles::kBlockK, TileConfig<Tiles>::kStepM,
                                       Tiles::kBlockM};

template <typename Tiles>
constexpr Stage make_stage(std::string_view name) {
  return {.name = name,
          .idea = "8×4 results per thread, more warps to hide latency",
          .tile_sizes = kTileSizes<Tiles>,
          .choose = choose<Tiles>};
}

}  // namespace tilegate::rectangular
