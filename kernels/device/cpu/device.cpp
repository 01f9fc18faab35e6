// The device on the CPU: ordinary memory; the SIMT executor runs kernels.
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include <tilegate/device.hpp>

#include "executor/observer.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tilegate::device {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kReserveFrom = std::size_t{1} << 30;  // bytes

// Pretended, because stages choose by it: few, so that small shapes go either way.
constexpr int kMultiprocessors = 4;

bool is_reserved(std::size_t bytes) { return bytes >= kReserveFrom; }

void copy_rows(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
               std::size_t width, std::size_t rows) {
  if (width == 0) return;  // the pointers may then be null, which memcpy does not allow
  for (std::size_t row = 0; row < rows; ++row) {
    std::memcpy(static_cast<std::byte*>(dst) + row * dst_pitch,
                static_cast<const std::byte*>(src) + row * src_pitch, width);
  }
}

}  // namespace

Status available() { return {}; }

const Device& current() {
  static const Device kDevice{
      .ordinal = 0,
      .is_cuda = false,
      .name = "simt",
      .compute_capability = 0,
      .multiprocessors = kMultiprocessors,
      .total_memory = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::size_t>(sysconf(_SC_PAGESIZE)),
  };
  return kDevice;
}

Status synchronize() { return {}; }

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  if (is_reserved(bytes)) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
  } else {
    memory = ::operator new (bytes, std::align_val_t{kAlignment});
  }
  data_ = static_cast<std::byte*>(memory);
  simt::observer::add_buffer(data_, bytes);
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  simt::observer::remove_buffer(data_);
  set_accessible(data_, bytes_, true);
  if (is_reserved(bytes_)) {
    munmap(data_, bytes_);
  } else {
    ::operator delete (data_, std::align_val_t{kAlignment});
  }
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Status copy_to_device(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                      std::size_t width, std::size_t rows) {
  copy_rows(dst, dst_pitch, src, src_pitch, width, rows);
  return {};
}

Status copy_to_host(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
                    std::size_t width, std::size_t rows) {
  copy_rows(dst, dst_pitch, src, src_pitch, width, rows);
  return {};
}

void set_accessible([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes,
                    [[maybe_unused]] bool accessible) {
#if defined(__SANITIZE_ADDRESS__)
  if (accessible) {
    __asan_unpoison_memory_region(memory, bytes);
  } else {
    __asan_poison_memory_region(memory, bytes);
  }
#endif
}

}  // namespace tilegate::device
