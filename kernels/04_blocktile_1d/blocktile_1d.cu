// Blocktile1D: each thread computes a column of 16 elements of C instead of one.
//
// New against SharedMemory: a word of B stays in a register for 16 multiply-adds, and a block's
// tile of C grows to 64×64 with a quarter of the threads. What limits it now: every multiply-add
// still reads a word of A, one 128-bit load per four of them.
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::blocktile_1d {

struct Config {
  static constexpr int kBlockM = 64, kBlockN = 64, kBlockK = 32;
  static constexpr int kThreadM = 16;  // rows of C of one thread
  static constexpr int kNumThreads = kBlockM / kThreadM * kBlockN;
  static constexpr int kBlocksPerSm = 2;  // limits registers to 128
  static_assert(kBlockM % kThreadM == 0, "elements of the tile without a thread");
  static_assert(kBlockN % 32 == 0, "a warp would read several rows of A at once: no broadcast");
  static_assert(kBlockK % 4 == 0, "A is read four elements at a time");

  using Grid = TileGrid<kBlockM, kBlockN>;
  using LoaderA = TileLoader<kNumThreads, kBlockM, kBlockK>;
  using LoaderB = TileLoader<kNumThreads, kBlockK, kBlockN>;
};

struct SharedStorage {
  alignas(16) float a[Config::kBlockM][Config::kBlockK];
  float b[Config::kBlockK][Config::kBlockN];
};

// acc(i) += row m + i of the A tile · column n of the B tile
__device__ void multiply_tile(const SharedStorage& smem, int m, int n,
                              float (&acc)[Config::kThreadM]) {
  // idea:begin Blocktile1D
#pragma unroll
  for (int k = 0; k < Config::kBlockK; k += 4) {
    const float b0 = smem.b[k + 0][n];
    const float b1 = smem.b[k + 1][n];
    const float b2 = smem.b[k + 2][n];
    const float b3 = smem.b[k + 3][n];
#pragma unroll
    for (int i = 0; i < Config::kThreadM; ++i) {
      const float4 a = device::load_vector<float4>(&smem.a[m + i][k]);  // a broadcast
      acc[i] += a.x * b0;
      acc[i] += a.y * b1;
      acc[i] += a.z * b2;
      acc[i] += a.w * b3;
    }
  }
  // idea:end
}

__device__ void store_c_tile(const KernelArgs& args, std::int64_t row, std::int64_t col,
                             const float (&acc)[Config::kThreadM]) {
  if (col >= args.shape.n) return;
#pragma unroll
  for (int i = 0; i < Config::kThreadM; ++i) {
    if (row + i < args.shape.m) store_element(args, row + i, col, acc[i]);
  }
}

__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args) {
  auto& smem = device::shared_storage<SharedStorage>();
  const Shape& shape = args.shape;
  const auto origin = Config::Grid::origin(shape);
  Config::LoaderA a_tiles(args.a + origin.row * args.lda, args.lda);
  Config::LoaderB b_tiles(args.b + origin.col, args.ldb);
  const int rows = clip<Config::kBlockM>(shape.m - origin.row);
  const int cols = clip<Config::kBlockN>(shape.n - origin.col);
  const int m = static_cast<int>(threadIdx.x / Config::kBlockN) * Config::kThreadM;
  const int n = static_cast<int>(threadIdx.x % Config::kBlockN);

  float acc[Config::kThreadM]{};
  for (std::int64_t k_left = shape.k; k_left > 0; k_left -= Config::kBlockK) {
    const int depth = clip<Config::kBlockK>(k_left);
    a_tiles.load(smem.a, rows, depth);
    b_tiles.load(smem.b, depth, cols);
    a_tiles.advance_cols();
    b_tiles.advance_rows();
    __syncthreads();  // all threads have stored the tile before any thread reads it
    multiply_tile(smem, m, n, acc);
    __syncthreads();  // all threads have read the tile before the next one overwrites it
  }
  store_c_tile(args, origin.row + m, origin.col + n, acc);
}

Status setup() { return device::prefer_shared_memory(sgemm); }

Status enqueue(const KernelArgs& args, Stream stream) {
  const device::LaunchConfig launch{.kernel = "blocktile_1d",
                                    .blocks = Config::Grid::num_blocks(args.shape),
                                    .threads_x = Config::kNumThreads,
                                    .shared_bytes = sizeof(SharedStorage)};
  return device::launch(launch, stream, sgemm, args);
}

Choice choose(const Problem& problem, const Device& /*device*/) {
  return serial_choice<Config::Grid>(problem, enqueue);
}

constexpr std::int64_t kTileSizes[] = {Config::kThreadM, Config::kBlockK, Config::kBlockM};

extern const Stage stage;
const Stage stage{
    .name = "Blocktile1D",
    .idea = "a column of sixteen results per thread",
    .tile_sizes = kTileSizes,
    .choose = choose,
    .setup = setup,
};

}  // namespace tilegate::blocktile_1d
