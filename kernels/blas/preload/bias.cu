#include <cstdint>

#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>

#include "bias.hpp"

namespace tilegate::preload {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostRowBlocks = 1024;

}  // namespace

// One thread per column; blocks along y divide the rows.
__global__ void fill_rows(const float* bias, std::int64_t rows, std::int64_t cols, float* c,
                          std::int64_t ldc, std::int64_t row_blocks) {
  const std::int64_t col_blocks = (cols + kThreads - 1) / kThreads;
  const std::int64_t col = blockIdx.x % col_blocks * kThreads + threadIdx.x;
  if (col >= cols) return;
  const float value = bias[col];
  for (std::int64_t row = blockIdx.x / col_blocks; row < rows; row += row_blocks) {
    c[row * ldc + col] = value;
  }
}

Status enqueue_bias(const float* bias, std::int64_t rows, std::int64_t cols, float* c,
                    std::int64_t ldc, Stream stream) {
  const std::int64_t row_blocks = rows < kMostRowBlocks ? rows : kMostRowBlocks;
  const device::LaunchConfig launch{.kernel = "fill_rows",
                                    .blocks = ceil_div(cols, std::int64_t{kThreads}) * row_blocks,
                                    .threads_x = kThreads};
  return device::launch(launch, stream, fill_rows, bias, rows, cols, c, ldc, row_blocks);
}

}  // namespace tilegate::preload
