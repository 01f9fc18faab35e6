// The kernel `refine`, between the split kernel and the GEMM. It decides for the GEMM, and stores
// the decision. If that is ten products, it writes the fourth digit of each element, the tail. If
// it is FP32, and outliers may be set apart, it splits the operands again without them
// (outliers.cuh), and the GEMM decides for the rest. Otherwise it ends.
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

constexpr int kRefineBlocksPerSm = 2;

union RefineStorage {
  float4 sums[kRefineThreads / 32][2];
  ApartStorage<RowsAlongK> along_k;
  ApartStorage<RowsAcrossK> across_k;
};

struct RefineJobs {
  Job job[2];  // in groups of rows as RowsAlongK or RowsAcrossK has them
  Pointers pointers[2];
  unsigned groups[2];
  Divisor slices[2];  // of K, per group
};

// One block: the tails of a group of rows, for one slice of K.
template <typename Rows>
__device__ void refine_slice(const Job& job, Pointers pointers, unsigned group, unsigned slice) {
  const auto [batch_index, first_row, first_k, row] = RowsOfBlock<Rows>(job, group);
  const std::int64_t k = std::int64_t{slice} * Rows::kBlockK + first_k;
  pointers.from += batch_index * pointers.stride;
  const float step = pointers.steps[batch_index * job.planes.rows() + first_row + row];
  const Scale scale{step == 0.0F ? 0.0F : 65536.0F / step, step};
  std::byte* tails = pointers.tails +
                     job.planes.chunk(batch_index, first_row / kChunkRows, 0) / kPlanes +
                     offset_in_chunk(static_cast<int>(first_row % kChunkRows) + row,
                                     static_cast<int>(first_k % kChunkK) / kSegment, kNextTailRows);
  if (k >= job.planes.chunks_k * kChunkK) return;
  float v[kSegment];
  load_segment(job, pointers, first_row + row, k, v);
  store_tails(v, scale, tails + k / kChunkK * kTailChunkBytes);
}

inline __global__ void __launch_bounds__(kRefineThreads, kRefineBlocksPerSm)
    refine(RefineJobs jobs, GemmParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<RefineStorage>();
  device::wait_for_previous_kernel();
  device::launch_dependents();
  const Path path = decide_path<kRefineThreads>(params, false, smem.sums, [] { __syncthreads(); });
  if (blockIdx.x == 0 && threadIdx.x == 0) *params.refined = path;
  if (path == Path::kFp32 && params.allows_outliers) {
    for (unsigned index = blockIdx.x; index < jobs.groups[0] + jobs.groups[1]; index += gridDim.x) {
      __syncthreads();  // all threads are done with the sums, or with the previous group
      const bool second = index >= jobs.groups[0];
      const Job& job = jobs.job[second];
      const unsigned group = second ? index - jobs.groups[0] : index;
      if (job.along_k) {
        set_outliers_apart(job, jobs.pointers[second], group, smem.along_k);
      } else {
        set_outliers_apart(job, jobs.pointers[second], group, smem.across_k);
      }
    }
    return;
  }
  if (path != Path::kTen) return;
  const unsigned of_first = jobs.groups[0] * jobs.slices[0].value(),
                 units = of_first + jobs.groups[1] * jobs.slices[1].value();
  for (unsigned index = blockIdx.x; index < units; index += gridDim.x) {
    const bool second = index >= of_first;
    const unsigned unit = second ? index - of_first : index;
    const Job& job = jobs.job[second];
    const unsigned group = jobs.slices[second].quotient(unit),
                   slice = jobs.slices[second].remainder(unit, group);
    if (job.along_k) {
      refine_slice<RowsAlongK>(job, jobs.pointers[second], group, slice);
    } else {
      refine_slice<RowsAcrossK>(job, jobs.pointers[second], group, slice);
    }
  }
#endif
}

}  // namespace tilegate::int8x3
