// Split kernel for the longest rows: a cluster of eight blocks shares 16 rows. Each thread keeps 64
// elements in registers, loaded as coalesced vectors of four; all other elements are loaded twice.
// Statistics travel between blocks as in split_pipelined.cuh.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

#include "digits.cuh"
#include "layout.cuh"

namespace tilegate::int8x3 {

constexpr int kUnits = 16;  // units of four neighbouring elements that a thread keeps in registers

// A cluster has kRows rows with all of their k. Rows that fit in the registers of its threads are
// loaded once; of longer rows the rest is loaded twice.
template <int kThreads_, int kBlocksPerSm_>
struct LongConfig {
  static constexpr int kThreads = kThreads_, kBlocksPerSm = kBlocksPerSm_;
  static constexpr int kRows = 16;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kChunks = kThreads * kUnits * 4 / (kRows * kChunkK);  // chunks per pass
  static_assert(kChunkRows % kRows == 0 && 32 % kWarps == 0 && kWarps % 4 == 0);
};

// A block's range of k of its cluster's rows.
struct RowRange {
  Job job;
  Pointers pointers;
  std::int64_t batch_index = 0, first_row = 0;
  std::int64_t begin = 0, end = 0;  // of K, in chunks
  std::int64_t end_k = 0;           // inside the operand
};

// The units of a thread. A unit is contiguous in memory: four k of one row (kAlongK), or four rows
// at one k.
template <typename Config, bool kAlongK>
struct UnitShare {
  int row, k;  // of unit 0, relative to the block's first row and k

  __device__ UnitShare() {
    const int thread = static_cast<int>(threadIdx.x);
    row = kAlongK ? thread / 8 % Config::kRows : thread % 4 * 4;
    k = kAlongK ? thread / 128 * kChunkK + thread % 8 * 4 : thread / 4 * 4;
  }
  // k of a unit, relative to unit 0.
  static constexpr __host__ __device__ int next_k(int unit) {
    return kAlongK ? unit * (Config::kWarps / 4) * kChunkK
                   : unit / 4 * Config::kWarps * kChunkK + unit % 4;
  }
};

// Loads four words, of which `inside` are in the operand; zeros for the others.
__device__ inline float4 load_unit(const float* from, int inside, bool vector) {
  if (vector && inside > 0) return device::load_vector<float4>(from);
  float4 v = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  if (inside > 0) v.x = from[0];
  if (inside > 1) v.y = from[1];
  if (inside > 2) v.z = from[2];
  if (inside > 3) v.w = from[3];
  return v;
}

// Loads the units of the chunks from `first` on; zeros outside the operand and the range.
template <typename Config, bool kAlongK>
__device__ void load_units(const RowRange& range, const UnitShare<Config, kAlongK>& share,
                           std::int64_t first, float4 (&units)[kUnits]) {
  const std::int64_t row = range.first_row + share.row, k = first * kChunkK + share.k;
  const std::int64_t ld = range.pointers.ld;
  const int rows = clamped(range.job.rows - row), ks = clamped(range.end_k - k);
  const float* from = range.pointers.from + (kAlongK ? row * ld + k : k * ld + row);
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit) {
    const int left = ks - share.next_k(unit);
    const int inside = kAlongK ? (rows > 0 ? left : 0) : (left > 0 ? rows : 0);
    units[unit] = load_unit(kAlongK ? from + share.next_k(unit) : from, inside, range.job.vectors);
    if constexpr (!kAlongK) from += (share.next_k(unit + 1) - share.next_k(unit)) * ld;
  }
}

__device__ inline float element(const float4& of, int i) {
  return i == 0 ? of.x : i == 1 ? of.y : i == 2 ? of.z : of.w;
}

