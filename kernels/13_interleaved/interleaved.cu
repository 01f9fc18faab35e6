// Interleaved as the ladder has it; the kernel is in interleaved.cuh.
#include "interleaved.cuh"

namespace tilegate::interleaved {

extern const Stage stage;
const Stage stage =
    make_stage<Tiles128x256x8, Tiles128x256x16, Tiles128x128x16s2, Tiles64x128x32s4, Tiles64x128x8>(
        "Interleaved");

}  // namespace tilegate::interleaved
