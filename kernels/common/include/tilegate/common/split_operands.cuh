// Operand splitting (Ozaki, Ootomo: see 18_int8x3/README.md): each FP32 element is written as a sum
// of low-precision planes (hi, lo, …) that tensor cores multiply. Here: layout of the planes,
// arguments of split kernels, loads of rows, plans. Rows of op(A) and columns of op(B) are both
// called rows.
//
// A split kernel passes over its rows twice: forwards for their statistics, backwards to write the
// planes. The second pass reloads what shared memory does not hold, latest first, so that L2 still
// holds it. Both loops are written out in each kernel: as functions in this header that call
// lambdas they need more registers than the kernels have (nvcc 13.0).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/problem.hpp>

namespace tilegate {

__host__ __device__ inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

__host__ __device__ inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Range of a row's largest element. From the lower end on, the product of two scales of Int8x3 is
// exact: it is not subnormal.
constexpr float kSmallestScaled = 0x1p-56F, kLargestScaled = 0x1p60F;

// Whether a row can be scaled: it is zero, or its largest element is in that range. `stats.sum` is
// NaN or Inf where an element is.
template <typename RowStats>
__host__ __device__ bool is_scalable(const RowStats& stats) {
  return stats.sum < INFINITY && (stats.largest == 0.0F || (stats.largest >= kSmallestScaled &&
                                                            stats.largest <= kLargestScaled));
}

// Layout of the planes in the workspace: chunks of 128 rows × 32 k, each in the order in which
// wgmma reads shared memory, so that one bulk copy loads a chunk.
constexpr int kChunkRows = 128;
constexpr int kChunkK = 32;

// The planes of one operand, with all matrices of the batch.
template <int kChunkBytes>
struct SplitChunks {
  std::int64_t chunks_x = 0, chunks_k = 0;  // per matrix
  std::int64_t matrices = 0;                // 1 if the batch shares the operand

  SplitChunks() = default;
  SplitChunks(std::int64_t rows, std::int64_t k, std::int64_t matrices_)
      : chunks_x(ceil_div(rows, kChunkRows)), chunks_k(ceil_div(k, kChunkK)), matrices(matrices_) {}

  __host__ __device__ std::int64_t rows() const { return chunks_x * kChunkRows; }
  std::size_t bytes() const {
    return static_cast<std::size_t>(matrices * chunks_x * chunks_k) * kChunkBytes;
  }
  std::size_t step_bytes() const { return static_cast<std::size_t>(matrices * rows()) * 4; }

  // Offset of a chunk in bytes.
  __host__ __device__ std::int64_t chunk(std::int64_t batch_index, std::int64_t x,
                                         std::int64_t k) const {
    return ((own(batch_index) * chunks_x + x) * chunks_k + k) * kChunkBytes;
  }
  // `x` clamped to the last chunk.
  __host__ __device__ std::int64_t inside(std::int64_t x) const {
    return x < chunks_x ? x : chunks_x - 1;
  }
  // Index of the matrix in the planes: 0 if the batch shares it.
  __host__ __device__ std::int64_t own(std::int64_t batch_index) const {
    return matrices == 1 ? 0 : batch_index;
  }
};

// Split of one operand. Element (row, k) is at from[row · ld + k], or at from[k · ld + row].
template <typename Chunks>
struct SplitJob {
  Chunks planes;
  bool along_k = false, vectors = false;
  std::int64_t rows = 0, k = 0;
  Divisor groups;  // groups of rows per matrix

