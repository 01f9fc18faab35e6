// Facts of GPUs that plans go by, each once.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/device.hpp>

namespace tilegate {

constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;  // of a CUDA grid

// Bytes that the blocks of a multiprocessor share (CUDA C++ Programming Guide, technical
// specifications per compute capability). The CPU device has as much as 9.0.
constexpr std::size_t shared_bytes_per_sm(const Device& device) {
  const int capability = device.is_cuda ? device.compute_capability : 90;
  if (capability == 80 || capability == 87) return std::size_t{164} << 10;
  return (capability >= 90 && capability < 120 ? std::size_t{228} : std::size_t{100}) << 10;
}
constexpr std::size_t kReservedSharedBytes = std::size_t{1} << 10;  // of each block, by the driver

// The most that one block may have.
constexpr std::size_t shared_bytes_per_block(const Device& device) {
  return shared_bytes_per_sm(device) - kReservedSharedBytes;
}

// The GPU that cost models are fitted to.
struct GpuModel {
  double multiprocessors;
  double l2_bytes;
  double warm_operand_bytes;  // up to here operands of an earlier call are still in L2
};
constexpr GpuModel kH200 = {.multiprocessors = 132.0, .l2_bytes = 50e6, .warm_operand_bytes = 45e6};

}  // namespace tilegate
