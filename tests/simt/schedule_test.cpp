// What only the executor promises of a right kernel's surroundings: schedules that expose races,
// poisoned shared memory, and copies that come no earlier than their wait.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"

namespace tilegate::schedule_test {

using simt::Schedule;

constexpr int kThreads = 64;

struct SharedStorage {
  alignas(16) float values[kThreads];
};

std::vector<float> run(void (*kernel)(const float*, float*), Schedule schedule, int blocks = 1,
                       unsigned cluster = 1) {
  const DeviceArray<float> in = iota(kThreads);
  const DeviceArray<float> out(static_cast<std::size_t>(blocks) * kThreads);
  const device::LaunchConfig config{.kernel = "schedule",
                                    .blocks = blocks,
                                    .threads_x = kThreads,
                                    .shared_bytes = sizeof(SharedStorage),
                                    .cluster = cluster};
  simt::executor::set_schedule(schedule);
  EXPECT_TRUE(is_ok(device::launch(config, nullptr, kernel, in.data(), out.data())));
  simt::executor::set_schedule(Schedule::forward());
  return out.to_host();
}

// A missing barrier: each thread reads what its left neighbour has, or has not yet, written.
__global__ void racy_neighbour(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage>();
  shared.values[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = shared.values[threadIdx.x == 0 ? 0 : threadIdx.x - 1];
}

TEST(Schedule, ForwardHidesAndReverseShowsARace) {
  const std::vector<float> forward = run(racy_neighbour, Schedule::forward());
  const std::vector<float> reverse = run(racy_neighbour, Schedule::reverse());
  EXPECT_EQ(forward[10], 9.0F);
  EXPECT_TRUE(std::isnan(reverse[10]));
}

__global__ void last_writer(const float* in, float* out) { out[0] = in[threadIdx.x]; }

TEST(Schedule, DecidesTheLastWriter) {
  EXPECT_EQ(run(last_writer, Schedule::forward())[0], static_cast<float>(kThreads - 1));
  EXPECT_EQ(run(last_writer, Schedule::reverse())[0], 0.0F);
}

__global__ void last_block(const float* /*in*/, float* out) {
  out[0] = static_cast<float>(blockIdx.x);
}

TEST(Schedule, OrdersBlocksToo) {
  EXPECT_EQ(run(last_block, Schedule::forward(), 5)[0], 4.0F);
  EXPECT_EQ(run(last_block, Schedule::reverse(), 5)[0], 0.0F);
}

TEST(Schedule, ShuffledIsSeeded) {
  const auto order = [](std::uint64_t seed) {
    std::vector<float> last;
    for (std::uint64_t i = 0; i < 4; ++i) {
      last.push_back(run(last_writer, Schedule::shuffled(seed + i))[0]);
    }
    return last;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(100));
}

__global__ void sign_block(const float* /*in*/, float* out) {
  out[blockIdx.x * kThreads + threadIdx.x] = 1.0F;
}

TEST(Schedule, SampleRunsBothEndsAndEveryFewBlocks) {
  const auto blocks_that_run = [](std::int64_t ends, std::int64_t stride) {
    const std::vector<float> out = run(sign_block, Schedule::sample(ends, stride), 20);
    std::vector<int> ran;
    for (int i = 0; i < 20; ++i) {
      if (out[static_cast<std::size_t>(i * kThreads)] == 1.0F) ran.push_back(i);
    }
    EXPECT_EQ(simt::executor::coverage().blocks, 20);
    EXPECT_EQ(simt::executor::coverage().run, static_cast<std::int64_t>(ran.size()));
    return ran;
  };
  EXPECT_EQ(blocks_that_run(2, 5), (std::vector<int>{0, 1, 5, 10, 15, 18, 19}));
  EXPECT_EQ(blocks_that_run(3, 0), (std::vector<int>{0, 1, 2, 17, 18, 19}));
  EXPECT_EQ(blocks_that_run(9, 0).size(), 18U);
  EXPECT_EQ(blocks_that_run(50, 7).size(), 20U);
}

TEST(Schedule, SampleRefusesTooFewBlocks) {
  simt::executor::set_schedule(Schedule::sample(2, 0, 21));
  const device::LaunchConfig config{.kernel = "few", .blocks = 20, .threads_x = kThreads};
  const Status status = device::launch(config, nullptr, sign_block, nullptr, nullptr);
  simt::executor::set_schedule(Schedule::forward());
  EXPECT_NE(status.message().find("few: 20 blocks are too few"), std::string::npos);
  EXPECT_EQ(simt::executor::coverage().run, 0);
}

__global__ void with_barriers(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage>();
  float sum = 0.0F;
  for (unsigned step = 0; step < 5; ++step) {
    shared.values[threadIdx.x] = in[threadIdx.x] * static_cast<float>(step);
    __syncthreads();
    sum += shared.values[(threadIdx.x + step) % kThreads];
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

TEST(Schedule, DoesNotMatterToARightKernel) {
  const std::vector<float> forward = run(with_barriers, Schedule::forward());
  EXPECT_EQ(run(with_barriers, Schedule::reverse()), forward);
  EXPECT_EQ(run(with_barriers, Schedule::shuffled(3)), forward);
  EXPECT_EQ(forward[3], 3 * 0 + 4 * 1 + 5 * 2 + 6 * 3 + 7 * 4);
}

__global__ void read_then_write(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage>();
  out[blockIdx.x * kThreads + threadIdx.x] = shared.values[threadIdx.x];
  shared.values[threadIdx.x] = in[threadIdx.x];
}

TEST(SharedMemory, IsNanBeforeEveryBlock) {
  for (const float value : run(read_then_write, Schedule::forward(), 3)) {
    EXPECT_TRUE(std::isnan(value));
  }
  for (const float value : run(read_then_write, Schedule::forward(), 4, /*cluster=*/2)) {
    EXPECT_TRUE(std::isnan(value));
  }
}

// What this function finds on the stack, and leaves there for the next thread.
float exchange_on_stack(float leave) {
  float frame[16];
  asm volatile("" : "=m"(frame));  // nothing is written, but the compiler cannot know
  const float found = frame[7];
  std::fill(std::begin(frame), std::end(frame), leave);
  asm volatile("" : : "m"(frame));
  return found;
}

__global__ void read_stack(const float* in, float* out) {
  out[blockIdx.x * kThreads + threadIdx.x] = exchange_on_stack(in[threadIdx.x]);
}

TEST(Stack, IsNanBeforeEveryThread) {
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

TEST(SharedMemory, HasNoAsyncCopyBeforeItsWait) {
  for (const float value : run(copy_without_wait, Schedule::forward())) {
    EXPECT_TRUE(std::isnan(value));
  }
}

// The first block leaves a copy behind; the second waits for all of its own, of which there are
// none.
__global__ void leave_copy_behind(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage>();
  if (blockIdx.x == 0) device::copy_async<4>(&shared.values[threadIdx.x], in + threadIdx.x);
  device::copy_async_commit();
  if (blockIdx.x == 1) device::copy_async_wait<0>();
  out[blockIdx.x * kThreads + threadIdx.x] = shared.values[threadIdx.x];
}

TEST(SharedMemory, HasNoCopyOfTheBlockBefore) {
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

TEST(SharedMemory, HasOnlyTheGroupsThatTheWaitCovers) {
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

TEST(SharedMemory, HasNoCopyOfAnOpenGroup) {
  for (const float value : run(copy_without_commit, Schedule::forward())) {
    EXPECT_TRUE(std::isnan(value));
  }
}

// The upper half offered values before; in the second shuffle it takes no part.
__global__ void shuffle_from_outside(const float* in, float* out) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  float value = __shfl_sync(~0U, in[threadIdx.x], lane);
  if (lane < 16) value = __shfl_sync(0x0000FFFFU, value, lane + 16);
  out[threadIdx.x] = value;
}

TEST(Schedule, AShuffleFromOutsideItsMaskGetsNothing) {
  const std::vector<float> found = run(shuffle_from_outside, Schedule::reverse());
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(std::isnan(found[static_cast<std::size_t>(i)]), i % 32 < 16) << i;
  }
}

}  // namespace tilegate::schedule_test
