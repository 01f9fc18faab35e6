// How the tiles of a batch of products are shared out among blocks: the first ones to a block each,
// the others, which would keep part of the device waiting, to several blocks along K. Their partial
// sums go to the workspace, and a second kernel adds them (below).
#pragma once

#include <cstdint>
#include <limits>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

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
    const int extra = k_tiles - least * static_cast<int>(parts.value());
    part.first_k_tile = index * least + (index < extra ? index : extra);
    part.k_tiles = least + (index < extra ? 1 : 0);
    part.partial = static_cast<float*>(workspace) + (block - whole) * partial_size();
    return part;
  }
};

}  // namespace tilegate

namespace tilegate::split_sums {

// The fix-up kernel: it adds the partial sums of each tile, first part first, so that the same call
// gives the same bits.

constexpr int kNumThreads = 256;

// C ← alpha·(sum of the partial sums) + beta·C for the tiles that are split; a vector of C, or a
// word, per thread.
template <bool kVectors>
__global__ void __launch_bounds__(kNumThreads) add(KernelArgs args, KSplit split) {
  constexpr int kWords = kVectors ? 4 : 1;
  const auto size = static_cast<unsigned>(split.partial_size());
  const unsigned blocks = size / (kNumThreads * kWords);  // per tile
  const unsigned tile = blockIdx.x / blocks;
  const unsigned word = (blockIdx.x % blocks * kNumThreads + threadIdx.x) * kWords;
  const auto row = static_cast<int>(word / split.block_n);
  const auto col = static_cast<int>(word % split.block_n);
  const KSplit::Part part = split.tile(split.whole + tile);
  if (row < part.own_row || col < part.own_col) return;
  if (row >= args.shape.m - part.row || col >= args.shape.n - part.col) return;

  const unsigned parts = split.parts.value();
  const float* partial =
      static_cast<const float*>(args.workspace) + std::int64_t{tile} * parts * size + word;
  args.c += part.product * args.stride_c;
  if constexpr (kVectors) {
    float4 sum = device::load_vector<float4>(partial);
#pragma unroll 8
    for (unsigned i = 1; i < parts; ++i) {
      const auto v = device::load_vector<float4>(partial + std::int64_t{i} * size);
      sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    store4<true>(args, part.row + row, part.col + col, sum);
  } else {
    float sum = *partial;
#pragma unroll 8
    for (unsigned i = 1; i < parts; ++i) sum += partial[std::int64_t{i} * size];
    store_element(args, part.row + row, part.col + col, sum);
  }
}

// Of `tiles` tiles; the kernel of the parts has been enqueued before.
inline Status enqueue(const KernelArgs& args, const KSplit& split, std::int64_t tiles,
                      Stream stream) {
  const int words = split.vectors ? 4 : 1;
  return device::launch({.kernel = "add partial sums",
                         .blocks = tiles * (split.partial_size() / (kNumThreads * words)),
                         .threads_x = kNumThreads},
                        stream, split.vectors ? add<true> : add<false>, args, split);
}

}  // namespace tilegate::split_sums
