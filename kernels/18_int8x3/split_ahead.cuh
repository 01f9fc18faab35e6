// The split pass for rows of more than 1024, and for many: clusters of blocks share groups of
// rows and go from group to group. While a group is written as digits the next ones are copied to
// shared memory, and while a group is seen one warp finds the scales of that before.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

#include "digits.cuh"
#include "planes.cuh"
#include "split_copies.cuh"
#include "split_jobs.cuh"
#include "split_pieces.cuh"

namespace tilegate::int8x3 {

template <typename Config>
struct AheadStorage {
  float slots[Config::kSlots][Config::kWarps][Config::kSlotWords];
  // Of two groups in turn. That is enough: before a block tells of a group it has heard of the one
  // before from all blocks, and these had settled the one before that.
  float4 seen[2][Config::kWarps][Config::kRows];         // by the block's warps: Seen, and nothing
  float4 by_blocks[2][Config::kRows][kMaxSplitCluster];  // and by the cluster's blocks
  Scale scale[2][Config::kRows];
  device::Barrier told[2];
};

__device__ inline float4 vector_of(const Seen& seen) {
  return make_float4(seen.largest, seen.sum, float_of(seen.bits), 0.0F);
}
__device__ inline Seen seen_of(const float4& v) { return {v.x, v.y, bits_of(v.z)}; }

// By the warp that settles rows: what the block has seen of a group, to all of the cluster.
template <typename Config>
__device__ void tell_cluster(int turn, unsigned cluster, AheadStorage<Config>& smem) {
  const unsigned lane = threadIdx.x % 32, row = lane % Config::kRows, first = lane / Config::kRows;
  Seen seen;
#pragma unroll
  for (unsigned warp = 0; warp < Config::kWarps; warp += 32 / Config::kRows) {
    seen.add(seen_of(smem.seen[turn][warp + first][row]));
  }
  add_lanes(seen, Config::kRows, 32);
  device::Barrier& told = smem.told[turn];
  if (lane == 0) device::barrier_arrive_expect(told, cluster * Config::kRows * sizeof(float4));
  for (unsigned to = first; to < cluster; to += 32 / Config::kRows) {
    device::store_remote(smem.by_blocks[turn][row][device::cluster_rank()], vector_of(seen), told,
                         to);
  }
}

// By the same warp, once all blocks have told; the first block stores what the second kernel wants.
template <typename Config>
__device__ void settle_group(const SplitJobs& jobs, const RowGroup<Config>& rows, int turn,
                             unsigned phase, AheadStorage<Config>& smem) {
  const unsigned lane = threadIdx.x % 32, row = lane % Config::kRows;
  device::barrier_wait(smem.told[turn], phase % 2);
  Seen seen;
#pragma unroll 2
  for (unsigned block = 0; block < jobs.cluster; ++block) {
    seen.add(seen_of(smem.by_blocks[turn][row][block]));
  }
  const Scale scale = scale_of(seen);
  if (lane < Config::kRows) smem.scale[turn][row] = scale;
  if (device::cluster_rank() != 0) return;
  float width = width_of(seen, scale, static_cast<float>(rows.job(jobs).k));
#pragma unroll
  for (int lanes = 1; lanes < Config::kRows; lanes *= 2) {
    width += __shfl_xor_sync(~0U, width, lanes);
  }
  if (lane < Config::kRows) {
    rows.place(jobs).steps[rows.product * rows.job(jobs).planes.rows() + rows.first_row + row] =
        scale.step;
  }
  if (lane == 0) rows.place(jobs).widths[rows.group(jobs)] = width;
}

// By a warp: what it has of a group's rows. `copied`: slots, from the first of these on.
template <typename Config>
__device__ void see_rows(bool along_k, int turn, int& slot, int turns, int copied,
                         AheadStorage<Config>& smem) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  Seen seen;
  float v[kPiece];
  wait_for_copies<Config::kSlots>(copied - turns);
  __syncwarp();  // all lanes have waited for their copies
  for (int i = 0; i < turns; ++i) {
    read_slot<Config>(smem.slots[slot][warp], along_k, v);
    slot = slot + 1 < Config::kSlots ? slot + 1 : 0;
#pragma unroll
    for (int j = 0; j < kPiece; ++j) seen.add(v[j]);
  }
  add_lanes(seen, Config::kRows, 32);
  if (lane < Config::kRows) smem.seen[turn][warp][lane] = vector_of(seen);
}

// By a warp: the digits of its part of a group, from the slots that come to be copied to next.
template <typename Config>
__device__ void write_rows(const SplitJobs& jobs, const RowGroup<Config>& rows, int turn,
                           CopiesAhead<Config>& ahead, AheadStorage<Config>& smem) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const unsigned row = lane % Config::kRows;
  const Scale scale = smem.scale[turn][row];
  const bool along_k = rows.job(jobs).along_k;
  std::byte* planes =
      rows.place(jobs).planes +
      rows.job(jobs).planes.chunk(rows.product, rows.first_row / kChunkRows, ahead.first_chunk) +
      offset_in_chunk(static_cast<int>(rows.first_row % kChunkRows + row), lane / Config::kRows);
  float v[kPiece];
  for (int i = 0; i < ahead.turns; ++i, planes += Config::kWarps * kChunkBytes) {
    read_slot<Config>(smem.slots[ahead.slot][warp], along_k, v);
    __syncwarp();  // all lanes have read the slot
    ahead.begin_next(jobs, smem.slots);
    store_piece(v, scale, planes);
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm)
    split_ahead(SplitJobs jobs) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<AheadStorage<Config>>();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool settles = warp == Config::kWarps;
  const unsigned clusters = gridDim.x / jobs.cluster;
  if (threadIdx.x % 32 == 0 && settles) {
    for (device::Barrier& told : smem.told) device::barrier_init(told, 1);
    device::barrier_init_fence();
  }
  device::cluster_arrive();
  device::wait_for_previous_kernel();
  device::let_next_kernel_start();
  lower_flags(jobs);
  RowGroup<Config> rows(jobs, blockIdx.x / jobs.cluster);  // whose digits are written
  CopiesAhead<Config> ahead(jobs, rows, clusters);
  if (!settles) {
    for (int i = 0; i < Config::kSlots; ++i) ahead.begin_next(jobs, smem.slots);
  }
  device::cluster_wait();  // all blocks have their barriers, and may be told
  int slot = 0;
  unsigned group = rows.of_all;  // whose rows are seen
  for (unsigned i = 0; i == 0 || rows.of_all < jobs.groups(); ++i, group += clusters) {
    const int turn = static_cast<int>(i % 2);
    const bool is_left = group < jobs.groups();
    if (!settles && is_left) {
      see_rows<Config>(jobs.job[group >= jobs.groups_of_first].along_k, turn, slot, ahead.turns,
                       i == 0 ? Config::kSlots : Config::kSlots - ahead.turns, smem);
    }
    if (settles && i > 0) settle_group(jobs, rows, 1 - turn, (i - 1) / 2, smem);
    __syncthreads();  // what warps have seen of this group is there, and the scales of that before
    if (settles) {
      if (is_left) tell_cluster<Config>(turn, jobs.cluster, smem);
    } else if (i > 0) {
      write_rows(jobs, rows, 1 - turn, ahead, smem);
    }
    if (i > 0) rows.advance(jobs, clusters);
  }
#endif
}

}  // namespace tilegate::int8x3
