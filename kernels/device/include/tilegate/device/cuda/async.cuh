// async.cuh on CUDA. Barriers and copies need compute capability 9.0 or later, wgmma 9.0a.
#pragma once

#include <cstdint>
#include <type_traits>

#include <tilegate/device/cuda/device.cuh>

namespace tilegate::device {

inline __device__ void barrier_init(Barrier& barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)),
               "r"(arrivals)
               : "memory");
}

inline __device__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

inline __device__ void barrier_arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier))
               : "memory");
}

inline __device__ void barrier_arrive_expect(Barrier& barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
      "r"(bytes)
      : "memory");
}

inline __device__ void barrier_wait(Barrier& barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred complete;\nwaiting:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@!complete bra waiting;\n}" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

inline __device__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

inline __device__ void copy_bulk(void* smem, const void* gmem, unsigned bytes, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(smem)),
      "l"(gmem), "r"(bytes), "r"(shared_address(&barrier))
      : "memory");
}

template <int kId>
__device__ void named_barrier(unsigned threads) {
  static_assert(kId >= 1 && kId <= 15, "a block has 16 barriers; __syncthreads uses number 0");
  asm volatile("bar.sync %0, %1;" ::"n"(kId), "r"(threads) : "memory");
}

template <int kId>
__device__ bool named_barrier_or(unsigned threads, bool value) {
  static_assert(kId >= 1 && kId <= 15, "a block has 16 barriers; __syncthreads uses number 0");
  unsigned any;
  asm volatile(
      "{\n.reg .pred own, any;\nsetp.ne.u32 own, %3, 0;\nbar.red.or.pred any, %1, %2, own;\n"
      "selp.u32 %0, 1, 0, any;\n}"
      : "=r"(any)
      : "n"(kId), "r"(threads), "r"(value ? 1U : 0U)
      : "memory");
  return any != 0;
}

// setmaxnreg exists for architecture-specific targets, such as 90a, and family-specific ones, such
// as 100f. For others the register count does not change.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__CUDA_ARCH_SPECIFIC__) || \
    defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
#define TILEGATE_SETMAXNREG(direction, registers) \
  asm volatile("setmaxnreg." direction ".sync.aligned.u32 %0;" ::"n"(registers))
#else
#define TILEGATE_SETMAXNREG(direction, registers)
#endif

template <int kRegisters>
__device__ void reg_alloc() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
  TILEGATE_SETMAXNREG("inc", kRegisters);
}

template <int kRegisters>
__device__ void reg_dealloc() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
  TILEGATE_SETMAXNREG("dec", kRegisters);
}

#undef TILEGATE_SETMAXNREG

// Fields, in units of 16 bytes: the address from bit 0, leading_bytes from bit 16, stride_bytes
// from bit 32. Bits 62 and 63: the kind of swizzle.
inline __device__ MatrixDescriptor matrix_descriptor(const void* smem, Swizzle swizzle,
                                                     unsigned leading_bytes,
                                                     unsigned stride_bytes) {
  const auto field = [](unsigned bytes) { return std::uint64_t{bytes & 0x3FFFFU} >> 4; };
  const unsigned kind = swizzle == Swizzle::kNone ? 0U : 4U - static_cast<unsigned>(swizzle);
  return field(shared_address(smem)) | field(leading_bytes) << 16 | field(stride_bytes) << 32 |
         std::uint64_t{kind} << 62;
}

inline __device__ void warpgroup_arrive() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

inline __device__ void warpgroup_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int kPending>
__device__ void warpgroup_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// No instruction: keeps the compiler from reading the registers earlier or reusing them. CUTLASS
// has it by the same name.
template <typename T, int kSize>
__device__ void warpgroup_fence_operand(T (&registers)[kSize]) {
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      asm volatile("" : "+f"(registers[i])::"memory");
    } else {
      asm volatile("" : "+r"(registers[i])::"memory");
    }
  }
}

}  // namespace tilegate::device
