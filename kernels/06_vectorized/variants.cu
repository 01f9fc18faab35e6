// Vectorized with one of its two ideas alone, and with deeper tiles, for comparison.
#include "vectorized.cuh"

namespace tilegate::vectorized {

// Half as many barriers, twice as many loads in flight.
struct TilesK16 : TilesK8 {
  static constexpr int kBlockK = 16;
};

// A transposed in shared memory, and 32-bit accesses to global memory on any operands.
Choice choose_narrow(const Problem& problem, const Device& /*device*/) {
  return serial_choice<TileConfig<TilesK8>::Grid>(problem, enqueue<TilesK8, false>);
}

constexpr Stage kTilesK16 = make_stage<TilesK16>("Vectorized.k16");
constexpr Stage kNarrow = [] {
  Stage stage = make_stage<TilesK8>("Vectorized.narrow_global");
  stage.choose = choose_narrow;
  return stage;
}();
constexpr const Stage* kVariants[] = {&kTilesK16, &kNarrow};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::vectorized
