// The device for host code: its memory, copies and properties. On both devices.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

#include "simt/device_array.hpp"

namespace tilegate {
namespace {

TEST(Device, CopiesWithPitch) {
  const std::vector<float> host = {1, 2, 3, 4, 5, 6};  // 3 rows of 2
  const DeviceArray<float> device(3 * 4, -1.0F);       // 3 rows, 4 apart
  constexpr std::size_t kFloat = sizeof(float);
  ASSERT_TRUE(is_ok(
      device::copy_to_device(device.data(), 4 * kFloat, host.data(), 2 * kFloat, 2 * kFloat, 3)));
  EXPECT_EQ(device.to_host(), (std::vector<float>{1, 2, -1, -1, 3, 4, -1, -1, 5, 6, -1, -1}));
  std::vector<float> back(6);
  ASSERT_TRUE(is_ok(
      device::copy_to_host(back.data(), 2 * kFloat, device.data(), 4 * kFloat, 2 * kFloat, 3)));
  EXPECT_EQ(back, host);
}

TEST(Device, BuffersAreAlignedAndMovable) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
    device::Buffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0U);
    EXPECT_EQ(buffer.size(), bytes);
    std::byte* const data = buffer.data();
    const device::Buffer moved = std::move(buffer);
    EXPECT_EQ(moved.data(), data);
  }
}

TEST(Device, PropertiesDescribeTheDevice) {
  const Device& current = device::current();
  EXPECT_EQ(current.is_cuda, !TILEGATE_ON_SIMT);
  EXPECT_EQ(current.ordinal, 0);
  EXPECT_NE(current.name, "none");
  EXPECT_GE(current.multiprocessors, 1);
  EXPECT_GT(current.total_memory, 0U);
}

}  // namespace
}  // namespace tilegate
