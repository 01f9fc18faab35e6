// What planted stages are made with.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::faults {

inline constexpr int kTile = 16;  // rows and columns of C
using Grid = TileGrid<kTile, kTile>;
inline constexpr std::int64_t kTileSizes[] = {kTile};

template <Status (*kEnqueue)(const KernelArgs& args, Stream stream)>
Choice choose(const Problem& problem, const Device& /*device*/) {
  return serial_choice<Grid>(problem, kEnqueue);
}

constexpr Stage make_stage(std::string_view name, std::span<const std::int64_t> tile_sizes,
                           Choice (*choose)(const Problem& problem, const Device& device)) {
  return {.name = name, .idea = "a planted fault", .tile_sizes = tile_sizes, .choose = choose};
}

// A stage around `kEnqueue`, that sums serially.
template <Status (*kEnqueue)(const KernelArgs& args, Stream stream)>
constexpr Stage make_stage(std::string_view name) {
  return make_stage(name, kTileSizes, choose<kEnqueue>);
}

}  // namespace tilegate::faults
