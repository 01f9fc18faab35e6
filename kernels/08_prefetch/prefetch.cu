// Prefetch: double buffering at both levels, so that memory works while the FMA pipe does.
//
// New against Vectorized: the next tile travels global memory → registers → the other shared buffer
// while this one is multiplied, and the next fragments travel shared memory → registers while these
// are. One barrier a tile instead of two. The loop is in prefetch.cuh, because later rungs use it
// too. What limits it now: shared memory; a warp of 2×16 threads reads 144 different words a k
// step, in twelve wavefronts or more.
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

#include "prefetch.cuh"

namespace tilegate::prefetch {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kFragmentM = 8, kFragmentN = 8;  // results of a thread: two vectors each way
  static constexpr int kStepM = kBlockM / 2, kStepN = kBlockN / 2;  // from one vector to the other
  static constexpr int kThreadsN = kBlockN / kFragmentN;
  static constexpr int kNumThreads = kBlockM / kFragmentM * kThreadsN;
  // Limits registers to 128; the narrow path needs a few more for its conditions.
  template <bool kVector>
  static constexpr int kBlocksPerSm = kVector ? 2 : 1;
  static constexpr int kPad = 4;  // transposed stores of A: rows k and k + 4 fall 16 banks apart
  static_assert(kFragmentM == 8 && kFragmentN == 8, "fragments are two vectors, half a tile apart");

  using Grid = TileGrid<kBlockM, kBlockN>;

  // Column of A's element (m, k) in row k of the transposed tile.
  static __device__ int column(int m, int) { return m; }

  // A warp is 2×16 threads.
  static __device__ Position position() {
    const int thread = static_cast<int>(threadIdx.x);
    return {thread / kThreadsN * 4, thread % kThreadsN * 4};
  }
};

template <bool kVector>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm<kVector>)
    sgemm(SgemmArgs args) {
  const Shape& shape = args.shape;
  const auto origin = Config::Grid::origin(shape);
  const auto at = Config::position();
  ReaderA<Config, kVector> reader_a(args.a, args.lda, shape.m, shape.k, origin.row, 0);
  ReaderB<Config, kVector> reader_b(args.b, args.ldb, shape.k, shape.n, 0, origin.col);
  float acc[Config::kFragmentM][Config::kFragmentN]{};
  multiply_tiles<Config, kVector>(reader_a, reader_b, shape.k, at, acc);
  store_parts<kVector>(args, origin.row + at.m, origin.col + at.n, Config::kStepM, Config::kStepN,
                       acc);
}

Status enqueue(const SgemmArgs& args, Stream stream) {
  const simt::LaunchConfig launch{.kernel = "prefetch",
                                  .blocks = Config::Grid::num_blocks(args.shape),
                                  .threads_x = Config::kNumThreads,
                                  .shared_bytes = sizeof(SharedStorage<Config>)};
  return simt::launch(launch, stream, allows_vectors(args) ? sgemm<true> : sgemm<false>, args);
}

constexpr std::int64_t kTileSizes[] = {4, Config::kBlockK, Config::kStepM, Config::kBlockM};

extern const Stage stage;
const Stage stage{
    .name = "Prefetch",
    .idea = "the next tile and the next fragments load while these multiply",
    .tile_sizes = kTileSizes,
    .rounding_chain = serial_rounding_chain,
    .restrictions = Config::Grid::fits,
    .enqueue = enqueue,
};

}  // namespace tilegate::prefetch
