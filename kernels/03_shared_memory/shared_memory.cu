// SharedMemory: a block copies a tile of A and a tile of B into shared memory and multiplies there.
//
// New against Coalesced: each element of A and B is loaded from global memory once per block, not
// once per thread that uses it: 32 times fewer loads. What limits it now: shared memory itself. For
// four multiply-adds a thread reads four words of B, one wavefront of its warp each, and one vector
// of A, two wavefronts: the FMA units wait for shared memory.
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::shared_memory {

struct Config {
  // Deep tiles: 128 multiply-adds share the barriers and addresses of an iteration.
  static constexpr int kBlockM = 32, kBlockN = 32, kBlockK = 128;
  static constexpr int kNumThreads = kBlockM * kBlockN;
  static constexpr int kBlocksPerSm = 2;  // one computes while the other waits for its tiles
  static_assert(kBlockN == 32, "a warp would read several rows of A at once: no broadcast");
  static_assert(kBlockK % 4 == 0, "A is read four elements at a time");
  static_assert(kNumThreads <= 1024, "more threads than a block can have");

  using Grid = TileGrid<kBlockM, kBlockN>;
  using LoaderA = TileLoader<kNumThreads, kBlockM, kBlockK>;
  using LoaderB = TileLoader<kNumThreads, kBlockK, kBlockN>;
};

struct SharedStorage {
  alignas(16) float a[Config::kBlockM][Config::kBlockK];
  float b[Config::kBlockK][Config::kBlockN];
};

// sum += row y of the A tile · column x of the B tile. The lanes of a warp share y: a read of A is
// a broadcast, and four along k are one 128-bit load.
__device__ void multiply_tile(const SharedStorage& smem, int y, int x, float& sum) {
#pragma unroll
  for (int k = 0; k < Config::kBlockK; k += 4) {
    const float4 a = device::load_vector<float4>(&smem.a[y][k]);
    sum += a.x * smem.b[k + 0][x];
    sum += a.y * smem.b[k + 1][x];
    sum += a.z * smem.b[k + 2][x];
    sum += a.w * smem.b[k + 3][x];
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
  const int y = static_cast<int>(threadIdx.x / Config::kBlockN);
  const int x = static_cast<int>(threadIdx.x % Config::kBlockN);

  // idea:begin SharedMemory
  float sum = 0.0F;
  for (std::int64_t k_left = shape.k; k_left > 0; k_left -= Config::kBlockK) {
    const int depth = clip<Config::kBlockK>(k_left);
    a_tiles.load(smem.a, rows, depth);
    b_tiles.load(smem.b, depth, cols);
    a_tiles.advance_cols();
    b_tiles.advance_rows();
    __syncthreads();  // all threads have stored the tile before any thread reads it
    multiply_tile(smem, y, x, sum);
    __syncthreads();  // all threads have read the tile before the next one overwrites it
  }
  // idea:end
  if (y < rows && x < cols) store_element(args, origin.row + y, origin.col + x, sum);
}

Status setup() { return device::prefer_shared_memory(sgemm); }

Status enqueue(const KernelArgs& args, Stream stream) {
  const device::LaunchConfig launch{.kernel = "shared_memory",
                                    .blocks = Config::Grid::num_blocks(args.shape),
                                    .threads_x = Config::kNumThreads,
                                    .shared_bytes = sizeof(SharedStorage)};
  return device::launch(launch, stream, sgemm, args);
}

Choice choose(const Problem& problem, const Device& /*device*/) {
  return serial_choice<Config::Grid>(problem, enqueue);
}

constexpr std::int64_t kTileSizes[] = {Config::kBlockM, Config::kBlockK};

extern const Stage stage;
const Stage stage{
    .name = "SharedMemory",
    .idea = "tiles of A and B are read from shared memory",
    .tile_sizes = kTileSizes,
    .choose = choose,
    .setup = setup,
};

}  // namespace tilegate::shared_memory
