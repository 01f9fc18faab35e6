// The order of tiles and of stream-K work, and the layout of split operands: by enumeration, or by
// formulas in plain integers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tilegate::models {

struct Tile {
  std::int64_t batch_index = 0, row = 0, col = 0;  // the latter two in tiles
  friend bool operator==(const Tile&, const Tile&) = default;
};

// All tiles of a batch in the order in which they are numbered: matrix by matrix of a batch, in
// groups of `group` rows of tiles, down the columns of each group.
std::vector<Tile> tiles_in_order(std::int64_t batch, std::int64_t rows, std::int64_t cols,
                                 std::int64_t group);

// A byte address in shared memory after the swizzle of `width` bytes (32, 64 or 128): bits from 4
// on are XORed with bits from 7 on.
std::int64_t swizzled(std::int64_t address, int width);

// Planes of operands consist of chunks of 128 rows × 32 k; all rows of a chunk have scales.
std::int64_t whole_chunks(std::int64_t rows);

// Offset of a digit in bytes: plane 0, 1, 2 is hi, mid, lo. `rows`: rows of a matrix.
std::int64_t offset_of_digit(std::int64_t rows, std::int64_t k, std::int64_t batch_index,
                             std::int64_t row, std::int64_t of_k, int plane);
std::int64_t bytes_of_digits(std::int64_t rows, std::int64_t k, std::int64_t batch);

// The same of FP16 numbers: plane 0 and 1 is hi and lo.
std::int64_t offset_of_fp16(std::int64_t rows, std::int64_t k, std::int64_t batch_index,
                            std::int64_t row, std::int64_t of_k, int plane);
std::int64_t bytes_of_fp16_planes(std::int64_t rows, std::int64_t k, std::int64_t batch);

// The work of a cluster of blocks on a tile: chunks [first, end) of K.
struct StreamKWork {
  std::int64_t tile = 0;  // index in the order of work
  std::int64_t first = 0, end = 0;
  bool is_stored = false;     // this cluster stores the tile: it has the last chunk
  std::int64_t partials = 0;  // previous clusters with chunks of the tile
  bool is_last = false;       // the cluster's last work
  std::int64_t index = 0;     // among the tiles that the cluster stores
  friend bool operator==(const StreamKWork&, const StreamKWork&) = default;
};

// Stream-K: the work of each cluster, in order, for `tiles` tiles of `chunks` chunks each.
// `least`: the fewest chunks of a split tile that a cluster takes.
std::vector<std::vector<StreamKWork>> work_of_clusters(std::int64_t tiles, std::int64_t clusters,
                                                       std::int64_t chunks, std::int64_t least);

// Split-K: the work of a block on a tile: `count` k tiles from `first` on. (row, col): the tile's
// first element in C; (own_row, own_col): the first one that it stores.
struct SplitKWork {
  std::int64_t batch_index = 0, row = 0, col = 0, own_row = 0, own_col = 0;
  std::int64_t first = 0, count = 0;
  std::int64_t partial = -1;  // index of the partial sum; -1: a whole tile
  friend bool operator==(const SplitKWork&, const SplitKWork&) = default;
};

// Tiles in row-major order: the first `whole` are not split, the others have `k_splits` splits
// each, the first of which may have one k tile more. `end_m`, `end_n`: rows and columns that may be
// read; a tile that exceeds them begins earlier.
struct SplitK {
  std::int64_t batch = 1, rows = 1, cols = 1;  // tiles
  std::int64_t block_m = 1, block_n = 1, end_m = 0, end_n = 0;
  std::int64_t whole = 0, k_splits = 1, k_tiles = 0;
};
std::vector<SplitKWork> work_in_order(const SplitK& of);

// StreamK: the work of a block, k tiles [first, end) of a tile. `partial`: index of its partial
// sum; -1: a whole tile.
struct TailWork {
  Tile tile;
  std::int64_t first = 0, end = 0, partial = -1;
  friend bool operator==(const TailWork&, const TailWork&) = default;
};

// Tiles in their order, the first `head` whole. Of the others each split has one block per tile; of
// its first s splits a tile's k tiles are as many as fit in s / k_splits of them.
std::vector<TailWork> tail_work_in_order(const std::vector<Tile>& tiles, std::int64_t head,
                                         std::int64_t k_splits, std::int64_t k_tiles);

// The parts into which cuBLAS in FP32 splits K for a large C, and the products that it adds one
// after another, as rungs that split operands assume.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string_view form = "NN";  // of op(A) and op(B)
  bool vectors = true;           // whether A and B allow them
};
std::int64_t parts_in_fp32(const Product& product);
double summed_in_fp32(const Product& product);
// Effective number of products in the error of a sum of partial sums of `length` products each,
// with products of either sign, and of one sign: then the minimum over all lengths from `length`
// on.
double products_in_fp32(std::int64_t k, double length);
double products_of_one_sign_in_fp32(std::int64_t k, double length);

}  // namespace tilegate::models
