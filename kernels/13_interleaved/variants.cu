// Interleaved without one of its two ideas. Operands with whole vectors take tiles of 128×256 only,
// operands without take the rung's tile for them.
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

struct WithoutVectors : Tiles64x128x32s4 {
  template <typename Layout>
  static constexpr bool kTakes = !Layout::kVector;
};

template <template <typename> typename Without>
constexpr Stage stage_of(std::string_view name) {
  return make_stage<Without<Tiles128x256x8>, Without<Tiles128x256x16>, Without<WithoutVectors>>(
      name);
}

constexpr Stage kBunched = stage_of<Bunched>("Interleaved.bunched");
constexpr Stage kCompilerOrder = stage_of<OrderedByCompiler>("Interleaved.compiler_order");
constexpr const Stage* kVariants[] = {&kBunched, &kCompilerOrder};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::interleaved
