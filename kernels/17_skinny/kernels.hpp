// The kernels that are compiled, and what they take on a device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <tilegate/common/instruction_order.cuh>
#include <tilegate/device.hpp>

#include "skinny.cuh"

namespace tilegate::skinny {

// What a block computes of C, and how much of k it takes at a time; see Config.
struct Tile {
  int s, x, k;
  int lanes_s = 1;
  int blocks_per_sm = 1;
};

// Few, because within a few per cent most do as well (README.md). Up to 16 the big operand's part
// of a k tile must be large, 16 or 32 KiB; from 24 on results per thread count, 8×12 and 8×16. The
// narrow ones are for an x that has too few tiles.
inline constexpr std::array kTiles = {
    Tile{.s = 1, .x = 32, .k = 128},
    Tile{.s = 4, .x = 64, .k = 64},
    Tile{.s = 8, .x = 128, .k = 64},
    Tile{.s = 16, .x = 64, .k = 64, .blocks_per_sm = 2},
    Tile{.s = 16, .x = 128, .k = 64},
    Tile{.s = 24, .x = 128, .k = 64, .lanes_s = 2},
    Tile{.s = 32, .x = 64, .k = 64, .lanes_s = 2, .blocks_per_sm = 2},
    Tile{.s = 32, .x = 128, .k = 64, .lanes_s = 2},
};
using AllTiles = std::make_index_sequence<kTiles.size()>;
// For a big operand that does not consist of vectors: 4×64, 16×64, 24×128 and 32×128.
using WordTiles = std::index_sequence<1, 3, 5, 7>;
inline constexpr std::array<std::int64_t, 7> kTileSizes = {4, 8, 16, 24, 32, 64, 128};

// Of shared memory, per FFMA of a warp: a lane's vectors of the big operand are its own, those of
// the small one are shared and take two wavefronts each.
constexpr double wavefronts(const Tile& tile) {
  const double thread_x = tile.x * tile.lanes_s / 32.0,
               thread_s = double{1} * tile.s / tile.lanes_s;
  const double small = thread_s < 4 ? 1.0 : thread_s / 2;
  return (thread_x / tile.lanes_s + small) / (thread_x * thread_s);
}

// A tile for one form of the big operand.
struct Kernel {
  Tile tile;
  Along along;
  bool vector;
  void (*run)(Task);
  std::size_t (*shared_bytes)(int depth);
};

template <std::size_t kIndex, Along kAlong, bool kVector>
constexpr Kernel kernel() {
  constexpr const Tile& kTile = kTiles[kIndex];
  using C = Config<kTile.s, kTile.x, kTile.k, kTile.lanes_s, kTile.blocks_per_sm, kAlong, kVector>;
  // Below four there is nothing to order: the loop waits for memory.
  using Order = std::conditional_t<(kTile.s < 4), CompilerOrder, SourceOrder>;
  return {kTile, kAlong, kVector, multiply<C, Order>, shared_bytes<C>};
}

template <std::size_t... kIndex, std::size_t... kWordIndex>
constexpr auto all_kernels(std::index_sequence<kIndex...> /*of kTiles*/,
                           std::index_sequence<kWordIndex...> /*of kTiles*/) {
  return std::array{kernel<kIndex, Along::kX, true>()..., kernel<kIndex, Along::kK, true>()...,
                    kernel<kWordIndex, Along::kX, false>()...,
                    kernel<kWordIndex, Along::kK, false>()...};
}
inline constexpr auto kKernels = all_kernels(AllTiles{}, WordTiles{});

// What the blocks of a multiprocessor have together (CUDA C++ Programming Guide, technical
// specifications per compute capability). The CPU device has as much as 9.0.
constexpr std::size_t shared_memory_per_sm(const Device& device) {
  const int capability = device.is_cuda ? device.compute_capability : 90;
  if (capability == 80 || capability == 87) return std::size_t{164} << 10;
  return (capability >= 90 && capability < 120 ? std::size_t{228} : std::size_t{100}) << 10;
}
inline constexpr std::size_t kReservedPerBlock = std::size_t{1} << 10;

// As many k tiles as fit beside the other blocks of the multiprocessor; at least two, even if that
// leaves room for fewer blocks.
constexpr int ring_depth(const Kernel& kernel, const Device& device) {
  const std::size_t room =
      shared_memory_per_sm(device) / kernel.tile.blocks_per_sm - kReservedPerBlock;
  int depth = kMaxDepth;
  while (depth > kMinDepth && kernel.shared_bytes(depth) > room) --depth;
  return depth;
}

}  // namespace tilegate::skinny
