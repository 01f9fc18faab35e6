#include <tilegate/device/plain.cuh>

#include "product.cuh"

namespace tilegate::plain_product {

void run(const plain::Call& p) {
  const dim3 grid((p.n + 15) / 16, (p.m + 15) / 16);
  sgemm_sliced_k<16><<<grid, dim3(16, 16), 0, p.stream>>>(p.a, p.b, p.c, p.m, p.n, p.k);
}

extern const Stage stage;
const Stage stage{
    .name = "PlainProduct",
    .restrictions = {.most_m = 65535 * 16, .dense = true, .int_indices = true},
    .tile_sizes = plain::kTiles<16>,
    .choose = plain::choose<run, plain::kProductAlone>,
};

}  // namespace tilegate::plain_product
