// Memory that a kernel has not written holds NaN; a copy is not visible before its wait.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/small_kernel.hpp"

namespace tilegate::initial_memory_test {

using small_kernel::kThreads;
using small_kernel::run;
using small_kernel::Schedule;
using small_kernel::SharedStorage;

__global__ void read_then_write(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage>();
  out[blockIdx.x * kThreads + threadIdx.x] = shared.values[threadIdx.x];
  shared.values[threadIdx.x] = in[threadIdx.x];
}

TEST(SharedMemory, IsNanBeforeEachBlock) {
  for (const float value : run(read_then_write, Schedule::forward(), 3)) {
    EXPECT_TRUE(std::isnan(value));
  }
  for (const float value : run(read_then_write, Schedule::forward(), 4, /*cluster=*/2)) {
    EXPECT_TRUE(std::isnan(value));
  }
}

// Returns a value that it finds on the stack, and leaves `leave` there for the next thread.
float exchange_on_stack(float leave) {
  float frame[16];
  asm volatile("" : "=m"(frame));  // the compiler must assume that this writes the frame
  const float found = frame[7];
  std::fill(std::begin(frame), std::end(frame), leave);
  asm volatile("" : : "m"(frame));
  return found;
}

__global__ void read_stack(const float* in, float* out) {
  out[blockIdx.x * kThreads + threadIdx.x] = exchange_on_stack(in[threadIdx.x]);
}

TEST(Stack, IsNanBeforeEachThread) {
  for (const float value : run(read_stack, Schedule::forward(), 3)) {
    EXPECT_TRUE(std::isnan(value));
  }
}

__global__ void copy_without_wait(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage>();
  device::copy_async<4>(&shared.values[threadIdx.x], in + threadIdx.x);
  device::copy_async_commit();
  __syncthreads();
  out[threadIdx.x] = shared.values[threadIdx.x];
}

TEST(SharedMemory, AsyncCopyIsInvisibleBeforeItsWait) {
  for (const float value : run(copy_without_wait, Schedule::forward())) {
    EXPECT_TRUE(std::isnan(value));
  }
}

// The first block starts a copy and does not wait; the second block waits, but has no copies.
__global__ void leave_copy_behind(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage>();
  if (blockIdx.x == 0) device::copy_async<4>(&shared.values[threadIdx.x], in + threadIdx.x);
  device::copy_async_commit();
  if (blockIdx.x == 1) device::copy_async_wait<0>();
  out[blockIdx.x * kThreads + threadIdx.x] = shared.values[threadIdx.x];
}

TEST(SharedMemory, CopiesOfThePreviousBlockAreDropped) {
  for (const float value : run(leave_copy_behind, Schedule::forward(), 2)) {
    EXPECT_TRUE(std::isnan(value));
  }
}

// The second group is still pending when its data are read.
__global__ void wait_for_too_few(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage>();
  if (threadIdx.x < kThreads / 2)
    device::copy_async<4>(&shared.values[threadIdx.x], in + threadIdx.x);
  device::copy_async_commit();
  if (threadIdx.x >= kThreads / 2)
    device::copy_async<4>(&shared.values[threadIdx.x], in + threadIdx.x);
  device::copy_async_commit();
  device::copy_async_wait<1>();
  __syncthreads();
  out[threadIdx.x] = shared.values[threadIdx.x];
}

TEST(SharedMemory, WaitCoversOnlyItsGroups) {
  const std::vector<float> found = run(wait_for_too_few, Schedule::forward());
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(std::isnan(found[static_cast<std::size_t>(i)]), i >= kThreads / 2) << i;
  }
}

__global__ void copy_without_commit(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage>();
  device::copy_async<4>(&shared.values[threadIdx.x], in + threadIdx.x);
  device::copy_async_wait<0>();  // covers groups; this copy is in none
  out[threadIdx.x] = shared.values[threadIdx.x];
}

TEST(SharedMemory, CopyOfAnUncommittedGroupIsInvisible) {
  for (const float value : run(copy_without_commit, Schedule::forward())) {
    EXPECT_TRUE(std::isnan(value));
  }
}

}  // namespace tilegate::initial_memory_test
