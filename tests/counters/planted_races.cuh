// Races between threads in shared memory, and copies without a wait.
#pragma once

#include <tilegate/device/device.cuh>

#include "planted.hpp"

namespace tilegate::planted::block {

constexpr unsigned kThreads = 64;

struct Storage {
  alignas(16) float words[kThreads];
};

// Each block has its part of the memory.
inline __device__ float* part_of_block(float* memory) { return memory + blockIdx.x * kThreads; }

// Thread t reads what thread 63 - t, of the other warp, wrote.
template <bool kFaulty>
__global__ void read_after_write(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  if (!kFaulty) __syncthreads();
  memory[threadIdx.x] = smem.words[kThreads - 1 - threadIdx.x];
}

// All threads read word 0; then thread 40 writes it.
template <bool kFaulty>
__global__ void write_after_read(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[0];
  if (!kFaulty) __syncthreads();
  if (threadIdx.x == 40) smem.words[0] = 2.0F;
}

template <bool kFaulty>
__global__ void write_after_write(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  smem.words[kFaulty ? threadIdx.x / 2 : threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[kFaulty ? 0 : threadIdx.x];
}

// Both warps read word 0; then thread 0, whose warp read first and has met since, writes it.
template <bool kFaulty>
__global__ void write_after_read_of_other_warp(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[0];
  if (kFaulty) {
    __syncwarp();
  } else {
    __syncthreads();
  }
  if (threadIdx.x == 0) smem.words[0] = 2.0F;
}

// Thread 0 stores words 0 … 3, thread 40 another one.
template <bool kFaulty>
__global__ void write_into_vector(float* all) {
  auto& smem = device::shared_storage<Storage>();
  if (threadIdx.x == 0) device::store_vector(smem.words, make_float4(1, 1, 1, 1));
  if (threadIdx.x == 40) smem.words[kFaulty ? 3 : 4] = 2.0F;
  __syncthreads();
  part_of_block(all)[threadIdx.x] = smem.words[0];
}

// Thread 7 writes the last word of the vector that thread 33 loads.
template <bool kFaulty>
__global__ void vector_read_after_write(float* all) {
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  if (threadIdx.x == 7) smem.words[7] = 2.0F;
  if (!kFaulty) __syncthreads();
  if (threadIdx.x == 33) {
    part_of_block(all)[0] = device::load_vector<float4>(&smem.words[4]).x;
  }
}

// Thread 33 loads a vector; then thread 7 writes its last word.
template <bool kFaulty>
__global__ void write_after_vector_read(float* all) {
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  if (threadIdx.x == 33) {
    part_of_block(all)[0] = device::load_vector<float4>(&smem.words[4]).x;
  }
  if (!kFaulty) __syncthreads();
  if (threadIdx.x == 7) smem.words[7] = 2.0F;
}

// Two lanes of one warp exchange words.
template <bool kFaulty>
__global__ void warp_exchange(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  if (!kFaulty) __syncwarp();
  memory[threadIdx.x] = smem.words[threadIdx.x ^ 1];
}

// A warp barrier orders the lanes that its mask names, and no others: lane 3, which has met the
// lower half, reads what a lane of the upper half wrote.
template <bool kFaulty>
__global__ void partial_warp_barrier(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  const unsigned lane = threadIdx.x % 32;
  smem.words[threadIdx.x] = 1.0F;
  __syncwarp(lane < 16 ? 0x0000ffffU : 0xffff0000U);
  memory[threadIdx.x] = smem.words[threadIdx.x ^ (kFaulty && lane == 3 ? 16 : 1)];
}

// A shuffle exchanges registers; it orders no memory.
template <bool kFaulty>
__global__ void shuffle_is_no_barrier(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  const float other = __shfl_xor_sync(~0U, smem.words[threadIdx.x], 1);
  memory[threadIdx.x] = kFaulty ? smem.words[threadIdx.x ^ 1] : other;
}

template <bool kFaulty>
__global__ void async_copy(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  device::copy_async<4>(&smem.words[threadIdx.x], &memory[threadIdx.x]);
  device::copy_async_commit();
  if (!kFaulty) device::copy_async_wait<0>();
  __syncthreads();
  memory[threadIdx.x] = smem.words[kThreads - 1 - threadIdx.x] + 1.0F;
  if (kFaulty) device::copy_async_wait<0>();
}

// Thread 40 reads the last word of the vector that thread 0 copies.
template <bool kFaulty>
__global__ void async_copy_of_vector(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  if (threadIdx.x == 0) {
    device::copy_async<16>(smem.words, memory);
    device::copy_async_commit();
  }
  __syncthreads();
  if (threadIdx.x == 40) memory[40] = smem.words[kFaulty ? 3 : 4];
  __syncthreads();
  device::copy_async_wait<0>();
}

// The wait makes a copy visible to its own thread; the others need a barrier as well.
template <bool kFaulty>
__global__ void async_copy_barrier(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  device::copy_async<4>(&smem.words[threadIdx.x], &memory[threadIdx.x]);
  device::copy_async_commit();
  device::copy_async_wait<0>();
  if (!kFaulty) __syncthreads();
  const float other = smem.words[kThreads - 1 - threadIdx.x];
  __syncthreads();
  memory[threadIdx.x] = other;
}

// Thread 40 stores word 1 while thread 0 copies word 0, and then, in the same line, word 0.
template <bool kFaulty>
__global__ void store_after_async_copy(float* all) {
  auto& smem = device::shared_storage<Storage>();
  if (threadIdx.x == 0) {
    device::copy_async<4>(&smem.words[0], part_of_block(all));
    device::copy_async_commit();
  }
  for (int word = 1; word >= 0; --word) {
    if (threadIdx.x == 40) smem.words[word] = 2.0F;
    __syncthreads();
    if (threadIdx.x == 0) device::copy_async_wait<0>();
    if (!kFaulty) __syncthreads();
  }
}

}  // namespace tilegate::planted::block
