// Tiles of an operand on their way from global memory through registers to shared memory.
#pragma once

#include <cstdint>

#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// One thread's share of a kRows×kCols tile that a block of kNumThreads reads together, four
// columns at a time; neighbouring threads read neighbouring columns. Elements outside the matrix
// read as zero.
template <int kRows, int kCols, int kNumThreads, bool kVector>
class TileReader {
 public:
  static constexpr int kVectorsPerRow = kCols / 4;
  static constexpr int kRowStep = kNumThreads / kVectorsPerRow;  // rows between two reads
  static constexpr int kReads = kRows / kRowStep;                // of one thread
  static_assert(kCols % 4 == 0, "rows are read four elements at a time");
  static_assert(kNumThreads % kVectorsPerRow == 0, "threads would straddle rows");
  static_assert(kRows % kRowStep == 0, "the last read would leave the tile");

  using Registers = float4[kReads];

  // Starts at the tile whose first element is (row, col) of the rows×cols matrix.
  __device__ TileReader(const float* data, std::int64_t ld, std::int64_t rows, std::int64_t cols,
                        std::int64_t row, std::int64_t col)
      : tile_row_(static_cast<int>(threadIdx.x) / kVectorsPerRow),
        tile_col_(static_cast<int>(threadIdx.x) % kVectorsPerRow * 4),
        next_(data + (row + tile_row_) * ld + col + tile_col_),
        ld_(ld),
        rows_left_(rows - row - tile_row_),
        cols_left_(cols - col - tile_col_) {}

  __device__ void read(Registers& values) const {
#pragma unroll
    for (int i = 0; i < kReads; ++i) {
      values[i] = i * kRowStep < rows_left_
                      ? load4<kVector>(next_ + i * kRowStep * ld_, 0, cols_left_)
                      : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    }
  }

  __device__ void advance_rows(int rows) {
    next_ += rows * ld_;
    rows_left_ -= rows;
  }
  __device__ void advance_cols(int cols) {
    next_ += cols;
    cols_left_ -= cols;
  }

  // The tile as it is: element (row, col) to smem[row][col].
  template <int kStride>
  __device__ void store(float (&smem)[kRows][kStride], const Registers& values) const {
#pragma unroll
    for (int i = 0; i < kReads; ++i) {
      device::store_vector(&smem[tile_row_ + i * kRowStep][tile_col_], values[i]);
    }
  }

  // The tile transposed: element (row, col) to smem[col][column(row, col)]. `column` must not
  // tell the four columns of a vector apart.
  template <int kStride, typename Column>
  __device__ void store_transposed(float (&smem)[kCols][kStride], const Registers& values,
                                   Column column) const {
#pragma unroll
    for (int i = 0; i < kReads; ++i) {
      const int to = column(tile_row_ + i * kRowStep, tile_col_);
      smem[tile_col_ + 0][to] = values[i].x;
      smem[tile_col_ + 1][to] = values[i].y;
      smem[tile_col_ + 2][to] = values[i].z;
      smem[tile_col_ + 3][to] = values[i].w;
    }
  }

 private:
  int tile_row_, tile_col_;
  const float* next_;
  std::int64_t ld_;
  std::int64_t rows_left_, cols_left_;  // from this thread's first element on
};

}  // namespace tilegate
