// The seam: everything a kernel may use of CUDA beyond the language itself. One kernel source,
// built by nvcc for a GPU or by a host compiler for the SIMT executor.
//
// Inside a kernel, on both devices: threadIdx, blockIdx, blockDim, gridDim; __syncthreads(),
// __syncwarp(mask), __shfl_sync, __shfl_xor_sync, __shfl_down_sync; float2, float4; and, in
// namespace tilegate::device,
//
//   shared_storage<T>()            the block's dynamic shared memory, as a T
//   load_vector<float4>(p)         one access of sizeof(V) bytes; p aligned to it
//   store_vector(p, v)
//   copy_async<Bytes>(smem, gmem)  4, 8 or 16 bytes, complete after the wait that covers it
//   copy_async_commit()            closes a group of copies
//   copy_async_wait<N>()           until at most the N youngest groups are pending
//
// From the host:
//
//   launch(config, stream, kernel, args...)     enqueues; never synchronises
//   allow_shared_memory(kernel, bytes)          dynamic shared memory above 48 KiB
//   prefer_shared_memory(kernel)                the largest shared-memory carveout
#pragma once

#include <tilegate/device/launch_config.hpp>

#if defined(__CUDACC__)
#include <tilegate/device/cuda/seam.cuh>
#else
#include <tilegate/device/cpu/seam.hpp>
#endif
