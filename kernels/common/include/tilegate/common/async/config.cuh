// Configuration of kernels that copy operands to shared memory asynchronously (cp.async), without
// registers in between. AsyncConfig derives it from a stage's Tiles and the layout of the operands:
//
//   kBlockM kBlockN kBlockK    block tile
//   kWarpM kWarpN              warp tile
//   kSlices                    warps that share a warp tile, each with a slice of every k tile
//                              (CUTLASS: sliced-K)
//   kStages                    k tiles in shared memory
//   kVectorBatches             batches of a k tile's copies, if both operands are copied in
//   kWordBatches               vectors, or not; see kCopyBatches
//   kBlocksPerSm               limits registers
//   kPermutedLanes             permuted lane layout: see lane_layout.cuh
//   kChecksEdges               C may be smaller than the tile; see split_k.cuh
//   kSwapsNeighbours           see epilogue.cuh
#pragma once

#include <cstdint>

#include <tilegate/common/async/split_k.cuh>
#include <tilegate/common/lane_layout.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// Copies of an operand's tiles from global to shared memory. Rows in global memory lie along k, or
// along x (m of A, n of B).
enum class Feed {
  kVectors,     // rows along x, 16-byte copies: see allows_vectors()
  kWords,       // rows along x, 4-byte copies
  kTransposed,  // rows along k, 4-byte copies, transposed: shared memory has a row for each k
  kKept,        // rows along k, 16-byte copies: shared memory has a row for each x; A only
};

template <typename Tiles, Feed kFeedOfA, Feed kFeedOfB>
struct AsyncConfig : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kWarpM, Tiles::kWarpN;
  using Tiles::kSlices, Tiles::kStages;
  static constexpr Feed kFeedA = kFeedOfA, kFeedB = kFeedOfB;
  static constexpr bool kKeepsA = kFeedA == Feed::kKept;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kFragmentM = kWarpM / kLanesM;  // results per thread
  static constexpr int kFragmentN = kWarpN / kLanesN;  // in vectors of 4
  static constexpr int kStepN = 4 * kLanesN;           // columns from one vector to the next
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kWarpsPerSlice = kBlockM / kWarpM * kWarpsN;
  static constexpr int kNumThreads = 32 * kWarpsPerSlice * kSlices;
  static constexpr int kSliceK = kBlockK / kSlices;
  static_assert(kFeedB != Feed::kKept, "fragments of B are read along n");
  static_assert(kLanesM * kLanesN == 32, "a warp has 32 lanes");
  static_assert(kWarpM % (4 * kLanesM) == 0 || kKeepsA, "elements of the tile without a thread");
  static_assert(kWarpM % kLanesM == 0 && kWarpN % kStepN == 0,
                "elements of the tile without a thread");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0,
                "elements of the tile without a thread");
  static_assert(kBlockK % kSlices == 0, "uncovered k");
  static_assert(kSliceK % 2 == 0, "the last k step reads the second of the fragments");
  static_assert(!kKeepsA || kSliceK % 4 == 0, "fragments of rows are read four k at a time");
  static_assert(kStages >= 2, "copies fill one stage while another is read");

  // Padding of rows in shared memory, in words. The 32 lanes of a transposing copy have 8 k and 4
  // x: with rows of 4 words more than a multiple of 32 they write to 32 banks. 8 lanes read kKept
  // rows below each other: the same 4 words move them to different banks.
  static constexpr int padding(Feed feed) {
    return feed == Feed::kTransposed || feed == Feed::kKept ? 4 : 0;
  }
  static constexpr int kRowsA = kKeepsA ? kBlockM : kBlockK;
  static constexpr int kStrideA = (kKeepsA ? kBlockK : kBlockM) + padding(kFeedA);
  static constexpr int kStrideB = kBlockN + padding(kFeedB);
  static_assert(kStrideA % 4 == 0 && kStrideB % 4 == 0, "rows are read in vectors");

  // The copies of a k tile are issued in batches, between the k steps of another k tile: all at
  // once they would fill the load queue and delay the fragment loads. Vector copies are few.
  static constexpr bool kOnlyVectors =
      (kFeedA == Feed::kVectors || kKeepsA) && kFeedB == Feed::kVectors;
  static constexpr int kCopyBatches = [] {
    if constexpr (kOnlyVectors)
      return Tiles::kVectorBatches;
    else
      return Tiles::kWordBatches;
  }();

  // First row and column of a thread's results in the block tile, and its slice of each k tile.
  struct Position {
    int m, n, slice;
  };
  static __device__ Position position() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % kWarpsPerSlice;
    const int lane_m = lane_row<kLanesN, Tiles::kPermutedLanes>(lane);
    const int lane_n = lane_column<kLanesN, Tiles::kPermutedLanes>(lane);
    return {warp / kWarpsN * kWarpM + (kKeepsA ? lane_m : 4 * lane_m),
            warp % kWarpsN * kWarpN + 4 * lane_n,
            static_cast<int>(threadIdx.x) / 32 / kWarpsPerSlice};
  }
  // From a thread's first row to its i-th: groups of four neighbours, as fragments are read from
  // rows of one k; with kKept every kLanesM-th row, as each row is read on its own.
  static constexpr __device__ int row_step(int i) {
    return kKeepsA ? i * kLanesM : i / 4 * 4 * kLanesM + i % 4;
  }

  static constexpr unsigned kBytesOfA = sizeof(float) * kRowsA * kStrideA;
  static_assert(kBytesOfA % 16 == 0, "B follows A without a gap");
  struct KTile {
    alignas(16) float a[kRowsA][kStrideA];
    alignas(16) float b[kBlockK][kStrideB];
  };
  static_assert(sizeof(KTile) == kBytesOfA + sizeof(float) * kBlockK * kStrideB,
                "k tiles follow each other without a gap");
  // Padding of rows of results, in words: rows that lanes store at a time, four apart or
  // neighbours, are in different banks.
  static constexpr int kResultsPad = kKeepsA ? 16 : 4;
  using Results = float[kBlockM][kBlockN + kResultsPad];
  struct SharedStorage {
    union {
      KTile ring[kStages];
      alignas(16) Results results[kSlices];  // after the main loop
    };
    SplitK::WorkTile work;  // not in registers, which the main loop needs
  };
};

}  // namespace tilegate
