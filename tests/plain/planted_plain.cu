// Plain kernels that have a hazard each, and their clean twins.
#include <cassert>

#include <tilegate/device/plain.cuh>

#include "../counters/planted.hpp"

constexpr int kThreads = 64;

namespace missing_syncthreads {
template <bool kFaulty>
__global__ void planted(float* memory) {
  __shared__ float As[kThreads], Bs[kThreads];
  As[threadIdx.x] = 1.f;
  Bs[threadIdx.x] = 1.f;
  if (!kFaulty) __syncthreads();
  memory[blockIdx.x * kThreads + threadIdx.x] = As[threadIdx.x] + Bs[kThreads - 1 - threadIdx.x];
}
}  // namespace missing_syncthreads

// On a GPU it is another array's element.
namespace outside_of_array {
template <bool kFaulty>
__global__ void planted(float* memory) {
  __shared__ float As[kThreads];
  __shared__ float Bs[kThreads];
  Bs[threadIdx.x] = 0.f;
  As[threadIdx.x + (kFaulty ? 1 : 0)] = 1.f;
  __syncthreads();
  memory[blockIdx.x * kThreads + threadIdx.x] = As[threadIdx.x] + Bs[threadIdx.x];
}
}  // namespace outside_of_array

namespace outside_of_dynamic {
template <bool kFaulty>
__global__ void planted(float* memory) {
  extern __shared__ float smem[];
  smem[threadIdx.x + (kFaulty ? 1 : 0)] = 1.f;
  memory[blockIdx.x * kThreads + threadIdx.x] = 1.f;
}
}  // namespace outside_of_dynamic

namespace misaligned_vector {
template <bool kFaulty>
__global__ void planted(float* memory) {
  __shared__ float As[4 * kThreads + 4];
  reinterpret_cast<float4*>(&As[threadIdx.x * 4 + (kFaulty ? 1 : 0)])[0] = make_float4(0, 0, 0, 0);
  memory[blockIdx.x * kThreads + threadIdx.x] = As[threadIdx.x * 4];
}
}  // namespace misaligned_vector

namespace store_beside_atomic {
template <bool kFaulty>
__global__ void planted(float* memory) {
  if (kFaulty && blockIdx.x == 0) {
    memory[threadIdx.x] = 1.f;
  } else {
    atomicAdd(&memory[threadIdx.x], 1.f);
  }
}
}  // namespace store_beside_atomic

namespace read_of_counter {
template <bool kFaulty>
__global__ void planted(float* memory) {
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  if (!kFaulty) __syncthreads();
  memory[blockIdx.x * kThreads + threadIdx.x] = count;
}
}  // namespace read_of_counter

namespace failed_assertion {
template <bool kFaulty>
__global__ void planted(float* memory) {
  assert(threadIdx.x < (kFaulty ? 63 : 64));
  memory[blockIdx.x * kThreads + threadIdx.x] = 1.f;
}
}  // namespace failed_assertion

namespace missing_wait {
template <bool kFaulty>
__global__ void planted(float* memory) {
  __shared__ float As[kThreads];
  const unsigned to = __cvta_generic_to_shared(&As[threadIdx.x]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(&memory[threadIdx.x]));
  if (!kFaulty) asm volatile("cp.async.wait_all;");
  memory[kThreads * (1 + blockIdx.x) + threadIdx.x] = As[threadIdx.x];
  asm volatile("cp.async.wait_all;");
}
}  // namespace missing_wait

namespace large_array {
template <bool kFaulty>
__global__ void planted(float* memory) {
  __shared__ float As[kFaulty ? 12289 : 12288];
  As[threadIdx.x] = 1.f;
  memory[blockIdx.x * kThreads + threadIdx.x] = As[threadIdx.x];
}
}  // namespace large_array

// One copy of 64 bytes.
namespace copied_structure {
struct Part {
  float x[16];
};
template <bool kFaulty>
__global__ void planted(float* memory) {
  __shared__ Part parts[kThreads], copies[kThreads];
  for (int i = 0; i < 16; ++i) parts[threadIdx.x].x[i] = 1.f;
  if (!kFaulty) __syncthreads();
  copies[threadIdx.x] = parts[kThreads - 1 - threadIdx.x];
  memory[blockIdx.x * kThreads + threadIdx.x] = copies[threadIdx.x].x[3];
}
}  // namespace copied_structure

// A loop that a compiler takes for such a copy.
namespace copying_loop {
template <bool kFaulty>
__global__ void planted(float* memory) {
  __shared__ float As[8 * kThreads];
  float registers[8];
  for (int i = 0; i < 8; ++i) As[i * kThreads + threadIdx.x] = 1.f;
  if (!kFaulty) __syncthreads();
  for (int i = 0; i < 8; ++i) registers[i] = As[8 * threadIdx.x + i];
  float sum = 0.f;
  for (int i = 0; i < 8; ++i) sum += registers[i];
  memory[blockIdx.x * kThreads + threadIdx.x] = sum;
}
}  // namespace copying_loop

