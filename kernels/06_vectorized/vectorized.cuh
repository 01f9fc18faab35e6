// Vectorized: 128-bit accesses to global and shared memory.
//
// New against Blocktile2D, two ideas: tiles are loaded from global memory in a quarter of the
// instructions; and A is transposed when it is stored to shared memory, so that a thread reads its
// 8 + 8 operands of one k as four vectors and holds no more (Vectorized.narrow_global has only this
// one). What limits it now: a block computes nothing while its tile is loaded. Needs 16-byte
// aligned rows of whole vectors; other operands take the same kernel with 32-bit global accesses.
#pragma once

#include <tilegate/common/fragment.cuh>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::vectorized {

struct TilesK8 {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kBlocksPerSm = 2;  // limits registers to 128
};

template <typename Tiles>
struct TileConfig : Tiles {
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
  static_assert(4 * (kBlockM + kPad) % 32 == 16, "transposed stores have bank conflicts");
  static_assert(kBlockK % kSliceK == 0, "columns of A without a read");

  using Grid = TileGrid<kBlockM, kBlockN>;
  template <bool kVector>
  using ReaderA = TileReader<kBlockM, kSliceK, kNumThreads, kVector>;
  template <bool kVector>
  using ReaderB = TileReader<kBlockK, kBlockN, kNumThreads, kVector>;
};

template <typename Config>
struct SharedStorage {
  alignas(
      16) float a[Config::kSlices][Config::kSliceK][Config::kBlockM + Config::kPad];  // transposed
  alignas(16) float b[Config::kBlockK][Config::kBlockN];
};

// Reads the next tile of A and of B into shared memory.
template <typename Config, typename ReaderA, typename ReaderB>
__device__ void load_tiles(SharedStorage<Config>& smem, ReaderA& reader_a, ReaderB& reader_b) {
  // All loads before the first store, so that they are in flight together.
  typename ReaderA::Registers a[Config::kSlices];
  typename ReaderB::Registers b;
#pragma unroll
  for (int slice = 0; slice < Config::kSlices; ++slice) {
    reader_a.read(a[slice]);
    reader_a.advance_cols(Config::kSliceK);
  }
  reader_b.read(b);
  reader_b.advance_rows(Config::kBlockK);
  // idea:begin Vectorized
#pragma unroll
  for (int slice = 0; slice < Config::kSlices; ++slice) {
    reader_a.store_transposed(smem.a[slice], a[slice], [](int row, int) { return row; });
  }
  reader_b.store(smem.b, b);
  // idea:end
}

// acc += the thread's rows of the A tile · its columns of the B tile. Rows and columns are two
// groups of four, half a tile apart: the lanes of a warp read neighbouring vectors, without bank
// conflicts.
template <typename Config>
__device__ void multiply_tile(const SharedStorage<Config>& smem, int m, int n,
                              float (&acc)[Config::kThreadM][Config::kThreadN]) {
  // idea:begin Vectorized
#pragma unroll
  for (int k = 0; k < Config::kBlockK; ++k) {
    float frag_a[Config::kThreadM], frag_b[Config::kThreadN];
    load_fragment(frag_a, &smem.a[k / Config::kSliceK][k % Config::kSliceK][m],
                  [](int i) { return i * Config::kBlockM / 2; });
    load_fragment(frag_b, &smem.b[k][n], [](int j) { return j * Config::kBlockN / 2; });
    multiply_fragments(frag_a, frag_b, acc);
  }
  // idea:end
}

template <typename Config, bool kVector>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args) {
  auto& smem = device::shared_storage<SharedStorage<Config>>();
  const Shape& shape = args.shape;
  const auto origin = Config::Grid::origin(shape);
  const int m = static_cast<int>(threadIdx.x / Config::kThreadsN) * 4;
  const int n = static_cast<int>(threadIdx.x % Config::kThreadsN) * 4;
  typename Config::template ReaderA<kVector> reader_a(args.a, args.lda, shape.m, shape.k,
                                                      origin.row, 0);
  typename Config::template ReaderB<kVector> reader_b(args.b, args.ldb, shape.k, shape.n, 0,
                                                      origin.col);

  float acc[Config::kThreadM][Config::kThreadN]{};
  for (std::int64_t k_left = shape.k; k_left > 0; k_left -= Config::kBlockK) {
    load_tiles<Config>(smem, reader_a, reader_b);
    __syncthreads();  // all threads have stored the tile before any thread reads it
    multiply_tile<Config>(smem, m, n, acc);
    __syncthreads();  // all threads have read the tile before the next one overwrites it
  }
  store_thread_tiles<kVector>(args, origin.row + m, origin.col + n, Config::kBlockM / 2,
                              Config::kBlockN / 2, acc);
}

template <typename Tiles, bool kVector>
Status enqueue(const KernelArgs& args, Stream stream) {
  using Config = TileConfig<Tiles>;
  const device::LaunchConfig launch{.kernel = "vectorized",
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
constexpr std::int64_t kTileSizes[] = {4, Tiles::kBlockK, Tiles::kBlockM / 2, Tiles::kBlockM};

template <typename Tiles>
constexpr Stage make_stage(std::string_view name) {
  return {.name = name,
          .idea = "128-bit loads and stores, A transposed in padded shared memory",
          .tile_sizes = kTileSizes<Tiles>,
          .choose = choose<Tiles>};
}

}  // namespace tilegate::vectorized
