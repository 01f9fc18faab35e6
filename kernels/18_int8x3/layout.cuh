// Data layouts: digits in the workspace, the arguments of the split kernels and of the GEMM, its
// tiles and shared memory. Digits lie in chunks of 128 rows × 32 k, three planes in each, in the
// order that wgmma reads from shared memory, so that one bulk copy loads a chunk.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "digits.cuh"
#include "scheduler.cuh"

namespace tilegate::int8x3 {

constexpr int kRowBytes = kPlanes * kChunkK;
constexpr int kChunkBytes = kChunkRows * kRowBytes;
constexpr int kSegment = 16;              // bytes of a row that lie together
constexpr int kNextPlane = 8 * kChunkK;   // bytes: 8 rows of a plane, then the same of the next
constexpr int kNextRows = 8 * kRowBytes;  // bytes from 8 rows to the next 8

// So any multiple of 8 rows, with all of its planes, is contiguous.

// Offset in a chunk of the 16 high digits of a row from k = 16·segment on. The 32-byte swizzle
// exchanges the two segments of rows 4 to 7 of each 8: it avoids bank conflicts between eight rows.
__host__ __device__ inline int offset_in_chunk(int row, int segment) {
  return row / 8 * kNextRows + row % 8 * kChunkK + (segment ^ (row >> 2 & 1)) * kSegment;
}

using Planes = SplitChunks<kChunkBytes>;

// Arguments of the split kernels. They read the rows of op(A) and the columns of op(B), here both
// called rows, scale each by its largest element, and write the digits to the workspace.
// split_block: a block has all k of its rows. split_pipelined, split_cluster: the blocks of a
// cluster share rows.

constexpr int kMaxSplitCluster = 8;

using Job = SplitJob<Planes>;

struct Pointers : SplitPointers {
  float* widths = nullptr;  // of each group of rows: their sum
};

struct SplitJobs {
  Job job[2];
  Pointers pointers[2];
  unsigned groups_of_first = 0, groups_of_second = 0;
  bool once = false;          // operands need not stay in L2
  unsigned* flags = nullptr;  // to be set to 0, for the second kernel
  unsigned num_flags = 0;
  unsigned cluster = 1;     // blocks that share a group of rows
  std::int64_t chunks = 0;  // of K, per block

