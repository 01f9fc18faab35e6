// The seam for what nobody needs again soon: L2 gives it up first. In namespace tilegate::device,
//
//   copy_async_once<Bytes>(to, gmem, inside)  as copy_async
//   store_once(p, v)                          as store_vector, of float2
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>

namespace tilegate::device {

template <int kBytes>
__device__ inline void copy_async_once(float* smem, const float* gmem, bool inside) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  const unsigned from = inside ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(
                     shared_address(smem)),
                 "l"(gmem), "r"(from), "l"(policy));
  } else {
    asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3, %4;" ::"r"(
                     shared_address(smem)),
                 "l"(gmem), "n"(kBytes), "r"(from), "l"(policy));
  }
#else
  copy_async<kBytes>(smem, gmem, inside);
#endif
}

__device__ inline void store_once(float* p, float2 v) {
#if defined(__CUDACC__)
  __stcs(reinterpret_cast<float2*>(p), v);
#else
  store_vector(p, v);
#endif
}

}  // namespace tilegate::device
