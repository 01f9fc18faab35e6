#include <tilegate/device/plain.cuh>

#include "double_buffer.cuh"

namespace tilegate::plain_double_buffer {

void run(const plain::Call& p) {
  const int shared_bytes = 2 * 32 * (36 + 32) * sizeof(float);
  sgemm_double_buffer<32><<<dim3(p.n / 32, p.m / 32), dim3(8, 32), shared_bytes, p.stream>>>(
      p.m, p.n, p.k, p.alpha, p.a, p.b, p.beta, p.c);
}

extern const Stage stage;
const Stage stage{
    .name = "PlainDoubleBuffer",
    .restrictions = {.multiple_of = {32, 32, 32},
                     .most_m = 65535 * 32,
                     .nonzero_k = true,
                     .dense = true,
                     .alignment = 16,
                     .int_indices = true},
    .tile_sizes = plain::kTiles<4, 32>,
    .choose = plain::choose<run>,
};
}  // namespace tilegate::plain_double_buffer
