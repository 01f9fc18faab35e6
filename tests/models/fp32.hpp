// The FP32 fallback of rungs that split operands, rounding by rounding: each product and each sum
// is the float nearest to the exact one.
//
// A block sums runs of products one after another, and adds each run but its last to a total. What
// that addition rounds away goes to the next run.
#pragma once

#include <cstdint>
#include <vector>

#include "models/rows.hpp"

namespace tilegate::models::fp32 {

// The products of a run: 4 where K is small and C has few tiles of 128×128; else the largest power
// of two from 32 to 256 that is at most a quarter of cuBLAS's sums, which have `summed` products.
std::int64_t run_of(std::int64_t k, std::int64_t tiles, double summed);

// C, row by row.
std::vector<float> product(const Rows& a, const Rows& b, std::int64_t run,
                           const Epilogue& epilogue = {});

}  // namespace tilegate::models::fp32
