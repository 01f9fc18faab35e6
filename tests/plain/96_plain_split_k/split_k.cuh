// K split over blockIdx.z; each block adds its part of the sums to C.
#pragma once

#include <cuda_runtime.h>

extern "C" __global__ void sgemm_split_k(int M, int N, int K, float alpha, const float* A,
                                         const float* B, float* C) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M || col >= N) return;
  const int part = (K + gridDim.z - 1) / gridDim.z, first = blockIdx.z * part;
  const int last = min(first + part, K);
  float sum = 0.f;
  for (int k = first; k < last; ++k) sum += A[row * K + k] * B[k * N + col];
  if (first < last) atomicAdd(&C[row * N + col], alpha * sum);
}
