// The stage Interleaved; the kernel is in interleaved.cuh.
#include "interleaved.cuh"

namespace tilegate::interleaved {

// If several tiles have the same expected time, because memory bounds it, plans take the first.
extern const Stage stage;
const Stage stage =
    make_stage<Tiles64x128x8, Tiles128x256x8, Tiles128x256x16, Tiles128x128x16s2, Tiles64x128x32s4>(
        "Interleaved");

}  // namespace tilegate::interleaved
