// Which tile of C a block computes. Both schedulers go product by product, in groups of rows of
// tiles, down the columns of each group: blocks that run at a time share rows of A and columns of B
// in L2.
#pragma once

#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

struct TileCoord {
  unsigned product, row, col;  // row and column in tiles
};

// For kernels whose blocks compute one tile each.
struct TileScheduler {
  static constexpr unsigned kGroup = 8;  // rows of tiles

  unsigned tiles_m, tiles_n;  // of one product

  __device__ TileCoord tile(unsigned index) const {
    const unsigned in_product = index % (tiles_m * tiles_n);
    const unsigned first_row = in_product / (kGroup * tiles_n) * kGroup;
    const unsigned in_group = in_product - first_row * tiles_n;
    const unsigned rows = min(kGroup, tiles_m - first_row);
    return {index / (tiles_m * tiles_n), first_row + in_group % rows, in_group / rows};
  }
};

// For persistent kernels, whose blocks go from tile to tile: it divides by multiplication.
struct PersistentTileScheduler {
  static constexpr int kGroupRows = 12 * 128;  // of C

  unsigned rows = 1, count = 1;  // of tiles, of one product
  unsigned group = 1;            // rows of tiles
  Divisor columns, tiles, in_group;

  PersistentTileScheduler() = default;
  PersistentTileScheduler(const Shape& shape, int block_m, int block_n)
      : rows(static_cast<unsigned>(ceil_div(shape.m, block_m))),
        group(static_cast<unsigned>(kGroupRows / block_m)),
        columns(static_cast<unsigned>(ceil_div(shape.n, block_n))) {
    count = rows * columns.value();
    tiles = Divisor(count);
    in_group = Divisor(group * columns.value());
  }

  __host__ __device__ TileCoord tile(unsigned index) const {
    const unsigned product = tiles.quotient(index);
    const unsigned in_product = tiles.remainder(index, product);
    const unsigned number = in_group.quotient(in_product);
    const unsigned rest = in_group.remainder(in_product, number);
    const unsigned left = rows - number * group;
    const unsigned height = left < group ? left : group;
    return {product, number * group + rest % height, rest / height};
  }
};

}  // namespace tilegate
