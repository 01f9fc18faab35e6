// What Skinny expects one of its configurations to take.
//
// The constants are a fit to 257 measurements of its predecessors (tiles, depths and splits of this
// kernel on 34 problems with min(M, N) <= 32, NVIDIA H200, driver 580.159.04, CUDA 13.0, operands
// warm): half of the predictions are within 8 % of the measurement, nine in ten within 27 %; from
// 20 microseconds on within 6 % and 15 %. Rates are per multiprocessor and stand for those of other
// GPUs too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <tilegate/common/grid.cuh>
#include <tilegate/device.hpp>
#include <tilegate/stage.hpp>

#include "config.cuh"

namespace tilegate::skinny {

// One launch of the first kernel, as far as its time depends on it.
struct Work {
  double bytes;              // of all operands
  std::int64_t blocks;       // of the grid
  std::int64_t block_tiles;  // k tiles of the block with most of them
  double tile_bytes;         // of the big operand, in a k tile
  double tile_ffma;          // FFMA of warps, in a k tile
  double results;            // elements of C in a tile
  double wavefronts;         // of shared memory, per FFMA of a warp
  int blocks_per_sm;
  int splits;
  Along along;
  bool vector;  // the big operand is copied 16 bytes at a time
};

// The second kernel: its start, and what each split adds. The predecessors' kernel added the splits
// one after another, 43 ns each; here eight warps share them.
inline double add_seconds(int splits) { return splits == 1 ? 0.0 : 1.1e-6 + 0.043e-6 / 8 * splits; }

inline Candidate predicted(Choice choice, const Work& work, const Device& device) {
  const double memory_rate = work.along == Along::kX ? 32.9e9 : 28.7e9;  // 4.34, 3.79 TB/s
  const double copy_rate = work.vector ? 33.5e9 : 31e9;  // the most of one multiprocessor
  constexpr double kWordIssueRate = 58.5e9;  // of copies of single words, while no FFMA is issued
  constexpr double kClock = 1.98e9;
  constexpr double kStart = 2.1e-6;  // of the kernel
  constexpr double kRound = 2.3e-6;  // to fill a ring and to add and store the sums
  // Short problems in the smallest tiles take less than both: 34 later measurements.
  constexpr double kShort = 6e-6, kShortSaves = 3.05e-6;
  constexpr double kSmallestTile = 16 * 64;

  const int multiprocessors = std::max(device.multiprocessors, 1);
  const auto busiest = static_cast<double>(ceil_div(work.blocks, multiprocessors));
  const auto rounds = static_cast<double>(
      ceil_div(work.blocks, std::int64_t{multiprocessors} * work.blocks_per_sm));
  const double tiles = busiest * static_cast<double>(work.block_tiles);
  // Cycles per FFMA of a warp; 0.25 is the least.
  const double multiply = tiles * work.tile_ffma * (0.30 + 0.63 * work.wavefronts) / kClock;
  const double issue = work.vector ? 0.0 : tiles * work.tile_bytes / kWordIssueRate;
  const double main_loop = std::max({work.bytes / (memory_rate * multiprocessors),
                                     tiles * work.tile_bytes / copy_rate, multiply + issue});
  const bool is_short = work.results <= kSmallestTile && main_loop < kShort;
  const double seconds = kStart + rounds * kRound + main_loop + add_seconds(work.splits) -
                         (is_short ? kShortSaves : 0.0);
  const double places = static_cast<double>(multiprocessors) * work.blocks_per_sm;
  const Parts parts{.rounds = static_cast<double>(work.blocks) / places,
                    .multiply = multiply + issue,
                    .move = work.bytes / (memory_rate * multiprocessors),
                    .add = add_seconds(work.splits)};
  return {std::move(choice), seconds, parts};
}

}  // namespace tilegate::skinny
