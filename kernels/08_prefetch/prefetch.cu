// Prefetch: double buffering at two levels, so that memory and the FMA units work at the same time.
//
// New against Vectorized: while a tile is multiplied, the next one moves from global memory through
// registers to the other shared-memory buffer, and the next fragments move from shared memory to
// registers. One barrier per tile instead of two. The loop is in common/double_buffered.cuh, as
// later rungs use it, too. What limits it now: instructions that are not FFMA, and shared memory:
// the loads of a warp take twelve wavefronts per k step, its FFMA sixteen cycles.
#include <tilegate/common/double_buffered.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::prefetch {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kFragmentM = 8, kFragmentN = 8;  // results per thread: two vectors each way
  static constexpr int kStepM = kBlockM / 2, kStepN = kBlockN / 2;  // from one vector to the other
  static constexpr int kThreadsN = kBlockN / kFragmentN;
  static constexpr int kNumThreads = kBlockM / kFragmentM * kThreadsN;
  // Limits registers to 128; the narrow path needs more for its predicates.
  template <bool kVector>
  static constexpr int kBlocksPerSm = kVector ? 2 : 1;
  static constexpr int kPad = 4;  // transposed stores of A: rows k and k + 4 are 16 banks apart
  static_assert(kFragmentM == 8 && kFragmentN == 8, "fragments are two vectors, half a tile apart");

  using Grid = TileGrid<kBlockM, kBlockN>;

  // Column of A's element (m, k) in row k of the transposed tile.
  static __device__ int column(int m, int) { return m; }

  // A warp is 2×16 threads.
  static __device__ double_buffered::Position position() {
    const int thread = static_cast<int>(threadIdx.x);
    return {thread / kThreadsN * 4, thread % kThreadsN * 4};
  }
};

template <bool kVector>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm<kVector>)
    sgemm(KernelArgs args) {
  double_buffered::multiply_block<Config, kVector>(args);
}

Choice choose(const Problem& problem, const Device& /*device*/) {
  return double_buffered::choose<Config>("prefetch", problem, sgemm<true>, sgemm<false>);
}

constexpr std::int64_t kTileSizes[] = {4, Config::kBlockK, Config::kStepM, Config::kBlockM};

extern const Stage stage;
const Stage stage{
    .name = "Prefetch",
    .idea = "the next tile and the next fragments load while these multiply",
    .tile_sizes = kTileSizes,
    .choose = choose,
};

}  // namespace tilegate::prefetch
