// How the tiles of a batch of products are shared out among blocks: the first ones to a block each,
// the others, which would keep part of the device waiting, to several blocks along K. Their partial
// sums go to the workspace, and a second kernel adds them (split_sums.cuh).
#pragma once

#include <cstdint>
#include <limits>

#include <tilegate/common/divisor.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// Among the arguments of kernels.
struct KSplit {
  // The last tiles of a row or column may reach back instead of out, so that all of them is inside:
  // what two blocks then compute, the one stores to which it belongs. With kReachesOut they reach
  // out.
  static constexpr std::int64_t kReachesOut = std::numeric_limits<std::int64_t>::max();

  int block_m = 1, block_n = 1;
  std::int64_t end_m = kReachesOut, end_n = kReachesOut;  // rows and columns that tiles may read
  Divisor columns, tiles;                                 // of tiles: in a row, and of one product
  unsigned whole = 0;  // of the batch's tiles, those that are not split
  Divisor parts;       // blocks for each of the others
  int k_tiles = 0;
  bool vectors = false;  // rows of C consist of whole vectors

  // Part of a tile: what one block computes.
  struct Part {
    unsigned product;
    std::int64_t row, col;  // of C's element at the tile's start
    int own_row, own_col;   // of the tile: where what belongs to it begins
    int first_k_tile, k_tiles;
    float* partial;  // of the tile, in the workspace; nullptr: it is whole
  };

  // Elements of a partial sum: a whole tile, row by row, whatever of it belongs to C.
  __host__ __device__ std::int64_t partial_size() const { return std::int64_t{block_m} * block_n; }

  __device__ Part tile(unsigned index) const {
    const unsigned product = tiles.quotient(index);
    const unsigned in_product = tiles.remainder(index, product);
    const unsigned tile_row = columns.quotient(in_product);
    const unsigned tile_col = columns.remainder(in_product, tile_row);
    const std::int64_t row = std::int64_t{tile_row} * block_m;
    const std::int64_t col = std::int64_t{tile_col} * block_n;
    const std::int64_t first_row = row + block_m <= end_m ? row : end_m - block_m;
    const std::int64_t first_col = col + block_n <= end_n ? col : end_n - block_n;
    return {.product = product,
            .row = first_row,
            .col = first_col,
            .own_row = static_cast<int>(row - first_row),
            .own_col = static_cast<int>(col - first_col),
            .first_k_tile = 0,
            .k_tiles = k_tiles,
            .partial = nullptr};
  }

  __device__ Part part(unsigned block, void* workspace) const {
    if (block < whole) return tile(block);
    const unsigned split = parts.quotient(block - whole);
    Part part = tile(whole + split);
    // The first k_tiles % parts of them get one more.
    const int index = static_cast<int>(parts.remainder(block - whole, split));
    const int least = static_cast<int>(parts.quotient(static_cast<unsigned>(k_tiles)));
    const int more = k_tiles - least * static_cast<int>(parts.value());
    part.first_k_tile = index * least + (index < more ? index : more);
    part.k_tiles = least + (index < more ? 1 : 0);
    part.partial = static_cast<float*>(workspace) + (block - whole) * partial_size();
    return part;
  }
};

}  // namespace tilegate
