// Asynchronous hardware of compute capability 9.0: bulk and tensor copies (TMA), mbarriers,
// clusters, wgmma. Beyond device.cuh, in namespace tilegate::device,
//
//   Barrier                        mbarrier in shared memory: a phase completes when all expected
//                                  arrivals and bytes have come; then the next phase begins
//   barrier_init(b, arrivals)      one thread, which then calls
//   barrier_init_fence()           before the __syncthreads that publishes the barrier
//   barrier_arrive(b)
//   barrier_arrive_expect(b, bytes)  arrives, and expects `bytes` more in this phase
//   barrier_wait(b, parity)        waits until the phase of this parity is complete; before the
//   first
//                                  phase, parity 1 counts as complete
//   copy_bulk(smem, gmem, bytes, b)  by one thread; its bytes arrive at b; multiples of 16 bytes
//   copy_tensor(smem, map, x, y, [z,] b)  by one thread; the box that begins at column x, row y,
//                                  matrix z; what lies outside the tensor becomes zeros, whose
//                                  bytes arrive too. smem: a multiple of 128 bytes; x: of 16, or a
//                                  GPU reports an illegal instruction
//   store_bulk(gmem, smem, bytes)  by one thread; store_tensor(map, x, y, [z,] smem): what lies
//   store_tensor(…)                outside the tensor is not stored, but for the rest of the 16
//                                  bytes in which a row ends. Negative x, y, z are illegal, too
//   store_commit()                 closes a group of a thread's stores
//   store_wait<Pending>()          until at most the `Pending` youngest groups still read shared
//                                  memory; a thread that stores waits for all before it ends
//   fence_async_proxy()            by a thread that has stored to shared memory, before the barrier
//                                  after which a copy or a multiplication reads what it stored
//   named_barrier<Id>(threads)     of `threads` threads, whole warps; Id 1 … 15
//   cluster_rank()                 of the block in its cluster; see LaunchConfig
//   cluster_sync()                 all threads of the cluster that have not ended; orders their
//                                  accesses to shared memory, each other's too
//   cluster_arrive()               the two halves of a barrier of the cluster that orders nothing:
//   cluster_wait()                 after it all threads have arrived, and all blocks run. The
//                                  executor takes it for a cluster_sync
//   cluster_peer(p, rank)          the same place in the shared memory of the block of that rank,
//                                  which must not end before the access is done
//   barrier_arrive_remote(b, rank)  at the barrier at the same place in that block
//   store_remote(to, v, b, rank)   v to the same place as the float4 `to` in that block; its 16
//                                  bytes arrive at the barrier there. A cluster's blocks alone may:
//                                  elsewhere it is an illegal instruction
//   copy_bulk_multicast(…, b, to)  as copy_bulk and copy_tensor, to the same place in each block
//   copy_tensor_multicast(…, b, to)  whose bit of the mask is set; its bytes arrive at the barrier
//                                  there
//   reg_alloc<N>()                 setmaxnreg: N registers per thread of this warpgroup, taken from
//   reg_dealloc<N>()               the pool of the block, or given back to it
//
//   matrix_descriptor(smem, swizzle, leading_bytes, stride_bytes)
//                                  a tile in shared memory, of lines along k, one for each row of a
//                                  or b. Swizzled: lines of the swizzle's width, 8 of them
//                                  stride_bytes before the next 8. Not swizzled: blocks of 8 lines
//                                  × 16 bytes, stride_bytes from the next 8 lines, leading_bytes
//                                  from the next 16 bytes along k
//   Major                          kK: as above. kMN, of 16-bit types: lines along the rows of a or
//                                  b, one for each k. Swizzled: 8 lines stride_bytes before the
//                                  next 8, and leading_bytes from what follows along the rows
//                                  beyond the swizzle's width. Not swizzled: blocks of 8 lines × 16
//                                  bytes, leading_bytes from the next 8 lines, stride_bytes from
//                                  the next 16 bytes along the rows
//   warpgroup_arrive()             before the first multiplication after a wait, by all 128
//   threads,
//                                  as the three below
//   warpgroup_mma_s8<N>(acc, a, b)  acc += a·bᵀ; a: 64×32, b: N×32, of int8; thread t of the
//                                  warpgroup holds columns 8j + t % 4 · 2 and the next, of rows
//                                  t / 32 · 16 + t % 32 / 4 (acc[4j], acc[4j + 1]) and 8 rows below
//                                  (acc[4j + 2], acc[4j + 3])
//   warpgroup_mma_s8<N>(acc, a, b)  with a in registers, as load_matrices of warp_mma.cuh has the
//                                  16×32 of the thread's warp; the thread may write a again only
//                                  after the wait
//   warpgroup_mma_f16<N>(acc, a, b, adds)   the same of floats: a: 64×16, b: N×16 of 16 bits, or
//   warpgroup_mma_bf16<N>(acc, a, b, adds)  64×8 and N×8 of 32 bits, whose lowest 13 are ignored;
//   warpgroup_mma_tf32<N>(acc, a, b, adds)  unless `adds`, acc = a·bᵀ. How sums are rounded:
//                                  cpu/executor/tensor_arithmetic.hpp. The first two, as <N,
//                                  MajorA, MajorB>, take tiles of either direction
//   warpgroup_commit()             closes a group of multiplications
//   warpgroup_wait<Pending>()      until at most the `Pending` youngest groups run; only then may
//                                  the thread touch acc, or anyone overwrite what they read
//   warpgroup_results(acc)         after that wait, before acc is read, or a written again: no
//                                  instruction, but the compiler may neither read the registers
//                                  earlier nor use them for something else
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/device/tensor_map.hpp>

namespace tilegate::device {

struct alignas(8) Barrier {
  std::uint64_t state;
};

using MatrixDescriptor = std::uint64_t;

// Along what the elements of a tile lie next to each other.
enum class Major { kK, kMN };

}  // namespace tilegate::device

#if defined(__CUDACC__)
#include <tilegate/device/cuda/async.cuh>
#include <tilegate/device/cuda/cluster.cuh>
#include <tilegate/device/cuda/tensor_copies.cuh>
#include <tilegate/device/cuda/warpgroup_mma.cuh>
#else
#include <tilegate/device/cpu/async.hpp>
#endif
