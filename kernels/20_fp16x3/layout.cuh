// Data layouts: halves in the workspace, and the GEMM's tiles, shared memory and parameters.
#pragma once

#include <cstddef>

#include <tilegate/common/fp64_fallback.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "fp16.cuh"

namespace tilegate::fp16x3 {

// A chunk of halves: (2 slices of 16 k, plane, 128 rows, 16 k), as wgmma reads it from shared
// memory.
constexpr int kSliceK = 16;  // k of one wgmma
constexpr int kSlices = kChunkK / kSliceK;
constexpr int kPlaneBytes = kChunkRows * kSliceK * 2;
constexpr int kSliceBytes = kPlanes * kPlaneBytes;
constexpr int kChunkBytes = kSlices * kSliceBytes;
constexpr int kSegmentBytes = 16;    // contiguous bytes of a row
constexpr int kGroupBytes = 8 * 32;  // 8 rows, after which the swizzle repeats

// Offset in a plane of 8 halves of a row, from k = 8·segment on. The 32-byte swizzle exchanges the
// two segments of rows 4 to 7 of each 8, which avoids bank conflicts between eight rows.
__host__ __device__ inline int offset_in_plane(int row, int segment) {
  return row * 2 * kSegmentBytes + ((segment ^ (row >> 2 & 1)) * kSegmentBytes);
}

using Planes = SplitChunks<kChunkBytes>;

// The GEMM: tile size, shared memory, parameters.

constexpr int kBlockM = 128, kBlockN = 128;
constexpr int kWarpgroup = 128;
constexpr int kConsumers = 2 * kWarpgroup;
constexpr int kNumThreads = kWarpgroup + kConsumers;  // the first warpgroup has the producer
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
static_assert(kWarpgroup * (kProducerRegisters + 2 * kConsumerRegisters) <= kRegistersPerSm);
static_assert(kWarpgroup == kFp64Producers && kConsumers == kFp64Consumers);
static_assert(kBlockM == kChunkRows && kBlockN == kChunkRows, "a tile's operands are one chunk");

constexpr int kStageBytes = 2 * kChunkBytes;
constexpr int kStages = 6;

constexpr int kNumStats = sizeof(OperandStats) / sizeof(float);

// Dequantization steps of the rows of a tile, and of its columns.
struct Steps {
  float row[kBlockM], col[kBlockN];
};

struct GemmStorage {
  union {
    std::byte ring[kStages * kStageBytes];
    Fp64Storage fp64;
  };
  device::Barrier full[kStages], empty[kStages];
  Fp64Barriers fp64_barriers;
  float stats[kNumThreads / 32][2 * kNumStats];
  Steps steps;
};

// Parameters of the GEMM beside KernelArgs.
struct GemmParams {
  Planes a, b;
  const std::byte *planes_a = nullptr, *planes_b = nullptr;
  const float *steps_a = nullptr, *steps_b = nullptr;
  const float* stats = nullptr;  // OperandStats per group of rows: first A's, then B's
  unsigned groups_a = 0, groups_b = 0;
  float rows_a = 1, rows_b = 1;  // rows of A, of B
  Summed summed;
  Path* decision = nullptr;  // output
  bool float2_c = false;     // C allows float2
  TileScheduler scheduler;
  Fp64Args fp64;
};

}  // namespace tilegate::fp16x3
