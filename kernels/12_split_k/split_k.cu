// SplitK: several blocks share a tile of C along K, because a small C has too few tiles to fill the
// device.
//
// New against Warptile: S blocks per tile; split z takes the k tiles z, z + S, z + 2S, … and writes
// its partial sum to the workspace. A second kernel adds the S partial sums in a fixed order, so
// that the same call gives the same bits. S depends on the shape and the number of multiprocessors;
// with S = 1 it is a Warptile of 64×64. What limits it: tiles of 64×64, and the traffic of the
// partial sums, 2·S·M·N words.
#include <algorithm>
#include <vector>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/warp_tiles.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::split_k {

struct Tiles {
  static constexpr int kBlockM = 64, kBlockN = 64, kBlockK = 16;
  static constexpr int kWarpM = 32, kWarpN = 32;
  static constexpr int kBlocksPerSm = 4;
  static constexpr bool kPermutedLanes = true;
};
using Config = WarpTiles<Tiles>;

constexpr int kMinTilesPerSplit = 2;  // k tiles: fewer are not worth a partial sum
constexpr std::int64_t kMaxKSplits = 256;
constexpr int kReduceThreads = 256;
constexpr int kManyInFlight = 16;  // of up to 256 partial sums

// Leading dimension of a partial sum: whole vectors, so that every access to the workspace is 128
// bits wide.
constexpr __host__ __device__ std::int64_t workspace_ld(const Shape& shape) {
  return ceil_div(shape.n, 4) * 4;
}

// Enough splits to fill the device once.
int num_k_splits(const Shape& shape, const Device& device) {
  const std::int64_t slots = std::int64_t{device.multiprocessors} * Config::kBlocksPerSm;
  const std::int64_t most = shape.k / (kMinTilesPerSplit * Config::kBlockK);
  const std::int64_t wanted = slots / Config::Grid::num_blocks(shape);
  return static_cast<int>(
      std::clamp<std::int64_t>(wanted, 1, std::clamp<std::int64_t>(most, 1, kMaxKSplits)));
}

// One split of one tile; blockIdx.x = split · tiles + tile.
template <bool kVector>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args, int k_splits) {
  const auto tiles = static_cast<unsigned>(Config::Grid::num_blocks(args.shape));
  const auto origin = Config::Grid::origin(args.shape, blockIdx.x % tiles);
  // idea:begin SplitK
  const auto split = static_cast<int>(blockIdx.x / tiles);
  const auto at = Config::position();
  float acc[Config::kFragmentM][Config::kFragmentN]{};
  const std::int64_t k_begin = std::int64_t{split} * Config::kBlockK;
  double_buffered::ReaderA<Config, kVector> reader_a(args.a, args.lda, args.shape.m, args.shape.k,
                                                     origin.row, k_begin);
  double_buffered::ReaderB<Config, kVector> reader_b(args.b, args.ldb, args.shape.k, args.shape.n,
                                                     k_begin, origin.col);
  double_buffered::multiply_tiles<Config, kVector>(reader_a, reader_b, args.shape.k - k_begin, at,
                                                   acc, k_splits * Config::kBlockK);
  // idea:end

  if (k_splits == 1) {
    store_thread_tiles<kVector>(args, origin.row + at.m, origin.col + at.n, Config::kSubWarpM,
                                Config::kSubWarpN, acc);
    return;
  }
  KernelArgs partial = args;
  partial.alpha = 1.0F;
  partial.beta = 0.0F;
  partial.shape.n = partial.ldc = workspace_ld(args.shape);  // the last vector is filled with zeros
  partial.c = static_cast<float*>(args.workspace) + split * args.shape.m * partial.ldc;
  store_thread_tiles<true>(partial, origin.row + at.m, origin.col + at.n, Config::kSubWarpM,
                           Config::kSubWarpN, acc);
}