// Stores the digits of four elements along k: four bytes of each plane, from `to` on.
__device__ inline void store_digits(const float (&v)[4], const Scale& scale, std::byte* to) {
  std::uint32_t biased[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) biased[i] = biased_digits(integer_of(v[i], scale));
#pragma unroll
  for (int plane = 0; plane < kPlanes; ++plane) {
    *reinterpret_cast<std::uint32_t*>(to + plane * kNextPlane) = pack_digits(biased, plane);
  }
}

// Stores the digits of the units of the chunks from `first` on.
template <typename Config, bool kAlongK>
__device__ void store_units(const RowRange& range, const UnitShare<Config, kAlongK>& share,
                            std::int64_t first, const float4 (&units)[kUnits],
                            const Scale (&scales)[Config::kRows]) {
  constexpr int kPer = kAlongK ? 1 : 4;  // units whose digits are contiguous
  const int row = static_cast<int>(range.first_row % kChunkRows) + share.row;
  const int chunk = share.k / kChunkK;
  const int left = clamped(range.end - first - chunk);
  std::byte* planes =
      range.pointers.planes +
      range.job.planes.chunk(range.batch_index, range.first_row / kChunkRows, first + chunk) +
      share.k % kSegment;
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const Scale scale = scales[share.row + i];
    std::byte* to = planes + offset_in_chunk(row + i, share.k % kChunkK / kSegment);
#pragma unroll
    for (int unit = 0; unit < kUnits; unit += kPer) {
      const float4* u = &units[unit];
      const float v[4] = {element(u[0], kAlongK ? 0 : i),
                          element(u[kAlongK ? 0 : 1], kAlongK ? 1 : i),
                          element(u[kAlongK ? 0 : 2], kAlongK ? 2 : i),
                          element(u[kAlongK ? 0 : 3], kAlongK ? 3 : i)};
      const int next = share.next_k(unit) / kChunkK;
      if (next < left) store_digits(v, scale, to + next * kChunkBytes);
    }
  }
}

template <typename Config>
struct LongStorage {
  RowStats stats[Config::kRows][Config::kWarps];        // per warp
  float4 block_stats[Config::kRows][kMaxSplitCluster];  // per block of the cluster: RowStats
  device::Barrier stats_ready;
  Scale scale[Config::kRows];
};

// Sends the statistics of each row to all blocks of the cluster. `stats`: the thread's, of its row
// or its four rows.
template <typename Config, bool kAlongK>
__device__ void send_stats(RowStats (&stats)[4], unsigned cluster, LongStorage<Config>& smem) {
  const int thread = static_cast<int>(threadIdx.x);
  constexpr int kRowWarps = kAlongK ? Config::kWarps / 4 : Config::kWarps;  // warps per row
  if constexpr (kAlongK) {
    reduce_lanes(stats[0], 1, 8);
    if (thread % 8 == 0) smem.stats[thread / 8 % Config::kRows][thread / 128] = stats[0];
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      reduce_lanes(stats[i], 4, 32);
      if (thread % 32 < 4) smem.stats[thread % 4 * 4 + i][thread / 32] = stats[i];
    }
  }
  __syncthreads();  // all warps have stored their statistics
  const int row = thread % Config::kRows;
  const auto to = static_cast<unsigned>(thread / Config::kRows);
  if (to < cluster) {
    RowStats all;
#pragma unroll
    for (int i = 0; i < kRowWarps; ++i) all.add(smem.stats[row][i]);
    device::store_remote(smem.block_stats[row][device::cluster_rank()], vector_of(all),
                         smem.stats_ready, to);
  }
}

