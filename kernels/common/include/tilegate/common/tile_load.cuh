// Loads tiles of an operand from global to shared memory. TileLoader does so in one call, word by
// word. TileReader reads a tile to registers, and stores it to shared memory in a later call; it
// reads vectors or, where the operands do not allow them, words.
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// Rows or columns of a tile of kExtent that lie inside a matrix which has `left` from there on.
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

// Whether all three operands allow 128-bit accesses. Kernels are compiled for both cases, and the
// plan chooses.
inline bool allows_vectors(const Problem& problem) {
  return allows_vectors(problem, Operand::kA) && allows_vectors(problem, Operand::kB) &&
         allows_vectors(problem, Operand::kC);
}

// Columns col … col + 3 of the row that starts at `row`, zeros from column `cols` on; col % 4 == 0.
template <bool kVector>
__device__ float4 load4(const float* row, std::int64_t col, std::int64_t cols) {
  float4 v = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  if constexpr (kVector) {
    if (col < cols) v = device::load_vector<float4>(row + col);
  } else {
    if (col + 0 < cols) v.x = row[col + 0];
    if (col + 1 < cols) v.y = row[col + 1];
    if (col + 2 < cols) v.z = row[col + 2];
    if (col + 3 < cols) v.w = row[col + 3];
  }
  return v;
}

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

  // Not transposed: element (row, col) to smem[row][col].
  template <int kStride>
  __device__ void store(float (&smem)[kRows][kStride], const Registers& values) const {
#pragma unroll
    for (int i = 0; i < kReads; ++i) {
      device::store_vector(&smem[tile_row_ + i * kRowStep][tile_col_], values[i]);
    }
  }

  // Transposed: element (row, col) to smem[col][column(row, col)]. `column` must be the same for
  // the four columns of a vector.
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