  std::int64_t num_groups() const { return planes.matrices * groups.value(); }
};

struct SplitPointers {
  const float* from = nullptr;
  std::int64_t ld = 0, stride = 0;
  std::byte* planes = nullptr;
  float* steps = nullptr;  // dequantization step per row
};

constexpr int kSegmentK = 16;  // k of a segment: a thread's unit of work

// Split kernels whose blocks have kRows rows each. Fewer rows give more blocks, more rows longer
// contiguous accesses. A thread keeps kKept segments in shared memory, and one in registers.
template <int kThreads_, int kRows_, int kKept_ = 3>
struct SplitRowsConfig {
  static constexpr int kThreads = kThreads_, kRows = kRows_, kKept = kKept_;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kWarpK = 32 / kRows * kSegmentK;  // k of a warp per iteration
  static constexpr int kBlockK = kWarps * kWarpK;
  static constexpr int kBlocksPerSm = 1024 / kThreads;
  static_assert(kChunkRows % kRows == 0 && 32 % kRows == 0);
  static_assert(kWarps <= 32, "a warp reduces a row, a lane holds a warp's share");
};

// A segment of each thread in shared memory, (vector, thread).
template <typename Config>
using KeptSegment = float4[kSegmentK / 4][Config::kThreads];

// v[i] ← element (row, k + i), or 0 outside the operand.
template <typename Job>
__device__ void load_segment(const Job& job, const SplitPointers& pointers, std::int64_t row,
                             std::int64_t k, float (&v)[kSegmentK]) {
  const std::int64_t next = job.along_k ? 1 : pointers.ld;
  const float* from = pointers.from + (job.along_k ? row * pointers.ld + k : k * pointers.ld + row);
  const std::int64_t inside = row < job.rows ? job.k - k : 0;
  if (job.along_k && job.vectors && inside >= kSegmentK) {
#pragma unroll
    for (int i = 0; i < kSegmentK; i += 4) {
      const auto vector = device::load_vector<float4>(from + i);
      v[i] = vector.x;
      v[i + 1] = vector.y;
      v[i + 2] = vector.z;
      v[i + 3] = vector.w;
    }
  } else if (inside >= kSegmentK) {
#pragma unroll
    for (int i = 0; i < kSegmentK; ++i) v[i] = from[i * next];
  } else {
#pragma unroll
    for (int i = 0; i < kSegmentK; ++i) v[i] = i < inside ? from[i * next] : 0.0F;
  }
}

template <typename Config>
__device__ void keep_segment(const float (&v)[kSegmentK], KeptSegment<Config>& to) {
#pragma unroll
  for (int i = 0; i < kSegmentK / 4; ++i) {
    to[i][threadIdx.x] = make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
  }
}

template <typename Config>
__device__ void restore_segment(const KeptSegment<Config>& from, float (&v)[kSegmentK]) {
#pragma unroll
  for (int i = 0; i < kSegmentK / 4; ++i) {
    const float4 vector = from[i][threadIdx.x];
    v[4 * i] = vector.x;
    v[4 * i + 1] = vector.y;
    v[4 * i + 2] = vector.z;
    v[4 * i + 3] = vector.w;
  }
}

// A block's rows, and the thread's first segment.
template <typename Config>
struct RowsOfBlock {
  unsigned batch_index;
  std::int64_t first_row, first_k;
  int row;  // of the thread, from first_row on

  template <typename Job>
  __device__ RowsOfBlock(const Job& job, unsigned group)
      : batch_index(job.groups.quotient(group)),
        first_row(std::int64_t{job.groups.remainder(group, batch_index)} * Config::kRows) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    row = lane % Config::kRows;
    first_k = warp * Config::kWarpK + lane / Config::kRows * kSegmentK;
  }
};

template <int kNumbers>
struct GroupSums {
  float a[kNumbers], b[kNumbers];
};

// Sums kNumbers statistics over op(A)'s groups of rows, and over op(B)'s, which follow in memory.
// Every block adds the same numbers in the same order, so that all blocks take the same decision.
// `sync`: a barrier of kThreads threads.
template <int kThreads, int kNumbers, typename Sync>
__device__ GroupSums<kNumbers> sum_over_groups(const float* numbers, unsigned groups_a,
                                               unsigned groups_b,
                                               float (&sums)[kThreads / 32][2 * kNumbers],
                                               Sync sync) {
  const unsigned thread = threadIdx.x;
  GroupSums<kNumbers> sum{};
  // One loop per operand: a loop per number would wait for memory once per number.
  const auto add = [&](unsigned i, float (&to)[kNumbers]) {
#pragma unroll
    for (int n = 0; n < kNumbers; ++n) to[n] += numbers[i * kNumbers + n];
  };
  for (unsigned i = thread; i < groups_a; i += kThreads) add(i, sum.a);
  for (unsigned i = thread; i < groups_b; i += kThreads) add(groups_a + i, sum.b);
#pragma unroll
  for (int n = 0; n < kNumbers; ++n) {
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      sum.a[n] += __shfl_xor_sync(~0U, sum.a[n], lanes);
      sum.b[n] += __shfl_xor_sync(~0U, sum.b[n], lanes);
    }
    if (thread % 32 == 0) {
      sums[thread / 32][2 * n] = sum.a[n];
      sums[thread / 32][2 * n + 1] = sum.b[n];
    }
  }
  sync();  // all warps have stored their sums
#pragma unroll
  for (int n = 0; n < kNumbers; ++n) {
    sum.a[n] = sum.b[n] = 0.0F;
    for (int warp = 0; warp < kThreads / 32; ++warp) {
      sum.a[n] += sums[warp][2 * n];
      sum.b[n] += sums[warp][2 * n + 1];
    }
  }
  return sum;
}

// Plans.

// Matrices to split: 1 if the batch shares the operand.
inline std::int64_t split_matrices(const Problem& problem, Operand operand) {
  return problem.batch > 1 && problem.stride(operand) == 0 ? 1 : problem.batch;
}

