// The stage Packed; the kernels are in packed.cuh.
#include "packed.cuh"

namespace tilegate::packed {

constexpr AsyncKernel kKernels[] = {kernel<Tiles128x128>(), kernel<Tiles128x64>(),
                                    kernel<Tiles64x64s2>(), kernel<Tiles64x64s4>()};

extern const Stage stage;
const Stage stage = make_stage<kKernels>(
    "Packed", "operands packed into aligned vectors before they are multiplied");

}  // namespace tilegate::packed
