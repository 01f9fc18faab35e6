// What a block computes: whole tiles, in turn with the others, and then, of a streamed form, its
// part of the tiles that are left. These lie in one line of chunks of K, tile after tile, of which
// all blocks get as much: so they end together, although the tiles do not go round. A block goes
// through its part from the end: first it sums what it has of a tile that ends in a later block's
// part, and leaves the sums in the workspace; a tile that ends in its own part it stores, once it
// has added what earlier blocks left.
#pragma once

#include <cstdint>

#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

#include "layout.cuh"

namespace tilegate::int8x3 {

// The same number; what follows from it is found anew wherever this is called, and not kept in
// registers meanwhile: beside a thread's sums there are few.
template <bool kStreams>
__device__ unsigned opaque(unsigned number) {
  if constexpr (kStreams) device::ordered::add(number, 0);
  return number;
}

// Finds the block's piece `number`, from 0 on, or none. The blocks of a cluster have tiles beside
// each other; the last may lie outside C.
template <unsigned kCluster, bool kStreams>
__device__ bool next_work(const GemmParams& params, const TileOrder& order, unsigned count,
                          unsigned number, Work& work) {
  const unsigned clusters = gridDim.x / kCluster;
  const unsigned cluster = opaque<kStreams>(blockIdx.x / kCluster);
  unsigned index = cluster + number * clusters;  // of the tile
  work = {.chunks = static_cast<unsigned>(params.chunks),
          .is_last = index + clusters >= count ? 1U : 0U,
          .index = number};
  const SharedTiles& shared = params.shared;
  if (!kStreams || number < shared.rounds) {
    if (index >= count) return false;
  } else {
    number -= shared.rounds;
    const unsigned begin = shared.begin(cluster), end = shared.begin(cluster + 1);
    const unsigned before_last = shared.chunks.quotient(end - 1);  // tiles of the line
    if (begin == end || number > before_last - shared.chunks.quotient(begin)) return false;
    const unsigned tile = before_last - number, from = tile * work.chunks, to = from + work.chunks;
    index = shared.rounds * clusters + tile;
    work.first = begin < from ? 0 : begin - from;
    work.chunks = (end < to ? end : to) - from - work.first;
    work.is_stored = end >= to ? 1 : 0;
    while (work.is_stored != 0 && shared.begin(cluster - work.others) > from) ++work.others;
    work.is_last = begin >= from ? 1 : 0;
    if (number > 0 && !shared.is_at_tile(end)) --work.index;  // the first was for another block
  }
  // The last first: L2 still has what was split last.
  work.tile = order.tile(count - 1 - index);
  work.tile.col = work.tile.col * kCluster + (kCluster > 1 ? device::cluster_rank() : 0);
  return true;
}

}  // namespace tilegate::int8x3
