// Tiles whose operands reach shared memory by asynchronous copies, without registers on the way.
// From the numbers that a stage gives as Tiles, and from how the operands lie, AsyncConfig derives
// what the kernel needs:
//
//   kBlockM kBlockN kBlockK    the block's tile
//   kWarpM kWarpN              the part of it that a warp computes
//   kSlices                    how many warps share such a part: each sums its share of a k tile
//   kStages                    k tiles in shared memory
//   kVectorBatches             in which the copies of a k tile start, if both operands come in
//   kWordBatches               vectors, or not; see kCopyBatches
//   kBlocksPerSm               limits registers
//   kPermutedLanes                lanes are permuted: see position()
//   kChecksEdges               C may be smaller than the tile; see split_k.cuh
//   kSwapsNeighbours           see epilogue.cuh
#pragma once

#include <cstdint>

#include <tilegate/common/async/split_k.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// How tiles of an operand get from global memory, where its rows run along k or along x (m of A, n
// of B), to shared memory.
enum class Feed {
  kVectors,     // rows along x, in 16-byte copies: what allows_vectors() says
  kWords,       // rows along x, in 4-byte copies
  kTransposed,  // rows along k, in 4-byte copies that transpose on their way: a row for each k
  kKept,        // rows along k, in 16-byte copies, that stay as they are: a row for each x; A only
};

template <typename Tiles, Feed kFeedOfA, Feed kFeedOfB>
struct AsyncConfig : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kWarpM, Tiles::kWarpN;
  using Tiles::kSlices, Tiles::kStages;
  static constexpr Feed kFeedA = kFeedOfA, kFeedB = kFeedOfB;
  static constexpr bool kKeepsA = kFeedA == Feed::kKept;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kFragmentM = kWarpM / kLanesM;  // of a thread
  static constexpr int kFragmentN = kWarpN / kLanesN;  // in parts of 4
  static constexpr int kStepN = 4 * kLanesN;           // columns from one part to the next
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kWarpsPerSlice = kBlockM / kWarpM * kWarpsN;
  static constexpr int kNumThreads = 32 * kWarpsPerSlice * kSlices;
  static constexpr int kSliceK = kBlockK / kSlices;
  static_assert(kFeedB != Feed::kKept, "fragments of B are read along n");
  static_assert(kLanesM * kLanesN == 32, "a warp has 32 lanes");
  static_assert(kWarpM % (4 * kLanesM) == 0 || kKeepsA, "uncovered parts of the tile");
  static_assert(kWarpM % kLanesM == 0 && kWarpN % kStepN == 0, "uncovered parts of the tile");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0, "uncovered parts of the tile");
  static_assert(kBlockK % kSlices == 0, "uncovered k");
  static_assert(kSliceK % 2 == 0, "the last k step reads the second of the fragments");
  static_assert(!kKeepsA || kSliceK % 4 == 0, "fragments of rows are read four k at a time");
  static_assert(kStages >= 2, "copies fill one stage while another is read");

  // Words from a row to the next in shared memory. The 32 lanes of a transposing copy hold 8 k and
  // 4 x: with rows of 4 words more than a multiple of 32 they write to 32 different banks. Rows
  // that are kept are read by 8 lanes below each other: the same 4 words take them to different
  // banks.
  static constexpr int padding(Feed feed) {
    return feed == Feed::kTransposed || feed == Feed::kKept ? 4 : 0;
  }
  static constexpr int kRowsA = kKeepsA ? kBlockM : kBlockK;
  static constexpr int kStrideA = (kKeepsA ? kBlockK : kBlockM) + padding(kFeedA);
  static constexpr int kStrideB = kBlockN + padding(kFeedB);
  static_assert(kStrideA % 4 == 0 && kStrideB % 4 == 0, "rows are read in vectors");

  // A k tile is copied in batches between the k steps of another: all at once, copies would fill
  // the queue of loads and keep the fragments waiting. Vectors are few.
  static constexpr bool kOnlyVectors =
      (kFeedA == Feed::kVectors || kKeepsA) && kFeedB == Feed::kVectors;
  static constexpr int kCopyBatches = [] {
    if constexpr (kOnlyVectors)
      return Tiles::kVectorBatches;
    else
      return Tiles::kWordBatches;
  }();

  // Where a thread's results begin in the tile of its block, and which k of a k tile it sums.
  struct Position {
    int m, n, slice;
  };
  // Lanes in order, row by row; or permuted: l and l ^ 1 share their rows, l and l ^ 2 their
  // columns, so that every 128-bit shared load takes two wavefronts, where B's take four in order.
  static __device__ Position position() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % kWarpsPerSlice;
    int lane_m = lane / kLanesN, lane_n = lane % kLanesN;
    if constexpr (Tiles::kPermutedLanes) {
      lane_m = (lane >> 1 & 1) | (lane >> 3 & 1) << 1 | (lane >> 4) << 2;
      lane_n = (lane & 1) | (lane >> 2 & 1) << 1;
    }
    return {warp / kWarpsN * kWarpM + (kKeepsA ? lane_m : 4 * lane_m),
            warp % kWarpsN * kWarpN + 4 * lane_n,
            static_cast<int>(threadIdx.x) / 32 / kWarpsPerSlice};
  }
  // From a thread's first row to its i-th: four neighbours, then the next part, as fragments are
  // read from rows of k; or every kLanesM-th, where each row is read on its own.
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
                "copies count a k tile's bytes on from the one before");
  // Words after each row of results, so that the rows which lanes store at a time, four apart or
  // neighbours, fall into other banks.
  static constexpr int kResultsPad = kKeepsA ? 16 : 4;
  using Results = float[kBlockM][kBlockN + kResultsPad];
  struct SharedStorage {
    union {
      KTile ring[kStages];
      alignas(16) Results results[kSlices];  // once the ring has been read
    };
    KSplit::Part part;  // what the block computes: in registers it would take room from the loop
  };
};

}  // namespace tilegate
