// Portability layer: all that a kernel may use of CUDA beyond the language. The same kernel source
// is compiled by nvcc for a GPU, or by a host compiler for the SIMT executor.
//
// Inside a kernel, on both devices: threadIdx, blockIdx, blockDim, gridDim; __syncthreads(),
// __syncwarp(mask), __shfl_sync, __shfl_xor_sync, __shfl_down_sync, __reduce_add_sync,
// __reduce_max_sync, __reduce_or_sync; float2, float4; and, in namespace tilegate::device,
//
//   shared_storage<T>()            the block's dynamic shared memory, as a T
//   load_vector<float4>(p)         one access of sizeof(V) bytes; p aligned to it
//   store_vector(p, v)
//   shared_address(p)              32-bit address of p in shared memory
//   copy_async<Bytes>(to, gmem, inside)  4, 8 or 16 bytes to a pointer or address in shared memory,
//                                  zeros where not `inside`; complete after the wait that covers it
//   copy_async_part(to, gmem, words)  copy_async<16>, of which only 0 to 4 words are copied; zeros
//                                  after them. `to` is an address; gmem is aligned to 16 bytes
//   copy_async_commit()            closes a group of copies
//   copy_async_wait<N>()           waits until at most the N youngest groups are pending
//   wait_for_previous_kernel()     in kernels launched with `overlaps_previous`: before the first
//                                  access to memory that an earlier kernel writes or reads
//   wait_for_previous_kernel(p...)  the same; the pointers p are computed before it waits
//   launch_dependents()            allows the next kernel's blocks to start; that kernel waits with
//                                  wait_for_previous_kernel()
//   fail(message)                  ends the launch with an error, as a failed assert() does
//   add_products(c, a, b, ascending)  c[j] += a·b[j] for a row of registers, in either direction
//   ordered::…                     instructions that the compiler keeps in source order
//
// From the host:
//
//   launch(config, stream, kernel, args...)     enqueues; never synchronises
//   StartsAlone                                 while one lives, the next launch has no overlap
//   allow_shared_memory(kernel, bytes)          dynamic shared memory above 48 KiB
//   prefer_shared_memory(kernel)                the largest shared-memory carveout
#pragma once

#include <tilegate/device/launch_config.hpp>

#if defined(__CUDACC__)
#include <tilegate/device/cuda/device.cuh>
#else
#include <tilegate/device/cpu/device.hpp>
#endif
