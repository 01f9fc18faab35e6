// Schedules: they expose races and do not change the results of correct kernels.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/small_kernel.hpp"

namespace tilegate::schedule_test {

using small_kernel::kThreads;
using small_kernel::run;
using small_kernel::Schedule;
using small_kernel::SharedStorage;

// A missing barrier: each thread reads the word of its left neighbour, written or not.
__global__ void racy_neighbour(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage>();
  shared.values[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = shared.values[threadIdx.x == 0 ? 0 : threadIdx.x - 1];
}

TEST(Schedule, ReverseShowsARaceThatForwardHides) {
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

TEST(Schedule, OrdersBlocks) {
  EXPECT_EQ(run(last_block, Schedule::forward(), 5)[0], 4.0F);
  EXPECT_EQ(run(last_block, Schedule::reverse(), 5)[0], 0.0F);
  EXPECT_NE(run(last_block, Schedule::shuffled(1), 5)[0],
            run(last_block, Schedule::shuffled(2), 5)[0]);
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

TEST(Schedule, SampleRunsBothEndsAndABlockOfEachStride) {
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

TEST(Schedule, SampleRejectsTooFewBlocks) {
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

TEST(Schedule, DoesNotChangeACorrectKernel) {
  const std::vector<float> forward = run(with_barriers, Schedule::forward());
  EXPECT_EQ(run(with_barriers, Schedule::reverse()), forward);
  EXPECT_EQ(run(with_barriers, Schedule::shuffled(3)), forward);
  EXPECT_EQ(forward[3], 3 * 0 + 4 * 1 + 5 * 2 + 6 * 3 + 7 * 4);
}

// The upper half of the warp takes part in the first shuffle only.
__global__ void shuffle_from_outside(const float* in, float* out) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  float value = __shfl_sync(~0U, in[threadIdx.x], lane);
  if (lane < 16) value = __shfl_sync(0x0000FFFFU, value, lane + 16);
  out[threadIdx.x] = value;
}

TEST(Schedule, ShuffleFromOutsideItsMaskIsUndefined) {
  const std::vector<float> found = run(shuffle_from_outside, Schedule::reverse());
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(std::isnan(found[static_cast<std::size_t>(i)]), i % 32 < 16) << i;
  }
}

}  // namespace tilegate::schedule_test
