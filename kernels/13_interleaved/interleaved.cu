// The stage Interleaved; the kernel is in interleaved.cuh.
#include "interleaved.cuh"

namespace tilegate::interleaved {

// Where memory bounds the expected time, plans take the first of these tiles.
extern const Stage stage;
const Stage stage =
    make_stage<Tiles64x128x8, Tiles128x256x8, Tiles128x256x16, Tiles128x128x16s2, Tiles64x128x32s4>(
        "Interleaved");

}  // namespace tilegate::interleaved
