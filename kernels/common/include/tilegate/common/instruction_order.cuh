// Instruction order: chosen by ptxas, or kept as in the source.
#pragma once

namespace tilegate {

// ptxas keeps the source's instruction order in a kernel whose symbol contains this type's name, so
// a kernel takes the type as a template argument. NVIDIA does not document it; observed with CUDA
// 13.0 (kernels/11_instruction_order/README.md). It changes the kernel's register count. A compiler
// that ignores the name compiles a correct kernel.
// idea:begin InstructionOrder
struct cutlass {};
using SourceOrder = cutlass;
// idea:end

struct CompilerOrder {};

}  // namespace tilegate
