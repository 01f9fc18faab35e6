// What a block of Skinny's first kernel computes and what it holds. The extents of C go by their
// length, whichever is M: x is the long one, s the short one.
//
//   C(x, s) = sum over k of big(x, k)·small(k, s)
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <tilegate/device/device.cuh>

namespace tilegate::skinny {

// The index that runs along a row of the big operand in memory.
enum class Along : std::uint8_t { kX, kK };

inline constexpr int kNumWarps = 8;
inline constexpr int kNumThreads = 32 * kNumWarps;
inline constexpr int kMinDepth = 2, kMaxDepth = 10;  // of the ring, in k tiles

// Made of a Tile (kernels.hpp), where each number has a name; nvcc takes no structs here. A block
// computes kBlockS×kBlockX of C and takes kBlockK of k at a time; kLanesS lanes of a warp lie side
// by side along s, the others along x, the warps along k.
template <int kBlockS_, int kBlockX_, int kBlockK_, int kLanesS_, int kBlocksPerSm_,
          Along kBigAlong_, bool kVector_>
struct Config {
  static constexpr int kBlockS = kBlockS_, kBlockX = kBlockX_, kBlockK = kBlockK_;
  static constexpr int kLanesS = kLanesS_, kBlocksPerSm = kBlocksPerSm_;
  static constexpr Along kBigAlong = kBigAlong_;
  static constexpr bool kVector = kVector_;  // 16 bytes per copy of the big operand, or 4

  static constexpr int kLanesX = 32 / kLanesS;
  static constexpr int kThreadS = kBlockS / kLanesS, kThreadX = kBlockX / kLanesX;
  static constexpr int kVectorS = std::min(kThreadS, 4), kVectorX = std::min(kThreadX, 4);
  static constexpr int kWarpK = kBlockK / kNumWarps;
  static_assert(kBlockS % kLanesS == 0 && kBlockX % kLanesX == 0, "uncovered parts of the tile");
  static_assert(kThreadS % kVectorS == 0 && kThreadX % kVectorX == 0, "torn vectors");
  static_assert(kWarpK % 4 == 0, "an operand along k is read four elements at a time");

  // The big operand lies in a k tile as it does in memory. Rows along k are padded by four words:
  // lanes read vectors of neighbouring rows, which so fall into different banks.
  static constexpr int kBigRows = kBigAlong == Along::kX ? kBlockK : kBlockX;
  static constexpr int kBigCols = kBigAlong == Along::kX ? kBlockX : kBlockK;
  static constexpr int kBigStride = kBigAlong == Along::kX ? kBlockX : kBlockK + 4;

  // The small operand lies as [k][s] however it is stored. A power of two of columns lets each
  // thread copy within one; the padding spreads the copies of a transposed operand over the banks.
  static constexpr int kSmallCols = static_cast<int>(std::bit_ceil(unsigned{kBlockS}));
  static constexpr int kSmallStride = kBlockS < 4 ? kSmallCols : kSmallCols + 4;

  // Columns of a lane whose sums over the warps are formed at once. With two lanes along s not all
  // of them: they would not fit into the 99 KiB that some GPUs have.
  static constexpr int kSumS = kLanesS == 1 ? kThreadS : kVectorS;
  static constexpr int kSumCols = kSumS * kLanesS;
  static constexpr int kSumStride = kSumCols < 4 ? kSumCols : kSumCols + 4;
  static_assert(kThreadS % kSumS == 0 && kSumS % kVectorS == 0, "torn sums");
};

template <typename Config>
struct KTile {
  alignas(16) float big[Config::kBigRows][Config::kBigStride];
  alignas(16) float small[Config::kBlockK][Config::kSmallStride];
};

// The results of the warps, in the place of the ring once the last k tile is multiplied.
template <typename Config>
struct WarpSums {
  alignas(16) float sums[kNumWarps][Config::kBlockX][Config::kSumStride];
};

// A block's shared memory: a ring of `depth` k tiles, then the warps' results.
template <typename Config>
constexpr std::size_t shared_bytes(int depth) {
  return std::max(static_cast<std::size_t>(depth) * sizeof(KTile<Config>),
                  sizeof(WarpSums<Config>));
}

// What the first kernel computes: op(A), op(B) and C by role. Strides count elements.
struct Task {
  std::int64_t x, s, k;
  const float* big;
  std::int64_t ld_big;
  const float* small;
  std::int64_t ld_small;
  bool small_along_k;  // a row of the small operand runs along k, otherwise along s
  float alpha, beta;
  float* c;  // of the first split of the first product
  std::int64_t stride_x, stride_s;
  std::int64_t split_c;                                // from a split's C to the next split's
  std::int64_t product_big, product_small, product_c;  // from a product of the batch to the next
  int splits;
  int depth;
};

}  // namespace tilegate::skinny
