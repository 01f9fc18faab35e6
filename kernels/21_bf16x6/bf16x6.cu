// Bf16x6: FP32 accuracy from BF16 tensor cores for all operands, without a pass over them.
//
// New against Fp16x3: BF16 has the exponents of FP32. Three planes hold all 24 bits of a float
// without scales, so that nothing must be known of the operands before the product: the GEMM splits
// tiles as it loads them (gemm_sm90.cuh), and no workspace holds planes. Six products of planes
// instead of three. What limits it: the tensor cores, and for a C of few rows or columns memory
// bandwidth. Needs compute capability 9.0, no later one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "gemm_sm90.cuh"

namespace tilegate::bf16x6 {

constexpr std::int64_t kMaxKSplits = 64;  // per tile
constexpr std::int64_t kLeastKTiles = 4;  // of a split

constexpr std::int64_t kLeastK = 128;  // for smaller K FP32 is more accurate

// K up to which the large products of each slice are a run of their own. Longer runs have larger
// errors of truncation, but fewer additions.
constexpr std::int64_t kShortRunsK = 1024;

// A tile of C.
struct Tile {
  const char* name;
  int columns;  // of the accumulators
  bool is_transposed;
  int block_m, block_n;
  double k_tile_seconds;  // expected, on an NVIDIA H200
};
constexpr Tile kTiles[] = {
    {"128x128", 128, false, kRowsOfX, 128, 1.2e-6},
    {"128x64", 64, false, kRowsOfX, 64, 0.78e-6},
    {"64x128", 64, true, 64, kRowsOfX, 0.85e-6},
};

// How the tiles are divided among blocks: the first `whole` are not split, the others into
// `k_splits` splits each.
struct Partition {
  std::int64_t tiles, k_tiles, whole, k_splits;

