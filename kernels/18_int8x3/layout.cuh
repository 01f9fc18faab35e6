// Data layouts: digits in the workspace, parameters of the split kernels and of the GEMM, its tiles
// and shared memory.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/fp64_fallback.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/common/store_words.cuh>
#include <tilegate/common/stream_k_scheduler.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "digits.cuh"

namespace tilegate::int8x3 {

// Whether the device has wgmma, clusters and bulk copies; the executor has them.
inline bool has_warpgroups(const Device& device) {
  return check_device({.compute_capability = 90, .no_later = true}, device).ok();
}

// A chunk of digits: (128 / 8 rows, plane, 8 rows, 32 k) bytes, as wgmma reads it from shared
// memory. Any multiple of 8 rows, with all of its planes, is contiguous.
constexpr int kRowBytes = kPlanes * kChunkK;
constexpr int kChunkBytes = kChunkRows * kRowBytes;
constexpr int kSegment = 16;              // contiguous bytes of a row
constexpr int kNextPlane = 8 * kChunkK;   // bytes from a plane of 8 rows to the next plane
constexpr int kNextRows = 8 * kRowBytes;  // bytes from 8 rows to the next 8

// Offset in a chunk of the high digits of a row from k = 16·segment on. The 32-byte swizzle
// exchanges the two segments of rows 4 to 7 of each 8, which avoids bank conflicts between eight
// rows.
__host__ __device__ inline int offset_in_chunk(int row, int segment, int next_rows = kNextRows) {
  return row / 8 * next_rows + row % 8 * kChunkK + (segment ^ (row >> 2 & 1)) * kSegment;
}

// Tails are in chunks of their own, in the same order: only ten products read them.
constexpr int kTailRowBytes = kChunkK;
constexpr int kTailChunkBytes = kChunkRows * kTailRowBytes;
constexpr int kNextTailRows = 8 * kTailRowBytes;

using Planes = SplitChunks<kChunkBytes>;

// Parameters of the split kernels. They read rows of op(A) and columns of op(B), both called rows
// here, scale each by its largest element, and write the digits to the workspace. split_short: a
// block has all k of its rows. split_long, split_ahead, split_boxes: the blocks of a cluster share
// rows.

constexpr int kMaxSplitCluster = 8;

using Job = SplitJob<Planes>;

// An element of a row that is far above the others; see refine.cuh. k is -1 in unused entries.
struct Outlier {
  std::int32_t k;
  float value;
};

struct Pointers : SplitPointers {
  float* widths = nullptr;                   // kNumWidths per group of rows (widths_of_group)
  std::byte* tails = nullptr;                // of refine.cuh
  Outlier* outliers = nullptr;               // (kMaxOutliers, rows)
  float* widths_without_outliers = nullptr;  // kNumWidths per group of rows
};

constexpr int kNumWidths = 4;  // a vector

// Pairs of a row and a column that are sampled (match.cuh). Of each a vector, `squares`, `centre`,
// the reciprocal of `roots`, and `rounding` of Match; after all of these, `equal` of each.
constexpr unsigned kPairs = 32;
constexpr std::size_t kPairsBytes = kPairs * (sizeof(float4) + sizeof(float));

struct SplitJobs {
  Job job[2];
  Pointers pointers[2];
  float4* pairs = nullptr;  // kPairsBytes; nullptr: are not sampled
  unsigned groups_of_first = 0, groups_of_second = 0;
  bool evicts_first = false;  // operands are read with L2 priority evict_first
  unsigned* flags = nullptr;  // of the GEMM, to be cleared
  unsigned num_flags = 0;
  unsigned cluster = 1;     // blocks per group of rows
  std::int64_t chunks = 0;  // chunks of K per block
  // A row with a larger spread rules digits out. split_short writes no digits of it, split_ahead
  // and split_boxes none of its group.
  float most_spread = INFINITY;
  std::uint32_t zero = 0;  // which the compiler does not know, see BoxCopies

