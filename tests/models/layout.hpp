// Which tile of C is whose, and where parts of split operands lie: by enumeration, or by formulas
// in plain integers.
#pragma once

#include <cstdint>
#include <vector>

namespace tilegate::models {

struct Tile {
  std::int64_t product = 0, row = 0, col = 0;  // the latter two in tiles
  friend bool operator==(const Tile&, const Tile&) = default;
};

// All tiles of a batch in the order in which they are numbered: product by product, in groups of
// `group` rows of tiles, down the columns of each group.
std::vector<Tile> tiles_in_order(std::int64_t products, std::int64_t rows, std::int64_t cols,
                                 std::int64_t group);

// A byte address in shared memory after the swizzle of so many bytes (32, 64 or 128): bits from 4
// on are XORed with those from 7 on.
std::int64_t swizzled(std::int64_t address, int width);

// Parts of operands lie in chunks of 128 rows × 32 k, and rows up to a whole chunk have scales.
std::int64_t whole_chunks(std::int64_t rows);

// Bytes from the start of an operand's digits: plane 0, 1, 2 is hi, mid, lo. `rows`: of a product.
std::int64_t offset_of_digit(std::int64_t rows, std::int64_t k, std::int64_t product,
                             std::int64_t row, std::int64_t of_k, int plane);
std::int64_t bytes_of_digits(std::int64_t rows, std::int64_t k, std::int64_t products);

// The same of FP16 numbers: plane 0 and 1 is hi and lo.
std::int64_t offset_of_half(std::int64_t rows, std::int64_t k, std::int64_t product,
                            std::int64_t row, std::int64_t of_k, int plane);
std::int64_t bytes_of_halves(std::int64_t rows, std::int64_t k, std::int64_t products);

// What a cluster of blocks computes of a tile: chunks [first, end) of K.
struct Piece {
  std::int64_t tile = 0;  // counted in the order of work
  std::int64_t first = 0, end = 0;
  bool is_stored = false;   // by this cluster: it has the last chunk
  std::int64_t others = 0;  // clusters before it that have pieces of the tile
  bool is_last = false;     // of the cluster
  std::int64_t turn = 0;    // number among those that the cluster stores
  friend bool operator==(const Piece&, const Piece&) = default;
};

// Stream-K: what each of the clusters computes, in order, of `tiles` tiles of `chunks` chunks each.
std::vector<std::vector<Piece>> pieces_of_clusters(std::int64_t tiles, std::int64_t clusters,
                                                   std::int64_t chunks);

// Split-K: what a block computes of a tile, in k tiles; elements of C from which on it reads and
// from which on it stores.
struct Part {
  std::int64_t product = 0, row = 0, col = 0, own_row = 0, own_col = 0;
  std::int64_t first = 0, count = 0;
  std::int64_t partial = -1;  // number of its partial sum; -1: it has all k tiles
  friend bool operator==(const Part&, const Part&) = default;
};

// One part after another, of tiles row by row: the first `whole` tiles are not split, the others
// are in `parts` each, of which the first may have one k tile more. `end_m`, `end_n`: where rows
// and columns end that may be read; a tile that would reach beyond begins earlier.
struct PartsOfTiles {
  std::int64_t products = 1, rows = 1, cols = 1;  // tiles
  std::int64_t block_m = 1, block_n = 1, end_m = 0, end_n = 0;
  std::int64_t whole = 0, parts = 1, k_tiles = 0;
};
std::vector<Part> parts_in_order(const PartsOfTiles& of);

// How many products a sum of cuBLAS in FP32 adds one after another, as the rungs that split
// operands assume: `tiles` tiles of 128×128 in all; whether rows of A and B are whole vectors.
double summed_in_fp32(std::int64_t k, std::int64_t tiles, bool vectors);
// As many as have the error of parts of K that are added up in turn: where products have either
// sign, and where all have one. Then the length of a part is not known, but that it is `part` at
// least, and the error the least that any length has.
double products_in_fp32(std::int64_t k, double part);
double products_of_one_sign_in_fp32(std::int64_t k, double part);

}  // namespace tilegate::models
