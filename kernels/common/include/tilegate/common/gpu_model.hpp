// Constants of GPUs that plans depend on.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/device.hpp>

namespace tilegate {

constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;  // of a CUDA grid

constexpr int kRegistersPerSm = 65536;  // 32-bit registers, all compute capabilities from 7.0 on

// Shared memory per multiprocessor, in bytes (CUDA C++ Programming Guide, technical specifications
// per compute capability). The CPU device has as much as 9.0.
constexpr std::size_t shared_bytes_per_sm(const Device& device) {
  const int capability = device.is_cuda ? device.compute_capability : 90;
  if (capability == 80 || capability == 87) return std::size_t{164} << 10;
  return (capability >= 90 && capability < 120 ? std::size_t{228} : std::size_t{100}) << 10;
}
constexpr std::size_t kReservedSharedBytes = std::size_t{1} << 10;  // per block, by the driver

// Largest shared memory of one block, in bytes.
constexpr std::size_t shared_bytes_per_block(const Device& device) {
  return shared_bytes_per_sm(device) - kReservedSharedBytes;
}

// The GPU that cost models are fitted to.
struct GpuModel {
  double multiprocessors;
  double clock;  // Hz, maximum boost
  double l2_bytes;
  double warm_operand_bytes;  // operands up to this size stay in L2 from one call to the next
};
constexpr GpuModel kH200 = {
    .multiprocessors = 132.0, .clock = 1.98e9, .l2_bytes = 50e6, .warm_operand_bytes = 45e6};

}  // namespace tilegate
