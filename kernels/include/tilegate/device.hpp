// The device of this build, for host code: a CUDA GPU, or the CPU with the SIMT executor. The
// header needs no CUDA.
#pragma once

#include <cstddef>
#include <string>

#include <tilegate/status.hpp>

struct CUstream_st;

namespace tilegate {

// A cudaStream_t; nullptr is the default stream. The CPU device ignores it and runs synchronously.
using Stream = CUstream_st*;

// A device to plan for. Plans can be made for any values, but launched on a device of this machine
// only.
struct Device {
  int ordinal = -1;  // CUDA's; 0 on the CPU; -1: none
  bool is_cuda = false;
  std::string name = "none";   // "NVIDIA H200", or "simt"
  int compute_capability = 0;  // 10·major + minor; 0 on the CPU
  int multiprocessors = 1;
  std::size_t total_memory = 0;  // bytes
};

namespace device {

// Ok if the device of this build is usable; otherwise the message says what to do.
Status available();

// The current device of the calling thread; its properties are read once per device. Without one,
// a Device with ordinal -1.
const Device& current();

// Waits for all enqueued work of the current device; returns its errors.
Status synchronize();

// Owns device memory, 256-byte aligned and not initialised. Memory that is never touched costs
// nothing on the CPU device (pages of 1 GiB and more are reserved, not committed).
class Buffer {
 public:
  Buffer() = default;
  // Throws std::bad_alloc when the device has no room.
  explicit Buffer(std::size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Synchronous copies between host and device: `rows` rows of `width` bytes, `*_pitch` bytes from
// row to row.
Status copy_to_device(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                      std::size_t width, std::size_t rows);
Status copy_to_host(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                    std::size_t width, std::size_t rows);

inline Status copy_to_device(void* dst, const void* src, std::size_t bytes) {
  return copy_to_device(dst, bytes, src, bytes, bytes, 1);
}
inline Status copy_to_host(void* dst, const void* src, std::size_t bytes) {
  return copy_to_host(dst, bytes, src, bytes, bytes, 1);
}

// Forbids or allows kernels to access memory. Only the CPU device under the address sanitizer
// enforces it, at a granularity of 8 bytes; elsewhere it does nothing.
void set_accessible(const void* memory, std::size_t bytes, bool accessible);

}  // namespace device
}  // namespace tilegate
