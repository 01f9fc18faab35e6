// TMA loads and stores of boxes, and bulk stores, on CUDA; see async.cuh. Compute capability 9.0.
#pragma once

#include <cstdint>

#include <tilegate/device/cuda/async.cuh>

namespace tilegate::device {

inline __device__ void copy_tensor(void* smem, const TensorMap& map, int x, int y,
                                   Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(smem)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(&barrier))
      : "memory");
}

inline __device__ void copy_tensor(void* smem, const TensorMap& map, int x, int y, int z,
                                   Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(smem)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(&barrier))
      : "memory");
}

inline __device__ void warp_arrive_expect(Barrier& barrier, unsigned bytes) {
  asm volatile(
      "{\n.reg .pred elected;\n"
      "elect.sync _|elected, 0xFFFFFFFF;\n"
      "@elected mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n}" ::"r"(
          shared_address(&barrier)),
      "r"(bytes)
      : "memory");
}

inline __device__ void warp_copy_tensor(void* smem, const TensorMap& map, int x, int y, int z,
                                        Barrier& barrier) {
  asm volatile(
      "{\n.reg .pred elected;\n"
      "elect.sync _|elected, 0xFFFFFFFF;\n"
      "@elected cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];\n}" ::"r"(shared_address(smem)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(&barrier))
      : "memory");
}

inline __device__ void warp_copy_tensor(void* smem, const TensorMap& map, int x, int y, int z,
                                        Barrier& barrier, std::uint64_t l2_policy) {
  asm volatile(
      "{\n.reg .pred elected;\n"
      "elect.sync _|elected, 0xFFFFFFFF;\n"
      "@elected cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;\n}" ::"r"(shared_address(smem)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(&barrier)), "l"(l2_policy)
      : "memory");
}

inline __device__ void prefetch_tensor(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

inline __device__ void store_bulk(void* gmem, const void* smem, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(gmem),
               "r"(shared_address(smem)), "r"(bytes)
               : "memory");
}

inline __device__ void store_tensor(const TensorMap& map, int x, int y, const void* smem) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
          &map),
      "r"(x), "r"(y), "r"(shared_address(smem))
      : "memory");
}

inline __device__ void store_tensor(const TensorMap& map, int x, int y, int z, const void* smem) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
          &map),
      "r"(x), "r"(y), "r"(z), "r"(shared_address(smem))
      : "memory");
}

inline __device__ void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

template <int kPending>
__device__ void store_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

}  // namespace tilegate::device
