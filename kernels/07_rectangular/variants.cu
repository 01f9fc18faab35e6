// Rectangular with other unrolling and with square thread tiles, for comparison.
#include "rectangular.cuh"

namespace tilegate::rectangular {

// Less or more unrolling.
struct Unroll1 : Tiles8x4 {
  static constexpr int kUnroll = 1;
};
struct Unroll2 : Tiles8x4 {
  static constexpr int kUnroll = 2;
};
struct Unroll8 : Tiles8x4 {
  static constexpr int kUnroll = 8;
};
// More warps, with fewer registers each.
struct Blocks6 : Unroll8 {
  static constexpr int kBlocksPerSm = 6;
};
// Square thread tiles.
struct Square4x4 : Tiles8x4 {
  static constexpr int kThreadM = 4;
  static constexpr int kSliceK = 16;
  static constexpr int kBlocksPerSm = 4;
};
struct Square8x8 : Tiles8x4 {
  static constexpr int kThreadN = 8;
  static constexpr int kBlocksPerSm = 8;
};

constexpr Stage kUnroll1 = make_stage<Unroll1>("Rectangular.unroll1");
constexpr Stage kUnroll2 = make_stage<Unroll2>("Rectangular.unroll2");
constexpr Stage kUnroll8 = make_stage<Unroll8>("Rectangular.unroll8");
constexpr Stage kBlocks6 = make_stage<Blocks6>("Rectangular.unroll8_blocks6");
constexpr Stage kSquare4x4 = make_stage<Square4x4>("Rectangular.square4x4");
constexpr Stage kSquare8x8 = make_stage<Square8x8>("Rectangular.square8x8");
constexpr const Stage* kVariants[] = {&kUnroll1, &kUnroll2,   &kUnroll8,
                                      &kBlocks6, &kSquare4x4, &kSquare8x8};

std::span<const Stage* const> variants() { return kVariants; }

}  // namespace tilegate::rectangular
