// Warptile: a hierarchy of block, warp, sub-warp and thread tiles (common/warp_tiles.cuh).
//
// New against Prefetch: a warp tile is 64×32, not 16×128, so that a warp reads 96 different words
// of shared memory per k step, not 144. Padding, row-major lane layout and main loop are
// Prefetch's. What limits it now: the compiler's order of the FFMA.
#pragma once

#include <tilegate/common/warp_tiles.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::warptile {

template <typename Config, bool kVector>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args) {
  double_buffered::multiply_block<Config, kVector>(args);
}

template <typename Tiles>
Choice choose(const Problem& problem, const Device& /*device*/) {
  using Config = WarpTiles<Tiles>;
  return double_buffered::choose<Config>("warptile", problem, sgemm<Config, true>,
                                         sgemm<Config, false>);
}

template <typename Tiles>
constexpr Stage make_stage(std::string_view name) {
  return {.name = name,
          .idea = "block, warp, sub-warp and thread tiles",
          .tile_sizes = kWarpTileSizes<Tiles>,
          .choose = choose<Tiles>};
}

}  // namespace tilegate::warptile
