// Bf16x6: FP32 accuracy from BF16 tensor cores, without a pass over the operands.
//
// New against Fp16x3: the GEMM splits tiles as it loads them (gemm_sm90.cuh), so that there is no
// pass over the operands, and no workspace for their parts. A sample of a tile's rows decides
// (sample.cuh). Ordinary elements are sums of two FP16 numbers with a scale per tile, three
// products. Others are sums of three BF16 numbers, which hold all 24 bits and exponents of a float,
// six products. Where neither is as accurate as FP32, the tile is multiplied in FP64. What limits
// it: shared memory, for a C of few rows or columns memory bandwidth, for small problems the ends
// of a tile. Needs compute capability 9.0, no later one.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/operand_map.hpp>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "gemm_sm90.cuh"
#include "sample.cuh"

namespace tilegate::bf16x6 {

constexpr std::int64_t kMaxKSplits = 64;  // per tile

constexpr std::int64_t kLeastK = 128;  // for smaller K FP32 is more accurate
static_assert(kLeastK > (kLeastKTiles - 1) * kBlockK);

// A tile of C.
struct Tile {
  const char* name;
  int columns;  // of the accumulators
  bool is_transposed;
  int block_m, block_n;
  // Expected for a k tile: by halves, with copies of words instead of boxes, in FP64.
  double k_tile_seconds, words_k_tile_seconds, fp64_k_tile_seconds;
};
constexpr Tile kTiles[] = {
    {"128x128", 128, false, kRowsOfX, 128, 0.79e-6, 1.3e-6, 2.37e-6},
    {"128x64", 64, false, kRowsOfX, 64, 0.545e-6, 0.95e-6, 1.27e-6},
    {"64x128", 64, true, 64, kRowsOfX, 0.55e-6, 1.0e-6, 1.3e-6},
};

// How the tiles are divided among blocks: the first `whole` are not split, the others into
// `k_splits` splits each.
struct Partition {
  std::int64_t tiles, k_tiles, whole, k_splits;

  std::int64_t split_tiles() const { return tiles - whole; }
  std::int64_t work() const { return whole + split_tiles() * k_splits; }
  std::int64_t longest_split() const { return ceil_div(k_tiles, k_splits); }  // in k tiles
};

inline std::size_t partial_bytes(const Tile& tile, const Partition& partition) {
  if (partition.split_tiles() == 0) return 0;
  return sizeof(float) * static_cast<std::size_t>(partition.split_tiles() * partition.k_splits) *
         static_cast<std::size_t>(tile.block_m * tile.block_n);
}

// Whether TMA copies the operands.
bool copies_boxes(const Problem& problem) {
  return allows_boxes(problem, Operand::kA) && allows_boxes(problem, Operand::kB);
}

std::string name_of(const Tile& tile, const Partition& partition) {
  if (partition.split_tiles() == 0) return tile.name;
  return tile.name + std::string(partition.whole == 0 ? "_split" : "_tail") +
         std::to_string(partition.k_splits);
}

// K tiles of a sum, of those of a work tile: about as many as the sums, so that the chain of
// additions is shortest.
std::int64_t k_tiles_of_sum(std::int64_t k_tiles) {
  return static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(k_tiles))));
}

// Expected seconds; how they were found is in EXPERIMENTS.md.
double seconds(const Tile& tile, const Partition& partition, const Problem& problem,
               const Device& device, bool in_fp64) {
  constexpr double kLaunch = 3.5e-6, kReduction = 3.1e-6;  // of each kernel
  constexpr double kSplitSeconds = 0.1e-6;                 // of the reduction, for each split
  constexpr double kTileSeconds = 2.8e-6;                  // both ends of a tile
  constexpr double kWords = 2e-6;                          // more until the first have arrived
  constexpr double kWordsOfC = 1.5e-6;                     // per tile that is not split
  constexpr double kBandwidth = 2.85e12;  // of memory, while all multiprocessors multiply tiles
  const double k_tile_seconds = in_fp64                 ? tile.fp64_k_tile_seconds
                                : copies_boxes(problem) ? tile.k_tile_seconds
                                                        : tile.words_k_tile_seconds;
  const auto waves = [&](std::int64_t work) {
    return static_cast<double>(ceil_div(work, device.multiprocessors));
  };
  const std::int64_t splits = partition.split_tiles() * partition.k_splits;
  const double k_tiles = waves(partition.whole) * static_cast<double>(partition.k_tiles) +
                         waves(splits) * static_cast<double>(partition.longest_split());
  const double words_of_c = allows_float2_of_c(problem) ? 0.0 : kWordsOfC;
  const double ends =
      waves(partition.whole) * (kTileSeconds + words_of_c) + waves(splits) * kTileSeconds;
  const auto [m, n, k] = problem.shape;
  const double bytes = sizeof(float) * static_cast<double>(problem.batch) *
                       (static_cast<double>(m + n) * static_cast<double>(k) +
                        static_cast<double>(m) * static_cast<double>(n));
  const double reduction =
      splits == 0
          ? 0.0
          : kReduction + kSplitSeconds * static_cast<double>(partition.k_splits) +
                2.0 * static_cast<double>(partial_bytes(tile, partition)) / cost::kPartialBandwidth;
  const double busy = std::min(static_cast<double>(partition.work()) / device.multiprocessors, 1.0);
  const double multiply = k_tiles * k_tile_seconds, move = bytes / (busy * kBandwidth);
  return kLaunch + (copies_boxes(problem) ? 0.0 : kWords) + ends + std::max(multiply, move) +
         cost::kNotHidden * std::min(multiply, move) + reduction;
}