// Every block of the cluster computes the scales of all rows; the first stores them.
template <typename Config>
__device__ void finalize_shared_rows(const RowRange& range, unsigned group, unsigned cluster,
                                     LongStorage<Config>& smem) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool is_first = device::cluster_rank() == 0;
  if (thread < 32) {
    const int row = thread % Config::kRows;
    device::barrier_wait(smem.stats_ready, 0);
    RowStats stats;
#pragma unroll 1  // elements take most registers
    for (unsigned block = 0; block < cluster; ++block) {
      stats.add(stats_of(smem.block_stats[row][block]));
    }
    const Scale scale = scale_of(stats);
    if (thread < Config::kRows) smem.scale[row] = scale;
    if (is_first) {
      if (thread < Config::kRows) {
        range.pointers.steps[range.batch_index * range.job.planes.rows() + range.first_row + row] =
            scale.step;
      }
      store_widths<Config::kRows>(width_of(stats, scale, static_cast<float>(range.job.k)),
                                  range.pointers.widths + std::int64_t{group} * kNumWidths);
    }
  }
  __syncthreads();  // all scales are stored
}

// Two passes: statistics, then digits. Elements that do not fit in registers are loaded again,
// latest chunks first.
template <typename Config, bool kAlongK>
__device__ void split_range(const RowRange& range, unsigned group, unsigned cluster,
                            LongStorage<Config>& smem) {
  const UnitShare<Config, kAlongK> share;
  RowStats stats[4];
  float4 units[kUnits];
  std::int64_t first = range.begin;
  load_units<Config, kAlongK>(range, share, first, units);
  device::cluster_wait();  // all blocks have initialised their barriers
  for (; first < range.end; first += Config::kChunks) {
    if (first > range.begin) load_units<Config, kAlongK>(range, share, first, units);
#pragma unroll
    for (int unit = 0; unit < kUnits; ++unit) {
      stats[0].add(units[unit].x);
      stats[kAlongK ? 0 : 1].add(units[unit].y);
      stats[kAlongK ? 0 : 2].add(units[unit].z);
      stats[kAlongK ? 0 : 3].add(units[unit].w);
      // Of a unit's four k, or of every fourth unit, the first.
      if constexpr (kAlongK) {
        stats[0].add_root(units[unit].x);
      } else if (unit % kRootsK == 0) {
#pragma unroll
        for (int i = 0; i < 4; ++i) stats[i].add_root(element(units[unit], i));
      }
    }
  }
  send_stats<Config, kAlongK>(stats, cluster, smem);
  finalize_shared_rows(range, group, cluster, smem);
  for (bool is_latest = true; first > range.begin; is_latest = false) {
    first -= Config::kChunks;
    if (!is_latest) load_units<Config, kAlongK>(range, share, first, units);
    store_units<Config, kAlongK>(range, share, first, units, smem.scale);
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm)
    split_long(SplitJobs jobs) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<LongStorage<Config>>();
  const unsigned group_index = blockIdx.x / jobs.cluster;
  const bool second = group_index >= jobs.groups_of_first;
  const unsigned group = second ? group_index - jobs.groups_of_first : group_index;
  RowRange range{.job = jobs.job[second], .pointers = jobs.pointers[second]};
  const unsigned batch_index = range.job.groups.quotient(group);
  range.batch_index = batch_index;
  range.first_row = std::int64_t{range.job.groups.remainder(group, batch_index)} * Config::kRows;
  range.pointers.from += batch_index * range.pointers.stride;
  range.begin = device::cluster_rank() * jobs.chunks;
  range.end = range.begin + jobs.chunks;
  if (range.end > range.job.planes.chunks_k) range.end = range.job.planes.chunks_k;
  range.end_k = range.end * kChunkK < range.job.k ? range.end * kChunkK : range.job.k;

  if (threadIdx.x == 0) {
    device::barrier_init(smem.stats_ready, 1);
    device::barrier_init_fence();
    device::barrier_arrive_expect(smem.stats_ready, jobs.cluster * Config::kRows * sizeof(float4));
  }
  device::cluster_arrive();
  device::wait_for_previous_kernel();
  device::launch_dependents();
  clear_flags(jobs);
  if (range.job.along_k) {
    split_range<Config, true>(range, group, jobs.cluster, smem);
  } else {
    split_range<Config, false>(range, group, jobs.cluster, smem);
  }
#endif
}

}  // namespace tilegate::int8x3
