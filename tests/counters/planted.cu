#include <tilegate/device/device.cuh>

#include "planted.hpp"

namespace tilegate::planted {
namespace {

constexpr unsigned kThreads = 64;

struct Storage {
  alignas(16) float words[kThreads];
};

// Thread t reads what thread 63 - t, of the other warp, wrote.
template <bool kFaulty>
__global__ void read_after_write(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  if (!kFaulty) __syncthreads();
  memory[threadIdx.x] = smem.words[kThreads - 1 - threadIdx.x];
}

// All threads read word 0; then thread 40 writes it.
template <bool kFaulty>
__global__ void write_after_read(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[0];
  if (!kFaulty) __syncthreads();
  if (threadIdx.x == 40) smem.words[0] = 2.0F;
}

template <bool kFaulty>
__global__ void write_after_write(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  smem.words[kFaulty ? threadIdx.x / 2 : threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[kFaulty ? 0 : threadIdx.x];
}

// Two lanes of one warp exchange words.
template <bool kFaulty>
__global__ void warp_exchange(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  if (!kFaulty) __syncwarp();
  memory[threadIdx.x] = smem.words[threadIdx.x ^ 1];
}

// A warp barrier orders the lanes that its mask names, and no others.
template <bool kFaulty>
__global__ void partial_warp_barrier(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  const unsigned lane = threadIdx.x % 32;
  smem.words[threadIdx.x] = 1.0F;
  __syncwarp(lane < 16 ? 0x0000ffffU : 0xffff0000U);
  memory[threadIdx.x] = smem.words[threadIdx.x ^ (kFaulty ? 16 : 1)];
}

// A shuffle exchanges registers; it orders no memory.
template <bool kFaulty>
__global__ void shuffle_is_no_barrier(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  const float other = __shfl_xor_sync(~0U, smem.words[threadIdx.x], 1);
  memory[threadIdx.x] = kFaulty ? smem.words[threadIdx.x ^ 1] : other;
}

template <bool kFaulty>
__global__ void unwritten(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  if (!kFaulty || threadIdx.x != 5) smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[threadIdx.x];
}

// What one block wrote is nothing to the next.
template <bool kFaulty>
__global__ void unwritten_by_this_block(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  if (!kFaulty || blockIdx.x == 0) smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[threadIdx.x];
}

template <bool kFaulty>
__global__ void async_copy(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  device::copy_async<4>(&smem.words[threadIdx.x], &memory[threadIdx.x]);
  device::copy_async_commit();
  if (!kFaulty) device::copy_async_wait<0>();
  __syncthreads();
  memory[threadIdx.x] = smem.words[kThreads - 1 - threadIdx.x] + 1.0F;
  if (kFaulty) device::copy_async_wait<0>();
}

// The wait makes a copy visible to its own thread; the others need a barrier as well.
template <bool kFaulty>
__global__ void async_copy_barrier(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  device::copy_async<4>(&smem.words[threadIdx.x], &memory[threadIdx.x]);
  device::copy_async_commit();
  device::copy_async_wait<0>();
  if (!kFaulty) __syncthreads();
  const float other = smem.words[kThreads - 1 - threadIdx.x];
  __syncthreads();
  memory[threadIdx.x] = other;
}

template <bool kFaulty>
__global__ void divergent_barrier(float* memory) {
  if (!kFaulty || threadIdx.x < 40) __syncthreads();
  memory[threadIdx.x] = 1.0F;
}

template <bool kFaulty>
__global__ void outside_operand(float* memory) {
  memory[threadIdx.x + (kFaulty ? 1 : 0)] = 1.0F;
}

template <bool kFaulty>
__global__ void outside_shared(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[threadIdx.x + (kFaulty ? 1 : 0)];
}

template <bool kFaulty>
__global__ void misaligned(float* memory) {
  if (threadIdx.x >= 8) return;
  const auto v = device::load_vector<float4>(memory + 4 * threadIdx.x + (kFaulty ? 1 : 0));
  memory[threadIdx.x] = v.x + v.y + v.z + v.w;
}

template <bool kFaulty>
__global__ void misaligned_shared(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  if (threadIdx.x >= 8) return;
  const auto v = device::load_vector<float2>(&smem.words[2 * threadIdx.x + (kFaulty ? 1 : 0)]);
  memory[threadIdx.x] = v.x + v.y;
}

template <auto kKernel>
Status launch(float* memory) {
  const device::LaunchConfig config{
      .kernel = "planted", .blocks = 2, .threads_x = kThreads, .shared_bytes = sizeof(Storage)};
  return device::launch(config, nullptr, kKernel, memory);
}

#define PLANT(name, message) \
  { #name, launch < name < true>>, launch < name < false>>, message }

constexpr Plant kPlants[] = {
    PLANT(read_after_write,
          "race .* (reads|writes) at .*planted\\.cu:\\d+; thread .* (wrote|read) "
          "at .*planted\\.cu:\\d+; no __syncthreads between"),
    PLANT(write_after_read,
          "thread \\(40,0,0\\): race at byte 0 .* writes at .*; thread "
          "\\(\\d+,0,0\\) read at .*; no __syncthreads between"),
    PLANT(write_after_write, "race .* writes at .*; thread .* wrote at"),
    PLANT(warp_exchange, "race .*; lanes of one warp, and no __syncwarp"),
    PLANT(partial_warp_barrier, "race .*; lanes of one warp, and no __syncwarp"),
    PLANT(shuffle_is_no_barrier, "race .*; lanes of one warp, and no __syncwarp"),
    PLANT(unwritten, "thread \\(5,0,0\\): read of byte 20 .* no thread of the block has written"),
    PLANT(unwritten_by_this_block, "block 1, .* no thread of the block has written"),
    PLANT(async_copy,
          "before the wait of the async copy that thread \\(\\d+,0,0\\) started at "
          ".*planted\\.cu"),
    PLANT(async_copy_barrier, "race .*; no __syncthreads between"),
    PLANT(divergent_barrier, "divergent barrier: this thread waits at .*planted\\.cu"),
    PLANT(outside_operand, "thread \\(63,0,0\\): 32-bit store outside every operand, at .*planted"),
    PLANT(outside_shared,
          "thread \\(63,0,0\\): 32-bit load outside every operand, at byte 256 of "
          "256 bytes of shared memory, at .*planted"),
    PLANT(misaligned, "misaligned 128-bit load, at .*planted\\.cu"),
    PLANT(misaligned_shared, "misaligned 64-bit load at byte 4 of shared memory, at .*planted"),
};

}  // namespace

std::span<const Plant> plants() { return kPlants; }

}  // namespace tilegate::planted
