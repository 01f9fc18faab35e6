// async.cuh on the CPU. `site` is the caller's source line, for error messages.
#pragma once

#include <array>
#include <cstdint>

#include <tilegate/device/cpu/device.hpp>

namespace tilegate::simt {

enum class MmaType { kS8, kF16, kBf16, kTf32 };

// Operands of a warpgroup_mma: 64 rows of a times n rows of b.
struct MatrixProduct {
  MmaType type;
  unsigned n;
  device::MatrixDescriptor a, b;
  bool adds = true;  // to the accumulators
  device::Major major_a = device::Major::kK, major_b = device::Major::kK;
  const std::uint32_t* registers_of_a = nullptr;  // the thread's part of a, instead of a tile
};

}  // namespace tilegate::simt

namespace tilegate::simt::executor {

void barrier_init(device::Barrier& barrier, unsigned arrivals, const Site& site);
void barrier_init_fence();
unsigned barrier_parity(device::Barrier& barrier, const Site& site);  // of the current phase
void barrier_arrive(device::Barrier& barrier, unsigned expected_bytes, const Site& site);
void barrier_wait(device::Barrier& barrier, unsigned parity, const Site& site);
void copy_bulk(void* smem, const void* gmem, unsigned bytes, device::Barrier& barrier,
               std::uint16_t mask, const Site& site);
void copy_tensor(void* smem, const device::TensorMap& map,
                 const std::array<int, device::kMaxTensorDimensions>& at, unsigned dimensions,
                 device::Barrier& barrier, std::uint16_t mask, const Site& site);
void store_bulk(void* gmem, const void* smem, unsigned bytes, const Site& site);
void store_tensor(const device::TensorMap& map,
                  const std::array<int, device::kMaxTensorDimensions>& at, unsigned dimensions,
                  const void* smem, const Site& site);
void store_commit();
void store_wait(int pending_groups, const Site& site);
void fence_async_proxy();
unsigned cluster_rank();
void cluster_sync(const Site& site);
void cluster_arrive();
void cluster_wait(const Site& site);
void* cluster_peer(void* smem, unsigned rank, const Site& site);
void barrier_arrive_remote(device::Barrier& barrier, unsigned rank, const Site& site);
void store_remote(void* smem, const void* vector, device::Barrier& barrier, unsigned rank,
                  const Site& site);
bool named_barrier_or(unsigned id, unsigned threads, bool value, const Site& site);

// Start and strides must be multiples of 16: a descriptor drops their lowest bits.
void check_descriptor(unsigned start, unsigned leading_bytes, unsigned stride_bytes,
                      const Site& site);
void warpgroup_arrive();
void warpgroup_mma(void* acc, const MatrixProduct& product, const Site& site);
void warpgroup_commit();
void warpgroup_wait(int pending_groups, const Site& site);
void warpgroup_fence_operand(const void* registers);

}  // namespace tilegate::simt::executor

