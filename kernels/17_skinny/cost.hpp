// What Skinny expects one of its configurations to take.
//
// The constants are a fit to 507 measurements of its predecessors (tiles, depths and splits of this
// kernel on 36 problems with min(M, N) <= 32, NVIDIA H200, driver 580.159.04, CUDA 13.0, operands
// warm): half of the predictions are within 5 % of the measurement, nine in ten within 30 %. Rates
// are per multiprocessor and stand for those of other GPUs too.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/device.hpp>

#include "config.cuh"

namespace tilegate::skinny {

// One launch of the first kernel, as far as its time depends on it.
struct Work {
  double bytes;              // of all operands
  std::int64_t blocks;       // of the grid
  std::int64_t block_tiles;  // k tiles of the block with most of them
  double tile_bytes;         // of the big operand, in a k tile
  double tile_fma;           // multiply-adds of a k tile
  int blocks_per_sm;
  int splits;
  Along along;
  bool vector;  // the big operand is copied 16 bytes at a time
};

// The second kernel: its start, and what each split adds. The prototypes' kernel added the splits
// one after another, 43 ns each; here eight warps share them.
inline double add_seconds(int splits) { return splits == 1 ? 0.0 : 1.1e-6 + 0.043e-6 / 8 * splits; }

inline double seconds(const Work& work, const Device& device) {
  const bool along_x = work.along == Along::kX;
  const double memory_rate = along_x ? 32.9e9 : 28.1e9;  // of device memory: 4.34, 3.71 TB/s
  const double vector_rate = 50e9;  // of copies, where a multiprocessor has more than its share
  const double word_rate = along_x ? 28e9 : 23e9;
  const double fma_rate = (along_x ? 0.50 : 0.41) * 128 * 1.98e9;
  constexpr double kStart = 1.0e-6;  // of the kernel
  constexpr double kRound = 1.4e-6;  // to fill a ring and to add and store the sums

  const int multiprocessors = std::max(device.multiprocessors, 1);
  const auto busiest = static_cast<double>(ceil_div(work.blocks, multiprocessors));
  const auto rounds = static_cast<double>(
      ceil_div(work.blocks, std::int64_t{multiprocessors} * work.blocks_per_sm));
  const double tiles = busiest * static_cast<double>(work.block_tiles);
  const double main_loop =
      std::max({work.bytes / (memory_rate * multiprocessors),
                tiles * work.tile_bytes / (work.vector ? vector_rate : word_rate),
                tiles * work.tile_fma / fma_rate});
  return kStart + rounds * kRound + main_loop + add_seconds(work.splits);
}

}  // namespace tilegate::skinny
