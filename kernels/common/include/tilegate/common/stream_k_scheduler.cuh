// Scheduler of persistent blocks, with stream-K (M. Osama et al., Stream-K: Work-centric Parallel
// Decomposition for Dense Matrix-Matrix Multiplication on the GPU, PPoPP 2023). Clusters first
// compute whole tiles, one per wave; with stream-K they share the remaining tiles along K.
//
// The chunks of K of the remaining tiles form one line, tile after tile. Each cluster gets an equal
// range of it, so that all finish together, and processes its range from the end:
//
// 1. If the range ends within a tile, the cluster stores partial sums of that tile to the
//    workspace, and raises the block's flag. If it also begins in that tile, that is all.
// 2. It computes the tiles that lie in the range as a whole.
// 3. If the range begins within a tile, it adds the partial sums of previous clusters, and stores
//    the tile to C.
//
// A cluster waits only for clusters with lower numbers. An earlier kernel clears the flags.
//
// For kernels of compute capability 9.0 that split operands.
#pragma once

#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/opaque.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// The work of a block on a tile. Only whole words, aligned to 8 bytes, because compilers copy it in
// such units.
struct alignas(8) Work {
  TileCoord tile{};
  unsigned first_chunk = 0, chunks = 0;  // chunks of K
  unsigned stores_tile = 1;              // the work includes the tile's last chunk
  unsigned num_partials = 0;             // previous clusters with chunks of the tile
  unsigned is_last = 0;                  // the block's last work
  unsigned index = 0;                    // among the tiles that the block stores
};

// Each cluster first computes `full_waves` whole tiles, one per wave; then the clusters share
// `count` tiles along K.
struct StreamKTiles {
  unsigned count = 0, full_waves = 0;
  unsigned chunks_per_cluster = 0, extra = 0;  // the first `extra` clusters have one chunk more
  unsigned least_chunks = 0;
  Divisor chunks_per_tile;

  StreamKTiles() = default;
  // The last full wave is shared, too, if there is one. Each cluster then has more than one tile of
  // work, so that partial sums are ready before another cluster needs them. `least`: the fewest
  // chunks of a split tile that a cluster takes. Fewer save less time than adding their partial
  // sums takes.
  StreamKTiles(unsigned tiles, unsigned clusters, unsigned chunks, unsigned least)
      : least_chunks(least), chunks_per_tile(chunks) {
    full_waves = tiles / clusters;
    if (tiles % clusters == 0) return;
    if (full_waves > 0) --full_waves;
    count = tiles - full_waves * clusters;
    chunks_per_cluster = count * chunks / clusters;
    extra = count * chunks % clusters;
  }

  // First chunk of a cluster's range, moved to a tile's start if fewer than least_chunks away.
  __device__ unsigned begin(unsigned cluster) const {
    const unsigned even = chunks_per_cluster * cluster + (cluster < extra ? cluster : extra);
    const unsigned in_tile = chunks_per_tile.remainder(even, chunks_per_tile.quotient(even));
    if (in_tile < least_chunks) return even - in_tile;
    return chunks_per_tile.value() - in_tile < least_chunks
               ? even - in_tile + chunks_per_tile.value()
               : even;
  }
  // All chunks of the shared tiles: a grid may have more clusters than share them.
  __device__ unsigned chunks() const { return count * chunks_per_tile.value(); }
  __device__ bool is_tile_start(unsigned chunk) const {
    return chunks_per_tile.remainder(chunk, chunks_per_tile.quotient(chunk)) == 0;
  }
};

// Each warp that needs the block's work has its own scheduler. The blocks of a cluster have
// neighbouring tiles of a row; the last one may lie outside C.
template <unsigned kCluster, bool kStreamK>
class Scheduler {
 public:
  // `count` tiles, those of all matrices of the batch, of `chunks` chunks each.
  __device__ Scheduler(const TileScheduler& tiles, unsigned count, const std::int64_t& chunks,
                       const StreamKTiles& stream_k)
      : tiles_(tiles), count_(count), chunks_(chunks), stream_k_(stream_k) {}

  // Work `number` of the block, from 0 on; false after the last one.
  __device__ bool get(unsigned number, Work& work) const {
    const unsigned clusters = gridDim.x / kCluster;
    const unsigned in_grid = blockIdx.x / kCluster, cluster = kStreamK ? opaque(in_grid) : in_grid;
    unsigned tile = cluster + number * clusters;
    work = {.chunks = static_cast<unsigned>(chunks_),
            .is_last = tile + clusters >= count_ ? 1U : 0U,
            .index = number};
    if (!kStreamK || number < stream_k_.full_waves) {
      if (tile >= count_) return false;
    } else {  // the cluster's range of the line, last tile first
      number -= stream_k_.full_waves;
      const unsigned begin = stream_k_.begin(cluster), end = stream_k_.begin(cluster + 1);
      const unsigned last = stream_k_.chunks_per_tile.quotient(end - 1);
      if (begin == end || begin >= stream_k_.chunks()) return false;
      if (number > last - stream_k_.chunks_per_tile.quotient(begin)) return false;
      const unsigned in_line = last - number, from = in_line * work.chunks, to = from + work.chunks;
      tile = stream_k_.full_waves * clusters + in_line;
      work.first_chunk = begin < from ? 0 : begin - from;
      work.chunks = (end < to ? end : to) - from - work.first_chunk;
      work.stores_tile = end >= to ? 1 : 0;
      while (work.stores_tile != 0 && stream_k_.begin(cluster - work.num_partials) > from) {
        ++work.num_partials;
      }
      work.is_last = begin >= from ? 1 : 0;
      if (number > 0 && !stream_k_.is_tile_start(end)) --work.index;  // the range ends in a partial
    }
    // Last tile first: L2 still holds the digits that were written last.
    work.tile = tiles_.tile(count_ - 1 - tile);
    work.tile.col = work.tile.col * kCluster + (kCluster > 1 ? device::cluster_rank() : 0);
    return true;
  }

 private:
  const TileScheduler& tiles_;
  unsigned count_;
  const std::int64_t& chunks_;
  const StreamKTiles& stream_k_;
};

}  // namespace tilegate
