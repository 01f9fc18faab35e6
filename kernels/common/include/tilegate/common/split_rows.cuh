// What kernels that split operands are given, and how those read rows whose blocks have all of
// their k. Rows of op(A) and columns of op(B) are called rows both. Such a kernel goes over its
// rows twice: forwards to see their largest elements, and back to write the parts. What the first
// pass cannot keep the second reads again, the latest first, from L2 where that still holds it.
//
// The two loops stand in each kernel: called from here with what they do, they cost registers that
// the kernels do not have (nvcc 13.0).
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/split_chunks.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// One operand. Element (row, k) is at from[row · ld + k], or at from[k · ld + row].
template <typename Chunks>
struct SplitJob {
  Chunks planes;
  bool along_k = false, vectors = false;
  std::int64_t rows = 0, k = 0;
  Divisor groups;  // of rows, of one product

  std::int64_t num_groups() const { return planes.products * groups.value(); }
};

struct SplitPlace {
  const float* from = nullptr;
  std::int64_t ld = 0, stride = 0;
  std::byte* planes = nullptr;
  float* steps = nullptr;  // of each row: what one unit of its parts is worth
};

constexpr int kSplitPiece = 16;  // k that a thread takes at a time

// Blocks of kRows rows each. Few rows make more blocks; many read more neighbours of a row of
// memory at a time. A thread keeps kKept pieces in shared memory, and one in registers.
template <int kThreads_, int kRows_, int kKept_ = 3>
struct SplitRowsConfig {
  static constexpr int kThreads = kThreads_, kRows = kRows_, kKept = kKept_;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kWarpK = 32 / kRows * kSplitPiece;  // k of a warp at a time
  static constexpr int kBlockK = kWarps * kWarpK;
  static constexpr int kBlocksPerSm = 1024 / kThreads;
  static_assert(kChunkRows % kRows == 0 && 32 % kRows == 0);
  static_assert(kWarps >= kRows && kWarps <= 32, "a warp settles a row, a lane has a warp's part");
};

// What a thread has at one time, as it keeps it in shared memory: lanes next to each other.
template <typename Config>
using KeptPiece = float4[kSplitPiece / 4][Config::kThreads];

// v[i] ← element (row, k + i), or 0 outside the operand.
template <typename Job>
__device__ void load_piece(const Job& job, const SplitPlace& place, std::int64_t row,
                           std::int64_t k, float (&v)[kSplitPiece]) {
  const std::int64_t next = job.along_k ? 1 : place.ld;
  const float* from = place.from + (job.along_k ? row * place.ld + k : k * place.ld + row);
  const std::int64_t inside = row < job.rows ? job.k - k : 0;
  if (job.along_k && job.vectors && inside >= kSplitPiece) {
#pragma unroll
    for (int i = 0; i < kSplitPiece; i += 4) {
      const auto vector = device::load_vector<float4>(from + i);
      v[i] = vector.x;
      v[i + 1] = vector.y;
      v[i + 2] = vector.z;
      v[i + 3] = vector.w;
    }
  } else if (inside >= kSplitPiece) {
#pragma unroll
    for (int i = 0; i < kSplitPiece; ++i) v[i] = from[i * next];
  } else {
#pragma unroll
    for (int i = 0; i < kSplitPiece; ++i) v[i] = i < inside ? from[i * next] : 0.0F;
  }
}

template <typename Config>
__device__ void keep_piece(const float (&v)[kSplitPiece], KeptPiece<Config>& to) {
#pragma unroll
  for (int i = 0; i < kSplitPiece / 4; ++i) {
    to[i][threadIdx.x] = make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
  }
}

template <typename Config>
__device__ void kept_piece(const KeptPiece<Config>& from, float (&v)[kSplitPiece]) {
#pragma unroll
  for (int i = 0; i < kSplitPiece / 4; ++i) {
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
    first_k = warp * Config::kWarpK + lane / Config::kRows * kSplitPiece;
  }
};

}  // namespace tilegate
