// The kernel `refine`, between the split kernel and the GEMM. It takes the same decision as the
// GEMM. Where that is ten products, it writes the fourth digit of each element, the tail. Where it
// is FP32, and outliers may be set apart, it splits the operands again without them (outliers.cuh).
// Otherwise it ends at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

#include "digits.cuh"
#include "layout.cuh"
#include "outliers.cuh"

namespace tilegate::int8x3 {

constexpr int kRefineRows = ApartRows::kRows;  // of a group
constexpr int kRefineBlocksPerSm = 2;

union RefineStorage {
  float4 sums[kNumThreads / 32][2];
  ApartStorage apart;
};

struct RefineJobs {
  Job job[2];
  Pointers pointers[2];
  unsigned groups_of_first = 0, groups = 0;  // of rows: of A, of both operands
  Divisor slices;                            // of K, per group
};

inline __global__ void __launch_bounds__(kNumThreads, kRefineBlocksPerSm)
    refine(RefineJobs jobs, GemmParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<RefineStorage>();
  device::wait_for_previous_kernel();
  device::launch_dependents();
  const Path path = decide_path<kNumThreads>(params, false, smem.sums, [] { __syncthreads(); });
  if (path == Path::kFp32 && params.allows_outliers) {
    for (unsigned index = blockIdx.x; index < jobs.groups; index += gridDim.x) {
      __syncthreads();  // all threads are done with the sums, or with the previous group
      const bool second = index >= jobs.groups_of_first;
      set_outliers_apart(jobs.job[second], jobs.pointers[second],
                         second ? index - jobs.groups_of_first : index, smem.apart);
    }
    return;
  }
  if (path != Path::kTen) return;
  for (unsigned unit = blockIdx.x; unit < jobs.groups * jobs.slices.value(); unit += gridDim.x) {
    const unsigned index = jobs.slices.quotient(unit);
    const bool second = index >= jobs.groups_of_first;
    const Job& job = jobs.job[second];
    Pointers pointers = jobs.pointers[second];
    const auto [batch_index, first_row, first_k, row] =
        RowsOfBlock<ApartRows>(job, second ? index - jobs.groups_of_first : index);
    const std::int64_t k =
        std::int64_t{jobs.slices.remainder(unit, index)} * ApartRows::kBlockK + first_k;
    pointers.from += batch_index * pointers.stride;
    const float step = pointers.steps[batch_index * job.planes.rows() + first_row + row];
    const Scale scale{step == 0.0F ? 0.0F : 65536.0F / step, step};
    std::byte* tails =
        pointers.tails + job.planes.chunk(batch_index, first_row / kChunkRows, 0) / kPlanes +
        offset_in_chunk(static_cast<int>(first_row % kChunkRows) + row,
                        static_cast<int>(first_k % kChunkK) / kSegment, kNextTailRows);
    if (k >= job.planes.chunks_k * kChunkK) continue;
    float v[kSegment];
    load_segment(job, pointers, first_row + row, k, v);
    store_tails(v, scale, tails + k / kChunkK * kTailChunkBytes);
  }
#endif
}

}  // namespace tilegate::int8x3