// Threads of 4×4×4.
namespace third_dimension {
template <bool kFaulty>
__global__ void planted(float* memory) {
  __shared__ volatile int As[kThreads];
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  if (threadIdx.z == 3) As[kFaulty ? thread % 16 : thread] = 1;
  if (threadIdx.z == 0) As[thread] = 1;
  memory[blockIdx.x * kThreads + thread] = 1.f;
}
}  // namespace third_dimension

// The update before the last is of another warp's last lane.
namespace store_after_updates {
template <bool kFaulty>
__global__ void planted(float* memory) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0.f;
  __syncthreads();
  if (threadIdx.x == 31 || threadIdx.x == 32) atomicAdd(&sum, 1.f);
  __syncwarp();
  if (!kFaulty) __syncthreads();
  if (threadIdx.x == 33) sum = 2.f;
  __syncthreads();
  memory[blockIdx.x * kThreads + threadIdx.x] = sum;
}
}  // namespace store_after_updates

template <typename Change>
__device__ void change_a_copy(float* memory, bool waits, Change change) {
  __shared__ float As[kThreads];
  const unsigned to = __cvta_generic_to_shared(&As[threadIdx.x]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(&memory[threadIdx.x]));
  if (waits) asm volatile("cp.async.wait_all;");
  change(&As[threadIdx.x]);
  asm volatile("cp.async.wait_all;");
  memory[kThreads * (1 + blockIdx.x) + threadIdx.x] = As[threadIdx.x];
}

namespace update_of_copy {
template <bool kFaulty>
__global__ void planted(float* memory) {
  change_a_copy(memory, !kFaulty, [](float* copied) { atomicAdd(copied, 1.f); });
}
}  // namespace update_of_copy

namespace store_to_copy {
template <bool kFaulty>
__global__ void planted(float* memory) {
  change_a_copy(memory, !kFaulty, [](float* copied) { *copied = 1.f; });
}
}  // namespace store_to_copy

namespace tilegate::planted {
namespace {

#define PLANT(name, block, shared_bytes, message)                                                \
  {#name,                                                                                        \
   [](float* memory) {                                                                           \
     return plain::status_of([=] { name::planted<true><<<2, block, shared_bytes>>>(memory); });  \
   },                                                                                            \
   [](float* memory) {                                                                           \
     return plain::status_of([=] { name::planted<false><<<2, block, shared_bytes>>>(memory); }); \
   },                                                                                            \
   message}

constexpr Plant kPlants[] = {
    PLANT(
        missing_syncthreads, kThreads, 0,
        "race at byte \\d+ of Bs: this thread (reads|writes) at .*planted_plain\\.cu:1[57], called "
        "from .*planted_plain\\.cu:\\d+; thread \\(\\d+,0,0\\) (wrote|read) at "
        ".*planted_plain\\.cu:1[57], called from .*planted_plain\\.cu:\\d+; no __syncthreads "
        "between"),
    PLANT(outside_of_array, kThreads, 0,
          "thread \\(63,0,0\\): 32-bit store outside every __shared__ variable, 0 bytes past the "
          "end of As, at .*planted_plain\\.cu:28"),
    PLANT(outside_of_dynamic, kThreads, 256,
          "32-bit store outside every __shared__ variable, 0 bytes past the end of dynamic shared "
          "memory, at .*planted_plain\\.cu"),
    PLANT(misaligned_vector, kThreads, 0,
          "misaligned 128-bit store at byte 4 of As, at .*planted_plain\\.cu"),
    PLANT(store_beside_atomic, kThreads, 0,
          "race at .*: this thread loads it, at .*planted_plain\\.cu.*; block 0, thread .* stored"),
    PLANT(read_of_counter, kThreads, 0, "race at byte 0 of count: this thread (reads|writes) at"),
    PLANT(failed_assertion, kThreads, 0,
          "thread \\(63,0,0\\): assertion failed: threadIdx.x < \\(kFaulty \\? 63 : 64\\), at "
          ".*planted_plain\\.cu:78"),
    PLANT(missing_wait, kThreads, 0, "read of byte 0 of As .* before the wait of the async copy"),
    PLANT(large_array, kThreads, 0, "the __shared__ variable As .* at most 49152 bytes"),
    PLANT(copied_structure, kThreads, 0,
          "race at byte \\d+ of parts: .*; thread .* (wrote|read) at"),
    PLANT(copying_loop, kThreads, 0, "race at byte \\d+ of As: .*; thread .* (wrote|read) at"),
    PLANT(third_dimension, dim3(4, 4, 4), 0,
          "thread \\(0,0,3\\): race at byte 0 of As: .*; thread \\(0,0,0\\) wrote"),
    PLANT(store_after_updates, kThreads, 0,
          "thread \\(33,0,0\\): race at byte 0 of sum: this thread writes at .*; thread "
          "\\(31,0,0\\) wrote at"),
    PLANT(update_of_copy, kThreads, 0,
          "thread \\(0,0,0\\): update of byte 0 of As .* before the wait of the async copy "
          "that thread \\(0,0,0\\) started at .*planted_plain"),
    PLANT(store_to_copy, kThreads, 0,
          "thread \\(0,0,0\\): write of byte 0 of As .* before the wait of the async copy "
          "that thread \\(0,0,0\\) started at .*planted_plain"),
};

}  // namespace

std::span<const Plant> plain_plants() { return kPlants; }

}  // namespace tilegate::planted
