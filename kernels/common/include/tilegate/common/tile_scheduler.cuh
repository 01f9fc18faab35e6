// Which tile of C a block computes. Grids are one-dimensional: CUDA limits the other dimensions to
// 65535 blocks, and M or N may need more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/gpu_model.hpp>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

constexpr __host__ __device__ std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Rows or columns of a tile inside C, of which `count` are left; may be 0 or less.
__device__ inline int at_most(std::int64_t count, int most) {
  return count < most ? static_cast<int>(count) : most;
}

// For rungs 01 to 12 and Sgemm's own tiles: one tile of kBlockM×kBlockN per block, in row-major
// order of tiles.
template <int kBlockM, int kBlockN>
struct TileGrid {
  static __host__ __device__ std::int64_t num_blocks(const Shape& shape) {
    return ceil_div(shape.m, kBlockM) * ceil_div(shape.n, kBlockN);
  }

  // First row and column of tile `tile`, by default the tile with the block's index.
  struct Origin {
    std::int64_t row, col;
  };
  static __device__ Origin origin(const Shape& shape, unsigned tile) {
    const auto tiles_n = static_cast<unsigned>(ceil_div(shape.n, kBlockN));
    return {static_cast<std::int64_t>(tile / tiles_n) * kBlockM,
            static_cast<std::int64_t>(tile % tiles_n) * kBlockN};
  }
  static __device__ Origin origin(const Shape& shape) { return origin(shape, blockIdx.x); }

  // Ok if a grid has as many blocks as C has tiles.
  static Status fits(const Shape& shape) {
    // In floating point, because the product of two 64-bit extents may overflow.
    const double blocks = static_cast<double>(ceil_div(shape.m, kBlockM)) *
                          static_cast<double>(ceil_div(shape.n, kBlockN));
    if (blocks <= static_cast<double>(kMaxBlocks)) return {};
    return Status::unsupported("C needs more blocks than a CUDA grid has: tiles of " +
                               std::to_string(kBlockM) + "x" + std::to_string(kBlockN));
  }
};

// Rounding chain of a serial sum: K additions, then the scaling by alpha and the sum with C.
inline std::int64_t serial_rounding_chain(const Shape& shape) { return shape.k + 2; }

// The choice of a stage with one tile size that sums serially along K.
template <typename Grid>
Choice serial_choice(const Problem& problem,
                     std::function<Status(const KernelArgs&, Stream)> enqueue) {
  return {.status = Grid::fits(problem.shape),
          .rounding_chain = serial_rounding_chain(problem.shape),
          .enqueue = std::move(enqueue)};
}

struct TileCoord {
  unsigned batch_index, row, col;  // row and column in tiles
};

// Rasterization: the order of a batch's tiles, matrix by matrix. Both orders are kernel parameters
// and divide by multiplication.

// Along N: row by row.
struct RasterAlongN {
  Divisor columns, tiles;  // tiles per row, per matrix

  RasterAlongN() = default;
  RasterAlongN(const Shape& shape, int block_m, int block_n)
      : columns(static_cast<std::uint32_t>(ceil_div(shape.n, block_n))),
        tiles(static_cast<std::uint32_t>(ceil_div(shape.m, block_m)) * columns.value()) {}

  __host__ __device__ TileCoord tile(unsigned index) const {
    const unsigned batch_index = tiles.quotient(index);
    const unsigned in_matrix = tiles.remainder(index, batch_index);
    const unsigned row = columns.quotient(in_matrix);
    return {batch_index, row, columns.remainder(in_matrix, row)};
  }
};

// Along M, in groups of rows of tiles: down the columns of one group, then of the next. So blocks
// that run at the same time share rows of A and columns of B in L2 (CUTLASS: threadblock swizzle).
struct TileScheduler {
  static constexpr int kGroupRows = 12 * 128;  // of C

  unsigned rows = 1, count = 1;  // rows of tiles, and tiles, of one matrix
  unsigned group = 1;            // rows of tiles in a group
  RasterAlongN along_n;
  Divisor in_group;  // tiles per group

  TileScheduler() = default;
  TileScheduler(const Shape& shape, int block_m, int block_n)
      : TileScheduler(shape, block_m, block_n, static_cast<unsigned>(kGroupRows / block_m)) {}
  TileScheduler(const Shape& shape, int block_m, int block_n, unsigned group_)
      : rows(static_cast<unsigned>(ceil_div(shape.m, block_m))),
        group(group_),
        along_n(shape, block_m, block_n) {
    count = along_n.tiles.value();
    // At most as many as a grid has blocks: then no index is in a second group.
    in_group = Divisor(static_cast<std::uint32_t>(
        std::min(std::int64_t{group} * along_n.columns.value(), kMaxBlocks)));
  }

  __host__ __device__ TileCoord tile(unsigned index) const {
    const unsigned batch_index = along_n.tiles.quotient(index);
    const unsigned in_matrix = along_n.tiles.remainder(index, batch_index);
    const unsigned number = in_group.quotient(in_matrix);
    const unsigned rest = in_group.remainder(in_matrix, number);
    const unsigned left = rows - number * group;
    const unsigned height = left < group ? left : group;
    return {batch_index, number * group + rest % height, rest / height};
  }
};

// What a kernel's order of tiles depends on: rows of tiles in groups, and columns of tiles where
// there are several groups.
inline Parameter scheduling(const TileScheduler& scheduler) {
  return parameter::tiles("order of tiles: rows in a group", scheduler.rows, scheduler.group);
}
inline Parameter columns_of_groups(const TileScheduler& scheduler) {
  return parameter::count("order of tiles: columns of several groups",
                          scheduler.rows > scheduler.group ? scheduler.along_n.columns.value() : 0);
}

}  // namespace tilegate
