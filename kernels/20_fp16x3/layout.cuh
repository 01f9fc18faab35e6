// Data layouts: halves in the workspace, and the GEMM's tiles, shared memory and parameters. Halves
// lie in chunks of 128 rows × 32 k, in each two slices of 16 k, in each both planes, in the order
// that wgmma reads from shared memory, so that one bulk copy loads a chunk.
#pragma once

#include <cstddef>

#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "halves.cuh"

namespace tilegate::fp16x3 {

constexpr int kSliceK = 16;  // of one multiplication by the tensor cores
constexpr int kSlices = kChunkK / kSliceK;
constexpr int kPlaneBytes = kChunkRows * kSliceK * 2;
constexpr int kSliceBytes = kPlanes * kPlaneBytes;
constexpr int kChunkBytes = kSlices * kSliceBytes;
constexpr int kSegmentBytes = 16;    // of a row that lie together
constexpr int kGroupBytes = 8 * 32;  // 8 rows, after which the swizzle repeats

// Offset in a plane of 8 halves of a row, from k = 8·segment on. The two segments of rows 4 to 7 of
// each 8 change places (the 32-byte swizzle), so that eight rows' segments are in different banks.
__host__ __device__ inline int offset_in_plane(int row, int segment) {
  return row * 2 * kSegmentBytes + ((segment ^ (row >> 2 & 1)) * kSegmentBytes);
}

using Planes = SplitChunks<kChunkBytes>;

// The GEMM: tile size, shared memory, parameters.

constexpr int kBlockM = 128, kBlockN = 128;
constexpr int kWarpgroup = 128;
constexpr int kConsumers = 2 * kWarpgroup;
constexpr int kNumThreads = kWarpgroup + kConsumers;  // the first warpgroup is the producer's
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
static_assert(kWarpgroup * (kProducerRegisters + 2 * kConsumerRegisters) <= 65536);
static_assert(kConsumers == kFp32Threads && kBlockM == kFp32Rows);
static_assert(kBlockM == kChunkRows && kBlockN == kChunkRows, "a tile's operands are one chunk");

constexpr int kStageBytes = 2 * kChunkBytes;
constexpr int kStages = 6;

constexpr int kNumStats = sizeof(OperandStats) / sizeof(float);

// Dequantization steps: of the rows of a tile, and of its columns.
struct Steps {
  float row[kBlockM], col[kBlockN];
};

struct GemmStorage {
  union {
    std::byte ring[kStages * kStageBytes];
    Fp32Storage fp32;
  };
  device::Barrier full[kStages], empty[kStages];
  float stats[kNumThreads / 32][2 * kNumStats];
  Steps steps;
};

// Parameters of the GEMM beside KernelArgs.
struct GemmParams {
  Planes a, b;
  const std::byte *planes_a = nullptr, *planes_b = nullptr;
  const float *steps_a = nullptr, *steps_b = nullptr;
  const float* stats =
      nullptr;  // OperandStats, sums of the split pass's groups: first A's, then B's
  unsigned groups_a = 0, groups_b = 0;
  float rows_a = 1, rows_b = 1;  // that these are of
  Summed summed;
  Path* decision = nullptr;           // what the device decided is left there
  bool pairs = false;                 // two neighbours of C are an aligned vector
  PersistentTileScheduler scheduler;  // of the tiles of halves
  Fp32Args fp32;
};

}  // namespace tilegate::fp16x3