  __host__ __device__ unsigned groups() const { return groups_of_first + groups_of_second; }
};

// Clamped to what a block can reach: no memory holds 2^30 rows more.
__device__ inline int clamped(std::int64_t count) {
  constexpr std::int64_t kMost = 1 << 30;
  return static_cast<int>(count < -kMost ? -kMost : count > kMost ? kMost : count);
}

// One block clears the flags, once the previous kernel has ended.
__device__ inline void clear_flags(const SplitJobs& jobs) {
  if (blockIdx.x > 0) return;
  for (unsigned i = threadIdx.x; i < jobs.num_flags; i += blockDim.x) jobs.flags[i] = 0;
}

// Reduces over all lanes whose numbers differ from this one's in bits `first` to below `end`.
__device__ inline void reduce_lanes(RowStats& stats, int first, int end) {
#pragma unroll
  for (int lanes = first; lanes < end; lanes *= 2) {
    stats.add({__shfl_xor_sync(~0U, stats.largest, lanes), __shfl_xor_sync(~0U, stats.sum, lanes),
               __shfl_xor_sync(~0U, stats.bits, lanes)});
  }
}

// The GEMM: tile sizes, shared memory, parameters.

constexpr int kBlockM = 128;
constexpr int kWarpgroup = 128;
constexpr int kConsumers = 2 * kWarpgroup;
constexpr int kNumThreads = kWarpgroup + kConsumers;  // the first warpgroup is the producer's
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
static_assert(kWarpgroup * (kProducerRegisters + 2 * kConsumerRegisters) <= 65536);
static_assert(kConsumers == kFp32Threads && kBlockM == kFp32Rows);

constexpr int kStoreWarps = kWarpgroup / 32 - 1;  // warps of the first beside the producer's

constexpr int kRingBytes = 221184;
constexpr int kStagedRingBytes = 147456;  // where results are staged behind it
constexpr int kMaxStages = 12;
constexpr int kFoldedRow = 128 + 8;  // words: the pairs of four rows are in different banks

// Tiles of kBlockM×kN results from kProducts products of digits. Staged: the store warps store a
// tile while the next is multiplied, from shared memory that would otherwise hold three more
// stages.
template <int kN, int kProducts, bool kStaged = false>
struct Tiles {
  static constexpr int kBlockN = kN;
  static constexpr int kLevels = kProducts == 6 ? 3 : 4;
  static constexpr int kBytesB = kN * kRowBytes;  // of a stage
  static constexpr int kStageBytes = kBlockM * kRowBytes + kBytesB;
  static constexpr bool kIsStaged = kStaged;
  static constexpr int kStages = (kIsStaged ? kStagedRingBytes : kRingBytes) / kStageBytes;
  static_assert(kChunkRows % kN == 0, "a tile's columns are in one chunk");
  static_assert(kStages <= kMaxStages && kStageBytes % 1024 == 0);
  static_assert(kProducts == 6 || kProducts == 8);
  static_assert(!kStaged || kN == 128, "the storers have whole rows");
};
using Eight = Tiles<64, 8>;  // a fourth accumulator has room beside 64 columns only

// Dequantization steps: of the rows of a tile, or of a warpgroup's rows, and of its columns.
struct Steps {
  float row[kBlockM], col[128];
};

struct GemmStorage {
  union {
    std::byte ring[kRingBytes];
    struct {
      std::byte staged_ring[kStagedRingBytes];
      float folded[kBlockM * kFoldedRow];  // a tile's results, unscaled
    };
    Fp32Storage fp32;
  };
  device::Barrier full[kMaxStages], empty[kMaxStages];
  device::Barrier steps_ready, results_ready, is_stored;  // staged: of a tile, in turn
  device::Barrier partial_ready;                          // of a tile of another block
  float sums[kNumThreads / 32][2];
  Work work[kNumThreads / 32];  // that the warps multiply
  Steps steps[2];               // of the warpgroups; staged: of this tile and of the one before
};

// Parameters of the GEMM beside KernelArgs.
struct GemmParams {
  Planes a, b;
  const std::byte *planes_a = nullptr, *planes_b = nullptr;
  const float *steps_a = nullptr, *steps_b = nullptr;
  const float* widths = nullptr;  // of the split pass's blocks: first A's, then B's
  unsigned widths_a = 0, widths_b = 0;
  float rows_a = 1, rows_b = 1;  // that the widths are of
  Path* decision = nullptr;      // what the device decided is left there
  Path least = Path::kSix;
  float summed = 0.0F;                       // k in one sum of FP32, to be as accurate as which
  std::int64_t first_chunk = 0, chunks = 0;  // of K
  bool pairs = false;                        // two neighbours of C are an aligned vector
  bool once = false;                         // they are, and C need not stay in L2
  PersistentTileScheduler six, eight;        // of their tiles, a pair of blocks' counted as one
  StreamKTiles stream_k{};                   // of `six`
  std::byte* partials = nullptr;             // of each block, of a tile that another one stores
  unsigned* flags = nullptr;                 // of each block: raised once they are there
  Fp32Args fp32;
};

// How all blocks of the second kernel come to the same decision.

// The products that the call takes: every block reduces the same numbers in the same order. `sync`:
// a barrier of kThreads threads.
template <int kThreads, typename Meet>
__device__ Path decide_path(const GemmParams& params, float (&sums)[kThreads / 32][2], Meet sync) {
  const auto widths =
      sum_over_groups<kThreads, 1>(params.widths, params.widths_a, params.widths_b, sums, sync);
  return decide(widths.a[0] / params.rows_a, widths.b[0] / params.rows_b, params.summed,
                params.least);
}

}  // namespace tilegate::int8x3
