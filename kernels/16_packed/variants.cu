// Packed without the swap of neighbouring results, for comparison.
#include "packed.cuh"

namespace tilegate::packed {

struct SameBank : Tiles128x128 {
  static constexpr bool kSwapsNeighbours = false;
};
constexpr AsyncKernel kSameBankKernels[] = {kernel<SameBank>()};

constexpr Stage kSameBank = make_stage<kSameBankKernels>(
    "Packed.same_bank", "results in the register bank of B's fragment");
constexpr const Stage* kVariants[] = {&kSameBank};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::packed
