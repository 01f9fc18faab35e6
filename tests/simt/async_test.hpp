// Helpers for tests of asynchronous hardware: a fixture that skips other devices, and int8
// matrices.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/async.cuh>

// Set in device code for 90a, in host code, and for the executor.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TILEGATE_TEST_ASYNC 1
#endif

namespace tilegate {

class Async : public testing::Test {
 protected:
  void SetUp() override {
    if (device::current().is_cuda && device::current().compute_capability != 90) {
      GTEST_SKIP() << "needs compute capability 9.0";
    }
  }
};

// On a GPU the body runs once.
inline void for_each_schedule(const std::function<void()>& body) {
#if defined(__CUDACC__)
  body();
#else
  using simt::Schedule;
  for (const Schedule schedule :
       {Schedule::forward(), Schedule::reverse(), Schedule::shuffled(1), Schedule::shuffled(2)}) {
    simt::executor::set_schedule(schedule);
    body();
  }
  simt::executor::set_schedule(Schedule::forward());
#endif
}

// Bytes of a row of a tile; unswizzled tiles have pieces of 16 bytes.
__host__ __device__ constexpr unsigned width_of(device::Swizzle swizzle) {
  return 16U << static_cast<unsigned>(swizzle);
}

class Int8Matrix {
 public:
  Int8Matrix(unsigned rows, unsigned cols, std::uint32_t seed) : rows_(rows), cols_(cols) {
    std::mt19937 random(seed);
    for (unsigned i = 0; i < rows * cols; ++i) {
      values_.push_back(static_cast<std::int8_t>(random() & 0xFF));
    }
  }

  // The layout in shared memory, at a multiple of 1024 bytes: panels of the swizzle's width, each
  // with all rows; the 16-byte pieces of a row are swizzled.
  std::vector<std::int8_t> as_tile(device::Swizzle swizzle) const {
    const unsigned width = width_of(swizzle);
    std::vector<std::int8_t> tile(values_.size());
    for (unsigned row = 0; row < rows_; ++row) {
      for (unsigned col = 0; col < cols_; ++col) {
        const unsigned in_line = row * width % 1024 / 128 % (width / 16);
        const unsigned piece = (col % width / 16) ^ in_line;
        tile[col / width * width * rows_ + row * width + piece * 16 + col % 16] =
            values_[row * cols_ + col];
      }
    }
    return tile;
  }

  std::vector<std::int32_t> times_transpose_of(const Int8Matrix& b) const {
    std::vector<std::int32_t> c;
    for (unsigned row = 0; row < rows_; ++row) {
      for (unsigned col = 0; col < b.rows_; ++col) {
        std::int32_t sum = 0;
        for (unsigned k = 0; k < cols_; ++k) {
          sum += values_[row * cols_ + k] * b.values_[col * cols_ + k];
        }
        c.push_back(sum);
      }
    }
    return c;
  }

 private:
  unsigned rows_, cols_;
  std::vector<std::int8_t> values_;
};

}  // namespace tilegate
