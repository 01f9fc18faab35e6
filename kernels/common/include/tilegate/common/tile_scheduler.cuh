// The order in which the tiles of a batch are computed.
#pragma once

#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// Product by product, in groups of `group` rows of tiles, down the columns of each group: what runs
// at a time shares rows and columns in L2.
struct TileOrder {
  static constexpr int kGroupRows = 12 * 128;

  unsigned rows = 1, count = 1;  // of one product
  unsigned group = 1;
  Divisor columns, tiles, in_group;

  TileOrder() = default;
  TileOrder(const Shape& shape, int block_m, int block_n)
      : rows(static_cast<unsigned>(ceil_div(shape.m, block_m))),
        group(static_cast<unsigned>(kGroupRows / block_m)),
        columns(static_cast<unsigned>(ceil_div(shape.n, block_n))) {
    count = rows * columns.value();
    tiles = Divisor(count);
    in_group = Divisor(group * columns.value());
  }

  struct Tile {
    unsigned product, row, col;  // the latter in tiles
  };
  __host__ __device__ Tile tile(unsigned index) const {
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
