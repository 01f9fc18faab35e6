// Swizzle: shared memory without padding and without bank conflicts.
//
// New against Prefetch: the column of A's transposed tile is XORed with a pattern of k, so that the
// scattered stores of a warp fall into 32 different banks; the lanes of a warp are dealt to the
// threads' tiles so that every 128-bit load takes two wavefronts, the least there is for 32 lanes
// of 16 bytes each. The main loop is Prefetch's. What limits it now: instructions that are not
// FFMA, and that a warp of 2×16 threads is far from square.
#include <08_prefetch/prefetch.cuh>

#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::swizzle {

struct Config {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kFragmentM = 8, kFragmentN = 8;  // results of a thread: two vectors each way
  static constexpr int kStepM = kBlockM / 2, kStepN = kBlockN / 2;  // from one vector to the other
  static constexpr int kNumThreads = kBlockM / kFragmentM * (kBlockN / kFragmentN);
  static constexpr int kBlocksPerSm = 2;
  static constexpr int kPad = 0;
  // A row of A in a tile is kBlockK / 4 vectors; shifted by this many words against each other,
  // the stores of a warp fall into different banks.
  static constexpr int kSwizzleWords = 128 / kBlockK;
  static_assert(kSwizzleWords % 4 == 0, "the swizzle would tear 128-bit loads apart");
  static_assert(kBlockM % 32 == 0, "the swizzle permutes words within groups of 32");
  static_assert(kFragmentM == 8 && kFragmentN == 8, "fragments are two vectors, half a tile apart");

  using Grid = TileGrid<kBlockM, kBlockN>;

  // Column of A's element (m, k) in row k of the transposed tile.
  static __device__ int column(int m, int k) { return m ^ (k / 4 * kSwizzleWords); }

  // A warp is 2×16 threads; lanes l and l ^ 1 share their rows, l and l ^ 2 their columns: then
  // half a warp is served at a time.
  static __device__ prefetch::Position position() {
    const int thread = static_cast<int>(threadIdx.x);
    return {(thread / 32 * 2 + (thread >> 1 & 1)) * 4, ((thread & 1) | (thread >> 2 & 7) << 1) * 4};
  }
};

template <bool kVector>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm) sgemm(SgemmArgs args) {
  const Shape& shape = args.shape;
  const auto origin = Config::Grid::origin(shape);
  const auto at = Config::position();
  prefetch::ReaderA<Config, kVector> reader_a(args.a, args.lda, shape.m, shape.k, origin.row, 0);
  prefetch::ReaderB<Config, kVector> reader_b(args.b, args.ldb, shape.k, shape.n, 0, origin.col);
  float acc[Config::kFragmentM][Config::kFragmentN]{};
  prefetch::multiply_tiles<Config, kVector>(reader_a, reader_b, shape.k, at, acc);
  store_parts<kVector>(args, origin.row + at.m, origin.col + at.n, Config::kStepM, Config::kStepN,
                       acc);
}

Status enqueue(const SgemmArgs& args, Stream stream) {
  const simt::LaunchConfig launch{.kernel = "swizzle",
                                  .blocks = Config::Grid::num_blocks(args.shape),
                                  .threads_x = Config::kNumThreads,
                                  .shared_bytes = sizeof(prefetch::SharedStorage<Config>)};
  return simt::launch(launch, stream, allows_vectors(args) ? sgemm<true> : sgemm<false>, args);
}

constexpr std::int64_t kTileSizes[] = {4, Config::kBlockK, Config::kStepM, Config::kBlockM};

extern const Stage stage;
const Stage stage{
    .name = "Swizzle",
    .idea = "XOR-swizzled shared memory: no padding, no bank conflicts",
    .tile_sizes = kTileSizes,
    .rounding_chain = serial_rounding_chain,
    .restrictions = Config::Grid::fits,
    .enqueue = enqueue,
};

}  // namespace tilegate::swizzle
