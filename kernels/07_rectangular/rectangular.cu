// The stage Rectangular; the kernel is in rectangular.cuh.
#include "rectangular.cuh"

namespace tilegate::rectangular {

extern const Stage stage;
const Stage stage = make_stage<Tiles8x4>("Rectangular");

}  // namespace tilegate::rectangular
