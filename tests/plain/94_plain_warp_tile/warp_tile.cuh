// A warp per 4 columns of a row of C: its lanes share K, and add their sums by shuffles.
#pragma once

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

struct Strip {
  float b[32][5];  // a column more: lanes read down the columns
};

__device__ inline float add_lanes(float value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffff, value, offset);
  }
  return value;
}

template <int WARPS>
__global__ void __launch_bounds__(WARPS * 32)
    sgemm_warp_tile(int M, int N, int K, float alpha, const float* A, const float* B, float beta,
                    float* C) {
  __shared__ Strip strips[WARPS];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  Strip& strip = strips[warp.meta_group_rank()];
  const int lane = warp.thread_rank();
  const int row = blockIdx.y * WARPS + warp.meta_group_rank(), col = blockIdx.x * 4;
  float sum[4] = {};
  for (int k = 0; k < K; k += 32) {
    for (int i = 0; i < 4; ++i) {
      strip.b[i * 8 + lane / 4][lane % 4] = B[(k + i * 8 + lane / 4) * N + col + lane % 4];
    }
    __syncwarp();
    const float a = A[row * K + k + lane];
    for (int i = 0; i < 4; ++i) sum[i] += a * strip.b[lane][i];
    warp.sync();
  }
  sum[0] = add_lanes(sum[0]);
  sum[1] = add_lanes(sum[1]);
  sum[2] = cg::reduce(warp, sum[2], cg::plus<float>());
  sum[3] = cg::reduce(warp, sum[3], cg::plus<float>());
  if (__ballot_sync(~0u, lane == 0) != 1u) return;
  if (lane == 0) {
    for (int i = 0; i < 4; ++i) {
      float* c = &C[row * N + col + i];
      *c = beta == 0.f ? alpha * sum[i] : alpha * sum[i] + beta * *c;
    }
  }
}
