// Warps: their threads, barriers and shuffles, with partial masks. On both devices.
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"

namespace tilegate::warp_test {

constexpr unsigned kAll = 0xFFFFFFFFU;
constexpr unsigned kLowerHalf = 0x0000FFFFU;

__device__ unsigned thread_number() { return threadIdx.x + threadIdx.y * blockDim.x; }

// The output of each thread of `kernel`, one block of x×y threads.
template <typename T>
std::vector<T> run(void (*kernel)(T*), unsigned x, unsigned y = 1, std::size_t shared = 0) {
  const DeviceArray<T> out(x * y);
  const device::LaunchConfig config{
      .kernel = "warp", .blocks = 1, .threads_x = x, .threads_y = y, .shared_bytes = shared};
  EXPECT_TRUE(is_ok(device::launch(config, nullptr, kernel, out.data())));
  return out.to_host();
}

__global__ void first_of_warp(unsigned* out) {
  out[thread_number()] = __shfl_sync(kAll, thread_number(), 0);
}

TEST(Warp, Is32ConsecutiveThreadsXFirst) {
  for (const unsigned rows : {12U, 5U}) {  // the last warp of a block may have fewer threads
    const std::vector<unsigned> found = run(first_of_warp, 8, rows);
    for (unsigned i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i / 32 * 32);
  }
}

__global__ void xor_sum(float* out) {
  float sum = static_cast<float>(thread_number());
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kAll, sum, lanes);
  out[thread_number()] = sum;
}

TEST(Warp, XorShufflesReduceAWarp) {
  const std::vector<float> found = run(xor_sum, 64);
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(found[i], i < 32 ? 496.0F : 1520.0F);
}

__global__ void reductions(int* out) {
  const auto thread = static_cast<int>(thread_number());
  out[4 * thread] = __reduce_add_sync(kAll, thread - 40);
  out[4 * thread + 1] = __reduce_max_sync(kAll, thread - 40);
  const auto largest = __reduce_max_sync(kAll, static_cast<unsigned>(thread - 40));
  out[4 * thread + 2] = static_cast<int>(largest);
  out[4 * thread + 3] = static_cast<int>(__reduce_or_sync(kAll, 1U << thread % 32 & 0x1F0U));
}

TEST(Warp, ReducesOverItsLanes) {
  const DeviceArray<int> out(256);
  const device::LaunchConfig config{.kernel = "warp", .blocks = 1, .threads_x = 64};
  ASSERT_TRUE(is_ok(device::launch(config, nullptr, reductions, out.data())));
  const std::vector<int> found = out.to_host();
  for (int i = 0; i < 64; ++i) {
    const auto* const of = &found[static_cast<std::size_t>(4 * i)];
    EXPECT_EQ(of[0], i < 32 ? -784 : 240);
    EXPECT_EQ(of[1], i < 32 ? -9 : 23);
    EXPECT_EQ(of[2], i < 32 ? -9 : -1);
    EXPECT_EQ(of[3], 0x1F0);
  }
}

__global__ void next_lane(double* out) {
  out[thread_number()] = __shfl_down_sync(kAll, static_cast<double>(thread_number()) + 0.25, 3);
}

TEST(Warp, DownShufflesOfDoublesStopAtTheLastLane) {
  const std::vector<double> found = run(next_lane, 32);
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(found[i], (i + 3 < 32 ? i + 3 : i) + 0.25);
}

// Half of the warp shuffles, twice; the other half does not take part.
__global__ void half_a_warp(int* out) {
  const auto lane = static_cast<int>(thread_number());
  int value = 100 + lane;
  if (lane < 16) {
    value = __shfl_xor_sync(kLowerHalf, value, 1);
    value = __shfl_sync(kLowerHalf, value, (lane + 1) % 16);
  }
  out[lane] = value;
}

TEST(Warp, PartialMasks) {
  const std::vector<int> found = run(half_a_warp, 32);
  for (int lane = 0; lane < 32; ++lane) {
    const int expected = lane < 16 ? 100 + (((lane + 1) % 16) ^ 1) : 100 + lane;
    EXPECT_EQ(found[static_cast<std::size_t>(lane)], expected);
  }
}

// The two halves of the warp shuffle independently.
__global__ void two_halves(int* out) {
  const auto lane = static_cast<int>(thread_number());
  const unsigned mask = lane < 16 ? kLowerHalf : ~kLowerHalf;
  out[lane] = __shfl_sync(mask, lane, lane < 16 ? 5 : 21);
}

TEST(Warp, DisjointMasks) {
  const std::vector<int> found = run(two_halves, 32);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(found[static_cast<std::size_t>(lane)], lane < 16 ? 5 : 21);
  }
}

struct Warps {
  unsigned values[64];
};

__global__ void exchange_in_warp(unsigned* out) {
  auto& shared = device::shared_storage<Warps>();
  const unsigned i = thread_number();
  shared.values[i] = i;
  __syncwarp();  // no lane reads before its warp has written
  out[i] = shared.values[i ^ 31U];
}

TEST(Warp, BarrierOrdersSharedMemory) {
  const std::vector<unsigned> found = run(exchange_in_warp, 64, 1, sizeof(Warps));
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(found[i], i ^ 31U);
}

}  // namespace tilegate::warp_test