namespace tilegate::device {

inline void barrier_init(Barrier& barrier, unsigned arrivals,
                         simt::Site site = simt::Site::current()) {
  simt::executor::barrier_init(barrier, arrivals, site);
}

inline void barrier_init_fence() { simt::executor::barrier_init_fence(); }

inline void barrier_arrive(Barrier& barrier, simt::Site site = simt::Site::current()) {
  simt::executor::barrier_arrive(barrier, 0, site);
}

inline void barrier_arrive_expect(Barrier& barrier, unsigned bytes,
                                  simt::Site site = simt::Site::current()) {
  simt::executor::barrier_arrive(barrier, bytes, site);
}

inline void barrier_wait(Barrier& barrier, unsigned parity,
                         simt::Site site = simt::Site::current()) {
  simt::executor::barrier_wait(barrier, parity, site);
}

inline void copy_bulk(void* smem, const void* gmem, unsigned bytes, Barrier& barrier,
                      simt::Site site = simt::Site::current()) {
  simt::executor::copy_bulk(smem, gmem, bytes, barrier, 0, site);
}

inline void copy_tensor(void* smem, const TensorMap& map, int x, int y, Barrier& barrier,
                        simt::Site site = simt::Site::current()) {
  simt::executor::copy_tensor(smem, map, {x, y, 0}, 2, barrier, 0, site);
}

inline void copy_tensor(void* smem, const TensorMap& map, int x, int y, int z, Barrier& barrier,
                        simt::Site site = simt::Site::current()) {
  simt::executor::copy_tensor(smem, map, {x, y, z}, 3, barrier, 0, site);
}

inline void warp_arrive_expect(Barrier& barrier, unsigned bytes,
                               simt::Site site = simt::Site::current()) {
  if (threadIdx.x % 32 == 0) barrier_arrive_expect(barrier, bytes, site);
}

inline void warp_copy_tensor(void* smem, const TensorMap& map, int x, int y, int z,
                             Barrier& barrier, simt::Site site = simt::Site::current()) {
  if (threadIdx.x % 32 == 0) copy_tensor(smem, map, x, y, z, barrier, site);
}

inline void warp_copy_tensor(void* smem, const TensorMap& map, int x, int y, int z,
                             Barrier& barrier, std::uint64_t /*l2_policy*/,
                             simt::Site site = simt::Site::current()) {
  warp_copy_tensor(smem, map, x, y, z, barrier, site);
}

inline void prefetch_tensor(const TensorMap& /*map*/) {}

inline void store_bulk(void* gmem, const void* smem, unsigned bytes,
                       simt::Site site = simt::Site::current()) {
  simt::executor::store_bulk(gmem, smem, bytes, site);
}

inline void store_tensor(const TensorMap& map, int x, int y, const void* smem,
                         simt::Site site = simt::Site::current()) {
  simt::executor::store_tensor(map, {x, y, 0}, 2, smem, site);
}

inline void store_tensor(const TensorMap& map, int x, int y, int z, const void* smem,
                         simt::Site site = simt::Site::current()) {
  simt::executor::store_tensor(map, {x, y, z}, 3, smem, site);
}

inline void store_commit() { simt::executor::store_commit(); }

template <int kPending>
void store_wait(simt::Site site = simt::Site::current()) {
  simt::executor::store_wait(kPending, site);
}

inline void fence_async_proxy() { simt::executor::fence_async_proxy(); }

inline unsigned cluster_rank() { return simt::executor::cluster_rank(); }

inline void cluster_sync(simt::Site site = simt::Site::current()) {
  simt::executor::cluster_sync(site);
}

inline void cluster_arrive() { simt::executor::cluster_arrive(); }

inline void cluster_wait(simt::Site site = simt::Site::current()) {
  simt::executor::cluster_wait(site);
}

template <typename T>
T* cluster_peer(T* smem, unsigned rank, simt::Site site = simt::Site::current()) {
  return static_cast<T*>(simt::executor::cluster_peer(smem, rank, site));
}

inline void barrier_arrive_remote(Barrier& barrier, unsigned rank,
                                  simt::Site site = simt::Site::current()) {
  simt::executor::barrier_arrive_remote(barrier, rank, site);
}

inline void store_remote(float4& to, const float4& v, Barrier& barrier, unsigned rank,
                         simt::Site site = simt::Site::current()) {
  simt::executor::store_remote(&to, &v, barrier, rank, site);
}

inline void copy_bulk_multicast(void* smem, const void* gmem, unsigned bytes, Barrier& barrier,
                                std::uint16_t mask, simt::Site site = simt::Site::current()) {
  simt::executor::copy_bulk(smem, gmem, bytes, barrier, mask, site);
}

inline void copy_tensor_multicast(void* smem, const TensorMap& map, int x, int y, Barrier& barrier,
                                  std::uint16_t mask, simt::Site site = simt::Site::current()) {
  simt::executor::copy_tensor(smem, map, {x, y, 0}, 2, barrier, mask, site);
}

inline void copy_tensor_multicast(void* smem, const TensorMap& map, int x, int y, int z,
                                  Barrier& barrier, std::uint16_t mask,
                                  simt::Site site = simt::Site::current()) {
  simt::executor::copy_tensor(smem, map, {x, y, z}, 3, barrier, mask, site);
}

template <int kId>
void named_barrier(unsigned threads, simt::Site site = simt::Site::current()) {
  static_assert(kId >= 1 && kId <= 15, "a block has 16 barriers; __syncthreads uses number 0");
  simt::executor::named_barrier_or(kId, threads, false, site);
}
template <int kId>
bool named_barrier_or(unsigned threads, bool value, simt::Site site = simt::Site::current()) {
  static_assert(kId >= 1 && kId <= 15, "a block has 16 barriers; __syncthreads uses number 0");
  return simt::executor::named_barrier_or(kId, threads, value, site);
}

template <int kRegisters>
void reg_alloc() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
}

template <int kRegisters>
void reg_dealloc() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
}

