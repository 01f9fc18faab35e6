// The kernel `refine`: the fourth digit of each element, the tail, for ten products. It runs
// between the split kernel and the GEMM and takes the same decision as the GEMM. Where that is not
// ten products, it ends at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

#include "digits.cuh"
#include "layout.cuh"

namespace tilegate::int8x3 {

constexpr int kRefineRows = 8;  // of a group
constexpr int kRefineBlocksPerSm = 3;
constexpr int kRefineWarpK = 32 / kRefineRows * kSegment;  // k of a warp
constexpr int kRefineBlockK = kNumThreads / 32 * kRefineWarpK;

struct RefineStorage {
  float4 sums[kNumThreads / 32][2];
};

struct RefineJobs {
  Job job[2];
  Pointers pointers[2];
  unsigned groups_of_first = 0, groups = 0;  // of rows: of A, of both operands
  Divisor slices;                            // of K, per group
};

// One warp: the tails of 8 rows × 64 k, a segment of a row per lane. `v`: its elements; `to`: its
// 16 bytes.
__device__ inline void store_tails(const float (&v)[kSegment], const Scale& scale, std::byte* to) {
  float words[kSegment / 4];  // bit patterns: store_vector takes floats
#pragma unroll
  for (int i = 0; i < kSegment / 4; ++i) {
    std::uint32_t word = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      word |= (static_cast<std::uint32_t>(tail_of(v[4 * i + j], scale)) & 0xFFU) << 8 * j;
    }
    words[i] = float_of(word);
  }
  device::store_vector(reinterpret_cast<float*>(to),
                       make_float4(words[0], words[1], words[2], words[3]));
}

inline __global__ void __launch_bounds__(kNumThreads, kRefineBlocksPerSm)
    refine(RefineJobs jobs, GemmParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<RefineStorage>();
  device::wait_for_previous_kernel();
  device::launch_dependents();
  if (decide_path<kNumThreads>(params, smem.sums, [] { __syncthreads(); }) != Path::kTen) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = lane % kRefineRows, segment = lane / kRefineRows;
  for (unsigned unit = blockIdx.x; unit < jobs.groups * jobs.slices.value(); unit += gridDim.x) {
    const unsigned index = jobs.slices.quotient(unit);
    const std::int64_t k = std::int64_t{jobs.slices.remainder(unit, index)} * kRefineBlockK +
                           warp * kRefineWarpK + segment * kSegment;
    const bool second = index >= jobs.groups_of_first;
    const Job& job = jobs.job[second];
    Pointers pointers = jobs.pointers[second];
    const unsigned group = second ? index - jobs.groups_of_first : index;
    const unsigned batch_index = job.groups.quotient(group);
    const std::int64_t first_row =
        std::int64_t{job.groups.remainder(group, batch_index)} * kRefineRows;
    pointers.from += batch_index * pointers.stride;
    const float step = pointers.steps[batch_index * job.planes.rows() + first_row + row];
    const Scale scale{step == 0.0F ? 0.0F : 65536.0F / step, step};
    std::byte* tails =
        pointers.tails + job.planes.chunk(batch_index, first_row / kChunkRows, 0) / kPlanes +
        offset_in_chunk(static_cast<int>(first_row % kChunkRows) + row, segment % 2, kNextTailRows);
    if (k >= job.planes.chunks_k * kChunkK) continue;
    float v[kSegment];
    load_segment(job, pointers, first_row + row, k, v);
    store_tails(v, scale, tails + k / kChunkK * kTailChunkBytes);
  }
#endif
}

}  // namespace tilegate::int8x3