  __host__ __device__ unsigned groups() const { return groups_of_first + groups_of_second; }
};

// Clamps a 64-bit count to 32 bits: no block reaches 2^30 rows.
__device__ inline int clamped(std::int64_t count) {
  constexpr std::int64_t kMost = 1 << 30;
  return static_cast<int>(count < -kMost ? -kMost : count > kMost ? kMost : count);
}

// One block clears the flags, once the previous kernel has ended.
__device__ inline void clear_flags(const SplitJobs& jobs) {
  if (blockIdx.x > 0) return;
  for (unsigned i = threadIdx.x; i < jobs.num_flags; i += blockDim.x) jobs.flags[i] = 0;
}

// Adds the widths of other rows: sums of widths and of spreads, the largest spread, and the largest
// last number (Widths), or of pairs the sum.
enum class Last { kMost, kSum };
template <Last kLast = Last::kMost>
__device__ void add_widths(float4& widths, const float4& other) {
  widths.x += other.x;
  widths.y += other.y;
  widths.z = std::fmax(widths.z, other.z);
  widths.w = kLast == Last::kMost ? std::fmax(widths.w, other.w) : widths.w + other.w;
}

// The same over the lane distances first, 2·first, … below `end`.
template <Last kLast = Last::kMost>
__device__ void add_lanes(float4& widths, int first, int end) {
#pragma unroll
  for (int lanes = first; lanes < end; lanes *= 2) {
    add_widths<kLast>(
        widths,
        make_float4(__shfl_xor_sync(~0U, widths.x, lanes), __shfl_xor_sync(~0U, widths.y, lanes),
                    __shfl_xor_sync(~0U, widths.z, lanes), __shfl_xor_sync(~0U, widths.w, lanes)));
  }
}

__device__ inline float4 vector_of(const Width& row) {
  return make_float4(row.width, row.spread, row.spread, row.is_long);
}

// One warp: the widths of a group of kRows rows. `row`: that of lane % kRows.
template <int kRows>
__device__ float4 widths_of_group(const Width& row) {
  float4 widths = vector_of(row);
  add_lanes(widths, 1, kRows);
  return widths;
}

// Butterfly reduction by shuffles over the lane distances first, 2·first, … below `end`.
__device__ inline void reduce_lanes(RowStats& stats, int first, int end) {
#pragma unroll
  for (int lanes = first; lanes < end; lanes *= 2) {
    stats.add({__shfl_xor_sync(~0U, stats.largest, lanes), __shfl_xor_sync(~0U, stats.sum, lanes),
               __shfl_xor_sync(~0U, stats.roots, lanes), __shfl_xor_sync(~0U, stats.bits, lanes)});
  }
}

// The GEMM: tile sizes, shared memory, parameters.

constexpr int kBlockM = 128;
constexpr int kWarpgroup = 128;
constexpr int kConsumers = 2 * kWarpgroup;
constexpr int kNumThreads = kWarpgroup + kConsumers;  // the first warpgroup has the producer
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
static_assert(kWarpgroup * (kProducerRegisters + 2 * kConsumerRegisters) <= kRegistersPerSm);
static_assert(kWarpgroup == kFp64Producers && kConsumers == kFp64Consumers);

constexpr int kStoreWarps = kWarpgroup / 32 - 1;  // beside the producer warp

constexpr int kRingBytes = 221184;        // 9 stages of a 128×128 tile
constexpr int kStagedRingBytes = 147456;  // 6 of them; the staged tile takes the rest
constexpr int kMaxStages = 12;
constexpr int kFoldedRow = 128 + 8;  // words, padded: float2 stores to four rows do not conflict

// Tiles of kM×kN results from kProducts digit products. kStaged: the store warps store a tile while
// the consumers multiply the next one (epilogue.cuh). The staged tile takes the shared memory of
// three stages. kM = 128: both consumer warpgroups share a tile. kM = 64: ping-pong, each has every
// second tile of the block (gemm_sm90.cuh).
template <int kN, int kProducts, bool kStaged = false, int kM = 128>
struct Tiles {
  static constexpr int kBlockM = kM, kBlockN = kN;
  static constexpr bool kIsPingpong = kM == 64;
  static constexpr bool kHasTails = kProducts == 10;
  static constexpr int kLevels = kProducts == 6 ? 3 : 4;
  static constexpr int kBytesA = kM * kRowBytes, kBytesB = kN * kRowBytes;  // per stage
  // Offsets in a stage: digits of A, of B, tails of A, of B.
  static constexpr int kTailsA = kBytesA + kBytesB;
  static constexpr int kTailsB = kTailsA + (kHasTails ? kTailChunkBytes : 0);
  static constexpr int kStageBytes = kTailsB + (kHasTails ? kN * kTailRowBytes : 0);
  static constexpr bool kIsStaged = kStaged;
  static constexpr int kStages = (kIsStaged ? kStagedRingBytes : kRingBytes) / kStageBytes;
  static_assert(kChunkRows % kN == 0, "a tile's columns are in one chunk");
  static_assert(kStages <= kMaxStages && kStageBytes % 1024 == 0);
  static_assert(kProducts == 6 || kProducts == 8 || kProducts == 10);
  static_assert(!kStaged || kN == 128, "store warps store whole rows");
  static_assert(kM == 128 || (kIsPingpong && kProducts == 6 && !kStaged));

