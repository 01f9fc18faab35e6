// What random cases share: numbers that follow from the case's, shared memory filled with them, and
// checksums.
#pragma once

#include <cstdint>
#include <vector>

#include <tilegate/device/async.cuh>

#include "simt/async_test.hpp"

namespace tilegate::async_model {

constexpr unsigned kThreads = 128;
constexpr unsigned kWords = 6144;  // of a block's shared memory, 24 KiB

struct Storage {
  alignas(1024) std::uint32_t words[kWords];
  device::Barrier full[2];
};

// Well mixed bits of three numbers, the same on every device.
inline __host__ __device__ std::uint32_t mix(std::uint32_t seed, std::uint32_t index,
                                             std::uint32_t use) {
  std::uint32_t h = seed * 0x9E3779B1U + index * 0x85EBCA77U + use * 0xC2B2AE3DU;
  for (int round = 0; round < 2; ++round) {
    h = (h ^ h >> 15) * 0x2C1B3C6DU;
    h = (h ^ h >> 12) * 0x297A2D39U;
  }
  return h ^ h >> 15;
}

// The random choices of a case.
class Choices {
 public:
  __host__ __device__ Choices(std::uint32_t seed, std::uint32_t use) : seed_(seed), use_(use) {}
  __host__ __device__ unsigned below(unsigned end) { return mix(seed_, count_++, use_) % end; }

 private:
  std::uint32_t seed_, use_, count_ = 0;
};

enum Use : std::uint32_t { kFill, kCopy, kMultiply, kStart, kFold, kTensor, kFloat, kMulticast };

#if TILEGATE_TEST_ASYNC

// What each thread stores, a copy or a multiplication may read or overwrite.
inline __device__ void fill(Storage& smem, std::uint32_t seed) {
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) smem.words[i] = mix(seed, i, kFill);
  device::fence_async_proxy();
}

// Of all of shared memory, this thread's part.
inline __device__ std::uint32_t checksum(const Storage& smem) {
  std::uint32_t sum = 0;
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) sum += mix(smem.words[i], i, kFold);
  return sum;
}

// A tile of `rows` rows somewhere in shared memory. Half of the swizzled ones have their groups of
// 8 rows where the pattern restarts, as tiles have; the others anywhere.
inline __device__ device::MatrixDescriptor random_tile(Storage& smem, Choices& choices,
                                                       unsigned rows, device::Swizzle swizzle) {
  const unsigned width = width_of(swizzle);
  unsigned first = 0, leading = 16, stride = 0, reach = 0;
  if (swizzle == device::Swizzle::kNone) {
    leading = 16 * choices.below(96);
    stride = 16 * choices.below(64);
    reach = rows / 8 * stride + leading + 128;
    first = 16 * choices.below((4 * kWords - reach) / 16);
  } else {
    const unsigned unit = choices.below(2) == 0 ? 8 * width : 128;
    stride = unit * choices.below((4 * kWords - 2048) / (rows / 8) / unit);
    reach = rows / 8 * stride + 8 * width;
    first = 8 * width * choices.below((4 * kWords - reach) / (8 * width));
    first += 32 * choices.below(width / 32);
  }
  return device::matrix_descriptor(reinterpret_cast<std::byte*>(smem.words) + first, swizzle,
                                   leading, stride);
}

// The same of a tile of 16 bits whose lines, one for each of 16 k, lie along the rows.
inline __device__ device::MatrixDescriptor random_transposed_tile(Storage& smem, Choices& choices,
                                                                  unsigned rows,
                                                                  device::Swizzle swizzle) {
  if (swizzle == device::Swizzle::kNone) return random_tile(smem, choices, rows, swizzle);
  const unsigned width = width_of(swizzle);
  const unsigned groups = 2 * rows / width;  // of rows, leading_bytes apart
  const unsigned unit = choices.below(2) == 0 ? 8 * width : 128;
  const unsigned leading = unit * choices.below((4 * kWords - 2048) / (groups + 1) / unit);
  const unsigned stride = unit * choices.below((4 * kWords - 2048) / (groups + 1) / unit);
  const unsigned reach = groups * leading + stride + 8 * width;
  const unsigned first = 8 * width * choices.below((4 * kWords - reach) / (8 * width) + 1);
  return device::matrix_descriptor(reinterpret_cast<std::byte*>(smem.words) + first, swizzle,
                                   leading, stride);
}

#endif

inline device::LaunchConfig config_of(const char* kernel, std::size_t cases) {
  return {.kernel = kernel,
          .blocks = static_cast<std::int64_t>(cases),
          .threads_x = kThreads,
          .shared_bytes = sizeof(Storage)};
}

// One checksum per case, of those of its threads.
inline Status fold(const device::Buffer& sums, std::vector<std::uint32_t>* checksums) {
  std::vector<std::uint32_t> of_threads(checksums->size() * kThreads);
  if (Status s = device::synchronize(); !s.ok()) return s;
  const std::size_t bytes = of_threads.size() * sizeof(std::uint32_t);
  if (Status s = device::copy_to_host(of_threads.data(), sums.data(), bytes); !s.ok()) return s;
  for (std::size_t i = 0; i < of_threads.size(); ++i) {
    (*checksums)[i / kThreads] += of_threads[i];
  }
  return {};
}

}  // namespace tilegate::async_model
