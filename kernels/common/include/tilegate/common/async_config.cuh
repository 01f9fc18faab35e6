// Tiles whose operands reach shared memory by asynchronous copies, without registers on the way.
// From the numbers that a stage gives as Tiles, and from how the operands lie, AsyncConfig derives
// what the kernel needs:
//
//   kBlockM kBlockN kBlockK    the block's tile
//   kWarpM kWarpN              the part of it that a warp computes
//   kSlices                    how many warps share such a part: each sums its share of a k tile
//   kStages                    k tiles in shared memory
//   kBlocksPerSm               limits registers
//   kDealtLanes                how lanes map to thread tiles; see position()
//   kChecksEdges               C may be smaller than the tile; see k_split.cuh
//   kSwapsNeighbours           see tile_results.cuh
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>

namespace tilegate {

// How tiles of an operand get from global memory, where its rows run along k or along x (m of A, n
// of B), to shared memory, where each k has a row.
enum class Feed {
  kVectors,     // rows along x, in 16-byte copies: what allows_vectors() says
  kWords,       // rows along x, in 4-byte copies
  kTransposed,  // rows along k, in 4-byte copies that transpose on their way
};

template <typename Tiles, Feed kFeedOfA, Feed kFeedOfB>
struct AsyncConfig : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kWarpM, Tiles::kWarpN;
  using Tiles::kSlices, Tiles::kStages;
  static constexpr Feed kFeedA = kFeedOfA, kFeedB = kFeedOfB;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kFragmentM = kWarpM / kLanesM;  // of a thread, in parts of 4×4
  static constexpr int kFragmentN = kWarpN / kLanesN;
  static constexpr int kStepM = 4 * kLanesM, kStepN = 4 * kLanesN;  // from one part to the next
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kWarpsPerSlice = kBlockM / kWarpM * kWarpsN;
  static constexpr int kNumThreads = 32 * kWarpsPerSlice * kSlices;
  static constexpr int kSliceK = kBlockK / kSlices;
  static_assert(kLanesM * kLanesN == 32, "a warp has 32 lanes");
  static_assert(kWarpM % kStepM == 0 && kWarpN % kStepN == 0, "uncovered parts of the tile");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0, "uncovered parts of the tile");
  static_assert(kBlockK % kSlices == 0, "uncovered k");
  static_assert(kSliceK % 2 == 0, "the last k step reads the second of the fragments");
  static_assert(kStages >= 2, "copies fill one stage while another is read");

  // Words from one k to the next in shared memory. The 32 lanes of a transposing copy hold 8 k and
  // 4 x: with rows of 4 words more than a multiple of 32 they write to 32 different banks.
  static constexpr int padding(Feed feed) { return feed == Feed::kTransposed ? 4 : 0; }
  static constexpr int kStrideA = kBlockM + padding(kFeedA);
  static constexpr int kStrideB = kBlockN + padding(kFeedB);

  // A k tile is copied in batches between the k steps of another: all at once, copies would fill
  // the queue of loads and keep the fragments waiting. Vectors are few.
  static constexpr int kCopyBatches =
      kFeedA == Feed::kVectors && kFeedB == Feed::kVectors ? 2 : Tiles::kCopyBatches;

  // Where a thread's results begin in the tile of its block, and which k of a k tile it sums.
  struct Position {
    int m, n, slice;
  };
  // Lanes in order, row by row; or dealt: l and l ^ 1 share their rows, l and l ^ 2 their columns,
  // so that every 128-bit shared load takes two wavefronts, where B's take four in order.
  static __device__ Position position() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32 % kWarpsPerSlice;
    int lane_m = lane / kLanesN, lane_n = lane % kLanesN;
    if constexpr (Tiles::kDealtLanes) {
      lane_m = (lane >> 1 & 1) | (lane >> 3 & 1) << 1 | (lane >> 4) << 2;
      lane_n = (lane & 1) | (lane >> 2 & 1) << 1;
    }
    return {warp / kWarpsN * kWarpM + 4 * lane_m, warp % kWarpsN * kWarpN + 4 * lane_n,
            static_cast<int>(threadIdx.x) / 32 / kWarpsPerSlice};
  }

  static constexpr unsigned kBytesOfA = sizeof(float) * kBlockK * kStrideA;
  static_assert(kBytesOfA % 16 == 0, "B follows A without a gap");
  struct KTile {
    alignas(16) float a[kBlockK][kStrideA];
    alignas(16) float b[kBlockK][kStrideB];
  };
  // Four words more than a row of results takes, so that the rows of a part fall into other banks.
  using Results = float[kBlockM][kBlockN + 4];
  union SharedStorage {
    KTile ring[kStages];
    alignas(16) Results results[kSlices];  // once the ring has been read
  };
};

}  // namespace tilegate
