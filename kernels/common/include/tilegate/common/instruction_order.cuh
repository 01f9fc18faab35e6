// Who decides the order of a kernel's machine instructions: ptxas, as it sees fit, or the source.
#pragma once

namespace tilegate {

// ptxas keeps the order of the source in a kernel whose symbol contains this type's name. A kernel
// that wants it takes the type as a template argument. NVIDIA does not document it; seen with CUDA
// 13.0 (kernels/11_instruction_order/README.md). It changes how many registers a kernel takes. A
// compiler that ignores the name compiles a correct kernel.
// idea:begin InstructionOrder
struct cutlass {};
using SourceOrder = cutlass;
// idea:end

struct CompilerOrder {};

}  // namespace tilegate
