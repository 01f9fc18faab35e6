// InstructionOrder with the permuted lane layout of Swizzle, for comparison.
#include "instruction_order.cuh"

namespace tilegate::instruction_order {

struct Dealt : Tiles128x128 {
  static constexpr bool kPermutedLanes = true;
};

constexpr Stage kDealt = make_stage<Dealt>("InstructionOrder.dealt");
constexpr const Stage* kVariants[] = {&kDealt};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::instruction_order
