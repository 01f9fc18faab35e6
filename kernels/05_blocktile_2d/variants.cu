// Blocktile2D in other sizes, for comparison.
#include "blocktile_2d.cuh"

namespace tilegate::blocktile_2d {

// Half as many barriers, twice as many loads in flight.
struct Tiles128K16 : Tiles128 {
  static constexpr int kBlockK = 16;
};

// Four times as many blocks: for a C with too few tiles of 128×128 to fill the GPU.
struct Tiles64 : Tiles128 {
  static constexpr int kBlockM = 64, kBlockN = 64;
  static constexpr int kBlocksPerSm = 8;
};

constexpr Stage kTilesK16 = make_stage<Tiles128K16>("Blocktile2D.k16");
constexpr Stage kTile64 = make_stage<Tiles64>("Blocktile2D.tile64");
constexpr const Stage* kVariants[] = {&kTilesK16, &kTile64};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::blocktile_2d
