// Loads tiles of an operand into shared memory, one element at a time: for the rungs that do not
// use vectors.
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>

namespace tilegate {

// How much of a tile of kExtent rows or columns is inside a matrix with `left` from its start on.
template <int kExtent>
__device__ int clip(std::int64_t left) {
  return left < kExtent ? static_cast<int>(left) : kExtent;
}

// One thread's share of the kRows×kCols tiles that a block of kNumThreads loads together, one after
// another; neighbouring threads load neighbouring columns.
template <int kNumThreads, int kRows, int kCols>
class TileLoader {
 public:
  static constexpr int kRowStep = kNumThreads / kCols;  // rows between two loads of a thread
  static constexpr int kLoads = kRows / kRowStep;       // of one thread
  static_assert(kNumThreads % kCols == 0, "threads would straddle rows");
  static_assert(kRows % kRowStep == 0, "the last load would leave the tile");

  // The first tile starts at `gmem`; rows are `ld` elements apart.
  __device__ TileLoader(const float* gmem, std::int64_t ld)
      : row_(static_cast<int>(threadIdx.x / kCols)),
        col_(static_cast<int>(threadIdx.x % kCols)),
        next_(gmem + row_ * ld + col_),
        ld_(ld) {}

  // smem[r][c] ← tile(r, c) for r < rows and c < cols, zero elsewhere.
  __device__ void load(float (&smem)[kRows][kCols], int rows, int cols) const {
    float values[kLoads];  // all loads before the first store: they are in flight together
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const bool inside = row_ + i * kRowStep < rows && col_ < cols;
      values[i] = inside ? next_[i * kRowStep * ld_] : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) smem[row_ + i * kRowStep][col_] = values[i];
  }

  __device__ void advance_rows() { next_ += kRows * ld_; }
  __device__ void advance_cols() { next_ += kCols; }

 private:
  int row_, col_;  // of the thread's first element in the tile
  const float* next_;
  std::int64_t ld_;
};

}  // namespace tilegate
