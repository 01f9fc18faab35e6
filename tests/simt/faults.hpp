// Expects launches to end with an error that names its cause, and the next launch to run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"

namespace tilegate::faults {

constexpr unsigned kThreads = 64;

inline device::LaunchConfig config_of(const char* kernel, std::int64_t blocks = 3) {
  return {.kernel = kernel, .blocks = blocks, .threads_x = 32, .threads_y = 2, .shared_bytes = 256};
}

inline __global__ void write_ones(float* out) { out[threadIdx.x + 32 * threadIdx.y] = 1.0F; }

// The device still works.
inline void expect_next_launch_runs() {
  const DeviceArray<float> out(kThreads);
  ASSERT_TRUE(is_ok(device::launch(config_of("write_ones", 1), nullptr, write_ones, out.data())));
  EXPECT_EQ(out.to_host(), std::vector<float>(kThreads, 1.0F));
}

inline void expect_fault(const Status& status, const std::vector<std::string>& words) {
  EXPECT_EQ(status.code(), Status::Code::kDeviceError);
  for (const std::string& word : words) {
    EXPECT_NE(status.message().find(word), std::string::npos)
        << "no \"" << word << "\" in: " << status.message();
  }
  expect_next_launch_runs();
}

}  // namespace tilegate::faults
