// Epilogue: scale by rows and columns, alpha and beta, store.
#pragma once

#include <cstdint>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "layout.cuh"

namespace tilegate::fp16x3 {

// Each consumer thread loads one dequantization step before the main loop, the first 128 those of
// rows, the others those of columns, and stores it to shared memory after it.
__device__ inline float fetch_step(const GemmParams& params, const TileCoord& tile, int consumer) {
  if (consumer < kBlockM) {
    return params.steps_a[params.a.own(tile.batch_index) * params.a.rows() +
                          std::int64_t{tile.row} * kBlockM + consumer];
  }
  return params.steps_b[params.b.own(tile.batch_index) * params.b.rows() +
                        std::int64_t{tile.col} * kBlockN + consumer - kBlockM];
}

__device__ inline void publish_step(float step, int consumer, Steps& steps) {
  device::named_barrier<1>(kConsumers);  // the previous tile's steps have been read
  (consumer < kBlockM ? steps.row[consumer] : steps.col[consumer - kBlockM]) = step;
  device::named_barrier<1>(kConsumers);  // these steps are stored before anyone reads them
}

// Stores the results of a warpgroup. In each 16 rows thread t has pairs of columns of rows t / 4
// and t / 4 + 8 (accumulator layout of wgmma). `args`: C of the tile's matrix; (row, col): the
// tile's first element.
__device__ inline void store_results(const KernelArgs& args, bool float2_c, std::int64_t row,
                                     std::int64_t col, int consumer, const Steps& steps,
                                     const float (&sums)[kBlockN / 2]) {
  const int in_row = consumer / 32 * 16 + consumer % 32 / 4, in_col = consumer % 4 * 2;
  const std::int64_t left = args.shape.n - col - in_col;
  const int cols = left < kBlockN ? static_cast<int>(left) : kBlockN;
#pragma unroll
  for (int row_8 = 0; row_8 < 2; ++row_8) {
    if (row + in_row + 8 * row_8 >= args.shape.m) continue;
    float* c = args.c + (row + in_row + 8 * row_8) * args.ldc + col + in_col;
    const float step_row = steps.row[in_row + 8 * row_8];
#pragma unroll
    for (int at = 0; at < kBlockN; at += 8) {
      if (at >= cols) continue;
      const float* sum = &sums[at / 2 + 2 * row_8];
      const float first = sum[0] * step_row * steps.col[in_col + at];
      const float second = sum[1] * step_row * steps.col[in_col + at + 1];
      if (float2_c) {
        store_float2(args, c + at, first, second);
      } else {
        store(args, c + at, first);
        if (at + 1 < cols) store(args, c + at + 1, second);
      }
    }
  }
}

}  // namespace tilegate::fp16x3
