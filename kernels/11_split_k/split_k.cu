// SplitK: K is split over blocks, because a small C has too few tiles to fill the device.
//
// New against Warptile: block z of a tile takes the k tiles z, z + S, z + 2S, … and writes its
// partial sum to the workspace; a second kernel adds the S partial sums in a fixed order, so that
// the same call gives the same bits. S comes from the shape and the number of multiprocessors; with
// S = 1 it is a Warptile of 64×64. What limits it: the traffic of the partial sums, 2·S·M·N
// words.
#include <10_warptile/warptile.cuh>
#include <algorithm>

#include <tilegate/sgemm.hpp>
#include <tilegate/simt/device.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::split_k {

struct Tiles {
  static constexpr int kBlockM = 64, kBlockN = 64, kBlockK = 16;
  static constexpr int kWarpM = 32, kWarpN = 32;
  static constexpr int kBlocksPerSm = 4;
  static constexpr bool kDealtLanes = true;
};
using Config = warptile::Config<Tiles>;

constexpr int kMinTilesPerSplit = 2;  // of K: less is not worth a partial sum
constexpr std::int64_t kMaxSplits = 256;
constexpr int kReduceThreads = 256;

// Rows of a partial sum are whole vectors, so that every access to the workspace is 128 bits wide.
constexpr __host__ __device__ std::int64_t workspace_ld(const Shape& shape) {
  return ceil_div(shape.n, 4) * 4;
}

// Enough splits to fill the device once.
std::int64_t num_splits(const Shape& shape) {
  const std::int64_t slots =
      std::int64_t{device::properties().multiprocessors} * Config::kBlocksPerSm;
  const std::int64_t most = shape.k / (kMinTilesPerSplit * Config::kBlockK);
  if (shape.m == 0 || shape.n == 0) return 1;
  return std::clamp<std::int64_t>(slots / Config::Grid::num_blocks(shape), 1,
                                  std::clamp<std::int64_t>(most, 1, kMaxSplits));
}

std::size_t workspace(const Shape& shape) {
  const std::int64_t splits = num_splits(shape);
  if (splits == 1) return 0;
  return static_cast<std::size_t>(splits * shape.m * workspace_ld(shape)) * sizeof(float);
}

std::int64_t rounding_chain(const Shape& shape) {
  const std::int64_t splits = num_splits(shape);
  const std::int64_t k_tiles = ceil_div(shape.k, Config::kBlockK);
  const std::int64_t longest_partial =
      std::min(shape.k, ceil_div(k_tiles, splits) * Config::kBlockK);
  return longest_partial + (splits > 1 ? splits : 0) + 2;
}

// One split of one tile: blockIdx.x counts tiles first, then splits.
template <bool kVector>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(SgemmArgs args, int splits) {
  const auto tiles = static_cast<unsigned>(Config::Grid::num_blocks(args.shape));
  const auto origin = Config::Grid::origin(args.shape, blockIdx.x % tiles);
  const auto split = static_cast<int>(blockIdx.x / tiles);
  const auto at = Config::position();
  float acc[Config::kFragmentM][Config::kFragmentN]{};
  warptile::accumulate<Config, kVector>(args, origin, at, split, splits, acc);

  if (splits == 1) {
    store_parts<kVector>(args, origin.row + at.m, origin.col + at.n, Config::kSubWarpM,
                         Config::kSubWarpN, acc);
    return;
  }
  SgemmArgs partial = args;
  partial.alpha = 1.0F;
  partial.beta = 0.0F;
  partial.shape.n = partial.ldc = workspace_ld(args.shape);  // the last vector is filled with zeros
  partial.c = static_cast<float*>(args.workspace) + split * args.shape.m * partial.ldc;
  store_parts<true>(partial, origin.row + at.m, origin.col + at.n, Config::kSubWarpM,
                    Config::kSubWarpN, acc);
}

// C ← alpha·(sum of the partial sums, first split first) + beta·C; four columns a thread.
template <bool kVector>
__global__ void __launch_bounds__(kReduceThreads) reduce(SgemmArgs args, int splits) {
  const std::int64_t ld = workspace_ld(args.shape);
  const std::int64_t element = (std::int64_t{blockIdx.x} * kReduceThreads + threadIdx.x) * 4;
  if (element >= args.shape.m * ld) return;
  const float* partial = static_cast<const float*>(args.workspace) + element;
  float4 sum = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  for (int split = 0; split < splits; ++split) {
    const auto v = simt::load_vector<float4>(partial + split * args.shape.m * ld);
    sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
  }
  store4<kVector>(args, element / ld, element % ld, sum);
}

Status enqueue(const SgemmArgs& args, Stream stream) {
  const bool vectors = allows_vectors(args);
  const auto splits = static_cast<int>(num_splits(args.shape));
  const simt::LaunchConfig partial{.kernel = "split_k",
                                   .blocks = Config::Grid::num_blocks(args.shape) * splits,
                                   .threads_x = Config::kNumThreads,
                                   .shared_bytes = sizeof(prefetch::SharedStorage<Config>)};
  Status status = simt::launch(partial, stream, vectors ? sgemm<true> : sgemm<false>, args, splits);
  if (!status.ok() || splits == 1) return status;
  const simt::LaunchConfig sum{
      .kernel = "split_k reduce",
      .blocks = ceil_div(args.shape.m * workspace_ld(args.shape), 4 * kReduceThreads),
      .threads_x = kReduceThreads};
  return simt::launch(sum, stream, vectors ? reduce<true> : reduce<false>, args, splits);
}

constexpr std::int64_t kTileSizes[] = {4, 16, 32, 64};

extern const Stage stage;
const Stage stage{
    .name = "SplitK",
    .idea = "K split over blocks, partial sums added in a fixed order",
    .tile_sizes = kTileSizes,
    .rounding_chain = rounding_chain,
    .workspace = workspace,
    .restrictions = Config::Grid::fits,
    .enqueue = enqueue,
};

}  // namespace tilegate::split_k
