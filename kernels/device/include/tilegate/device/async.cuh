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
//                                  first phase, parity 1 counts as complete
//   copy_bulk(smem, gmem, bytes, b)  one thread; its bytes arrive at b; multiples of 16 bytes
//   copy_tensor(smem, map, x, y, [z,] b)  one thread; the box that begins at column x, row y,
//                                  matrix z. Elements outside the tensor become zeros; their bytes
//                                  arrive too. smem: a multiple of 128 bytes; x: of 16 bytes,
//                                  otherwise a GPU reports an illegal instruction
//   warp_arrive_expect(b, bytes)   barrier_arrive_expect and copy_tensor by one lane of a converged
//   warp_copy_tensor(…)            warp. All lanes have the same arguments. There is no branch, so
//                                  that nvcc keeps what is the same in all lanes in uniform
//                                  registers
//   warp_copy_tensor(…, policy)    the same with an L2 priority: CachePolicy::bits of once.cuh
//   prefetch_tensor(map)           loads the map of a later copy into the cache; one thread
//   store_bulk(gmem, smem, bytes)  one thread
//   store_tensor(map, x, y, [z,] smem)  one thread. Elements outside the tensor are not stored,
//                                  except the rest of the 16 bytes in which a row ends. Negative
//                                  x, y, z are illegal
//   store_commit()                 closes a group of the thread's stores
//   store_wait<Pending>()          waits until at most the `Pending` youngest groups still read
//                                  shared memory. A thread waits for all its stores before it ends
//   fence_async_proxy()            orders the thread's stores to shared memory before asynchronous
//                                  reads of them: stores; fence; barrier; copy or wgmma
//   named_barrier<Id>(threads)     a barrier of `threads` threads, whole warps; Id 1 … 15
//   named_barrier_or<Id>(threads, value)
//                                  the same; whether `value` was true in one of the threads
//   cluster_rank()                 rank of the block in its cluster; see LaunchConfig
//   cluster_sync()                 barrier of all threads of the cluster that have not ended; it
//                                  orders their accesses to the shared memory of all its blocks
//   cluster_arrive()               a relaxed barrier of the cluster, in two halves: after the wait
//   cluster_wait()                 all threads have arrived and all blocks run, but no accesses are
//                                  ordered. The executor treats it as a cluster_sync
//   cluster_peer(p, rank)          the address that corresponds to p in the shared memory of the
//                                  block of that rank; that block must not end before the access
//   barrier_arrive_remote(b, rank)  arrives at the corresponding barrier of that block
//   store_remote(to, v, b, rank)   stores v to the float4 that corresponds to `to` in that block;
//                                  the 16 bytes arrive at the barrier there. Outside a cluster it
//                                  is an illegal instruction
//   copy_bulk_multicast(…, b, mask)    as copy_bulk and copy_tensor, to the corresponding address
//   copy_tensor_multicast(…, b, mask)  of each block whose bit of the mask is set; the bytes arrive
//                                  at the barrier there
//   reg_alloc<N>()                 setmaxnreg: raises or lowers the registers per thread of this
//   reg_dealloc<N>()               warpgroup to N, from or to the block's pool
//
//   matrix_descriptor(smem, swizzle, leading_bytes, stride_bytes)
//                                  describes a tile in shared memory for wgmma. A line lies along
//                                  k; there is one per row of a or b. Swizzled: a line is as wide
//                                  as the swizzle; groups of 8 lines lie stride_bytes apart. Not
//                                  swizzled: blocks of 8 lines × 16 bytes; the next 8 lines follow
//                                  after stride_bytes, the next 16 bytes of k after leading_bytes
//   Major                          kK: as above. kMN, 16-bit types only: a line lies along the rows
//                                  of a or b; there is one per k. Swizzled: groups of 8 lines lie
//                                  stride_bytes apart; the rows beyond the swizzle's width follow
//                                  after leading_bytes. Not swizzled: blocks of 8 lines × 16 bytes;
//                                  the next 8 lines follow after leading_bytes, the next 16 bytes
//                                  of rows after stride_bytes
//   warpgroup_arrive()             before the first wgmma after a wait. All 128 threads call this
//                                  and the functions below
//   warpgroup_mma_s8<N>(acc, a, b)  acc += a·bᵀ; a: 64×32, b: N×32, of int8. Thread t of the
//                                  warpgroup holds columns 8j + t % 4 · 2 and the next, of row
//                                  t / 32 · 16 + t % 32 / 4 (acc[4j], acc[4j + 1]) and of 8 rows
//                                  below (acc[4j + 2], acc[4j + 3])
//   warpgroup_mma_s8<N>(acc, a, b)  with a in registers: the 16×32 of the thread's warp, in the
//                                  layout of load_matrices (warp_mma.cuh). The thread may write a
//                                  again only after the wait
//   warpgroup_mma_f16<N>(acc, a, b, adds)   the same for floats: a: 64×16, b: N×16 of 16 bits, or
//   warpgroup_mma_bf16<N>(acc, a, b, adds)  64×8 and N×8 of 32 bits, whose lowest 13 are ignored;
//   warpgroup_mma_tf32<N>(acc, a, b, adds)  unless `adds`, acc = a·bᵀ. How sums are rounded:
//                                  cpu/executor/tensor_arithmetic.hpp. The first two, as <N,
//                                  MajorA, MajorB>, take tiles of either Major
//   warpgroup_mma_f16<N, MajorB>(acc, a, b, adds)   with a in registers: 16×16 of 16 bits, in the
//   warpgroup_mma_bf16<N, MajorB>(acc, a, b, adds)  same layout as bytes of int8
//   warpgroup_commit()             closes a group of multiplications
//   warpgroup_wait<Pending>()      waits until at most the `Pending` youngest groups run. Only then
//                                  may the thread use acc, and any thread overwrite the tiles
//   warpgroup_fence_operand(acc)  after that wait, before acc is read, or a written again. No
//                                  instruction: it keeps the compiler from reading the registers
//                                  earlier and from reusing them
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/device/tensor_map.hpp>

namespace tilegate::device {

struct alignas(8) Barrier {
  std::uint64_t state;
};

using MatrixDescriptor = std::uint64_t;

// The dimension along which the elements of a tile are contiguous.
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
