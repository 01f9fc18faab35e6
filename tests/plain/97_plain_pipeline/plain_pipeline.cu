#include <tilegate/device/plain.cuh>

#include "pipeline.cuh"

namespace tilegate::plain_pipeline {

void run(const plain::Call& p) {
  sgemm_pipeline<<<dim3(p.n / 16, p.m / 16), dim3(16, 16), 0, p.stream>>>(p.m, p.n, p.k, p.alpha,
                                                                          p.a, p.b, p.beta, p.c);
}

extern const Stage stage;
const Stage stage{
    .name = "PlainPipeline",
    .requirements = {.compute_capability = 80},
    .restrictions = {.multiple_of = {16, 16, 16},
                     .most_m = 65535 * 16,
                     .nonzero_k = true,
                     .dense = true,
                     .int_indices = true},
    .tile_sizes = plain::kTiles<4, 16>,
    .choose = plain::choose<run>,
};

}  // namespace tilegate::plain_pipeline
