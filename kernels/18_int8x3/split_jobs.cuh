// What the split pass is given. It reads the rows of op(A) and the columns of op(B), here called
// rows both, scales each by its largest element, and writes their digits to the workspace. There
// are two kernels: split_short.cuh, whose blocks have all k of their rows, and split_long.cuh,
// whose blocks share rows in clusters.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/device/device.cuh>

#include "digits.cuh"
#include "planes.cuh"

namespace tilegate::int8x3 {

// One operand. Element (row, k) is at from[row · ld + k], or at from[k · ld + row].
struct Job {
  Planes planes;
  bool along_k = false, vectors = false;
  std::int64_t rows = 0, k = 0;
  Divisor groups;  // of rows, of one product

  std::int64_t num_groups() const { return planes.products * groups.value(); }
};

struct Place {
  const float* from = nullptr;
  std::int64_t ld = 0, stride = 0;
  std::byte* planes = nullptr;
  float* steps = nullptr;   // of each row; Scale::step
  float* widths = nullptr;  // of each group of rows: their sum
};

struct SplitJobs {
  Job job[2];
  Place place[2];
  unsigned groups_of_first = 0;
  unsigned cluster = 1;     // blocks that share a group of rows
  std::int64_t chunks = 0;  // of K, per block
};

// Of all lanes whose numbers differ from this one's in the bits from `first` to below `end`.
__device__ inline void add_lanes(Seen& seen, int first, int end) {
#pragma unroll
  for (int lanes = first; lanes < end; lanes *= 2) {
    seen.add({__shfl_xor_sync(~0U, seen.largest, lanes), __shfl_xor_sync(~0U, seen.sum, lanes),
              __shfl_xor_sync(~0U, seen.bits, lanes)});
  }
}

}  // namespace tilegate::int8x3
