// Blocktile2D: each thread computes an 8×8 outer product of registers for every k.
//
// New against Blocktile1D: a thread's results form a square, so that 8 + 8 words of shared memory
// serve 64 multiply-adds, and a block's tile grows to 128×128: each word from global memory is used
// twice as often. What limits it now: tiles are loaded and stored one word per instruction, and
// reads of A along k occupy 32 registers.
#pragma once

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::blocktile_2d {

struct Tiles128 {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kThreadM = 8, kThreadN = 8;
  static constexpr int kBlocksPerSm = 2;  // limits registers to 128
};

template <typename Tiles>
struct TileConfig : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kThreadM, Tiles::kThreadN;
  static constexpr int kThreadsN = kBlockN / kThreadN;
  static constexpr int kNumThreads = kBlockM / kThreadM * kThreadsN;
  static_assert(kBlockM % kThreadM == 0 && kBlockN % kThreadN == 0, "elements without a thread");
  static_assert(kBlockK % 4 == 0, "A is read four elements at a time");

  using Grid = TileGrid<kBlockM, kBlockN>;
  using LoaderA = TileLoader<kNumThreads, kBlockM, kBlockK>;
  using LoaderB = TileLoader<kNumThreads, kBlockK, kBlockN>;
};

template <typename Config>
struct SharedStorage {
  alignas(16) float a[Config::kBlockM][Config::kBlockK];
  float b[Config::kBlockK][Config::kBlockN];
};

// acc(i, j) += row m + i of the A tile · column n + j·kThreadsN of the B tile. Columns of a thread
// are kThreadsN apart, so that the lanes of a warp read and store neighbouring words.
template <typename Config>
__device__ void multiply_tile(const SharedStorage<Config>& smem, int m, int n,
                              float (&acc)[Config::kThreadM][Config::kThreadN]) {
#pragma unroll
  for (int k = 0; k < Config::kBlockK; k += 4) {
    float4 frag_a[Config::kThreadM];  // four columns of A
#pragma unroll
    for (int i = 0; i < Config::kThreadM; ++i) {
      frag_a[i] = device::load_vector<float4>(&smem.a[m + i][k]);
    }
#pragma unroll
    for (int j = 0; j < Config::kThreadN; ++j) {
      // idea:begin Blocktile2D
      const int col = n + j * Config::kThreadsN;
      const float b0 = smem.b[k + 0][col];
      const float b1 = smem.b[k + 1][col];
      const float b2 = smem.b[k + 2][col];
      const float b3 = smem.b[k + 3][col];
#pragma unroll
      for (int i = 0; i < Config::kThreadM; ++i) {
        acc[i][j] += frag_a[i].x * b0;
        acc[i][j] += frag_a[i].y * b1;
        acc[i][j] += frag_a[i].z * b2;
        acc[i][j] += frag_a[i].w * b3;
      }
      // idea:end
    }
  }
}

template <typename Config>
__device__ void store_c_tile(const KernelArgs& args, std::int64_t row, std::int64_t col,
                             const float (&acc)[Config::kThreadM][Config::kThreadN]) {
#pragma unroll
  for (int i = 0; i < Config::kThreadM; ++i) {
    if (row + i >= args.shape.m) return;
#pragma unroll
    for (int j = 0; j < Config::kThreadN; ++j) {
      const std::int64_t c = col + j * Config::kThreadsN;
      if (c < args.shape.n) store_element(args, row + i, c, acc[i][j]);
    }
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args) {
  auto& smem = device::shared_storage<SharedStorage<Config>>();
  const Shape& shape = args.shape;
  const auto origin = Config::Grid::origin(shape);
  typename Config::LoaderA a_tiles(args.a + origin.row * args.lda, args.lda);
  typename Config::LoaderB b_tiles(args.b + origin.col, args.ldb);
  const int rows = clip<Config::kBlockM>(shape.m - origin.row);
  const int cols = clip<Config::kBlockN>(shape.n - origin.col);
  const int m = static_cast<int>(threadIdx.x / Config::kThreadsN) * Config::kThreadM;
  const int n = static_cast<int>(threadIdx.x % Config::kThreadsN);

  float acc[Config::kThreadM][Config::kThreadN]{};
  for (std::int64_t k_left = shape.k; k_left > 0; k_left -= Config::kBlockK) {
    const int depth = clip<Config::kBlockK>(k_left);
    a_tiles.load(smem.a, rows, depth);
    b_tiles.load(smem.b, depth, cols);
    a_tiles.advance_cols();
    b_tiles.advance_rows();
    __syncthreads();  // all threads have stored the tile before any thread reads it
    multiply_tile<Config>(smem, m, n, acc);
    __syncthreads();  // all threads have read the tile before the next one overwrites it
  }
  store_c_tile<Config>(args, origin.row + m, origin.col + n, acc);
}

template <typename Tiles>
Status enqueue(const KernelArgs& args, Stream stream) {
  using Config = TileConfig<Tiles>;
  const device::LaunchConfig launch{.kernel = "blocktile_2d",
                                    .blocks = Config::Grid::num_blocks(args.shape),
                                    .threads_x = Config::kNumThreads,
                                    .shared_bytes = sizeof(SharedStorage<Config>)};
  return device::launch(launch, stream, sgemm<Config>, args);
}

template <typename Tiles>
Choice choose(const Problem& problem, const Device& /*device*/) {
  return serial_choice<typename TileConfig<Tiles>::Grid>(problem, enqueue<Tiles>);
}

template <typename Tiles>
constexpr std::int64_t kTileSizes[] = {Tiles::kThreadM, Tiles::kBlockK,
                                       TileConfig<Tiles>::kThreadsN, Tiles::kBlockM};

template <typename Tiles>
constexpr Stage make_stage(std::string_view name) {
  return {.name = name,
          .idea = "an 8×8 outer product in registers",
          .tile_sizes = kTileSizes<Tiles>,
          .choose = choose<Tiles>};
}

}  // namespace tilegate::blocktile_2d
