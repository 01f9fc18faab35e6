// Kernels whose threads misuse shared memory or leave their operands, and what must be said of
// each.
#include "planted.hpp"
#include "planted_races.cuh"

namespace tilegate::planted {
namespace block {
namespace {

template <bool kFaulty>
__global__ void unwritten(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  if (!kFaulty || threadIdx.x != 5) smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[threadIdx.x];
}

// What one block wrote is nothing to the next.
template <bool kFaulty>
__global__ void unwritten_by_this_block(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  if (!kFaulty || blockIdx.x == 0) smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[threadIdx.x];
}

// Of a thread's two groups of copies the wait covers the older; the younger is read.
template <bool kFaulty>
__global__ void async_copy_of_younger_group(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  constexpr unsigned kHalf = kThreads / 2;
  if (threadIdx.x >= kHalf) return;
  for (unsigned i = threadIdx.x; i < kThreads; i += kHalf) {
    device::copy_async<4>(&smem.words[i], &memory[i]);
    device::copy_async_commit();
  }
  device::copy_async_wait<kFaulty ? 1 : 0>();
  memory[threadIdx.x] = smem.words[kHalf + threadIdx.x] + 1.0F;
  device::copy_async_wait<0>();
}

template <bool kFaulty>
__global__ void divergent_barrier(float* all) {
  float* const memory = part_of_block(all);
  if (!kFaulty || threadIdx.x < 40) __syncthreads();
  memory[threadIdx.x] = 1.0F;
}

template <bool kFaulty>
__global__ void outside_operand(float* all) {
  float* const memory = part_of_block(all);
  constexpr unsigned kPastTheEnd = kWords - 2 * kThreads + 1;
  memory[threadIdx.x + (kFaulty && blockIdx.x == 1 ? kPastTheEnd : 0)] = 1.0F;
}

template <bool kFaulty>
__global__ void outside_shared(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  memory[threadIdx.x] = smem.words[threadIdx.x + (kFaulty ? 1 : 0)];
}

// The last three words of shared memory do not make a vector.
constexpr unsigned kMore = 3;
constexpr std::size_t kMoreBytes = sizeof(Storage) + kMore * sizeof(float);

template <bool kFaulty>
__global__ void vector_over_end_of_shared(float* all) {
  auto& smem = device::shared_storage<Storage>();
  float* const words = smem.words;
  words[threadIdx.x] = 1.0F;
  if (threadIdx.x < kMore) words[kThreads + threadIdx.x] = 1.0F;
  __syncthreads();
  const unsigned last = kFaulty ? kThreads : kThreads - 4;
  if (threadIdx.x == 0) part_of_block(all)[0] = device::load_vector<float4>(&words[last]).x;
}

template <bool kFaulty>
__global__ void copy_over_end_of_shared(float* all) {
  float* const words = device::shared_storage<Storage>().words;
  const unsigned last = kFaulty ? kThreads : kThreads - 4;
  if (threadIdx.x == 0) device::copy_async<16>(&words[last], part_of_block(all));
  device::copy_async_wait<0>();
}

template <bool kFaulty>
__global__ void misaligned(float* all) {
  float* const memory = part_of_block(all);
  if (threadIdx.x >= 8) return;
  const auto v = device::load_vector<float4>(memory + 4 * threadIdx.x + (kFaulty ? 1 : 0));
  memory[kThreads / 2 + threadIdx.x] = v.x + v.y + v.z + v.w;
}

// The first half of the vector is memory.
template <bool kFaulty>
__global__ void straddling(float* memory) {
  const float* const last = memory + kWords - (kFaulty ? 2 : 4);
  if (threadIdx.x == 0) memory[blockIdx.x] = device::load_vector<float4>(last).x;
}

template <bool kFaulty>
__global__ void misaligned_shared(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  smem.words[threadIdx.x] = 1.0F;
  __syncthreads();
  if (threadIdx.x >= 8) return;
  const auto v = device::load_vector<float2>(&smem.words[2 * threadIdx.x + (kFaulty ? 1 : 0)]);
  memory[threadIdx.x] = v.x + v.y;
}

// Half-warps store to the same words in turn: four instructions of warps.
template <bool kFaulty>
__global__ void store_in_turns(float* all) {
  float* const memory = part_of_block(all);
  auto& smem = device::shared_storage<Storage>();
  for (unsigned turn = 0; turn < kThreads / 16; ++turn) {
    if (threadIdx.x / 16 == turn) smem.words[threadIdx.x % 16] = 1.0F;
    if (!kFaulty) __syncthreads();
  }
  memory[threadIdx.x] = smem.words[threadIdx.x % 16];
}

// Shared memory ends within a word.
constexpr std::size_t kOddBytes = sizeof(Storage) + 1;

template <bool kFaulty>
__global__ void last_byte_of_shared(float* all) {
  auto* const bytes = reinterpret_cast<char*>(&device::shared_storage<Storage>());
  if (threadIdx.x == 0) bytes[kOddBytes - 1] = 1;
  if (!kFaulty) __syncthreads();
  part_of_block(all)[threadIdx.x] = bytes[kOddBytes - 1];
}

template <auto kKernel, std::size_t kSharedBytes = sizeof(Storage)>
Status launch(float* memory) {
  const device::LaunchConfig config{
      .kernel = "planted", .blocks = 2, .threads_x = kThreads, .shared_bytes = kSharedBytes};
  return device::launch(config, nullptr, kKernel, memory);
}

#define PLANT(name, message) {#name, launch<name<true>>, launch<name<false>>, message}
#define PLANT_WITH_MORE(name, message) \
  {#name, launch<name<true>, kMoreBytes>, launch<name<false>, kMoreBytes>, message}

constexpr Plant kPlants[] = {
    PLANT(read_after_write,
          "race .* (reads|writes) at .*planted_races\\.cuh:\\d+; thread .* (wrote|read) "
          "at .*planted_races\\.cuh:\\d+; no __syncthreads between"),
    PLANT(write_after_read,
          "thread \\(40,0,0\\): race at byte 0 .* writes at .*; thread "
          "\\(\\d+,0,0\\) read at .*; no __syncthreads between"),
    PLANT(write_after_read_of_other_warp,
          "thread \\(0,0,0\\): race at byte 0 .* writes at .*; thread \\(63,0,0\\) read at .*; no "
          "__syncthreads between"),
    PLANT(write_after_write, "race .* writes at .*; thread .* wrote at"),
    PLANT(write_into_vector, "race at byte 12 .* writes at .*; thread .* wrote at"),
    PLANT(vector_read_after_write, "race at byte 28 of shared memory"),
    PLANT(write_after_vector_read, "race at byte 28 of shared memory"),
    PLANT(store_in_turns, "race at byte \\d+ .* writes at .*; thread .* wrote at"),
    PLANT(warp_exchange, "race .*; lanes of one warp, and no __syncwarp"),
    PLANT(partial_warp_barrier, "race .*; lanes of one warp, and no __syncwarp"),
    PLANT(shuffle_is_no_barrier, "race .*; lanes of one warp, and no __syncwarp"),
    PLANT(unwritten, "thread \\(5,0,0\\): read of byte 20 .* no thread of the block has written"),
    PLANT(unwritten_by_this_block, "block 1, .* no thread of the block has written"),
    PLANT(async_copy,
          "before the wait of the async copy that thread \\(\\d+,0,0\\) started at "
          ".*planted_races\\.cuh"),
    PLANT(async_copy_of_younger_group,
          "read of byte \\d+ of shared memory .* before the wait of the async copy that thread "
          "\\(\\d+,0,0\\) started at .*planted\\.cu"),
    PLANT(async_copy_of_vector,
          "thread \\(40,0,0\\): read of byte 12 of shared memory .* before the wait of the async "
          "copy "
          "that thread \\(0,0,0\\) started"),
    PLANT(async_copy_barrier, "race .*; no __syncthreads between"),
    PLANT(store_after_async_copy,
          "race at byte 0 .* writes at (.*planted_races\\.cuh:\\d+); thread \\(0,0,0\\) wrote at "
          "(?!\\1;).*planted_races\\.cuh:\\d+; no __syncthreads between"),
    PLANT(divergent_barrier, "divergent barrier: this thread waits at .*planted\\.cu"),
    PLANT(outside_operand, "thread \\(63,0,0\\): 32-bit store outside every operand, at .*planted"),
    PLANT(outside_shared,
          "thread \\(63,0,0\\): 32-bit load outside every operand, at byte 256 of "
          "256 bytes of shared memory, at .*planted"),
    PLANT_WITH_MORE(
        vector_over_end_of_shared,
        "128-bit load outside every operand, at byte 256 of 268 bytes of shared memory"),
    PLANT_WITH_MORE(
        copy_over_end_of_shared,
        "128-bit store outside every operand, at byte 256 of 268 bytes of shared memory"),
    PLANT(misaligned, "misaligned 128-bit load, at .*planted\\.cu"),
    PLANT(straddling, "128-bit load outside every operand, at 0x"),
    PLANT(misaligned_shared, "misaligned 64-bit load at byte 4 of shared memory, at .*planted"),
    {"last_byte_of_shared", launch<last_byte_of_shared<true>, kOddBytes>,
     launch<last_byte_of_shared<false>, kOddBytes>, "race at byte 256 of shared memory: "},
};

}  // namespace
}  // namespace block

std::span<const Plant> plants() { return block::kPlants; }

}  // namespace tilegate::planted
