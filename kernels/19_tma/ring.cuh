// The block's tile, and the ring of k tiles in shared memory between the producer and the
// consumers.
#pragma once

#include <tilegate/common/interleaved_tiles.cuh>
#include <tilegate/common/ring.cuh>
#include <tilegate/device/async.cuh>

namespace tilegate::tma {

// From the numbers that a stage gives as Tiles, what the kernel needs:
//
//   kBlockM kBlockN kBlockK  the block's tile
//   kThreadM kThreadN        a thread's results: rows kLanesM apart, columns in parts of 4
//   kStages                  k tiles in shared memory
//   kBlocksPerSm             limits registers
//   kRegisters, kProducerRegisters  of a thread, once producers have given back what they do not
//                            need: as many together as all had at first
template <typename Tiles>
struct Config : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kThreadM, Tiles::kThreadN;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kStepN = 4 * kLanesN;  // columns from one part of a thread's to the next
  static constexpr int kWarpM = kLanesM * kThreadM, kWarpN = kLanesN * kThreadN;
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kConsumers = 32 * (kBlockM / kWarpM) * kWarpsN;  // threads
  // And a warpgroup for the producer, though it is one thread: registers change hands by
  // warpgroups.
  static constexpr int kProducers = 128;
  static constexpr int kNumThreads = kConsumers + kProducers;
  static constexpr int kSteps = 8;                  // of k, in a round
  static constexpr int kRounds = kBlockK / kSteps;  // in a k tile
  static_assert(kConsumers % 128 == 0, "the producers' warpgroup follows whole ones");
  static_assert(kThreadN % 4 == 0, "fragments of B are 128-bit loads");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0, "uncovered parts of the tile");
  static_assert(kBlockK == 16, "rows of A's box are as wide as its swizzle, 64 bytes");
  static_assert(kBlockM <= 256 && kBlockN <= 256, "the largest box");

  // First row and column of a consumer's results in the tile. Lanes are dealt: l and l ^ 1 share
  // their rows, l and l ^ 2 their columns, so that every shared load takes two wavefronts.
  struct Position {
    int m, n;
  };
  static __device__ Position position() {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int lane_m = (lane >> 1 & 1) | (lane >> 3 & 1) << 1 | (lane >> 4) << 2;
    const int lane_n = (lane & 1) | (lane >> 2 & 1) << 1;
    return {warp / kWarpsN * kWarpM + lane_m, warp % kWarpsN * kWarpN + 4 * lane_n};
  }
};

template <typename Config>
struct SharedStorage {
  struct KTile {
    float a[Config::kBlockM][Config::kBlockK];  // as in memory, but for the swizzle
    float b[Config::kBlockK][Config::kBlockN];
  };
  static constexpr auto kSwizzleOfA = device::Swizzle::k64Bytes;
  static_assert(sizeof(KTile) % 1024 == 0, "the swizzle restarts with each k tile");

  alignas(1024) KTile ring[Config::kStages];
  device::Barrier full[Config::kStages];   // the copies have arrived
  device::Barrier empty[Config::kStages];  // all consumer warps have read it
  TileWalk::Place place;                   // of the block's tile: not in registers, which are few
};

}  // namespace tilegate::tma
