// The stage Warptile; the kernel is in warptile.cuh.
#include "warptile.cuh"

namespace tilegate::warptile {

extern const Stage stage;
const Stage stage = make_stage<Tiles128x128>("Warptile");

}  // namespace tilegate::warptile