// C ← alpha·(sum of the partial sums) + beta·C; four columns per thread.
template <bool kVector, int kInFlight>
__global__ void __launch_bounds__(kReduceThreads, kReduceBlocksPerSm<kInFlight>)
    reduce(KernelArgs args, int k_splits) {
  const std::int64_t ld = workspace_ld(args.shape);
  const std::int64_t element = (std::int64_t{blockIdx.x} * kReduceThreads + threadIdx.x) * 4;
  if (element >= args.shape.m * ld) return;
  const float* partial = static_cast<const float*>(args.workspace) + element;
  // idea:begin SplitK
  const auto sum =
      reduce_partials<kInFlight>(partial, args.shape.m * ld, static_cast<unsigned>(k_splits));
  store4<kVector>(args, element / ld, element % ld, sum);
  // idea:end
}

template <bool kVector>
Status enqueue(const KernelArgs& args, int k_splits, Stream stream) {
  const device::LaunchConfig partial{
      .kernel = "split_k",
      .blocks = Config::Grid::num_blocks(args.shape) * k_splits,
      .threads_x = Config::kNumThreads,
      .shared_bytes = sizeof(double_buffered::SharedStorage<Config>)};
  Status status = device::launch(partial, stream, sgemm<kVector>, args, k_splits);
  if (!status.ok() || k_splits == 1) return status;
  const device::LaunchConfig sum{
      .kernel = "split_k reduce",
      .blocks = ceil_div(args.shape.m * workspace_ld(args.shape), 4 * kReduceThreads),
      .threads_x = kReduceThreads};
  constexpr auto reduce_few = reduce<kVector, kFewPartialsInFlight>;
  constexpr auto reduce_many = reduce<kVector, kManyInFlight>;
  return device::launch(sum, stream, are_few_partials(k_splits) ? reduce_few : reduce_many, args,
                        k_splits);
}

std::vector<PlannedKernel> planned_kernels(const Shape& shape, bool vectors, std::int64_t k_tiles,
                                           int k_splits) {
  PlannedKernel multiply =
      double_buffered::planned_kernel<Config>(vectors, ceil_div(k_tiles, k_splits));
  if (k_splits == 1) return {multiply};
  multiply.name += " split";
  multiply.parameters.push_back(parameter::count("splits", k_splits, kMaxKSplits));
  multiply.parameters.push_back(parameter::tiles("k tiles among splits", k_tiles, k_splits));
  const std::int64_t elements = shape.m * workspace_ld(shape);
  const bool few = are_few_partials(k_splits);
  return {
      multiply,
      {.name = vectors ? "reduce vectors" : "reduce words",
       .parameters = {
           parameter::count("splits", k_splits, kMaxKSplits), parameter::each("few splits", few),
           parameter::tiles("sums in flight", k_splits - 1,
                            few ? kFewPartialsInFlight : kManyInFlight),
           parameter::columns(4), parameter::tiles("elements", elements, 4 * kReduceThreads)}}};
}

Choice choose(const Problem& problem, const Device& device) {
  const Shape shape = problem.shape;
  if (Status s = Config::Grid::fits(shape); !s.ok()) return {.status = s};
  const int k_splits = num_k_splits(shape, device);
  const std::int64_t k_tiles = ceil_div(shape.k, Config::kBlockK);
  const std::int64_t longest_partial =
      std::min(shape.k, ceil_div(k_tiles, k_splits) * Config::kBlockK);
  Choice choice{.configuration = "split" + std::to_string(k_splits),
                .rounding_chain = longest_partial + 2};
  if (k_splits > 1) {
    choice.rounding_chain += k_splits;
    choice.workspace_bytes =
        static_cast<std::size_t>(k_splits * shape.m * workspace_ld(shape)) * sizeof(float);
  }
  const bool vectors = allows_vectors(problem);
  const auto enqueue_split = vectors ? enqueue<true> : enqueue<false>;
  choice.enqueue = [=](const KernelArgs& args, Stream stream) {
    return enqueue_split(args, k_splits, stream);
  };
  choice.kernels = [=] { return planned_kernels(shape, vectors, k_tiles, k_splits); };
  return choice;
}

constexpr std::int64_t kTileSizes[] = {4, 16, 32, 64};

extern const Stage stage;
const Stage stage{
    .name = "SplitK",
    .idea = "K split over blocks, partial sums added in a fixed order",
    .tile_sizes = kTileSizes,
    .choose = choose,
};

}  // namespace tilegate::split_k