// No splits; all tiles split; and those of the last wave. Of each with splits the fastest by halves
// and the fastest in FP64, as Sgemm limits the time in FP64.
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
    std::vector<Partition> splits;
    for (std::int64_t k_splits = 2; k_splits <= most; ++k_splits) {
      splits.push_back({tiles, k_tiles, whole, k_splits});
    }
    if (splits.empty()) return;
    const auto fastest = [&](bool in_fp64) {
      return *std::ranges::min_element(splits, {}, [&](const Partition& partition) {
        return seconds(tile, partition, problem, device, in_fp64);
      });
    };
    const Partition by_halves = fastest(false), by_fp64 = fastest(true);
    partitions.push_back(by_halves);
    if (by_fp64.k_splits != by_halves.k_splits) partitions.push_back(by_fp64);
  };
  add_fastest(0);
  if (tiles > sms) add_fastest(tiles / sms * sms);
  return partitions;
}

// In units of 2^-24 relative to (|A||B|)ij. A wgmma truncates the accumulator and up to 16 products
// at 2^-25 of the largest, and the sum at 2^-23. A k tile has two wgmma of large products; all
// those of small products, which are 2^-7 of the large ones, count 1. With halves the product that
// is left out counts 4, and the rounding of a number 2; planes have less. Then come the additions
// of runs to a sum, of sums to a total, and of splits, alpha and beta, and what is given back.
std::int64_t rounding_chain(const Partition& partition) {
  constexpr std::int64_t kWgmma = kSlices * (2 + (kSliceK + 2) / 2), kGivenBack = 2;
  const auto additions = [](std::int64_t k_tiles) {
    const std::int64_t of_sum = k_tiles_of_sum(k_tiles);
    return of_sum + ceil_div(k_tiles, of_sum);
  };
  std::int64_t of_whole = 0, of_split = 0;
  if (partition.whole > 0) of_whole = additions(partition.k_tiles);
  if (partition.split_tiles() > 0) {
    of_split = additions(partition.longest_split()) + reduction_chain(partition.k_splits);
  }
  return kWgmma + 1 + 8 + std::max(of_whole, of_split) + kGivenBack + 2;
}

// Error of halves relative to the largest element of a row of op(A) times that of a column of
// op(B), twice: halves are multiples of 2^-24, a tile's largest element is at least 2^kScaled, and
// the largest of a row and of a column are at most 2^kMostBelowTile below those of the tile.
constexpr double kOperandError = 0x1p-24 * (1 << static_cast<int>(kMostBelowTile)) / (1 << kScaled);

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
          .boxes = copies_boxes(problem),
          .float2_c = allows_float2_of_c(problem),
          .sum_k_tiles = static_cast<int>(k_tiles_of_sum(partition.k_tiles)),
          .sum_k_tiles_of_split = static_cast<int>(k_tiles_of_sum(partition.longest_split()))};
}

std::vector<PlannedKernel> planned_kernels(const Tile& tile, const Partition& partition,
                                           const Problem& problem, const Device& device) {
  const std::int64_t blocks = std::min<std::int64_t>(partition.work(), device.multiprocessors);
  const std::int64_t of_block = ceil_div(partition.work(), blocks);
  const std::int64_t k_tiles = partition.longest_split();
  const int stages = tile.columns == 128 ? Config<128, true, true>::kStagesOfX
                                         : Config<64, true, true>::kStagesOfX;
  const auto layout = [&](Operand operand) {
    return is_along_k(problem, operand) ? "along k" : "along rows";
  };
  const GemmParams params = gemm_params(tile, partition, problem);
  const bool float2_c = params.float2_c && !tile.is_transposed;
  const std::string name = std::string(tile.name) + " a " + layout(Operand::kA) + ", b " +
                           layout(Operand::kB) + (params.boxes ? ", boxes" : ", words") +
                           (float2_c ? " to float2" : " to words");
  const std::vector parameters = {parameter::rows(tile.block_m),
                                  parameter::columns(tile.block_n),
                                  parameter::depth(kBlockK),
                                  parameter::count("work tiles of a block", of_block),
                                  parameter::ring("k tiles of a block", of_block * k_tiles, stages),
                                  parameter::count("splits", partition.k_splits)};
  std::vector by_planes = parameters;
  by_planes.push_back(parameter::tiles("k tiles of sums", k_tiles, params.sum_k_tiles_of_split));
  return {{.name = name + " of halves",
           .parameters = by_planes,
           .decision = static_cast<int>(Path::kThree)},
          {.name = name, .parameters = by_planes, .decision = static_cast<int>(Path::kSix)},
          {.name = name + " in FP64",
           .parameters = parameters,
           .decision = static_cast<int>(Path::kFp64)}};
}

