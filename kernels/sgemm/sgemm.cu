// Sgemm: the tile that suits the problem.
//
// A C of 1024×1024 has 64 tiles of 128×128, for 132 multiprocessors, and 128 of 128×64. Three sizes
// of InstructionOrder's kernel are compiled; the plan takes the one it expects to be done first.
#include <algorithm>

#include <tilegate/common/instruction_order.cuh>
#include <tilegate/common/warp_tiles.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::sgemm {

struct Tiles128x64 {
  static constexpr int kBlockM = 128, kBlockN = 64, kBlockK = 8;
  static constexpr int kWarpM = 64, kWarpN = 32;
  static constexpr int kBlocksPerSm = 4;
  static constexpr bool kDealtLanes = true;
};

struct Tiles32x64 {
  static constexpr int kBlockM = 32, kBlockN = 64, kBlockK = 16;
  static constexpr int kWarpM = 32, kWarpN = 16;
  static constexpr int kBlocksPerSm = 6;
  static constexpr bool kDealtLanes = true;
};

template <typename Config, bool kVector, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args) {
  double_buffered::multiply_block<Config, kVector>(args);
}

template <typename Config, typename Order>
Choice choose_kernel(const Problem& problem) {
  return double_buffered::choose<Config>("sgemm", problem, sgemm<Config, true, Order>,
                                         sgemm<Config, false, Order>);
}

// A tile and its throughput where it fills the device, relative to the best one: NVIDIA H200,
// 4096³.
struct Candidate {
  const char* name;
  Choice (*choose)(const Problem& problem);
  std::int64_t (*num_blocks)(const Shape& shape);
  double elements;  // of C
  double throughput;
};

template <typename Tiles, typename Order>
constexpr Candidate candidate(const char* name, double throughput) {
  using Config = WarpTiles<Tiles>;
  return {name, choose_kernel<Config, Order>, Config::Grid::num_blocks,
          double{Config::kBlockM} * Config::kBlockN, throughput};
}

constexpr Candidate kCandidates[] = {
    candidate<Tiles128x128, SourceOrder>("128x128", 1.0),
    candidate<Tiles128x64, SourceOrder>("128x64", 0.95),
    candidate<Tiles32x64, CompilerOrder>("32x64", 0.68),  // no register to spare for SourceOrder
};

// About the share of its throughput that a block has while it is alone on its multiprocessor.
constexpr double kAlone = 0.88;

// The candidate whose busiest multiprocessor is done first.
Choice choose(const Problem& problem, const Device& device) {
  const auto time = [&](const Candidate& c) {
    const auto rounds = ceil_div(c.num_blocks(problem.shape), device.multiprocessors);
    return std::max(static_cast<double>(rounds), 1.0 / kAlone) * c.elements / c.throughput;
  };
  const Candidate& best = *std::ranges::min_element(kCandidates, {}, time);
  Choice choice = best.choose(problem);
  choice.configuration = best.name;
  return choice;
}

extern const Stage stage;
const Stage stage{
    .name = "Sgemm",
    .idea = "the tile that suits the problem",
    .tile_sizes = kWarpTileSizes<Tiles128x128, Tiles128x64, Tiles32x64>,
    .choose = choose,
};

}  // namespace tilegate::sgemm
