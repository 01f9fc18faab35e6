// A block's tile in shared memory, TM×TN results per thread, vectors of four.
#pragma once

#include <cassert>

#include <cuda_runtime.h>

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
    sgemmBlockTile(int M, int N, int K, float alpha, float* A, float* B, float beta, float* C) {
  assert(blockDim.x == (BM * BN) / (TM * TN));
  __shared__ float As[BK * BM], Bs[BK][BN];  // As is transposed

  const uint threadCol = threadIdx.x % (BN / TN), threadRow = threadIdx.x / (BN / TN);
  A += blockIdx.y * BM * K;
  B += blockIdx.x * BN;
  C += (blockIdx.y * BM + threadRow * TM) * N + blockIdx.x * BN + threadCol * TN;

  float results[TM * TN] = {0.0};
  float regM[TM] = {0.0}, regN[TN] = {0.0};
  for (uint k = 0; k < K; k += BK) {
    for (uint i = threadIdx.x; i < BM * BK / 4; i += blockDim.x) {
      const uint row = i / (BK / 4), col = i % (BK / 4) * 4;
      const float4 a = reinterpret_cast<float4*>(&A[row * K + col])[0];
      As[(col + 0) * BM + row] = a.x;
      As[(col + 1) * BM + row] = a.y;
      As[(col + 2) * BM + row] = a.z;
      As[(col + 3) * BM + row] = a.w;
    }
    for (uint i = threadIdx.x; i < BK * BN / 4; i += blockDim.x) {
      const uint row = i / (BN / 4), col = i % (BN / 4) * 4;
      reinterpret_cast<float4*>(&Bs[row][col])[0] = reinterpret_cast<float4*>(&B[row * N + col])[0];
    }
    __syncthreads();
    A += BK;
    B += BK * N;
    for (uint dot = 0; dot < BK; ++dot) {
      for (uint i = 0; i < TM; ++i) regM[i] = As[dot * BM + threadRow * TM + i];
      for (uint i = 0; i < TN; ++i) regN[i] = Bs[dot][threadCol * TN + i];
      for (uint m = 0; m < TM; ++m) {
        for (uint n = 0; n < TN; ++n) results[m * TN + n] += regM[m] * regN[n];
      }
    }
    __syncthreads();
  }
  for (uint m = 0; m < TM; ++m) {
    for (uint n = 0; n < TN; n += 4) {
      float4 tmp = reinterpret_cast<float4*>(&C[m * N + n])[0];
      tmp.x = alpha * results[m * TN + n] + beta * tmp.x;
      tmp.y = alpha * results[m * TN + n + 1] + beta * tmp.y;
      tmp.z = alpha * results[m * TN + n + 2] + beta * tmp.z;
      tmp.w = alpha * results[m * TN + n + 3] + beta * tmp.w;
      reinterpret_cast<float4*>(&C[m * N + n])[0] = tmp;
    }
  }
}