// The tensor maps, without addresses.
Status make_maps(const Tile& tile, const Problem& problem, OperandMaps* maps) {
  if (!copies_boxes(problem)) return {};
  const bool x_is_a = !tile.is_transposed;
  const Operand of_x = x_is_a ? Operand::kA : Operand::kB,
                of_y = x_is_a ? Operand::kB : Operand::kA;
  device::TensorMap &x = x_is_a ? maps->a : maps->b, &y = x_is_a ? maps->b : maps->a;
  Status status = make_operand_map(problem, of_x, kBoxOfX, device::Swizzle::k128Bytes, &x);
  if (!status.ok()) return status;
  return with_config(tile.columns, true, is_along_k(problem, of_y), [&]<typename Config>(Config) {
    return make_operand_map(problem, of_y, box_of_y<Config>(), device::Swizzle::kNone, &y);
  });
}

// Bytes of the decisions, which the workspace begins with. The partial sums follow.
std::size_t decision_bytes(const Partition& partition) {
  return aligned(sizeof(std::int32_t) * static_cast<std::size_t>(partition.tiles));
}

Candidate candidate(const Tile& tile, const Partition& partition, const Problem& problem,
                    const Device& device) {
  const GemmParams params = gemm_params(tile, partition, problem);
  const bool a = is_along_k(problem, Operand::kA), b = is_along_k(problem, Operand::kB);
  const bool x = tile.is_transposed ? b : a, y = tile.is_transposed ? a : b;
  const std::int64_t blocks = std::min<std::int64_t>(partition.work(), device.multiprocessors);
  OperandMaps planned{};
  Status status = make_maps(tile, problem, &planned);
  const auto enqueue = [=](const KernelArgs& args, Stream stream) {
    auto* base = static_cast<std::byte*>(args.workspace);
    GemmParams placed = params;
    placed.decisions = reinterpret_cast<std::int32_t*>(base);
    KernelArgs sums = args;
    sums.workspace = base + decision_bytes(partition);
    OperandMaps maps = planned;
    if (params.boxes) {
      if (Status s = set_addresses(args, &maps); !s.ok()) return s;
    }
    const device::TensorMap &map_x = tile.is_transposed ? maps.b : maps.a,
                            &map_y = tile.is_transposed ? maps.a : maps.b;
    const auto launch = [&]<typename Config>(Config) {
      return device::launch({.kernel = "multiply",
                             .blocks = blocks,
                             .threads_x = kNumThreads,
                             .shared_bytes = sizeof(GemmStorage<Config>),
                             .overlaps_previous = true},
                            stream, multiply<Config>, sums, placed, map_x, map_y);
    };
    Status s = with_config(tile.columns, x, y, launch);
    if (!s.ok() || partition.split_tiles() == 0) return s;
    return split_sums::enqueue(sums, params.split_k, partition.split_tiles(),
                               {.previous = true, .next = true}, stream);
  };
  return {.choice = {.status = std::move(status),
                     .configuration = name_of(tile, partition),
                     .rounding_chain = rounding_chain(partition),
                     .operand_error = kOperandError,
                     .workspace_bytes = decision_bytes(partition) + partial_bytes(tile, partition),
                     .decides_on_device = true,
                     .enqueue = enqueue,
                     .kernels = [=] { return planned_kernels(tile, partition, problem, device); }},
          .seconds = seconds(tile, partition, problem, device, false),
          .fallback_seconds = seconds(tile, partition, problem, device, true)};
}

std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  constexpr double kNoSplitBlocks = 0.0;
  if (Status s = check_split_size(problem, kFp32Tile, kNoSplitBlocks); !s.ok()) {
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
    .idea = "products of FP16 halves or BF16 planes, split inside the GEMM: no pass over operands",
    .requirements = {.compute_capability = 90, .no_later = true, .not_on_simt = {}},
    .math = Math::fp32_split,
    .takes_transposed = true,
    .takes_batches = true,
    .tile_sizes = kTileSizes,
    .candidates = candidates,
    .setup = setup};

}  // namespace tilegate::bf16x6
