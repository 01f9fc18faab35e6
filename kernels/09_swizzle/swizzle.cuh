// Swizzle: shared memory without padding and without bank conflicts.
//
// New against Prefetch, two ideas: an XOR swizzle instead of padding: the column of A's transposed
// tile is XORed with a function of k, so that the scattered stores of a warp go to 32 different
// banks (Swizzle.stores_only has only this one); and a permuted lane layout, with which every
// 128-bit load takes two wavefronts, the minimum. What limits it now: issue slots; one instruction
// in seven is not FFMA.
#pragma once

#include <tilegate/common/double_buffered.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::swizzle {

struct Tiles {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 8;
  static constexpr int kFragmentM = 8, kFragmentN = 8;  // results per thread: two vectors each way
  static constexpr int kStepM = kBlockM / 2, kStepN = kBlockN / 2;  // from one vector to the other
  static constexpr int kNumThreads = kBlockM / kFragmentM * (kBlockN / kFragmentN);
  static constexpr int kBlocksPerSm = 2;
  static constexpr int kPad = 0;
  // idea:begin Swizzle
  // A row of A in a tile is kBlockK / 4 vectors. With this many words between their columns, the
  // stores of a warp go to different banks.
  static constexpr int kSwizzleWords = 128 / kBlockK;
  // idea:end
  static_assert(kSwizzleWords % 4 == 0, "the swizzle would tear 128-bit loads apart");
  static_assert(kBlockM % 32 == 0, "the swizzle permutes words within groups of 32");
  static_assert(kFragmentM == 8 && kFragmentN == 8, "fragments are two vectors, half a tile apart");

  using Grid = TileGrid<kBlockM, kBlockN>;

  // idea:begin Swizzle
  // Column of A's element (m, k) in row k of the transposed tile.
  static __device__ int column(int m, int k) { return m ^ (k / 4 * kSwizzleWords); }
  // idea:end
};

struct DealtLanes : Tiles {
  // Permuted lane layout. A warp is 2×16 threads; lanes l and l ^ 1 share rows, l and l ^ 2 share
  // columns, so that a wavefront serves half a warp.
  static __device__ double_buffered::Position position() {
    const int thread = static_cast<int>(threadIdx.x);
    return {(thread / 32 * 2 + (thread >> 1 & 1)) * 4, ((thread & 1) | (thread >> 2 & 7) << 1) * 4};
  }
};

// `Order` becomes part of the symbol; see common/instruction_order.cuh.
template <typename Config, bool kVector, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args) {
  double_buffered::multiply_block<Config, kVector>(args);
}

template <typename Config, typename Order>
Choice choose(const Problem& problem, const Device& /*device*/) {
  return double_buffered::choose<Config>("swizzle", problem, sgemm<Config, true, Order>,
                                         sgemm<Config, false, Order>);
}

constexpr std::int64_t kTileSizes[] = {4, Tiles::kBlockK, Tiles::kStepM, Tiles::kBlockM};

template <typename Config, typename Order>
constexpr Stage make_stage(std::string_view name) {
  return {.name = name,
          .idea = "XOR-swizzled shared memory: no padding, no bank conflicts",
          .tile_sizes = kTileSizes,
          .choose = choose<Config, Order>};
}

}  // namespace tilegate::swizzle
