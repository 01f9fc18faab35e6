// What an mbarrier, a warp or a fence orders, and what it does not.
#pragma once

#include <tilegate/device/async.cuh>

#include "planted_pipeline.cuh"

namespace tilegate::planted::async {

struct WordsAndBarrier {
  alignas(16) float words[kConsumers];
  device::Barrier barrier;  // one arrival completes a phase
};

inline __device__ WordsAndBarrier& make_barrier() {
  auto& smem = device::shared_storage<WordsAndBarrier>();
  if (threadIdx.x == 0) {
    device::barrier_init(smem.barrier, 1);
    device::barrier_init_fence();
  }
  __syncthreads();  // the barrier is made
  return smem;
}

// One lane of each warp waits for a copy, and tells the others.
template <bool kFaulty>
__global__ void wait_for_warp(float* memory) {
  auto& [words, barrier] = make_barrier();
  if (threadIdx.x == 0) {
    device::barrier_arrive_expect(barrier, sizeof(words));
    device::copy_bulk(words, memory, sizeof(words), barrier);
  }
  if (threadIdx.x % 32 == 0) device::barrier_wait(barrier, 0);
  if (!kFaulty) __syncwarp();
  memory[kResults + threadIdx.x] = words[threadIdx.x];
}

// Thread 0 stores what thread 32 waits for, before it arrives or after.
template <bool kFaulty>
__global__ void store_after_arrival(float* memory) {
  auto& [words, barrier] = make_barrier();
  if (threadIdx.x == 0) {
    if (!kFaulty) words[0] = 1.0F;
    device::barrier_arrive(barrier);
    if (kFaulty) words[0] = 1.0F;
  }
  if (threadIdx.x != 32) return;
  device::barrier_wait(barrier, 0);
  memory[kResults] = words[0];
}

// A phase that was complete before __syncthreads says nothing of what came after it.
template <bool kFaulty>
__global__ void wait_for_old_phase(float* memory) {
  auto& [words, barrier] = make_barrier();
  if (threadIdx.x == 0) {
    device::fence_async_proxy();
    device::barrier_arrive(barrier);
  }
  __syncthreads();
  if (threadIdx.x == 0) words[0] = 1.0F;
  if (!kFaulty) __syncthreads();
  if (threadIdx.x != 32) return;
  device::barrier_wait(barrier, 0);
  memory[kResults] = words[0];
}

// The fences of other threads come too late for the store by thread 0.
template <bool kFaulty>
__global__ void fence_after_barrier(float* memory) {
  auto& words = device::shared_storage<WordsAndBarrier>().words;
  words[threadIdx.x] = memory[threadIdx.x];
  if (!kFaulty) device::fence_async_proxy();
  __syncthreads();
  if (kFaulty) device::fence_async_proxy();
  if (threadIdx.x != 0) return;
  device::store_bulk(memory + kResults, words, sizeof(words));
  device::store_commit();
  device::store_wait<0>();
}

}  // namespace tilegate::planted::async