// The hardware's format: see cuda/async.cuh.
inline MatrixDescriptor matrix_descriptor(const void* smem, Swizzle swizzle, unsigned leading_bytes,
                                          unsigned stride_bytes,
                                          simt::Site site = simt::Site::current()) {
  simt::executor::check_descriptor(shared_address(smem), leading_bytes, stride_bytes, site);
  constexpr std::uint64_t kKinds[] = {0, 3, 2, 1};  // no swizzle, 32, 64, 128 bytes
  const auto field = [](unsigned bytes) { return std::uint64_t{bytes & 0x3FFFFU} >> 4; };
  return field(shared_address(smem)) | field(leading_bytes) << 16 | field(stride_bytes) << 32 |
         kKinds[static_cast<int>(swizzle)] << 62;
}

inline void warpgroup_arrive() { simt::executor::warpgroup_arrive(); }

// Operands with the thread's part of a in registers.
inline simt::MatrixProduct with_registers(simt::MmaType type, unsigned n,
                                          const std::uint32_t (&a)[4], MatrixDescriptor b,
                                          bool adds = true, Major major_b = Major::kK) {
  return {
      .type = type, .n = n, .a = {}, .b = b, .adds = adds, .major_b = major_b, .registers_of_a = a};
}

template <int kN>
void warpgroup_mma_s8(std::int32_t (&acc)[kN / 2], MatrixDescriptor a, MatrixDescriptor b,
                      simt::Site site = simt::Site::current()) {
  static_assert(kN == 8 || kN == 24 || (kN % 16 == 0 && kN >= 16 && kN <= 256),
                "the widths that wgmma knows for int8");
  simt::executor::warpgroup_mma(acc, {simt::MmaType::kS8, kN, a, b}, site);
}

template <int kN>
void warpgroup_mma_s8(std::int32_t (&acc)[kN / 2], const std::uint32_t (&a)[4], MatrixDescriptor b,
                      simt::Site site = simt::Site::current()) {
  static_assert(kN == 8 || kN == 24 || (kN % 16 == 0 && kN >= 16 && kN <= 256),
                "the widths that wgmma knows for int8");
  simt::executor::warpgroup_mma(acc, with_registers(simt::MmaType::kS8, kN, a, b), site);
}

template <int kN, Major kMajorA = Major::kK, Major kMajorB = Major::kK>
void warpgroup_mma_f16(float (&acc)[kN / 2], MatrixDescriptor a, MatrixDescriptor b,
                       bool adds = true, simt::Site site = simt::Site::current()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "the widths that wgmma knows");
  simt::executor::warpgroup_mma(acc, {simt::MmaType::kF16, kN, a, b, adds, kMajorA, kMajorB}, site);
}

template <int kN, Major kMajorA = Major::kK, Major kMajorB = Major::kK>
void warpgroup_mma_bf16(float (&acc)[kN / 2], MatrixDescriptor a, MatrixDescriptor b,
                        bool adds = true, simt::Site site = simt::Site::current()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "the widths that wgmma knows");
  simt::executor::warpgroup_mma(acc, {simt::MmaType::kBf16, kN, a, b, adds, kMajorA, kMajorB},
                                site);
}

template <int kN, Major kMajorB = Major::kK>
void warpgroup_mma_f16(float (&acc)[kN / 2], const std::uint32_t (&a)[4], MatrixDescriptor b,
                       bool adds = true, simt::Site site = simt::Site::current()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "the widths that wgmma knows");
  simt::executor::warpgroup_mma(acc, with_registers(simt::MmaType::kF16, kN, a, b, adds, kMajorB),
                                site);
}

template <int kN, Major kMajorB = Major::kK>
void warpgroup_mma_bf16(float (&acc)[kN / 2], const std::uint32_t (&a)[4], MatrixDescriptor b,
                        bool adds = true, simt::Site site = simt::Site::current()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "the widths that wgmma knows");
  simt::executor::warpgroup_mma(acc, with_registers(simt::MmaType::kBf16, kN, a, b, adds, kMajorB),
                                site);
}

template <int kN>
void warpgroup_mma_tf32(float (&acc)[kN / 2], MatrixDescriptor a, MatrixDescriptor b,
                        bool adds = true, simt::Site site = simt::Site::current()) {
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256, "the widths that wgmma knows");
  simt::executor::warpgroup_mma(acc, {simt::MmaType::kTf32, kN, a, b, adds}, site);
}

inline void warpgroup_commit() { simt::executor::warpgroup_commit(); }

template <int kPending>
void warpgroup_wait(simt::Site site = simt::Site::current()) {
  simt::executor::warpgroup_wait(kPending, site);
}

template <typename T, int kSize>
void warpgroup_fence_operand(T (&registers)[kSize]) {
  simt::executor::warpgroup_fence_operand(registers);
}

}  // namespace tilegate::device
