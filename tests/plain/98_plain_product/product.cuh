// C = A·B alone, by tiles of 16×16 whose edges are filled with zeros.
#include <cuda_runtime.h>

template <const int BM, const int BK = BM>
__global__ void sgemm_sliced_k(float* a, float* b, float* c, const int M, const int N,
                               const int K) {
  __shared__ float s_a[BM][BK], s_b[BK][BM];
  const int m = blockIdx.y * BM + threadIdx.y, n = blockIdx.x * BM + threadIdx.x;
  float sum = 0.f;
  for (int bk = 0; bk < (K + BK - 1) / BK; ++bk) {
    const int ka = bk * BK + threadIdx.x, kb = bk * BK + threadIdx.y;
    s_a[threadIdx.y][threadIdx.x] = m < M && ka < K ? a[m * K + ka] : 0.f;
    s_b[threadIdx.y][threadIdx.x] = kb < K && n < N ? b[kb * N + n] : 0.f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; ++k) sum += s_a[threadIdx.y][k] * s_b[k][threadIdx.x];
    __syncthreads();
  }
  if (m < M && n < N) c[m * N + n] = sum;
}
