// How all blocks of the second kernel come to the same decision.
#pragma once

#include <tilegate/device/device.cuh>

#include "decision.cuh"
#include "multiply_args.cuh"

namespace tilegate::int8x3 {

// By kThreads threads, who `meet` once: the widths are added in a fixed order.
template <int kThreads, typename Meet>
__device__ Path agree(const MultiplyArgs& more, float (&sums)[kThreads / 32][2], Meet meet) {
  const unsigned thread = threadIdx.x;
  float sum_a = 0.0F, sum_b = 0.0F;
  for (unsigned i = thread; i < more.widths_a; i += kThreads) sum_a += more.widths[i];
  for (unsigned i = thread; i < more.widths_b; i += kThreads) {
    sum_b += more.widths[more.widths_a + i];
  }
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    sum_a += __shfl_xor_sync(~0U, sum_a, lanes);
    sum_b += __shfl_xor_sync(~0U, sum_b, lanes);
  }
  if (thread % 32 == 0) {
    sums[thread / 32][0] = sum_a;
    sums[thread / 32][1] = sum_b;
  }
  meet();  // all warps have added theirs
  sum_a = sum_b = 0.0F;
  for (int warp = 0; warp < kThreads / 32; ++warp) {
    sum_a += sums[warp][0];
    sum_b += sums[warp][1];
  }
  return decide(sum_a / more.rows_a, sum_b / more.rows_b, more.summed, more.least);
}

}  // namespace tilegate::int8x3
