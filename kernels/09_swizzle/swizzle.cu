// The stage Swizzle; the kernel is in swizzle.cuh.
#include <tilegate/common/instruction_order.cuh>

#include "swizzle.cuh"

namespace tilegate::swizzle {

extern const Stage stage;
const Stage stage = make_stage<DealtLanes, CompilerOrder>("Swizzle");

}  // namespace tilegate::swizzle
