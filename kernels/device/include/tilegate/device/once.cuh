// L2 eviction priorities, for data that is accessed once. In namespace tilegate::device,
//
//   copy_async<Bytes>(to, gmem, inside, policy)  as copy_async, with a cache policy:
//   evict_first_policy(), evict_normal_policy()
//   store_once(p, v)                             as store_vector, for float2
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>

namespace tilegate::device {

struct CachePolicy {
  std::uint64_t bits;
};

__device__ inline CachePolicy evict_first_policy() {
  CachePolicy policy{0};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy.bits));
#endif
  return policy;
}

__device__ inline CachePolicy evict_normal_policy() {
  CachePolicy policy{0};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy.bits));
#endif
  return policy;
}

template <int kBytes>
__device__ inline void copy_async(float* smem, const float* gmem, bool inside, CachePolicy policy) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const unsigned from = inside ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(
                     shared_address(smem)),
                 "l"(gmem), "r"(from), "l"(policy.bits));
  } else {
    asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], %2, %3, %4;" ::"r"(
                     shared_address(smem)),
                 "l"(gmem), "n"(kBytes), "r"(from), "l"(policy.bits));
  }
#else
  static_cast<void>(policy);
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
