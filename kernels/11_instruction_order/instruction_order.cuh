// InstructionOrder: machine code in the order of the source.
//
// New against Warptile: only a word in the kernel's symbol, with which ptxas keeps the order of the
// source. There neighbouring FFMA share an operand (common/fragment.cuh), which the register reuse
// cache supplies. What limits it now: one instruction in eight is not FFMA, and the number of tiles
// is no multiple of the number of multiprocessors.
#pragma once

#include <tilegate/common/instruction_order.cuh>
#include <tilegate/common/warp_tiles.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::instruction_order {

// idea:begin InstructionOrder
// `Order` becomes part of the symbol.
template <typename Config, bool kVector, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args) {
  double_buffered::multiply_block<Config, kVector>(args);
}
// idea:end

template <typename Tiles>
Choice choose(const Problem& problem, const Device& /*device*/) {
  using Config = WarpTiles<Tiles>;
  return double_buffered::choose<Config>("instruction_order", problem,
                                         sgemm<Config, true, SourceOrder>,
                                         sgemm<Config, false, SourceOrder>);
}

template <typename Tiles>
constexpr Stage make_stage(std::string_view name) {
  return {.name = name,
          .idea = "FFMA stay in the order in which they share operands",
          .tile_sizes = kWarpTileSizes<Tiles>,
          .choose = choose<Tiles>};
}

}  // namespace tilegate::instruction_order
