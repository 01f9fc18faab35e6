// The stage Fp16x3; the plan is in plan.hpp.
#include "plan.hpp"

namespace tilegate::fp16x3 {

extern const Stage stage;
const Stage stage = {
    .name = "Fp16x3",
    .idea = "products of FP16 halves on tensor cores, accurate over wider ranges than digits",
    .requirements = {.compute_capability = 90, .no_later = true, .not_on_simt = {}},
    .math = Math::fp32_split,
    .takes_transposed = true,
    .takes_batches = true,
    .tile_sizes = kTileSizes,
    .candidates = candidates,
    .setup = setup};

}  // namespace tilegate::fp16x3
