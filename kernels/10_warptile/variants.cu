// Warptile with the permuted lane layout of Swizzle, for comparison.
#include "warptile.cuh"

namespace tilegate::warptile {

struct Dealt : Tiles128x128 {
  static constexpr bool kPermutedLanes = true;
};

constexpr Stage kDealt = make_stage<Dealt>("Warptile.dealt");
constexpr const Stage* kVariants[] = {&kDealt};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::warptile
