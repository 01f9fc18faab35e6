// The stage Blocktile2D; the kernel is in blocktile_2d.cuh.
#include "blocktile_2d.cuh"

namespace tilegate::blocktile_2d {

extern const Stage stage;
const Stage stage = make_stage<Tiles128>("Blocktile2D");

}  // namespace tilegate::blocktile_2d
