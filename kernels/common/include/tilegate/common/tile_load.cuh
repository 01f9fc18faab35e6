// Tiles of an operand straight into shared memory, one element at a time: the loads of the rungs
// that do not use vectors.
#pragma once

#include <cstdint>

#include <tilegate/simt/simt.cuh>

namespace tilegate {

// A rows×cols matrix of row stride ld in global memory.
struct MatrixView {
  const float* data;
  std::int64_t ld;
  std::int64_t rows, cols;
};

// smem[r][c] ← matrix(row + r, col + c), zero outside the matrix. A block of kNumThreads loads the
// tile together; neighbouring threads load neighbouring columns.
template <int kNumThreads, int kRows, int kCols>
__device__ void load_tile(float (&smem)[kRows][kCols], const MatrixView& matrix, std::int64_t row,
                          std::int64_t col) {
  constexpr int kRowStep = kNumThreads / kCols;  // rows between two loads of a thread
  constexpr int kLoads = kRows / kRowStep;       // of one thread
  static_assert(kNumThreads % kCols == 0, "threads would straddle rows");
  static_assert(kRows % kRowStep == 0, "the last load would leave the tile");
  const int tile_row = static_cast<int>(threadIdx.x) / kCols;
  const int tile_col = static_cast<int>(threadIdx.x) % kCols;
  row += tile_row;
  col += tile_col;

  // All loads before the first store, so that they are in flight together.
  float values[kLoads];
  const bool inside = row - tile_row + kRows <= matrix.rows && col - tile_col + kCols <= matrix.cols;
  if (inside) {  // the same for the whole block: no checks for each element
    const float* from = matrix.data + row * matrix.ld + col;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) values[i] = from[i * kRowStep * matrix.ld];
  } else {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const std::int64_t r = row + i * kRowStep;
      values[i] =
          r < matrix.rows && col < matrix.cols ? matrix.data[r * matrix.ld + col] : 0.0F;
    }
  }
#pragma unroll
  for (int i = 0; i < kLoads; ++i) smem[tile_row + i * kRowStep][tile_col] = values[i];
}

}  // namespace tilegate
