// The device on the CPU: host memory, and kernels on the SIMT executor.
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
constexpr std::size_t kPage = 4096;

// Stages choose configurations by the number of multiprocessors. It is small here, so that small
// shapes reach several configurations.
constexpr int kMultiprocessors = 4;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// A buffer has whole pages, with an inaccessible guard page on each side: a kernel that runs far
// beyond a buffer faults there. The buffer ends at the end of its last page, or less than
// kAlignment before it.
std::size_t pages_of(std::size_t bytes) { return round_up(round_up(bytes, kAlignment), kPage); }
std::byte* begin_of(std::byte* pages, std::size_t bytes) {
  return pages + pages_of(bytes) - round_up(bytes, kAlignment);
}

// The parts of the pages outside the buffer, and only these: the address sanitizer writes an eighth
// as much shadow memory, and a buffer may have many GiB.
void set_rest_accessible(std::byte* pages, std::byte* data, std::size_t bytes, bool accessible) {
  set_accessible(pages, static_cast<std::size_t>(data - pages), accessible);
  set_accessible(data + bytes, static_cast<std::size_t>(pages + pages_of(bytes) - data) - bytes,
                 accessible);
}

void copy_rows(void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
               std::size_t width, std::size_t rows) {
  if (width == 0) return;  // the pointers may be null, which memcpy does not allow
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
  void* memory = mmap(nullptr, pages_of(bytes) + 2 * kPage, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  std::byte* const pages = static_cast<std::byte*>(memory) + kPage;
  if (mprotect(pages, pages_of(bytes), PROT_READ | PROT_WRITE) != 0) {
    munmap(memory, pages_of(bytes) + 2 * kPage);
    throw std::bad_alloc();
  }
  madvise(pages, pages_of(bytes), MADV_NOHUGEPAGE);  // few rows, far apart, then take small pages
  data_ = begin_of(pages, bytes);
  set_rest_accessible(pages, data_, bytes, false);
  simt::observer::add_buffer(data_, bytes);
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  simt::observer::remove_buffer(data_);
  std::byte* const pages = data_ + round_up(bytes_, kAlignment) - pages_of(bytes_);
  set_rest_accessible(pages, data_, bytes_, true);
  munmap(pages - kPage, pages_of(bytes_) + 2 * kPage);
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
