// The FP32 fallback of rungs that split operands, rounding by rounding: each product and each sum
// is the float nearest to the exact one.
//
// A block sums runs of products one after another, and adds each run but its last to a total. What
// that addition rounds away goes to the next run. With split-K the block of the last part adds the
// sums of the others as runs, the nearest first.
#pragma once

#include <cstdint>
#include <vector>

#include "models/rows.hpp"

namespace tilegate::models::fp32 {

// How the products of an element are summed: runs of `run` products; `part`: K of a block, or 0
// where one block sums all.
struct Summation {
  std::int64_t run = 32, part = 0;
};

// Without split-K: runs of 4 where K is small and C has few tiles of 128×128; else of the largest
// power of two from 32 to 256 that is at most a quarter of cuBLAS's sums, which have `summed`
// products.
Summation whole(std::int64_t k, std::int64_t tiles, double summed);
// With `blocks` blocks for `tiles` tiles: the parts of K that take the least time. The parts of a
// tile are computed at a time, so many tiles in a wave as the blocks have room for. A wave takes
// the k of a part, 32 more, and 12 for each part but the last. At least 64 k of a part before it is
// rounded up to a multiple of 32; at most 32 parts and four waves.
Summation split(std::int64_t k, std::int64_t tiles, std::int64_t blocks, double summed);

// C, row by row.
std::vector<float> product(const Rows& a, const Rows& b, const Summation& summation,
                           const Epilogue& epilogue = {});

}  // namespace tilegate::models::fp32
