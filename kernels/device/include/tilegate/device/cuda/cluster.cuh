// Clusters on CUDA; see async.cuh. Compute capability 9.0.
#pragma once

#include <tilegate/device/cuda/async.cuh>

namespace tilegate::device {

inline __device__ unsigned cluster_rank() {
  unsigned rank = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

inline __device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

inline __device__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

inline __device__ void cluster_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }

template <typename T>
__device__ T* cluster_peer(T* smem, unsigned rank) {
  std::uint64_t address = 0;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(smem), "r"(rank));
  return reinterpret_cast<T*>(address);
}

inline __device__ void store_remote(float4& to, const float4& v, Barrier& barrier, unsigned rank) {
  asm volatile(
      "{\n.reg .b32 to, barrier;\nmapa.shared::cluster.u32 to, %0, %2;\n"
      "mapa.shared::cluster.u32 barrier, %1, %2;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [to], {%3, %4, %5, %6}, "
      "[barrier];\n}" ::"r"(shared_address(&to)),
      "r"(shared_address(&barrier)), "r"(rank), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
      : "memory");
}

inline __device__ void barrier_arrive_remote(Barrier& barrier, unsigned rank) {
  asm volatile(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}

inline __device__ void copy_bulk_multicast(void* smem, const void* gmem, unsigned bytes,
                                           Barrier& barrier, std::uint16_t mask) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(smem)),
      "l"(gmem), "r"(bytes), "r"(shared_address(&barrier)), "h"(mask)
      : "memory");
}

inline __device__ void copy_tensor_multicast(void* smem, const TensorMap& map, int x, int y,
                                             Barrier& barrier, std::uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(smem)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(&barrier)), "h"(mask)
      : "memory");
}

inline __device__ void copy_tensor_multicast(void* smem, const TensorMap& map, int x, int y, int z,
                                             Barrier& barrier, std::uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(smem)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(&barrier)), "h"(mask)
      : "memory");
}

}  // namespace tilegate::device
