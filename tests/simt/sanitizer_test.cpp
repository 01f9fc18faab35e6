// The executor's handling of reports by the address and undefined-behaviour sanitizers.
#include <cstdint>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"
#include "simt/faults.hpp"

namespace tilegate::sanitizer_test {

using faults::config_of;
using faults::expect_fault;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasAddressSanitizer = true;
#else
constexpr bool kHasAddressSanitizer = false;
#endif

class Sanitizer : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasAddressSanitizer) GTEST_SKIP() << "only in the asan preset";
  }
};

__global__ void read_one(const volatile float* p, std::int64_t index, float* out) {
  if (blockIdx.x == 1 && threadIdx.x == 3 && threadIdx.y == 1) out[0] = p[index];
}

TEST_F(Sanitizer, CatchesAccessOneElementOutside) {
  const DeviceArray<float> data(100);
  const DeviceArray<float> out(1);
  const auto read = [&](std::int64_t index) {
    return device::launch(config_of("read_one"), nullptr, read_one, data.data(), index, out.data());
  };
  EXPECT_TRUE(is_ok(read(0)));
  EXPECT_TRUE(is_ok(read(99)));
  expect_fault(read(100), {"read_one", "block 1", "thread (3,1,0)", "access outside"});
  expect_fault(read(-1), {"read_one", "block 1", "thread (3,1,0)", "access outside"});
  EXPECT_TRUE(is_ok(read(99))) << "the same access as before";
  expect_fault(read(100), {"read_one"});  // reported again for the same line of code
}

TEST_F(Sanitizer, CatchesAccessToClosedMemory) {
  const DeviceArray<float> data(100);
  const DeviceArray<float> out(1);
  const auto read = [&] {
    return device::launch(config_of("read_one"), nullptr, read_one, data.data(), 50, out.data());
  };
  device::set_accessible(data.data() + 50, 8, false);
  expect_fault(read(), {"read_one", "thread (3,1,0)", "access outside"});
  device::set_accessible(data.data() + 50, 8, true);
  EXPECT_TRUE(is_ok(read()));
}

__global__ void overflow(int by, int* out) { out[0] = 2147483647 + by; }

TEST_F(Sanitizer, CatchesUndefinedBehaviour) {
  const DeviceArray<int> out(1);
  expect_fault(device::launch(config_of("overflow"), nullptr, overflow, 1, out.data()),
               {"overflow", "undefined behaviour"});
}

}  // namespace tilegate::sanitizer_test
