// How the tiles of a batch of products are shared out among blocks: the first ones to a block each,
// the others, which would keep part of the device waiting, to several blocks along K. Their partial
// sums go to the workspace, and a second kernel adds them, first part first, so that the same call
// gives the same bits.
#pragma once

#include <cstdint>
#include <limits>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// In the arguments of kernels.
struct KSplit {
  // A tile at the end may reach back instead of out, so that all of it is inside: what two blocks
  // then compute, the one stores to which it belongs. With kOpenEnd it reaches out.
  static constexpr std::int64_t kOpenEnd = std::numeric_limits<std::int64_t>::max();

  int block_m, block_n;
  std::int64_t end_m, end_n;          // rows and columns that tiles may read, or kOpenEnd
  Divisor columns, tiles;             // of tiles: in a row, and of one product
  unsigned whole;                     // of the batch's tiles, those that are not split
  Divisor parts;                      // blocks for each of the others
  int k_tiles, k_tiles_per_part;
  bool vectors;                       // rows of C consist of whole vectors

  // Part of a tile: what one block computes.
  struct Part {
    unsigned product;
    std::int64_t row, col;            // of C's element at the tile's start
    int own_row, own_col;             // of the tile: where what belongs to it begins
    int first_k_tile, k_tiles;
    float* partial;                   // of the tile, in the workspace; nullptr: it is whole
  };

  __host__ __device__ std::int64_t words() const { return std::int64_t{block_m} * block_n; }

  __device__ Part locate(unsigned tile) const {
    const unsigned product = tiles.quotient(tile);
    const unsigned in_product = tiles.remainder(tile, product);
    const unsigned tile_row = columns.quotient(in_product);
    const std::int64_t row = std::int64_t{tile_row} * block_m;
    const std::int64_t col = std::int64_t{columns.remainder(in_product, tile_row)} * block_n;
    const std::int64_t first_row = row + block_m <= end_m ? row : end_m - block_m;
    const std::int64_t first_col = col + block_n <= end_n ? col : end_n - block_n;
    return {product, first_row, first_col, static_cast<int>(row - first_row),
            static_cast<int>(col - first_col), 0, k_tiles, nullptr};
  }

  __device__ Part part(unsigned block, void* workspace) const {
    if (block < whole) return locate(block);
    const unsigned split = parts.quotient(block - whole);
    const unsigned index = parts.remainder(block - whole, split);
    Part part = locate(whole + split);
    // The first k_tiles % parts of them get one more.
    const int least = k_tiles_per_part, more = k_tiles - least*static_cast<int>(parts.value());
    const int i = static_cast<int>(index);
    part.first_k_tile = i * least + (i < more ? i : more);
    part.k_tiles = least + (i < more ? 1 : 0);
    part.partial = static_cast<float*>(workspace) + (block - whole) * words();
    return part;
  }
};

}  // namespace tilegate
