// Split-K of the kernels with asynchronous copies: the first `whole` tiles of a batch take one
// block each; each of the others, a partial wave, takes `k_splits` blocks along K. These store
// partial sums in the workspace, which a second kernel reduces (below).
#pragma once

#include <cstdint>
#include <limits>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// Kernel parameter: the tiles, and their splits.
struct SplitK {
  // Kernels that check no edges shift the last tile of a row or column back, so that it lies
  // inside. It overlaps the previous tile there and stores only its own elements. kNoEnd: no tile
  // is shifted.
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

  int block_m = 1, block_n = 1;
  std::int64_t end_m = kNoEnd, end_n = kNoEnd;  // rows and columns that tiles may read
  RasterAlongN raster;
  unsigned whole = 0;  // tiles of the batch that are not split
  Divisor k_splits;    // blocks for each of the others
  int k_tiles = 0;
  bool vectors = false;  // C allows 128-bit accesses

  // A tile, or one split of its K: the work of one block.
  struct WorkTile {
    unsigned batch_index;
    std::int64_t row, col;  // of the tile's first element in C
    int own_row, own_col;   // the tile's first own element, counted from there
    int first_k_tile, k_tiles;
    float* partial;  // partial sum in the workspace; nullptr for a whole tile
  };

  // Elements of a partial sum: a whole tile in row-major order, elements outside C included.
  __host__ __device__ std::int64_t partial_size() const { return std::int64_t{block_m} * block_n; }

  __device__ WorkTile tile(unsigned index) const {
    const TileCoord at = raster.tile(index);
    const std::int64_t row = std::int64_t{at.row} * block_m;
    const std::int64_t col = std::int64_t{at.col} * block_n;
    const std::int64_t first_row = row + block_m <= end_m ? row : end_m - block_m;
    const std::int64_t first_col = col + block_n <= end_n ? col : end_n - block_n;
    return {.batch_index = at.batch_index,
            .row = first_row,
            .col = first_col,
            .own_row = static_cast<int>(row - first_row),
            .own_col = static_cast<int>(col - first_col),
            .first_k_tile = 0,
            .k_tiles = k_tiles,
            .partial = nullptr};
  }

  // The tile of a block.
  __device__ unsigned tile_of(unsigned block) const {
    return block < whole ? block : whole + k_splits.quotient(block - whole);
  }

  __device__ WorkTile work_tile(unsigned block, void* workspace) const {
    if (block < whole) return tile(block);
    const unsigned split_tile = k_splits.quotient(block - whole);
    WorkTile work = tile(whole + split_tile);
    // The first k_tiles % k_splits blocks get one k tile more.
    const int index = static_cast<int>(k_splits.remainder(block - whole, split_tile));
    const int least = static_cast<int>(k_splits.quotient(static_cast<unsigned>(k_tiles)));
    const int extra = k_tiles - least * static_cast<int>(k_splits.value());
    work.first_k_tile = index * least + (index < extra ? index : extra);
    work.k_tiles = least + (index < extra ? 1 : 0);
    work.partial = static_cast<float*>(workspace) + (block - whole) * partial_size();
    return work;
  }
};

}  // namespace tilegate

namespace tilegate::split_sums {

// The reduction kernel.
constexpr int kNumThreads = 256;

constexpr int kElements = 4;  // of a thread

// Its blocks per tile of `size` elements.
constexpr __host__ __device__ int blocks(int size) { return size / (kNumThreads * kElements); }

// Parameters of the reduction kernel: columns and blocks of a tile, and whether the next kernel may
// start early.
struct AddParams {
  Divisor block_n, blocks;
  bool lets_next_start = false;
};

// C ← alpha·(sum of the partial sums) + beta·C for the split tiles. A thread adds a vector of C, or
// four elements of the tile that lie kNumThreads apart. The kernel may start early.
template <bool kVectors>
__global__ void __launch_bounds__(kNumThreads, kReduceBlocksPerSm<kPartialsInFlight>)
    add(KernelArgs args, SplitK split_k, AddParams params) {
  constexpr unsigned kStep = kVectors ? 1 : kNumThreads;
  const unsigned tile = params.blocks.quotient(blockIdx.x);
  const unsigned first = params.blocks.remainder(blockIdx.x, tile) * (kNumThreads * kElements) +
                         threadIdx.x * (kVectors ? kElements : 1);
  const SplitK::WorkTile work = split_k.tile(split_k.whole + tile);
  const int rows = at_most(args.shape.m - work.row, split_k.block_m),
            cols = at_most(args.shape.n - work.col, split_k.block_n);
  float* c = args.c + work.batch_index * args.stride_c + work.row * args.ldc + work.col;
  device::wait_for_previous_kernel(c);
  if (params.lets_next_start) device::launch_dependents();

  // Element i of the thread in the tile.
  struct At {
    int row, col;
    bool is_own;  // the tile's own, and inside C
  };
  const auto element = [&](unsigned i) -> At {
    const unsigned word = first + i * kStep, row = params.block_n.quotient(word);
    At at{static_cast<int>(row), static_cast<int>(params.block_n.remainder(word, row)), false};
    at.is_own = at.row >= work.own_row && at.row < rows && at.col >= work.own_col && at.col < cols;
    return at;
  };
  if (element(0).row >= rows) return;
  const auto size = static_cast<unsigned>(split_k.partial_size());
  const unsigned k_splits = split_k.k_splits.value();
  const float* partial =
      static_cast<const float*>(args.workspace) + std::int64_t{tile} * k_splits * size + first;
  const auto reduce = [&] {  // the same values either way
    return k_splits <= 3 ? reduce_partials<2, kStep>(partial, size, k_splits)
                         : reduce_partials<kPartialsInFlight, kStep>(partial, size, k_splits);
  };
  if constexpr (kVectors) {
    const At at = element(0);
    if (at.is_own) store_vector4(args, c + at.row * args.ldc + at.col, reduce());
  } else {
    float old[kElements]{};
    if (args.beta != 0.0F) {
#pragma unroll
      for (unsigned i = 0; i < kElements; ++i) {
        const At at = element(i);
        if (at.is_own) old[i] = c[at.row * args.ldc + at.col];
      }
    }
    const float4 sum = reduce();
    const float sums[kElements] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (unsigned i = 0; i < kElements; ++i) {
      const At at = element(i);
      float v = args.alpha * sums[i];
      if (args.beta != 0.0F) v += args.beta * old[i];
      if (at.is_own) c[at.row * args.ldc + at.col] = v;
    }
  }
}

// How the reduction kernel's launch overlaps the kernels before and after it (programmatic
// dependent launch).
struct Overlap {
  bool previous, next;
};

// `tiles`: number of split tiles. Enqueued after the kernel that computes the partial sums.
inline Status enqueue(const KernelArgs& args, const SplitK& split_k, std::int64_t tiles,
                      Overlap overlap, Stream stream) {
  const std::int64_t per_tile = blocks(static_cast<int>(split_k.partial_size()));
  const AddParams params{.block_n = Divisor(static_cast<unsigned>(split_k.block_n)),
                         .blocks = Divisor(static_cast<unsigned>(per_tile)),
                         .lets_next_start = overlap.next};
  return device::launch({.kernel = "add partial sums",
                         .blocks = tiles * per_tile,
                         .threads_x = kNumThreads,
                         .overlaps_previous = overlap.previous},
                        stream, split_k.vectors ? add<true> : add<false>, args, split_k, params);
}

}  // namespace tilegate::split_sums
