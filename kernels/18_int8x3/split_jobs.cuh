// What the split pass is given. It reads the rows of op(A) and the columns of op(B), here called
// rows both, scales each by its largest element, and writes their digits to the workspace. There
// are three kernels: split_short.cuh, whose blocks have all k of their rows, split_ahead.cuh and
// split_long.cuh, whose blocks share rows in clusters.
#pragma once

#include <cstdint>

#include <tilegate/common/split_rows.cuh>
#include <tilegate/device/device.cuh>

#include "digits.cuh"
#include "planes.cuh"

namespace tilegate::int8x3 {

constexpr int kMaxSplitCluster = 8;

using Job = SplitJob<Planes>;

struct Place : SplitPlace {
  float* widths = nullptr;  // of each group of rows: their sum
};

struct SplitJobs {
  Job job[2];
  Place place[2];
  unsigned groups_of_first = 0, groups_of_second = 0;
  bool once = false;          // operands need not stay in L2
  unsigned* flags = nullptr;  // to be set to 0, for the second kernel
  unsigned num_flags = 0;
  unsigned cluster = 1;     // blocks that share a group of rows
  std::int64_t chunks = 0;  // of K, per block

  __host__ __device__ unsigned groups() const { return groups_of_first + groups_of_second; }
};

// As far as a block reaches: no memory holds 2^30 rows of more.
__device__ inline int clamped(std::int64_t count) {
  constexpr std::int64_t kMost = 1 << 30;
  return static_cast<int>(count < -kMost ? -kMost : count > kMost ? kMost : count);
}

// By all blocks, once the kernel before has ended.
__device__ inline void lower_flags(const SplitJobs& jobs) {
  if (blockIdx.x > 0) return;
  for (unsigned i = threadIdx.x; i < jobs.num_flags; i += blockDim.x) jobs.flags[i] = 0;
}

// Of all lanes whose numbers differ from this one's in the bits from `first` to below `end`.
__device__ inline void add_lanes(Seen& seen, int first, int end) {
#pragma unroll
  for (int lanes = first; lanes < end; lanes *= 2) {
    seen.add({__shfl_xor_sync(~0U, seen.largest, lanes), __shfl_xor_sync(~0U, seen.sum, lanes),
              __shfl_xor_sync(~0U, seen.bits, lanes)});
  }
}

}  // namespace tilegate::int8x3
