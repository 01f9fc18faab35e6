#include <tilegate/device/plain.cuh>

#include "warp_tile.cuh"

namespace tilegate::plain_warp_tile {

void run(const plain::Call& p) {
  sgemm_warp_tile<4>
      <<<dim3(p.n / 4, p.m / 4), 128, 0, p.stream>>>(p.m, p.n, p.k, p.alpha, p.a, p.b, p.beta, p.c);
}

extern const Stage stage;
const Stage stage{
    .name = "PlainWarpTile",
    .restrictions = {.multiple_of = {4, 4, 32},
                     .most_m = 65535 * 4,
                     .dense = true,
                     .int_indices = true},
    .tile_sizes = plain::kTiles<4, 32>,
    .choose = plain::choose<run>,
};

}  // namespace tilegate::plain_warp_tile
