// Split kernel: reads rows of op(A) and columns of op(B), both called rows here, scales each by its
// largest element, and writes its halves to the workspace.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

#include "fp16.cuh"
#include "layout.cuh"

namespace tilegate::fp16x3 {

static_assert(kSegmentK == kSliceK, "a thread writes a row of each plane of a slice");

using FewRows = SplitRowsConfig<512, 8>;
using ManyRows = SplitRowsConfig<1024, 16>;

struct SplitJobs {
  SplitJob<Planes> job[2];
  SplitPointers pointers[2];
  OperandStats* stats = nullptr;  // one per block: sums over its rows
  unsigned groups_of_first = 0;
};

template <typename Config>
struct SplitStorage {
  RowStats stats[Config::kWarps][Config::kRows + 1];  // one more avoids bank conflicts
  float step[Config::kRows], counted[Config::kThreads];
  OperandStats rows[Config::kRows];  // of each row alone, but for `counted`
  KeptSegment<Config> kept[Config::kKept];
};

// Reduces over the lanes whose indices differ in the bits from `first` on.
__device__ inline void reduce_lanes(RowStats& stats, int first) {
#pragma unroll
  for (int lanes = first; lanes < 32; lanes *= 2) {
    stats.add({__shfl_xor_sync(~0U, stats.largest, lanes), __shfl_xor_sync(~0U, stats.sum, lanes),
               __shfl_xor_sync(~0U, stats.signed_sum, lanes),
               __shfl_xor_sync(~0U, stats.squares, lanes)});
  }
}

// Reduces each row's statistics over the warps; computes and stores its step.
template <typename Config>
__device__ void finalize_rows(const SplitJob<Planes>& job, const SplitPointers& pointers,
                              std::int64_t first_row, std::int64_t batch_index,
                              SplitStorage<Config>& smem) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32;
  if (row < Config::kRows) {
    RowStats stats;
    if (lane < Config::kWarps) stats = smem.stats[lane][row];
    reduce_lanes(stats, 1);
    if (lane == 0) {
      smem.step[row] = step_of(stats);
      smem.rows[row] = {.one_sign = one_sign_of(stats),
                        .squares = stats.squares,
                        .largest_squares = stats.largest * stats.largest};
      pointers.steps[batch_index * job.planes.rows() + first_row + row] = smem.step[row];
    }
  }
  __syncthreads();  // all steps are stored
}

// Stores the statistics of the block's rows. `counted`: the thread's, of its row. With a lane and a
// warp, which nvcc would keep in registers from the start of the kernel on, registers would spill.
template <typename Config>
__device__ void store_stats(float counted, float k, OperandStats* to, SplitStorage<Config>& smem) {
  smem.counted[threadIdx.x] = counted;
  __syncthreads();  // all threads have counted
  if (threadIdx.x >= 32) return;
  counted = 0.0F;
  for (unsigned i = threadIdx.x; i < Config::kThreads; i += 32) counted += smem.counted[i];
#pragma unroll
  for (int lanes = Config::kRows; lanes < 32; lanes *= 2) {
    counted += __shfl_xor_sync(~0U, counted, lanes);
  }
  OperandStats stats;
  if (threadIdx.x < Config::kRows) {
    // Of a row that cannot be scaled nothing counts.
    const bool is_fine = smem.step[threadIdx.x] == 0.0F || counts_enough(counted, k);
    stats = smem.rows[threadIdx.x];
    stats.counted = is_fine ? counted : INFINITY;
  }
#pragma unroll
  for (int lanes = 1; lanes < Config::kRows; lanes *= 2) {
    stats.add({__shfl_xor_sync(~0U, stats.counted, lanes),
               __shfl_xor_sync(~0U, stats.one_sign, lanes),
               __shfl_xor_sync(~0U, stats.squares, lanes),
               __shfl_xor_sync(~0U, stats.largest_squares, lanes)});
  }
  if (threadIdx.x == 0) to[blockIdx.x] = stats;
}

