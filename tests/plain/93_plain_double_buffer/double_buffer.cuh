// Two tiles of each operand in dynamic shared memory: the next is loaded into registers while one
// is multiplied.
#pragma once

#include <cuda_runtime.h>

#define FLOAT4(x) (*reinterpret_cast<float4*>(&(x)))

static __device__ __forceinline__ float4 scaled(const float4& v, float s) {
  return make_float4(s * v.x, s * v.y, s * v.z, s * v.w);
}

template <int TILE>
__global__ void sgemm_double_buffer(int M, int N, int K, float alpha, const float* __restrict__ A,
                                    const float* __restrict__ B, float beta,
                                    float* __restrict__ C) {
  extern __shared__ __align__(16) float smem[];
  float (*As)[TILE][TILE + 4] = reinterpret_cast<float (*)[TILE][TILE + 4]>(smem);
  float (*Bs)[TILE][TILE] = reinterpret_cast<float (*)[TILE][TILE]>(smem + 2 * TILE * (TILE + 4));
  const int row = threadIdx.y, col = threadIdx.x * 4;
  const float* a = A + (blockIdx.y * TILE + row) * K + col;
  const float* b = B + row * N + blockIdx.x * TILE + col;

  float4 next_a = *reinterpret_cast<const float4*>(a);
  float4 next_b = __ldg(reinterpret_cast<const float4*>(b));
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
  int stage = 0;
  for (int k = 0; k < K; k += TILE, stage ^= 1) {
    FLOAT4(As[stage][row][col]) = next_a;
    FLOAT4(Bs[stage][row][col]) = next_b;
    __syncthreads();
    if (k + TILE < K) {
      next_a = *reinterpret_cast<const float4*>(a + k + TILE);
      next_b = __ldg(reinterpret_cast<const float4*>(b + (k + TILE) * N));
    }
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
      const float x = As[stage][row][i];
      const float4 y = FLOAT4(Bs[stage][i][col]);
      sum.x = __fmaf_rn(x, y.x, sum.x);
      sum.y = __fmaf_rn(x, y.y, sum.y);
      sum.z = __fmaf_rn(x, y.z, sum.z);
      sum.w = __fmaf_rn(x, y.w, sum.w);
    }
  }
  float4& c = FLOAT4(C[(blockIdx.y * TILE + row) * N + blockIdx.x * TILE + col]);
  float4 result = scaled(sum, alpha);
  if (beta != 0.f) {
    const float4 old = c;
    result.x += beta * old.x;
    result.y += beta * old.y;
    result.z += beta * old.z;
    result.w += beta * old.w;
  }
  c = result;
}
