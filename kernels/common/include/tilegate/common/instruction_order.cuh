// Who orders a kernel's instructions: ptxas, as it sees fit, or the source.
#pragma once

namespace tilegate {

// ptxas keeps the order of the source in a kernel whose symbol contains the word of this type, so a
// kernel takes the type as a template argument. Publicly known and nowhere documented; seen with
// CUDA 13.0. It costs a few registers; a compiler that ignores the word compiles a correct kernel.
struct cutlass {};
using SourceOrder = cutlass;

struct CompilerOrder {};

}  // namespace tilegate
