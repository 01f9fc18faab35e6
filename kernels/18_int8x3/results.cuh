// The end of a tile: the three sums of each element become FP32, and are stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/store_pair.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "digits.cuh"
#include "multiply_args.cuh"

namespace tilegate::int8x3 {

// Each thread of a warpgroup fetches its share of the steps before the multiplications and passes
// it on after them: loads between the stores of results would wait for memory again and again.
template <typename T>
struct StepShare {
  float row = 0.0F, col = 0.0F;

  __device__ StepShare(const MultiplyArgs& more, const TileOrder::Tile& tile, int warpgroup,
                       int thread) {
    const float* rows = more.steps_a + more.a.own(tile.product) * more.a.rows() +
                        std::int64_t{tile.row} * kBlockM + warpgroup * (kBlockM / 2);
    const std::int64_t first_col = std::int64_t{tile.col} * T::kBlockN;
    const float* cols = more.steps_b + more.b.own(tile.product) * more.b.rows() +
                        more.b.inside(first_col / kChunkRows) * kChunkRows + first_col % kChunkRows;
    if (thread < kBlockM / 2) row = rows[thread];
    if (thread < T::kBlockN) col = cols[thread];
  }

  __device__ void pass_on(Steps& steps, int warpgroup, int thread) const {
    meet(warpgroup);  // the steps of the tile before have been read
    if (thread < kBlockM / 2) steps.row[thread] = row;
    if (thread < T::kBlockN) steps.col[thread] = col;
    meet(warpgroup);  // these are there
  }

  // Of the threads of a warpgroup.
  static __device__ void meet(int warpgroup) {
    if (warpgroup == 0) {
      device::named_barrier<2>(kWarpgroup);
    } else {
      device::named_barrier<3>(kWarpgroup);
    }
  }
};

// The result whose sums have that index, unscaled.
template <typename T>
__device__ float fold_result(const std::int32_t (&acc)[T::kLevels][T::kBlockN / 2], int index) {
  std::int32_t level[T::kLevels];
#pragma unroll
  for (int i = 0; i < T::kLevels; ++i) level[i] = acc[i][index];
  return fold(level);
}

// A warpgroup's results, or 16 rows of a warp's: thread t has pairs of columns of the rows t / 4
// and t / 4 + 8 of each 16. `row`: of C, the first of theirs; `step_rows`, `step_cols`: of these
// rows and columns.
template <typename T>
__device__ void store_results(const KernelArgs& args, bool pairs, std::int64_t row,
                              std::int64_t col, int thread, const float* step_rows,
                              const float* step_cols,
                              std::int32_t (&acc)[T::kLevels][T::kBlockN / 2]) {
  const int in_row = thread / 32 * 16 + thread % 32 / 4, in_col = thread % 4 * 2;
  const std::int64_t left = args.shape.n - col - in_col;
  const int cols = left < T::kBlockN ? static_cast<int>(left) : T::kBlockN;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (row + in_row + 8 * half >= args.shape.m) continue;
    float* c = args.c + (row + in_row + 8 * half) * args.ldc + col + in_col;
    const float step_row = step_rows[in_row + 8 * half];
#pragma unroll
    for (int group = 0; group < T::kBlockN / 8; ++group) {
      float sum[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        sum[i] = fold_result<T>(acc, 4 * group + 2 * half + i) *
                 (step_row * step_cols[8 * group + in_col + i]);
      }
      if (8 * group >= cols) continue;
      if (pairs) {
        store_pair(args, c + 8 * group, sum[0], sum[1]);
      } else {
        store(args, c + 8 * group, sum[0]);
        if (8 * group + 1 < cols) store(args, c + 8 * group + 1, sum[1]);
      }
    }
  }
}

}  // namespace tilegate::int8x3