  // A warpgroup's first row in its tile.
  static __device__ int first_row(int warpgroup) { return kIsPingpong ? 0 : 64 * warpgroup; }
};
using Pingpong = Tiles<128, 6, false, 64>;
// Registers hold a fourth accumulator with 64 columns only.
using Eight = Tiles<64, 8>;
using Ten = Tiles<64, 10>;

// Dequantization steps of the rows of a tile, or of a warpgroup, and of its columns.
struct Steps {
  union {
    float row[kBlockM];
    double exact_row[kBlockM / 2];
  };
  union {
    float col[128];
    double exact_col[64];
  };
};

// For the decision: statistics of each warp's groups of rows, of A and of B, and of the pairs.
template <int kThreads>
struct DecisionSums {
  float4 rows[kThreads / 32 - 1][2];
  Match match;
};

struct GemmStorage {
  union {
    std::byte ring[kRingBytes];
    struct {
      std::byte staged_ring[kStagedRingBytes];
      float folded[kBlockM * kFoldedRow];  // results of a tile, unscaled
    };
    Fp64Storage fp64;
  };
  device::Barrier full[kMaxStages], empty[kMaxStages];
  Fp64Barriers fp64_barriers;
  device::Barrier steps_ready, results_ready, is_stored;  // staged epilogue, one phase per tile
  device::Barrier partial_ready;                          // partial sums are stored
  device::Barrier turn[2];                                // ping-pong, per warpgroup
  DecisionSums<kNumThreads> sums;
  Work work[kNumThreads / 32];  // per warp
  Steps steps[2];               // per warpgroup; staged: of this tile and the previous one
  alignas(8) float exchange[kConsumers / 32][kExchangedWords];
};

// Statistics for the decision: kNumWidths floats per group of rows, first of A, then of B.
struct GroupWidths {
  const float* widths = nullptr;
  unsigned of_a = 0, of_b = 0;  // groups
};

// How blocks share the tiles of C. Data-parallel: each computes whole tiles. Split-K: equally many
// blocks share each tile along K, and another kernel adds their partial sums. Stream-K: blocks
// share the last tiles along K, in equal parts of all their work.
enum class Decomposition { kDataParallel, kSplitK, kStreamK };

// An operand as floats. From a row, or k, to the next: in elements.
struct Floats {
  const float* from = nullptr;
  std::int64_t next_row = 0, next_k = 0, stride = 0, k = 0;
};

// Parameters of the GEMM beside KernelArgs.
struct GemmParams {
  Planes a, b;
  const std::byte *planes_a = nullptr, *planes_b = nullptr;
  const std::byte *tails_a = nullptr, *tails_b = nullptr;
  const float *steps_a = nullptr, *steps_b = nullptr;
  GroupWidths widths;
  GroupWidths widths_without_outliers{};  // where the decision was FP64 with them
  float4* pairs = nullptr;                // kPairsBytes; nullptr: were not sampled
  float4* pairs_without_outliers = nullptr;
  Floats floats_a{}, floats_b{};  // where `pairs` were sampled
  float rows_a = 1, rows_b = 1;   // rows of A, of B
  Path* decision = nullptr;       // output
  // Output: 1 where the digits leave out the outliers, which `add_outliers` adds.
  std::int32_t* without_outliers = nullptr;
  // The decision of `refine`, which the GEMM must share: sums in another kernel could differ.
  Path* refined = nullptr;
  std::int32_t* are_apart = nullptr;  // where `refined` is FP64: 1 if it has set outliers apart
  float4* samples = nullptr;          // of op(A) and op(B), see may_set_apart
  unsigned* sample_flags = nullptr;
  Path least = Path::kSix;
  bool allows_ten = false;       // the kernel `refine` runs before
  bool allows_outliers = false;  // it may set them apart, and `add_outliers` runs after
  float allowed = 0.0F, allowed_of_ten = 0.0F;  // squared errors, see decide()
  std::int64_t first_chunk = 0, chunks = 0;     // chunks of K of this launch
  bool float2_c = false;                        // C allows float2 accesses
  bool evicts_first = false;      // C is stored with float2 and L2 priority evict_first
  TileScheduler six, eight;       // the tiles of a cluster count as one tile; ten
                                  // products have the tiles of eight
  StreamKTiles stream_k{};        // of `six`
  std::byte* partials = nullptr;  // partial sums, per block
  unsigned* flags = nullptr;      // one per block: its partial sums are ready
  Fp64Args fp64{};                // without digits, on compute capability 9.0
  Fp32Args fp32;                  // on others
  unsigned parts_per_tile = 1;    // split-K: a block computes one part
};

}  // namespace tilegate::int8x3
