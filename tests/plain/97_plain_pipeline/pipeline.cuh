// Copies of libcu++: a thread's pipeline for A, a barrier of the block for B.
#pragma once

#include <cuda/barrier>
#include <cuda/pipeline>

#include <cooperative_groups.h>
#include <cuda_runtime.h>

__global__ void sgemm_pipeline(int M, int N, int K, float alpha, const float* A, const float* B,
                               float beta, float* C) {
  constexpr int TILE = 16;
  __shared__ float As[2][TILE * TILE], Bs[TILE][TILE];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  auto block = cooperative_groups::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;

  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  auto load_a = [&](int stage, int k) {
    pipe.producer_acquire();
    cuda::memcpy_async(&As[stage][y * TILE + x], &A[row * K + k + x], sizeof(float), pipe);
    pipe.producer_commit();
  };
  float sum = 0.f;
  load_a(0, 0);
  for (int k = 0, stage = 0; k < K; k += TILE, stage ^= 1) {
    if (k + TILE < K) load_a(stage ^ 1, k + TILE);
    cuda::memcpy_async(&Bs[y][x], &B[(k + y) * N + col],
                       cuda::aligned_size_t<sizeof(float)>(sizeof(float)), bar);
    pipe.consumer_wait();
    bar.arrive_and_wait();
    for (int i = 0; i < TILE; ++i) sum += As[stage][y * TILE + i] * Bs[i][x];
    pipe.consumer_release();
    __syncthreads();
  }
  float& c = C[row * N + col];
  c = beta == 0.f ? alpha * sum : alpha * sum + beta * c;
}
