// What the second kernel consists of: the size of its tiles, its shared memory, its arguments.
#pragma once

#include <cstddef>

#include <tilegate/common/plain_product.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "decision.cuh"
#include "planes.cuh"

namespace tilegate::fp16x3 {

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

constexpr int kSeenNumbers = sizeof(SeenRows) / sizeof(float);

// What one unit of a tile's rows, and of its columns, is worth.
struct Steps {
  float row[kBlockM], col[kBlockN];
};

struct MultiplyStorage {
  union {
    std::byte ring[kStages * kStageBytes];
    Fp32Storage fp32;
  };
  device::Barrier full[kStages], empty[kStages];
  float seen[kNumThreads / 32][2 * kSeenNumbers];
  Steps steps;
};

// Beside KernelArgs.
struct MultiplyArgs {
  Planes a, b;
  const std::byte *planes_a = nullptr, *planes_b = nullptr;
  const float *steps_a = nullptr, *steps_b = nullptr;
  const float* seen = nullptr;  // SeenRows, sums of the split pass's groups: first A's, then B's
  unsigned groups_a = 0, groups_b = 0;
  float rows_a = 1, rows_b = 1;  // that these are of
  Summed summed;
  Path* decision = nullptr;  // what the device decided is left there
  bool pairs = false;        // two neighbours of C are an aligned vector
  TileOrder order;           // of the tiles of halves
  Fp32Args fp32;
};

}  // namespace tilegate::fp16x3
