// SharedMemory: a block copies a tile of A and a tile of B into shared memory and multiplies there.
//
// New against Coalesced: each element of A and B is fetched from global memory once a block instead
// of once a thread, 32 times less traffic. What limits it now: shared memory itself. A warp reads a
// word of B for every multiply-add it does, and four words of A for every four, so the FMA units
// wait for the load pipe.
#include <tilegate/common/grid.cuh>
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::shared_memory {

struct Config {
  static constexpr int kBlockM = 32, kBlockN = 32, kBlockK = 32;
  static constexpr int kNumThreads = kBlockM * kBlockN;
  static constexpr int kBlocksPerSm = 2;  // one computes while the other waits for its tiles
  static_assert(kBlockM == kBlockK && kBlockN == kBlockK,
                "a thread loads one element of each tile");
  static_assert(kBlockK % 4 == 0, "A is read four elements at a time");
  static_assert(kNumThreads <= 1024, "more threads than a block can have");

  using Grid = TileGrid<kBlockM, kBlockN>;
};

struct SharedStorage {
  alignas(16) float a[Config::kBlockM][Config::kBlockK];
  float b[Config::kBlockK][Config::kBlockN];
};

// smem.a[y][x] ← A(row, k + x), zero outside A.
__device__ void load_a_tile(SharedStorage& smem, const SgemmArgs& args, std::int64_t row,
                            std::int64_t k) {
  k += threadIdx.x;
  const bool inside = row < args.shape.m && k < args.shape.k;
  smem.a[threadIdx.y][threadIdx.x] = inside ? args.a[row * args.lda + k] : 0.0F;
}

// smem.b[y][x] ← B(k + y, col), zero outside B.
__device__ void load_b_tile(SharedStorage& smem, const SgemmArgs& args, std::int64_t k,
                            std::int64_t col) {
  k += threadIdx.y;
  const bool inside = k < args.shape.k && col < args.shape.n;
  smem.b[threadIdx.y][threadIdx.x] = inside ? args.b[k * args.ldb + col] : 0.0F;
}

// sum += row y of the A tile · column x of the B tile. The lanes of a warp share y: a read of A is
// a broadcast, and four along k are one 128-bit load.
__device__ void multiply_tile(const SharedStorage& smem, float& sum) {
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
#pragma unroll
  for (int k = 0; k < Config::kBlockK; k += 4) {
    const float4 a = simt::load_vector<float4>(&smem.a[y][k]);
    sum += a.x * smem.b[k + 0][x];
    sum += a.y * smem.b[k + 1][x];
    sum += a.z * smem.b[k + 2][x];
    sum += a.w * smem.b[k + 3][x];
  }
}

__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm) sgemm(SgemmArgs args) {
  auto& smem = simt::shared_storage<SharedStorage>();
  const auto origin = Config::Grid::origin(args.shape);
  const std::int64_t row = origin.row + threadIdx.y;
  const std::int64_t col = origin.col + threadIdx.x;

  float sum = 0.0F;
  for (std::int64_t k = 0; k < args.shape.k; k += Config::kBlockK) {
    load_a_tile(smem, args, row, k);
    load_b_tile(smem, args, k, col);
    __syncthreads();  // a tile is complete before anyone reads what others stored
    multiply_tile(smem, sum);
    __syncthreads();  // everyone has read this tile before anyone stores the next over it
  }
  if (row < args.shape.m && col < args.shape.n) store_element(args, row, col, sum);
}

Status setup() { return simt::prefer_shared_memory(sgemm); }

Status enqueue(const SgemmArgs& args, Stream stream) {
  const simt::LaunchConfig launch{.kernel = "shared_memory",
                                  .blocks = Config::Grid::num_blocks(args.shape),
                                  .threads_x = Config::kBlockN,
                                  .threads_y = Config::kBlockM,
                                  .shared_bytes = sizeof(SharedStorage)};
  return simt::launch(launch, stream, sgemm, args);
}

constexpr std::int64_t kTileSizes[] = {Config::kBlockM};

extern const Stage stage;
const Stage stage{
    .name = "SharedMemory",
    .idea = "tiles of A and B are read from shared memory",
    .tile_sizes = kTileSizes,
    .rounding_chain = serial_rounding_chain,
    .restrictions = Config::Grid::fits,
    .setup = setup,
    .enqueue = enqueue,
};

}  // namespace tilegate::shared_memory
