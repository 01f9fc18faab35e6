// The seam for asynchronous hardware, compute capability 9.0: copies by the copy engine, barriers
// in shared memory, tensor cores. Beyond device.cuh, in namespace tilegate::device,
//
//   Barrier                        an mbarrier, in shared memory: its phase is complete when as
//   many
//                                  arrivals and bytes have come as it expects; then the next begins
//   barrier_init(b, arrivals)      by one thread, which calls
//   barrier_init_fence()           after it, before the __syncthreads that tells the others
//   barrier_arrive(b)
//   barrier_arrive_expect(b, bytes)  and expects so many bytes more in this phase
//   barrier_wait(b, parity)        until the phase of this parity is complete; that of parity 1
//                                  before the first phase counts as complete
//   copy_bulk(smem, gmem, bytes, b)  by one thread; its bytes arrive at b; multiples of 16 bytes
//   fence_async_proxy()            by a thread that has stored to shared memory, before the barrier
//                                  after which a copy or a multiplication reads what it stored
//   named_barrier<Id>(threads)     of `threads` threads, whole warps; Id 1 … 15
//   take_registers<N>()            of each thread of a warpgroup, from those given back
//   give_registers<N>()
//
//   matrix_descriptor(smem, swizzle, leading_bytes, stride_bytes)
//                                  a tile in shared memory whose rows lie along k. Swizzled: rows
//                                  of the swizzle's width, 8 of them stride_bytes before the
//                                  next 8. Not swizzled: pieces of 8 rows × 16 bytes, stride_bytes
//                                  from the next 8 rows, leading_bytes from the next 16 bytes along
//                                  k
//   warpgroup_arrive()             before the first multiplication after a wait, by all 128
//   threads,
//                                  as the three below
//   warpgroup_mma_s8<N>(acc, a, b)  acc += a·bᵀ; a: 64×32, b: N×32, of int8; thread t of the
//                                  warpgroup holds columns 8j + t % 4 · 2 and the next, of rows
//                                  t / 32 · 16 + t % 32 / 4 (acc[4j], acc[4j + 1]) and 8 rows below
//                                  (acc[4j + 2], acc[4j + 3])
//   warpgroup_commit()             closes a group of multiplications
//   warpgroup_wait<Pending>()      until at most the `Pending` youngest groups run; only then may
//                                  the thread touch acc, or anyone overwrite what they read
//   warpgroup_results(acc)         after that wait, before acc is read: no instruction, but the
//                                  compiler may not read the registers earlier
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>

namespace tilegate::device {

struct alignas(8) Barrier {
  std::uint64_t state;
};

enum class Swizzle { kNone, k32Bytes, k64Bytes, k128Bytes };

using MatrixDescriptor = std::uint64_t;

}  // namespace tilegate::device

#if defined(__CUDACC__)
#include <tilegate/device/cuda/async.cuh>
#else
#include <tilegate/device/cpu/async.hpp>
#endif
