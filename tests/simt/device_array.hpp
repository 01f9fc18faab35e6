// Device memory of exactly `count` elements, for tests of small kernels.
#pragma once

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

namespace tilegate {

// For EXPECT_TRUE: success, or the error message.
inline testing::AssertionResult is_ok(const Status& status) {
  return status.ok() ? testing::AssertionSuccess()
                     : testing::AssertionFailure() << status.message();
}

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count, T value = {})
      : DeviceArray(std::vector<T>(count, value)) {}

  explicit DeviceArray(const std::vector<T>& values)
      : count_(values.size()), buffer_(values.size() * sizeof(T)) {
    EXPECT_TRUE(is_ok(device::copy_to_device(data(), values.data(), count_ * sizeof(T))));
  }

  T* data() const { return reinterpret_cast<T*>(buffer_.data()); }

  // Waits for all enqueued work.
  std::vector<T> to_host() const {
    std::vector<T> values(count_);
    EXPECT_TRUE(is_ok(device::synchronize()));
    EXPECT_TRUE(is_ok(device::copy_to_host(values.data(), data(), count_ * sizeof(T))));
    return values;
  }

 private:
  std::size_t count_;
  device::Buffer buffer_;
};

// 0, 1, 2, …
inline DeviceArray<float> iota(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return DeviceArray<float>(values);
}

}  // namespace tilegate
