#include <cmath>

#include <tilegate/device/plain.cuh>

#include "split_k.cuh"

namespace tilegate::plain_split_k {

void run(const plain::Call& p) {
  const int parts = std::isfinite(p.alpha) ? 3 : 1;  // Inf times parts may be NaN
  const dim3 grid((p.n + 31) / 32, (p.m + 3) / 4, parts);
  sgemm_split_k<<<grid, dim3(32, 4), 0, p.stream>>>(p.m, p.n, p.k, p.alpha, p.a, p.b, p.c);
}

extern const Stage stage;
const Stage stage{
    .name = "PlainSplitK",
    .restrictions = {.most_m = 65535 * 4,
                     .dense = true,
                     .int_indices = true,
                     .not_repeatable = "atomicAdd adds in any order"},
    .tile_sizes = plain::kTiles<4, 32>,
    .choose = plain::choose<run, plain::kAddsToC, 3>,  // the sum with C three times, beta·C
};
}  // namespace tilegate::plain_split_k
