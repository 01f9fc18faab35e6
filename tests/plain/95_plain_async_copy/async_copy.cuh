// Tiles come by cp.async, one ahead of the multiplication.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <stdint.h>

#define CP_ASYNC_CG(dst, src, bytes)                                                          \
  asm volatile("cp.async.cg.shared.global [%0], [%1], %2;\n" ::"r"(dst), "l"(src), "n"(bytes) \
               : "memory")
#define CP_ASYNC_COMMIT() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_WAIT(n) asm volatile("cp.async.wait_group %0;\n" ::"n"(n))

__device__ __forceinline__ uint32_t smem_address(const void* ptr) {
  uint32_t address;
  asm("{.reg .u64 wide;\n"
      " cvta.to.shared.u64 wide, %1;\n"
      " cvt.u32.u64 %0, wide;}\n"
      : "=r"(address)
      : "l"(ptr));
  return address;
}

// 0 where the row is outside.
__device__ __forceinline__ float load_if(const float* p, bool inside) {
  float value;
  asm volatile(
      "{.reg .pred p;\n"
      " setp.ne.b32 p, %2, 0;\n"
      " mov.b32 %0, 0;\n"
      " @p ld.global.nc.f32 %0, [%1];}\n"
      : "=f"(value)
      : "l"(p), "r"((int)inside));
  return value;
}

template <int BM, int BN, int BK>
__global__ void sgemm_async_copy(int M, int N, int K, float alpha, const float* A, const float* B,
                                 float beta, float* C) {
  namespace cg = cooperative_groups;
  __shared__ alignas(16) float As[2][BM][BK];
  __shared__ __align__(16) float Bs[2][BK][BN];
  auto block = cg::this_thread_block();
  const int thread = block.thread_rank(), threads = block.size();
  const int top = blockIdx.y * BM, left = blockIdx.x * BN;

  auto load = [&](int stage, int k) {
    for (int i = thread * 4; i < BM * BK; i += threads * 4) {
      CP_ASYNC_CG(smem_address(&As[stage][i / BK][i % BK]), &A[(top + i / BK) * K + k + i % BK],
                  16);
    }
    for (int i = thread * 4; i < BK * BN; i += threads * 4) {
      const uint32_t to =
          static_cast<uint32_t>(__cvta_generic_to_shared(&Bs[stage][i / BN][i % BN]));
      CP_ASYNC_CG(to, &B[(k + i / BN) * N + left + i % BN], 16);
    }
    CP_ASYNC_COMMIT();
  };

  float sum[BM * BN / 64] = {};
  load(0, 0);
  for (int k = 0, stage = 0; k < K; k += BK, stage ^= 1) {
    if (k + BK < K) {
      load(stage ^ 1, k + BK);
      CP_ASYNC_WAIT(1);
    } else {
      CP_ASYNC_WAIT(0);
    }
    block.sync();
    for (int i = 0; i < BK; ++i) {
      for (int j = 0; j < BM * BN / 64; ++j) {
        const int element = thread + j * 64;
        sum[j] += As[stage][element / BN][i] * Bs[stage][i][element % BN];
      }
    }
    block.sync();
  }
  for (int j = 0; j < BM * BN / 64; ++j) {
    const int row = top + (thread + j * 64) / BN, col = left + (thread + j * 64) % BN;
    const float old = load_if(&C[row * N + col], beta != 0.f);
    C[row * N + col] = beta == 0.f ? alpha * sum[j] : alpha * sum[j] + beta * old;
  }
}
