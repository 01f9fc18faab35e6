// The stage InstructionOrder; the kernel is in instruction_order.cuh.
#include "instruction_order.cuh"

namespace tilegate::instruction_order {

extern const Stage stage;
const Stage stage = make_stage<Tiles128x128>("InstructionOrder");

}  // namespace tilegate::instruction_order
