// Launches small kernels on the executor: blocks of 64 threads that read 0, 1, 2, … and write one
// word per thread.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"

namespace tilegate::small_kernel {

using simt::Schedule;

constexpr int kThreads = 64;

using Kernel = void (*)(const float* in, float* out);

struct Outcome {
  Status status;
  std::vector<float> out;
};

inline Outcome launch(Kernel kernel, std::size_t shared_bytes, Schedule schedule, int blocks = 1,
                      unsigned cluster = 1) {
  const DeviceArray<float> in = iota(kThreads);
  const DeviceArray<float> out(static_cast<std::size_t>(blocks) * kThreads);
  const device::LaunchConfig config{.kernel = "small",
                                    .blocks = blocks,
                                    .threads_x = kThreads,
                                    .shared_bytes = shared_bytes,
                                    .cluster = cluster};
  simt::executor::set_schedule(schedule);
  Status status = device::launch(config, nullptr, kernel, in.data(), out.data());
  simt::executor::set_schedule(Schedule::forward());
  return {std::move(status), out.to_host()};
}

struct SharedStorage {
  alignas(16) float values[kThreads];
};

// The output of a kernel that uses SharedStorage and must succeed.
inline std::vector<float> run(Kernel kernel, Schedule schedule, int blocks = 1,
                              unsigned cluster = 1) {
  Outcome outcome = launch(kernel, sizeof(SharedStorage), schedule, blocks, cluster);
  EXPECT_TRUE(is_ok(outcome.status));
  return std::move(outcome.out);
}

}  // namespace tilegate::small_kernel
