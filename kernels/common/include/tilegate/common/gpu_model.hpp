// How much shared memory a device has.
#pragma once

#include <cstddef>

#include <tilegate/device.hpp>

namespace tilegate {

// Bytes that one block may have (CUDA C++ Programming Guide, technical specifications per compute
// capability). The CPU device has as much as 9.0.
constexpr std::size_t shared_bytes_per_block(const Device& device) {
  const int capability = device.is_cuda ? device.compute_capability : 90;
  if (capability == 80 || capability == 87) return std::size_t{163} << 10;
  return (capability >= 90 && capability < 120 ? std::size_t{227} : std::size_t{99}) << 10;
}

}  // namespace tilegate
