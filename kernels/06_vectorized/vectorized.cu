// The stage Vectorized; the kernel is in vectorized.cuh.
#include "vectorized.cuh"

namespace tilegate::vectorized {

extern const Stage stage;
const Stage stage = make_stage<TilesK8>("Vectorized");

}  // namespace tilegate::vectorized
