// Uninitialized variables of a kernel, compiled with the flags of kernels.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"

namespace tilegate::unset_test {

constexpr int kThreads = 32;

__device__ void add_one(float& sum) { sum += 1.0F; }

__global__ void sum_without_a_start(float* out) {
  float sum;
  add_one(sum);
  out[threadIdx.x] = sum;
}

// GCC's pattern is -1.7e38, clang's a NaN.
TEST(UninitializedVariables, HoldAPattern) {
  const DeviceArray<float> out(kThreads);
  const device::LaunchConfig config{
      .kernel = "sum_without_a_start", .blocks = 1, .threads_x = kThreads};
  ASSERT_TRUE(is_ok(device::launch(config, nullptr, sum_without_a_start, out.data())));
  for (const float value : out.to_host()) EXPECT_FALSE(std::fabs(value) < 1e38F) << value;
}

}  // namespace tilegate::unset_test
