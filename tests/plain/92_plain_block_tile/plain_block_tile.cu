#include <tilegate/device/plain.cuh>

#include "block_tile.cuh"

namespace tilegate::plain_block_tile {

void run(const plain::Call& p) {
  sgemmBlockTile<64, 64, 8, 8, 4><<<dim3(p.n / 64, p.m / 64), 128, 0, p.stream>>>(
      p.m, p.n, p.k, p.alpha, p.a, p.b, p.beta, p.c);
}

extern const Stage stage;
const Stage stage{
    .name = "PlainBlockTile",
    .restrictions = {.multiple_of = {64, 64, 8},
                     .most_m = 65535 * 64,
                     .dense = true,
                     .alignment = 16,
                     .int_indices = true},
    .tile_sizes = plain::kTiles<8, 64>,
    .choose = plain::choose<run, plain::kReadsCAlways>,
};

}  // namespace tilegate::plain_block_tile
