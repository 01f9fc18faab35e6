// The seam for asynchronous hardware on CUDA; see async.cuh. Instructions of compute
// capability 9.0a.
#pragma once

#include <cstdint>

#include <tilegate/device/cuda/seam.cuh>

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
  static_assert(kId >= 1 && kId <= 15, "the barriers of a block; 0 is that of __syncthreads");
  asm volatile("bar.sync %0, %1;" ::"n"(kId), "r"(threads) : "memory");
}

template <int kRegisters>
__device__ void take_registers() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kRegisters>
__device__ void give_registers() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// The address, then leading_bytes from bit 16 on and stride_bytes from bit 32 on, each in units of
// 16 bytes; the kind of swizzle on top.
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

inline __device__ void multiply_m64n64k32(std::int32_t (&acc)[32], MatrixDescriptor a,
                                          MatrixDescriptor b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, 1;"
      : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
        "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]),
        "+r"(acc[12]), "+r"(acc[13]), "+r"(acc[14]), "+r"(acc[15]), "+r"(acc[16]), "+r"(acc[17]),
        "+r"(acc[18]), "+r"(acc[19]), "+r"(acc[20]), "+r"(acc[21]), "+r"(acc[22]), "+r"(acc[23]),
        "+r"(acc[24]), "+r"(acc[25]), "+r"(acc[26]), "+r"(acc[27]), "+r"(acc[28]), "+r"(acc[29]),
        "+r"(acc[30]), "+r"(acc[31])
      : "l"(a), "l"(b));
}

inline __device__ void multiply_m64n128k32(std::int32_t (&acc)[64], MatrixDescriptor a,
                                           MatrixDescriptor b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1;"
      : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
        "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]),
        "+r"(acc[12]), "+r"(acc[13]), "+r"(acc[14]), "+r"(acc[15]), "+r"(acc[16]), "+r"(acc[17]),
        "+r"(acc[18]), "+r"(acc[19]), "+r"(acc[20]), "+r"(acc[21]), "+r"(acc[22]), "+r"(acc[23]),
        "+r"(acc[24]), "+r"(acc[25]), "+r"(acc[26]), "+r"(acc[27]), "+r"(acc[28]), "+r"(acc[29]),
        "+r"(acc[30]), "+r"(acc[31]), "+r"(acc[32]), "+r"(acc[33]), "+r"(acc[34]), "+r"(acc[35]),
        "+r"(acc[36]), "+r"(acc[37]), "+r"(acc[38]), "+r"(acc[39]), "+r"(acc[40]), "+r"(acc[41]),
        "+r"(acc[42]), "+r"(acc[43]), "+r"(acc[44]), "+r"(acc[45]), "+r"(acc[46]), "+r"(acc[47]),
        "+r"(acc[48]), "+r"(acc[49]), "+r"(acc[50]), "+r"(acc[51]), "+r"(acc[52]), "+r"(acc[53]),
        "+r"(acc[54]), "+r"(acc[55]), "+r"(acc[56]), "+r"(acc[57]), "+r"(acc[58]), "+r"(acc[59]),
        "+r"(acc[60]), "+r"(acc[61]), "+r"(acc[62]), "+r"(acc[63])
      : "l"(a), "l"(b));
}

template <int kN>
__device__ void warpgroup_mma_s8(std::int32_t (&acc)[kN / 2], MatrixDescriptor a,
                                 MatrixDescriptor b) {
  static_assert(kN == 64 || kN == 128, "the widths that kernels use so far");
  if constexpr (kN == 64) {
    multiply_m64n64k32(acc, a, b);
  } else {
    multiply_m64n128k32(acc, a, b);
  }
}

inline __device__ void warpgroup_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int kPending>
__device__ void warpgroup_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Empty, but the compiler may not move a read of acc before it.
template <int kSize>
__device__ void warpgroup_results(std::int32_t (&acc)[kSize]) {
#pragma unroll
  for (int i = 0; i < kSize; ++i) asm volatile("" : "+r"(acc[i])::"memory");
}

}  // namespace tilegate::device
