#include <tilegate/device/plain.cuh>

#include "async_copy.cuh"

namespace tilegate::plain_async_copy {

void run(const plain::Call& p) {
  sgemm_async_copy<16, 32, 8><<<dim3(p.n / 32, p.m / 16), 64, 0, p.stream>>>(p.m, p.n, p.k, p.alpha,
                                                                             p.a, p.b, p.beta, p.c);
}

extern const Stage stage;
const Stage stage{
    .name = "PlainAsyncCopy",
    .requirements = {.compute_capability = 80},
    .restrictions = {.multiple_of = {16, 32, 8},
                     .most_m = 65535 * 16,
                     .nonzero_k = true,
                     .dense = true,
                     .alignment = 16,
                     .int_indices = true},
    .tile_sizes = plain::kTiles<8, 32>,
    .choose = plain::choose<run>,
};
}  // namespace tilegate::plain_async_copy