__device__ inline float count(const float (&v)[kSegmentK], float scale) {
  float counted = 0.0F;
#pragma unroll
  for (int i = 0; i < kSegmentK; ++i)
    counted += std::fabs(v[i] * scale) >= kLeastCounted ? 1.0F : 0.0F;
  return counted;
}

// Splits a segment and stores its halves. `to`: the row's first 16 bytes in plane hi of the slice;
// `to_second`: offset of the other 16 bytes.
__device__ inline void store_segment(const float (&v)[kSegmentK], float scale, std::byte* to,
                                     int to_second) {
#pragma unroll
  for (int segment = 0; segment < 2; ++segment) {
    float hi[4], lo[4];  // bit patterns: store_vector takes floats
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Fp16Split even = split_element(v[8 * segment + 2 * i] * scale);
      const Fp16Split odd = split_element(v[8 * segment + 2 * i + 1] * scale);
      hi[i] = float_of(even.hi | odd.hi << 16);
      lo[i] = float_of(even.lo | odd.lo << 16);
    }
    std::byte* at = to + (segment == 0 ? 0 : to_second);
    device::store_vector(reinterpret_cast<float*>(at), make_float4(hi[0], hi[1], hi[2], hi[3]));
    device::store_vector(reinterpret_cast<float*>(at + kPlaneBytes),
                         make_float4(lo[0], lo[1], lo[2], lo[3]));
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm) split(SplitJobs jobs) {
  auto& smem = device::shared_storage<SplitStorage<Config>>();
  const bool second = blockIdx.x >= jobs.groups_of_first;
  const SplitJob<Planes>& job = jobs.job[second];
  const unsigned group = second ? blockIdx.x - jobs.groups_of_first : blockIdx.x;
  const auto [batch_index, first_row, first_k, row] = RowsOfBlock<Config>(job, group);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t end_k = job.planes.chunks_k * kChunkK;
  SplitPointers pointers = jobs.pointers[second];
  pointers.from += batch_index * pointers.stride;

  device::wait_for_previous_kernel();
  device::launch_dependents();
  RowStats stats;
  float v[kSegmentK];
  int index = 0;
  std::int64_t k = first_k;
  for (; k < end_k; k += Config::kBlockK, ++index) {
    load_segment(job, pointers, first_row + row, k, v);
    if (index < Config::kKept) keep_segment<Config>(v, smem.kept[index]);
#pragma unroll
    for (int i = 0; i < kSegmentK; ++i) stats.add(v[i]);
  }
  reduce_lanes(stats, Config::kRows);
  if (lane < Config::kRows) smem.stats[warp][row] = stats;
  __syncthreads();  // all warps have stored their statistics
  finalize_rows<Config>(job, pointers, first_row, batch_index, smem);

  const float step = smem.step[row];
  const float scale = step == 0.0F ? 0.0F : 1.0F / step;  // a power of two: exact
  float counted = 0.0F;
  const int in_chunk = static_cast<int>(first_row % kChunkRows) + row;
  const int first_segment = offset_in_plane(in_chunk, 0);
  const int to_second = offset_in_plane(in_chunk, 1) - first_segment;
  std::byte* planes =
      pointers.planes + job.planes.chunk(batch_index, first_row / kChunkRows, 0) + first_segment;
  for (bool is_latest = true; index > 0; is_latest = false) {
    --index;
    k -= Config::kBlockK;
    if (index < Config::kKept) {
      restore_segment<Config>(smem.kept[index], v);
    } else if (!is_latest) {
      load_segment(job, pointers, first_row + row, k, v);
    }
    counted += count(v, scale);
    store_segment(v, scale, planes + k / kSliceK * kSliceBytes, to_second);
  }
  store_stats<Config>(counted, static_cast<float>(job.k), jobs.stats, smem);
}

}  // namespace tilegate::fp16x3
