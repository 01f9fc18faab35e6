#include <algorithm>
#include <cstdint>

#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>

#include "passes.hpp"

namespace tilegate::preload {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostRowBlocks = 1024;
constexpr int kRowsAtOnce = 4;  // of a thread: so many loads are in flight

// One thread per column; the rows are divided among row_blocks(rows) blocks, so that a thread has
// kRowsAtOnce rows or more if there are so many.
std::int64_t row_blocks(std::int64_t rows) {
  return std::min(ceil_div(rows, std::int64_t{kRowsAtOnce}), kMostRowBlocks);
}

device::LaunchConfig config(const char* kernel, std::int64_t rows, std::int64_t cols) {
  return {.kernel = kernel,
          .blocks = ceil_div(cols, std::int64_t{kThreads}) * row_blocks(rows),
          .threads_x = kThreads};
}

}  // namespace

__global__ void add_rows(const float* bias, std::int64_t rows, std::int64_t cols, float* c,
                         std::int64_t ldc, std::int64_t row_step) {
  const std::int64_t col_blocks = (cols + kThreads - 1) / kThreads;
  const std::int64_t col = blockIdx.x % col_blocks * kThreads + threadIdx.x;
  if (col >= cols) return;
  const float value = bias[col];
  for (std::int64_t first = blockIdx.x / col_blocks; first < rows;
       first += kRowsAtOnce * row_step) {
    float sums[kRowsAtOnce]{};
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const std::int64_t row = first + i * row_step;
      if (row < rows) sums[i] = c[row * ldc + col] + value;
    }
#pragma unroll
    for (int i = 0; i < kRowsAtOnce; ++i) {
      const std::int64_t row = first + i * row_step;
      if (row < rows) c[row * ldc + col] = sums[i];
    }
  }
}

Status enqueue_bias(const float* bias, std::int64_t rows, std::int64_t cols, float* c,
                    std::int64_t ldc, Stream stream) {
  return device::launch(config("add_rows", rows, cols), stream, add_rows, bias, rows, cols, c, ldc,
                        row_blocks(rows));
}

__global__ void scale_product(Scaling s, std::int64_t row_step) {
  const std::int64_t col_blocks = (s.c.cols + kThreads - 1) / kThreads;
  const std::int64_t col = blockIdx.x % col_blocks * kThreads + threadIdx.x;
  if (col >= s.c.cols) return;
  const float alpha = *s.alpha, beta = *s.beta;
  const float bias = s.bias == nullptr ? 0.0F : s.bias[col];
  const std::int64_t rows = s.c.rows * s.c.batch;
  for (std::int64_t at = blockIdx.x / col_blocks; at < rows; at += row_step) {
    const std::int64_t product = at / s.c.rows, row = at % s.c.rows;
    float& element = s.c.data[product * s.c.stride + row * s.c.ld + col];
    float sum = bias;
    if (alpha != 0.0F) sum += alpha * s.product[product * s.stride + row * s.ld + col];
    if (beta != 0.0F) sum += beta * element;
    element = sum;
  }
}

Status enqueue_scaling(const Scaling& scaling, Stream stream) {
  const std::int64_t rows = scaling.c.rows * scaling.c.batch;
  return device::launch(config("scale_product", rows, scaling.c.cols), stream, scale_product,
                        scaling, row_blocks(rows));
}

}  // namespace tilegate::preload
