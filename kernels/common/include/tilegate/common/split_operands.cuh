// Operand splitting: the layout of the parts, the arguments of split kernels, and how they read
// rows. Rows of op(A) and columns of op(B) are both called rows. A split kernel goes over its rows
// twice: forwards for their statistics, and back to write the parts. What the first pass cannot
// keep the second reads again, the latest first, from L2 where that still holds it.
//
// The two loops stand in each kernel: called from here with lambdas, they cost registers that the
// kernels do not have (nvcc 13.0).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// Which rows of an operand can be scaled before they are split, and the bits of a float, on host
// and device.

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

// From the smallest on, the product of two scales of Int8x3 is exact: it is no subnormal number.
constexpr float kSmallestScaled = 0x1p-56F, kLargestScaled = 0x1p60F;

// Whether a row can be scaled at all: zero, or far from the ends of float's range. `stats` has the
// largest magnitude, and the sum of all, which is NaN or Inf where an element is.
template <typename RowStats>
__host__ __device__ bool is_scalable(const RowStats& stats) {
  return stats.sum < INFINITY && (stats.largest == 0.0F || (stats.largest >= kSmallestScaled &&
                                                            stats.largest <= kLargestScaled));
}

// Where the parts of a split operand lie in the workspace: in chunks of 128 rows × 32 k, each in
// the order in which the tensor cores want it in shared memory, so that it comes with one bulk
// copy. Columns of op(B) are called rows, too.

constexpr int kChunkRows = 128;  // of op(A), or columns of op(B)
constexpr int kChunkK = 32;

// One operand, all products of the batch.
template <int kChunkBytes>
struct SplitChunks {
  std::int64_t chunks_x = 0, chunks_k = 0;  // of one product
  std::int64_t products = 0;                // 1 if the batch shares the operand

  SplitChunks() = default;
  SplitChunks(std::int64_t rows, std::int64_t k, std::int64_t products_)
      : chunks_x(ceil_div(rows, kChunkRows)), chunks_k(ceil_div(k, kChunkK)), products(products_) {}

  __host__ __device__ std::int64_t rows() const { return chunks_x * kChunkRows; }
  std::size_t bytes() const {
    return static_cast<std::size_t>(products * chunks_x * chunks_k) * kChunkBytes;
  }
  std::size_t step_bytes() const { return static_cast<std::size_t>(products * rows()) * 4; }

  // Bytes from the start of the planes to a chunk; `product` as the batch counts.
  __host__ __device__ std::int64_t chunk(std::int64_t product, std::int64_t x,
                                         std::int64_t k) const {
    return ((own(product) * chunks_x + x) * chunks_k + k) * kChunkBytes;
  }
  // Of chunks along x, the last for those beyond it.
  __host__ __device__ std::int64_t inside(std::int64_t x) const {
    return x < chunks_x ? x : chunks_x - 1;
  }
  __host__ __device__ std::int64_t own(std::int64_t product) const {
    return products == 1 ? 0 : product;
  }
};

// One operand. Element (row, k) is at from[row · ld + k], or at from[k · ld + row].
template <typename Chunks>
struct SplitJob {
  Chunks planes;
  bool along_k = false, vectors = false;
  std::int64_t rows = 0, k = 0;
  Divisor groups;  // of rows, of one product

  std::int64_t num_groups() const { return planes.products * groups.value(); }
};

struct SplitPointers {
  const float* from = nullptr;
  std::int64_t ld = 0, stride = 0;
  std::byte* planes = nullptr;
  float* steps = nullptr;  // of each row: what one unit of its parts is worth
};

constexpr int kSegmentK = 16;  // k that a thread takes at a time

// Blocks of kRows rows each. Few rows make more blocks; many read more neighbours of a row of
// memory at a time. A thread keeps kKept segments in shared memory, and one in registers.
template <int kThreads_, int kRows_, int kKept_ = 3>
struct SplitRowsConfig {
  static constexpr int kThreads = kThreads_, kRows = kRows_, kKept = kKept_;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kWarpK = 32 / kRows * kSegmentK;  // k of a warp at a time
  static constexpr int kBlockK = kWarps * kWarpK;
  static constexpr int kBlocksPerSm = 1024 / kThreads;
  static_assert(kChunkRows % kRows == 0 && 32 % kRows == 0);
  static_assert(kWarps >= kRows && kWarps <= 32, "a warp settles a row, a lane has a warp's part");
};

// A segment in shared memory: lanes next to each other.
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

// A block's rows, and where its thread begins in one of them.
template <typename Config>
struct RowsOfBlock {
  unsigned product;
  std::int64_t first_row, first_k;
  int row;  // of the thread, from the first

  template <typename Job>
  __device__ RowsOfBlock(const Job& job, unsigned group)
      : product(job.groups.quotient(group)),
        first_row(std::int64_t{job.groups.remainder(group, product)} * Config::kRows) {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    row = lane % Config::kRows;
    first_k = warp * Config::kWarpK + lane / Config::kRows * kSegmentK;
  }
};

// How all blocks of a kernel come to the same decision: each adds the same numbers in the same
// order.

template <int kNumbers>
struct GroupSums {
  float a[kNumbers], b[kNumbers];
};

// Sums of kNumbers per group of rows: of op(A)'s groups, and of op(B)'s, which follow. Every block
// adds the same numbers in the same order, so that all take the same decision. `sync`: a barrier of
// kThreads threads.
template <int kThreads, int kNumbers, typename Meet>
__device__ GroupSums<kNumbers> sum_over_groups(const float* numbers, unsigned groups_a,
                                               unsigned groups_b,
                                               float (&sums)[kThreads / 32][2 * kNumbers],
                                               Meet sync) {
  const unsigned thread = threadIdx.x;
  GroupSums<kNumbers> sum{};
#pragma unroll
  for (int n = 0; n < kNumbers; ++n) {
    for (unsigned i = thread; i < groups_a; i += kThreads) sum.a[n] += numbers[i * kNumbers + n];
    for (unsigned i = thread; i < groups_b; i += kThreads) {
      sum.b[n] += numbers[(groups_a + i) * kNumbers + n];
    }
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
  sync();  // all warps have added theirs
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

}  // namespace tilegate