inline std::int64_t split_extent(const Problem& problem, Operand operand) {
  return operand == Operand::kA ? problem.shape.m : problem.shape.n;
}

template <typename Chunks>
Chunks split_chunks(const Problem& problem, Operand operand) {
  return {split_extent(problem, operand), problem.shape.k, split_matrices(problem, operand)};
}

// `rows`: rows per group.
template <typename Chunks>
SplitJob<Chunks> split_job(const Problem& problem, Operand operand, const Chunks& chunks,
                           int rows) {
  return {.planes = chunks,
          .along_k = is_along_k(problem, operand),
          .vectors = allows_vectors(problem, operand),
          .rows = split_extent(problem, operand),
          .k = problem.shape.k,
          .groups = Divisor(static_cast<std::uint32_t>(chunks.rows() / rows))};
}

// Alignment of the workspace's regions.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// Whether C allows aligned float2.
inline bool allows_float2_of_c(const Problem& problem) {
  return problem.shape.n % 2 == 0 && problem.ldc % 2 == 0 && problem.offset_bytes[2] % 8 == 0 &&
         (problem.batch == 1 || problem.stride_c % 2 == 0);
}

// Limit of K: the workspace's size stays below 2^63 bytes with 2^34 rows and 4 bytes per element.
// At the limit a chunk of rows takes 100 GB.
constexpr std::int64_t kMaxSplitK = (std::int64_t{1} << 27) - 1;

// Ok if the problem's grids are within CUDA's limits. `block_n`: columns of the smallest tile,
// which has kChunkRows rows; `split_blocks`: blocks of the split kernel per chunk of rows.
inline Status check_split_size(const Problem& problem, int block_n, double split_blocks) {
  constexpr std::int64_t kMaxExtent = std::int64_t{1} << 33;
  const auto [m, n, k] = problem.shape;
  if (std::max(m, n) > kMaxExtent) {
    return Status::unsupported("M or N is above " + std::to_string(kMaxExtent));
  }
  if (k > kMaxSplitK) return Status::unsupported("K is above " + std::to_string(kMaxSplitK));
  const auto tiles = [](std::int64_t extent, int tile) {
    return static_cast<double>(ceil_div(extent, tile));
  };
  const double blocks =
      static_cast<double>(problem.batch) *
      std::max(tiles(m, kChunkRows) * tiles(n, block_n) * (TileScheduler::kGroupRows / kChunkRows),
               (tiles(m, kChunkRows) + tiles(n, kChunkRows)) * split_blocks);
  if (blocks <= static_cast<double>(kMaxBlocks)) return {};
  return Status::unsupported("C has more tiles than a CUDA grid has blocks");
}

// Parameters of a split kernel for one operand. `rows`: rows per group; `kernel`: its name;
// `boxes`: TMA copies the operand.
inline PlannedKernel planned_split(const Problem& problem, Operand operand, int rows,
                                   const std::string& kernel, bool boxes = false) {
  const bool along_k = is_along_k(problem, operand), of_a = operand == Operand::kA;
  const bool vectors = !boxes && along_k && allows_vectors(problem, operand);
  const std::int64_t matrices = split_matrices(problem, operand);
  return {.name = "split " + kernel + (boxes ? " boxes" : "") + (along_k ? " along k" : "") +
                  (vectors ? " vectors" : ""),
          .parameters = {of_a ? parameter::rows(kChunkRows) : parameter::columns(kChunkRows),
                         of_a ? parameter::rows(rows) : parameter::columns(rows),
                         parameter::depth(kSegmentK),
                         parameter::tiles("chunks of k", problem.shape.k, kChunkK),
                         parameter::count("products", matrices),
                         parameter::each("batch shares it", problem.batch > matrices)}};
}

// Expected seconds of the split kernel and of both launches, on an NVIDIA H200. `per_element`:
// seconds per element of an operand that allows vectors; `panels`: launches of each kernel;
// `times_a`, `times_b`: how often each element is split.
inline double split_seconds(const Problem& problem, double per_element, double panels = 1.0,
                            double times_a = 1.0, double times_b = 1.0) {
  constexpr double kLaunches = 2.7e-6, kPerWord = 1.1e-12;
  double seconds = panels * kLaunches;
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    const auto [rows, cols] = problem.extent(operand);
    const double elements = static_cast<double>(rows) * static_cast<double>(cols) *
                            static_cast<double>(split_matrices(problem, operand)) *
                            (operand == Operand::kA ? times_a : times_b);
    seconds += elements * (per_element + (allows_vectors(problem, operand) ? 0.0 : kPerWord));
  }
  return seconds;
}

}  // namespace tilegate