  std::int64_t split_tiles() const { return tiles - whole; }
  std::int64_t work() const { return whole + split_tiles() * k_splits; }
};

inline std::size_t partial_bytes(const Tile& tile, const Partition& partition) {
  if (partition.split_tiles() == 0) return 0;
  return sizeof(float) * static_cast<std::size_t>(partition.split_tiles() * partition.k_splits) *
         static_cast<std::size_t>(tile.block_m * tile.block_n);
}

// Expected seconds.
double seconds(const Tile& tile, const Partition& partition, const Device& device) {
  constexpr double kLaunch = 3e-6, kTileSeconds = 4e-6;  // prologue and epilogue of a tile
  const std::int64_t sms = device.multiprocessors;
  const auto of = [&](std::int64_t count, std::int64_t k_tiles) {
    return static_cast<double>(ceil_div(count, sms)) *
           (static_cast<double>(k_tiles) * tile.k_tile_seconds + kTileSeconds);
  };
  double time = kLaunch + of(partition.whole, partition.k_tiles);
  if (partition.split_tiles() > 0) {
    time += of(partition.split_tiles() * partition.k_splits,
               ceil_div(partition.k_tiles, partition.k_splits)) +
            cost::kPartialSeconds +
            2.0 * static_cast<double>(partial_bytes(tile, partition)) / cost::kPartialBandwidth;
  }
  return time;
}

// No splits; all tiles split; and those of the last wave. The fastest of each.
std::vector<Partition> partitions_of(const Tile& tile, const Problem& problem,
                                     const Device& device) {
  const std::int64_t tiles = problem.batch * ceil_div(problem.shape.m, tile.block_m) *
                             ceil_div(problem.shape.n, tile.block_n);
  const std::int64_t k_tiles = ceil_div(problem.shape.k, kBlockK), sms = device.multiprocessors;
  std::vector<Partition> partitions = {{tiles, k_tiles, tiles, 1}};
  const auto add_fastest = [&](std::int64_t whole) {
    const std::int64_t rest = tiles - whole;
    if (rest == 0) return;
    const std::int64_t most = std::min({k_tiles / kLeastKTiles, kMaxKSplits, 2 * sms / rest});
    Partition fastest = partitions.front();
    for (std::int64_t k_splits = 2; k_splits <= most; ++k_splits) {
      const Partition partition{tiles, k_tiles, whole, k_splits};
      if (fastest.k_splits == 1 ||
          seconds(tile, partition, device) < seconds(tile, fastest, device)) {
        fastest = partition;
      }
    }
    if (fastest.k_splits > 1) partitions.push_back(fastest);
  };
  add_fastest(0);
  if (tiles > sms) add_fastest(tiles / sms * sms);
  return partitions;
}

std::string name_of(const Tile& tile, const Partition& partition) {
  if (partition.split_tiles() == 0) return tile.name;
  return tile.name + std::string(partition.whole == 0 ? "_split" : "_tail") +
         std::to_string(partition.k_splits);
}

// In units of 2^-24 relative to (|A||B|)ij. A wgmma truncates the accumulator and up to 16 products
// at 2^-25 of the largest, and the sum at 2^-23. A run has one wgmma of large products, or two; all
// those of small products, which are 2^-7 of the large ones, count 1. The products that are left
// out, and the planes, count 2. Then come the sums of the runs, and of the splits, alpha and beta.
std::int64_t rounding_chain(std::int64_t k, std::int64_t k_splits) {
  const std::int64_t wgmma = 2 + (std::min<std::int64_t>(k, kSliceK) + 2) / 2;
  const std::int64_t slices = ceil_div(k, kSliceK), k_tiles = ceil_div(k, kBlockK);
  const std::int64_t runs = k <= kShortRunsK ? wgmma + slices + k_tiles : 2 * wgmma + k_tiles;
  return runs + 1 + 2 + k_splits - 1 + 2;
}

// Calls f with a Config.
template <typename F>
Status with_config(int columns, bool x_along_k, bool y_along_k, F f) {
  const auto of = [&]<int kColumns>() {
    if (x_along_k) {
      return y_along_k ? f(Config<kColumns, true, true>{}) : f(Config<kColumns, true, false>{});
    }
    return y_along_k ? f(Config<kColumns, false, true>{}) : f(Config<kColumns, false, false>{});
  };
  return columns == 128 ? of.template operator()<128>() : of.template operator()<64>();
}

GemmParams gemm_params(const Tile& tile, const Partition& partition, const Problem& problem) {
  return {.split_k = {.block_m = tile.block_m,
                      .block_n = tile.block_n,
                      .raster = RasterAlongN(problem.shape, tile.block_m, tile.block_n),
                      .whole = static_cast<unsigned>(partition.whole),
                      .k_splits = Divisor(static_cast<std::uint32_t>(partition.k_splits)),
                      .k_tiles = static_cast<int>(partition.k_tiles),
                      .vectors = allows_vectors(problem, Operand::kC)},
          .work = static_cast<unsigned>(partition.work()),
          .is_transposed = tile.is_transposed,
          .vectors = allows_vectors(problem, Operand::kA) && allows_vectors(problem, Operand::kB),
          .float2_c = allows_float2_of_c(problem),
          .short_runs = problem.shape.k <= kShortRunsK,
          .fp32 = fp32_args(problem)};
}

std::vector<PlannedKernel> planned_kernels(const Tile& tile, const Partition& partition,
                                           const Problem& problem, const Device& device) {
  const std::int64_t blocks = std::min<std::int64_t>(partition.work(), device.multiprocessors);
  const std::int64_t of_block = ceil_div(partition.work(), blocks);
  const std::int64_t k_tiles = ceil_div(partition.k_tiles, partition.k_splits);
  const int stages = tile.columns == 128 ? Config<128, true, true>::kStagesOfX
                                         : Config<64, true, true>::kStagesOfX;
  const auto layout = [&](Operand operand) {
    return is_along_k(problem, operand) ? "along k" : "along rows";
  };
  const GemmParams params = gemm_params(tile, partition, problem);
  const bool float2_c = params.float2_c && !tile.is_transposed;
  return {{.name = std::string(tile.name) + " a " + layout(Operand::kA) + ", b " +
                   layout(Operand::kB) + (params.vectors ? ", vectors" : ", words") +
                   (float2_c ? " to float2" : " to words"),
           .parameters = {parameter::rows(tile.block_m), parameter::columns(tile.block_n),
                          parameter::depth(kBlockK),
                          parameter::count("work tiles of a block", of_block),
                          parameter::ring("k tiles of a block", of_block * k_tiles, stages),
                          parameter::count("splits", partition.k_splits)}}};
}

Candidate candidate(const Tile& tile, const Partition& partition, const Problem& problem,
                    const Device& device) {
  const GemmParams params = gemm_params(tile, partition, problem);
  const bool a = is_along_k(problem, Operand::kA), b = is_along_k(problem, Operand::kB);
  const bool x = tile.is_transposed ? b : a, y = tile.is_transposed ? a : b;
  const std::int64_t blocks = std::min<std::int64_t>(partition.work(), device.multiprocessors);
  const auto enqueue = [=](const KernelArgs& args, Stream stream) {
    Status status = with_config(tile.columns, x, y, [&]<typename Config>(Config) {
      return device::launch({.kernel = "multiply planes",
                             .blocks = blocks,
                             .threads_x = kNumThreads,
                             .shared_bytes = sizeof(GemmStorage<Config>),
                             .overlaps_previous = true},
                            stream, multiply<Config>, args, params);
    });
    if (!status.ok() || partition.split_tiles() == 0) return status;
    return split_sums::enqueue(args, params.split_k, partition.split_tiles(), true, stream,
                               AfterPrevious{});
  };
  return {{.configuration = name_of(tile, partition),
           .rounding_chain = std::max(rounding_chain(problem.shape.k, partition.k_splits),
                                      fp32_rounding_chain(problem) + partition.k_splits),
           .workspace_bytes = partial_bytes(tile, partition),
           .enqueue = enqueue,
           .kernels = [=] { return planned_kernels(tile, partition, problem, device); }},
          seconds(tile, partition, device)};
}

std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  constexpr double kNoSplitKernel = 0.0;
  if (Status s = check_split_size(problem, kFp32Tile, kNoSplitKernel); !s.ok()) {
    return {{.choice = {.status = std::move(s)}}};
  }
  if (problem.shape.k < kLeastK) return {plain_candidate(problem)};
  std::vector<Candidate> all;
  for (const Tile& tile : kTiles) {
    const double tiles = static_cast<double>(problem.batch) *
                         static_cast<double>(ceil_div(problem.shape.m, tile.block_m)) *
                         static_cast<double>(ceil_div(problem.shape.n, tile.block_n));
    if (tiles > static_cast<double>(kMaxBlocks)) continue;  // 128x128 has fewer
    for (const Partition& partition : partitions_of(tile, problem, device)) {
      all.push_back(candidate(tile, partition, problem, device));
    }
  }
  return all;
}

Status setup() {
  for (const int columns : {64, 128}) {
    for (const int along : {0, 1, 2, 3}) {
      Status status =
          with_config(columns, along / 2 == 1, along % 2 == 1, []<typename Config>(Config) {
            return device::allow_shared_memory(multiply<Config>, sizeof(GemmStorage<Config>));
          });
      if (!status.ok()) return status;
    }
  }
  return {};
}

constexpr std::int64_t kTileSizes[] = {4, 8, 16, 32, 64, 128};

extern const Stage stage;
const Stage stage = {
    .name = "Bf16x6",
    .idea = "products of BF16 planes, split inside the GEMM: any operands, no pass over them",
    .requirements = {.compute_capability = 90, .no_later = true, .not_on_simt = {}},
    .math = Math::fp32_split,
    .takes_transposed = true,
    .takes_batches = true,
    .tile_sizes = kTileSizes,
    .candidates = candidates,
    .setup = setup};

}  // namespace tilegate::bf16x6
