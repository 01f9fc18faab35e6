// Interleaved without one of its two ideas, with tiles of 128×256 only.
#include "interleaved.cuh"

namespace tilegate::interleaved {

template <typename Tiles>
struct Bunched : Tiles {
  static constexpr bool kSpread = false;
};
template <typename Tiles>
struct OrderedByCompiler : Tiles {
  using Order = CompilerOrder;
};

constexpr Stage kBunched =
    make_stage<Bunched<Tiles128x256x8>, Bunched<Tiles128x256x16>>("Interleaved.bunched");
constexpr Stage kCompilerOrder =
    make_stage<OrderedByCompiler<Tiles128x256x8>, OrderedByCompiler<Tiles128x256x16>>(
        "Interleaved.compiler_order");
constexpr const Stage* kVariants[] = {&kBunched, &kCompilerOrder};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::interleaved
