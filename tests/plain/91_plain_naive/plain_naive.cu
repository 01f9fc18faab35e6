#include <tilegate/device/plain.cuh>

#include "naive.cuh"

namespace tilegate::plain_naive {

void run(const plain::Call& p) {
  run_sgemm_naive(p.m, p.n, p.k, p.alpha, p.a, p.b, p.beta, p.c, p.stream);
}

extern const Stage stage;
const Stage stage{
    .name = "PlainNaive",
    .restrictions = {.most_m = 65535 * 8, .dense = true, .int_indices = true},
    .tile_sizes = plain::kTiles<8, 32>,
    .choose = plain::choose<run, plain::kReadsCAlways>,
};

}  // namespace tilegate::plain_naive
