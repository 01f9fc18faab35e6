// Launches that the executor refuses.
#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/faults.hpp"

namespace tilegate::launch_test {

using faults::config_of;
using faults::expect_fault;

struct TooLarge {
  float values[65];
};
__global__ void take_too_much() { device::shared_storage<TooLarge>().values[0] = 1.0F; }

TEST(Launch, RejectsSharedStorageBeyondTheLaunch) {
  expect_fault(device::launch(config_of("take_too_much"), nullptr, take_too_much),
               {"take_too_much", "needs 260 bytes of shared memory, launched with 256"});
}

__global__ void nothing() {}
__global__ void launch_from_inside(Status* status) {
  *status = device::launch(config_of("nothing"), nullptr, nothing);
}

TEST(Launch, RejectsALaunchInsideAKernel) {
  Status status;
  ASSERT_TRUE(
      is_ok(device::launch(config_of("launch_from_inside"), nullptr, launch_from_inside, &status)));
  expect_fault(status, {"nothing", "from inside a kernel"});
}

TEST(Launch, MayChangeStreamsAfterACall) {
  int other = 0;
  auto* const stream = reinterpret_cast<Stream>(&other);
  simt::executor::begin_call({}, {}, nullptr);
  expect_fault(device::launch(config_of("nothing"), stream, nothing), {"on another stream"});
  EXPECT_TRUE(is_ok(simt::executor::end_call()));
  EXPECT_TRUE(is_ok(device::launch(config_of("nothing"), stream, nothing)));
}

TEST(Launch, RejectsConfigurationsBeyondTheLimits) {
  const auto launch_with = [](auto change) {
    device::LaunchConfig config = config_of("nothing");
    change(config);
    return device::launch(config, nullptr, nothing);
  };
  EXPECT_TRUE(is_ok(launch_with([](auto& c) { c.threads_y = 32; })));
  expect_fault(launch_with([](auto& c) { c.threads_y = 33; }), {"nothing", "1056 threads"});
  expect_fault(launch_with([](auto& c) { c.threads_x = 0; }), {"0 threads"});
  expect_fault(launch_with([](auto& c) { c.blocks = 0; }), {"0 blocks"});
  expect_fault(launch_with([](auto& c) { c.blocks = std::int64_t{1} << 31; }), {"blocks"});
  EXPECT_TRUE(is_ok(launch_with([](auto& c) { c.shared_bytes = 227 * 1024; })));
  expect_fault(launch_with([](auto& c) { c.shared_bytes = 227 * 1024 + 1; }), {"shared memory"});
  expect_fault(launch_with([](auto& c) { c.cluster = 2; }), {"invalid clusters of 2 blocks"});
  expect_fault(launch_with([](auto& c) { c.cluster = 0; }), {"invalid clusters of 0 blocks"});
  EXPECT_TRUE(is_ok(launch_with([](auto& c) { c.cluster = 3; })));
  expect_fault(launch_with([](auto& c) { c.cluster = 3, c.threads_y = 1, c.threads_x = 48; }),
               {"invalid clusters of 3 blocks", "of whole warps"});
}

}  // namespace tilegate::launch_test
