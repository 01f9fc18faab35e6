// Split pass: kernels that differ in where they keep rows from the first pass, which finds the
// scale of each row, to the second, which writes its digits.
//
// split_short: a block, in registers and shared memory. Short rows.
// split_long: a cluster, in registers. The longest rows.
// split_boxes, split_ahead: a cluster, in shared memory, while the next rows are copied: by TMA, or
// by all threads. All others.
//
// In order: scales and digits of a block's rows, which `refine` needs, too; then the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/once.cuh>
#include <tilegate/device/tensor_map.hpp>

#include "digits.cuh"
#include "layout.cuh"
#include "match.cuh"

namespace tilegate::int8x3 {

static_assert(kSegment == kSegmentK, "a thread writes contiguous bytes");

template <typename Config>
struct FinalizedRows {
  RowStats stats[Config::kWarps][Config::kRows + 1];  // padded: a warp reads a column
  Scale scale[Config::kRows];
  Width width[Config::kRows];
};

// Reduces each row's statistics over the warps; computes and stores its scale, and the block's
// widths. `width_of_row(row, stats, scale)`: of one row.
template <typename Config, typename WidthOf>
__device__ void finalize_rows(const Job& job, const Pointers& pointers, std::int64_t first_row,
                              std::int64_t batch_index, unsigned group, FinalizedRows<Config>& smem,
                              WidthOf width_of_row) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int row = warp; row < Config::kRows; row += Config::kWarps) {
    RowStats stats;
    if (lane < Config::kWarps) stats = smem.stats[lane][row];
    reduce_lanes(stats, 1, 32);
    const Scale scale = scale_of(stats);
    if (lane == 0) {
      smem.scale[row] = scale;
      smem.width[row] = width_of_row(row, stats, scale);
      pointers.steps[batch_index * job.planes.rows() + first_row + row] = scale.step;
    }
  }
  __syncthreads();  // all scales and widths are stored
  if (threadIdx.x == 0) {
    float4 widths{};
#pragma unroll 1  // elements take most registers
    for (const Width& width : smem.width) {
      add_widths(widths, vector_of(width));
    }
    device::store_vector(pointers.widths + std::int64_t{group} * kNumWidths, widths);
  }
}

__device__ inline void store_segment(const float (&v)[kSegment], const Scale& scale, std::byte* to,
                                     const PairSelectors& selectors = {}) {
  std::uint32_t biased[kSegment / 4][4];
#pragma unroll
  for (int i = 0; i < kSegment; ++i) biased[i / 4][i % 4] = biased_digits(v[i], scale);
#pragma unroll
  for (int plane = 0; plane < kPlanes; ++plane) {
    float words[kSegment / 4];  // bit patterns: store_vector takes floats
#pragma unroll
    for (int i = 0; i < kSegment / 4; ++i) {
      words[i] = float_of(pack_digits(biased[i], plane, selectors));
    }
    device::store_vector(reinterpret_cast<float*>(to + plane * kNextPlane),
                         make_float4(words[0], words[1], words[2], words[3]));
  }
}

// split_short. The first blocks sample a pair each, all at once, because nothing else would hide
// it. Of the others a block has all k of its rows, and keeps what fits in shared memory. First
// pass: row statistics; then the scales; second pass: each thread writes the digits of segments.

using FewRows = SplitRowsConfig<512, 8>;
using AnyRows = SplitRowsConfig<512, 8, 1>;  // for any K, in 48 KiB of shared memory

template <typename Config>
struct ShortStorage {
  FinalizedRows<Config> rows;
  PairStorage pairs;
  KeptSegment<Config> kept[Config::kKept];
};

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm)
    split_short(SplitJobs jobs) {
  auto& smem = device::shared_storage<ShortStorage<Config>>();
  device::wait_for_previous_kernel();
  device::launch_dependents();
  clear_flags(jobs);
  const unsigned pair_blocks = jobs.pairs != nullptr ? kPairs : 0;
  if (blockIdx.x < pair_blocks) {
    if (threadIdx.x < 32) sample_pairs(jobs, blockIdx.x, kPairs, smem.pairs);
    return;
  }
  const unsigned index = blockIdx.x - pair_blocks;
  const bool second = index >= jobs.groups_of_first;
  const Job& job = jobs.job[second];
  const unsigned block = second ? index - jobs.groups_of_first : index;
  const auto [batch_index, first_row, first_k, row] = RowsOfBlock<Config>(job, block);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t end_k = job.planes.chunks_k * kChunkK;
  Pointers pointers = jobs.pointers[second];
  pointers.from += batch_index * pointers.stride;

  RowStats stats;
  float v[kSegment];
  int step = 0;
  std::int64_t k = first_k;
  for (; k < end_k; k += Config::kBlockK, ++step) {
    load_segment(job, pointers, first_row + row, k, v);
    if (step < Config::kKept) keep_segment<Config>(v, smem.kept[step]);
#pragma unroll
    for (int i = 0; i < kSegment; ++i) {
      stats.add(v[i]);
      if (i % kRootsK == 0) stats.add_root(v[i]);
    }
  }
  reduce_lanes(stats, Config::kRows, 32);
  if (lane < Config::kRows) smem.rows.stats[warp][row] = stats;
  __syncthreads();  // all warps have stored their statistics
  finalize_rows<Config>(job, pointers, first_row, batch_index, block, smem.rows,
                        [&](int, const RowStats& of_row, const Scale& scale) {
                          return width_of(of_row, scale, static_cast<float>(job.k));
                        });

  if (!(smem.rows.width[row].spread <= jobs.most_spread)) return;
  const Scale scale = smem.rows.scale[row];
  std::byte* planes = pointers.planes + job.planes.chunk(batch_index, first_row / kChunkRows, 0) +
                      offset_in_chunk(static_cast<int>(first_row % kChunkRows) + row,
                                      static_cast<int>(first_k % kChunkK) / kSegment);
  for (bool is_latest = true; step > 0; is_latest = false) {
    --step;
    k -= Config::kBlockK;
    if (step < Config::kKept) {
      restore_segment<Config>(smem.kept[step], v);
    } else if (!is_latest) {
      load_segment(job, pointers, first_row + row, k, v);
    }
    store_segment(v, scale, planes + k / kChunkK * kChunkBytes);
  }
}

// split_long. A cluster of eight blocks shares 16 rows. Each thread keeps 64 elements in registers,
// loaded as coalesced vectors of four; all other elements are loaded twice. Blocks send statistics
// to each other by st.async, which completes on an mbarrier there and needs no fence.

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
  for (int i = 0; i < 4; ++i) biased[i] = biased_digits(v[i], scale);
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
  PairStorage pairs;
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
      const float4 widths =
          widths_of_group<Config::kRows>(width_of(stats, scale, static_cast<float>(range.job.k)));
      if (thread == 0) {
        device::store_vector(range.pointers.widths + std::int64_t{group} * kNumWidths, widths);
      }
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
  device::launch_dependents();
  clear_flags(jobs);
  if (range.job.along_k) {
    split_range<Config, true>(range, group, jobs.cluster, smem);
  } else {
    split_range<Config, false>(range, group, jobs.cluster, smem);
  }
  if (threadIdx.x < 32) sample_pairs(jobs, blockIdx.x, gridDim.x, smem.pairs);
#endif
}

// split_boxes, split_ahead: rows of up to 12,288 k; split_ahead leaves small operands of up to
// 1,024 k to split_short. Persistent: clusters of two to eight blocks share groups of 16 rows, a
// range of K per block, and loop over groups. The next rows are copied into slots of shared memory;
// a warp refills a slot as soon as it has read it for the last time. So while warps write the
// digits of a group, copies of the next are in flight. While they reduce the statistics of a group,
// one more warp, the finalizer, computes the scales of the previous group. It sends the statistics
// of its block to the other blocks as in split_long. Each group takes one barrier of these warps.
// The last warp of a block samples pairs.
//
// split_boxes copies by TMA: a slot is a box. Where an operand does not allow that, each thread of
// split_ahead copies words or vectors (cp.async).

// A slot holds kRows rows × kChunkK k, for one of kWarps warps. The finalizer and the sampler are
// two warps more.
template <int kWarps_, int kSlots_, int kBlocksPerSm_>
struct AheadConfig {
  static constexpr int kWarps = kWarps_, kSlots = kSlots_, kBlocksPerSm = kBlocksPerSm_;
  static constexpr int kSplitThreads = (kWarps + 1) * 32, kThreads = kSplitThreads + 32;
  static constexpr int kRows = 16;
  static constexpr int kSlotWords = kRows * kChunkK;
  static_assert(kSlotWords == 32 * kSegment && kChunkRows % kRows == 0);
  // Half of the slots hold a block's range of this group until its digits are written, the other
  // half that of the next group.
  static constexpr int kMaxChunks = kWarps * (kSlots / 2);
  static constexpr int kMaxK = kMaxSplitCluster * kMaxChunks * kChunkK;
};

template <typename Config>
struct AheadStorage {
  float slots[Config::kSlots][Config::kWarps][Config::kSlotWords];
  // Two buffers suffice: before a block sends a group's statistics it has received those of the
  // previous group from all blocks, which had finalized the group before that.
  float4 stats[2][Config::kWarps][Config::kRows];          // per warp: RowStats
  float4 block_stats[2][Config::kRows][kMaxSplitCluster];  // per block of the cluster
  Scale scale[2][Config::kRows];
  bool has_digits[2];  // of a group
  device::Barrier stats_ready[2];
  device::Barrier copied[Config::kSlots][Config::kWarps];  // split_boxes: the box of a slot
  PairStorage pairs;
};

// Word of an element in a warp's slot. The order is that of global memory. Along k it has the
// 128-byte swizzle of TMA: lanes read vectors of their rows without bank conflicts.
template <typename Config, bool kAlongK>
__device__ constexpr int word_of(int row, int k) {
  return kAlongK ? row * kChunkK + ((k / 4) ^ (row % 8)) * 4 + k % 4 : k * Config::kRows + row;
}

// Whether a lane reads the elements of each pair of k in exchanged order. Across k the lanes of the
// second segment do: then all lanes read from different banks.
template <typename Config>
__device__ bool exchanges_pairs(bool along_k) {
  return !along_k && threadIdx.x % 32 >= Config::kRows;
}

// v ← the thread's 16 elements of its warp's slot, along k.
template <typename Config>
__device__ void read_slot(const float* slot, bool along_k, float (&v)[kSegment]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane % Config::kRows, segment = lane / Config::kRows;
  if (along_k) {
#pragma unroll
    for (int i = 0; i < kSegment; i += 4) {
      const auto vector =
          device::load_vector<float4>(slot + word_of<Config, true>(row, segment * kSegment + i));
      v[i] = vector.x;
      v[i + 1] = vector.y;
      v[i + 2] = vector.z;
      v[i + 3] = vector.w;
    }
  } else {
    // v[i] is element i; in the second segment, element i ^ 1.
    const float* even = slot + segment * (kSegment + 1) * Config::kRows + row;
    const float* odd = even - 2 * segment * Config::kRows;
#pragma unroll
    for (int i = 0; i < kSegment; ++i) v[i] = (i % 2 == 0 ? even : odd)[i * Config::kRows];
  }
}

// A group of rows, counted over both operands and the whole batch. 32 bits suffice: no memory holds
// 2^31 rows of at least 128 k.
template <typename Config>
struct RowGroup {
  unsigned group_index;
  bool is_second;  // of the operands
  unsigned batch_index, first_row;

  __device__ RowGroup(const SplitJobs& jobs, unsigned group_index_) : group_index(group_index_) {
    find(jobs);
  }

  __device__ void find(const SplitJobs& jobs) {
    is_second = group_index >= jobs.groups_of_first;
    const Divisor& groups = job(jobs).groups;
    batch_index = groups.quotient(group(jobs));
    first_row = groups.remainder(group(jobs), batch_index) * Config::kRows;
  }
  // Moves on by `by` groups; whether operand and batch index are the same.
  __device__ bool advance(const SplitJobs& jobs, unsigned by) {
    group_index += by;
    first_row += by * Config::kRows;
    const bool is_same = first_row < static_cast<unsigned>(job(jobs).planes.rows());
    if (!is_same) find(jobs);
    return is_same;
  }
  __device__ const Job& job(const SplitJobs& jobs) const { return jobs.job[is_second]; }
  __device__ const Pointers& pointers(const SplitJobs& jobs) const {
    return jobs.pointers[is_second];
  }
  __device__ unsigned group(const SplitJobs& jobs) const {
    return is_second ? group_index - jobs.groups_of_first : group_index;
  }
};

// A warp's ring of slots, and the position of its next copy: chunk after chunk, group after group.
template <typename Config>
struct SlotRing {
  RowGroup<Config> rows;
  unsigned clusters;
  int chunks_per_group = 0;  // of the warp
  int chunk = 0, slot = 0;
  std::int64_t first_chunk;  // of the warp
  device::CachePolicy policy;

  // `warp`: of the block.
  __device__ SlotRing(const SplitJobs& jobs, const RowGroup<Config>& first, int warp)
      : rows(first),
        clusters(gridDim.x / jobs.cluster),
        policy(jobs.evicts_first ? device::evict_first_policy() : device::evict_normal_policy()) {
    const std::int64_t begin = device::cluster_rank() * jobs.chunks;
    const std::int64_t left = jobs.job[0].planes.chunks_k - begin;
    const int chunks = static_cast<int>(left < jobs.chunks ? left : jobs.chunks);
    first_chunk = begin + warp;
    if (chunks > warp) chunks_per_group = (chunks - warp - 1) / Config::kWarps + 1;
  }

  __device__ bool has_copies(const SplitJobs& jobs) const {
    return rows.group_index < jobs.groups() && chunks_per_group > 0;
  }
  __device__ void advance_slot() { slot = slot + 1 < Config::kSlots ? slot + 1 : 0; }
};

// Copies by TMA. All members are the same in all lanes: they fit in uniform registers.
//
// TMA does not wait for loads of the slot that it writes. These may wait behind stores of digits
// for longer than a copy takes. So a copy depends on what they have loaded: its k adds
// (loaded & 0), where the 0 is a kernel parameter. A lane has its value only when the load of the
// whole warp has ended.
template <typename Config>
struct BoxCopies : SlotRing<Config> {
  using Ring = SlotRing<Config>;
  const device::TensorMap *map_a, *map_b;
  int warp;

  __device__ BoxCopies(const SplitJobs& jobs, const RowGroup<Config>& first, int warp_,
                       const device::TensorMap& of_a, const device::TensorMap& of_b)
      : Ring(jobs, first, warp_), map_a(&of_a), map_b(&of_b), warp(warp_) {}

  __device__ const void* source() const { return map_a; }  // for wait_for_previous_kernel

  // `loaded`: what the lane has loaded from the slot, by a bitwise or.
  __device__ void begin_next(const SplitJobs& jobs, std::uint32_t loaded,
                             AheadStorage<Config>& smem) {
    if (Ring::has_copies(jobs)) {
      const RowGroup<Config>& of = Ring::rows;
      device::Barrier& copied = smem.copied[Ring::slot][warp];
      device::warp_arrive_expect(copied, sizeof(float) * Config::kSlotWords);
      const int k = (static_cast<int>(Ring::first_chunk) + Ring::chunk * Config::kWarps) * kChunkK +
                    static_cast<int>(loaded & jobs.zero),
                row = static_cast<int>(of.first_row);
      const bool along_k = of.job(jobs).along_k;
      device::warp_copy_tensor(smem.slots[Ring::slot][warp], of.is_second ? *map_b : *map_a,
                               along_k ? k : row, along_k ? row : k,
                               static_cast<int>(of.batch_index), copied, Ring::policy.bits);
      if (++Ring::chunk == Ring::chunks_per_group) {
        Ring::chunk = 0;
        Ring::rows.advance(jobs, Ring::clusters);
      }
    }
    Ring::advance_slot();
  }

  // wait_for_group: before the warp first reads a group. wait_for_slot: before it first reads a
  // slot.
  __device__ void wait_for_group(bool /*is_first*/) const {}
  __device__ void wait_for_slot(int index, unsigned phase, AheadStorage<Config>& smem) const {
    device::barrier_wait(smem.copied[index][warp], phase);
  }
};

// One warp: copies a slot. A lane's copies are `next` elements apart. `inside`: rows, or k, from
// the lane's first on that lie in the operand; beyond them zeros are written.
template <typename Config, int kWords, bool kAlongK>
__device__ void copy_slot(const float* from, std::int64_t next, int inside,
                          device::CachePolicy policy, float* slot) {
  const int word = static_cast<int>(threadIdx.x) % 32 * kWords;
  const int row = kAlongK ? word / kChunkK : word % Config::kRows;
  const int k = kAlongK ? word % kChunkK : word / Config::kRows;
  constexpr int kNext = 32 * kWords / (kAlongK ? kChunkK : Config::kRows);  // rows, or k
#pragma unroll 4
  for (int i = 0; i < kSegment / kWords; ++i, from += next) {
    float* to = &slot[word_of<Config, kAlongK>(row + (kAlongK ? i * kNext : 0),
                                               k + (kAlongK ? 0 : i * kNext))];
    device::copy_async<4 * kWords>(to, from, i * kNext < inside, policy);
  }
}

// Waits until copies of at most `pending` slots are in flight.
template <int kMost>
__device__ void wait_for_copies(int pending) {
  if constexpr (kMost > 0) {
    if (pending < kMost) return wait_for_copies<kMost - 1>(pending);
  }
  device::copy_async_wait<kMost>();
}

// Copies by all threads: of vectors, or of words.
template <typename Config>
struct ThreadCopies : SlotRing<Config> {
  using Ring = SlotRing<Config>;
  // The thread's first element in the group, and strides from there.
  const float* from;
  std::int64_t next_copy, next_chunk, next_group;
  int inside_rows, inside_k;  // of the operand, from the first element on
  bool along_k, vectors;

  __device__ ThreadCopies(const SplitJobs& jobs, const RowGroup<Config>& first, int warp)
      : Ring(jobs, first, warp) {
    find(jobs);
  }

  __device__ const void* source() const { return from; }  // for wait_for_previous_kernel

  __device__ void find(const SplitJobs& jobs) {
    const Job& job = Ring::rows.job(jobs);
    const Pointers& pointers = Ring::rows.pointers(jobs);
    along_k = job.along_k;
    vectors = job.vectors;
    const int words = vectors ? 4 : 1;
    const int word = static_cast<int>(threadIdx.x) % 32 * words;
    const std::int64_t x = Ring::rows.first_row + (along_k ? word / kChunkK : word % Config::kRows);
    const std::int64_t k =
        Ring::first_chunk * kChunkK + (along_k ? word % kChunkK : word / Config::kRows);
    const std::int64_t next_x = along_k ? pointers.ld : 1, next_k = along_k ? 1 : pointers.ld;
    from = pointers.from + Ring::rows.batch_index * pointers.stride + x * next_x + k * next_k;
    next_copy = 32 * words / (along_k ? kChunkK : Config::kRows) * pointers.ld;
    next_chunk = Config::kWarps * kChunkK * next_k;
    next_group = Ring::clusters * Config::kRows * next_x;
    inside_rows = clamped(job.rows - x);
    inside_k = clamped(job.k - k);
  }

  __device__ void begin_next(const SplitJobs& jobs, std::uint32_t /*loaded*/,
                             AheadStorage<Config>& smem) {
    if (Ring::has_copies(jobs)) {
      float* to = smem.slots[Ring::slot][threadIdx.x / 32];
      const float* at = Ring::chunk == 0 ? from : from + Ring::chunk * next_chunk;
      const int k_left = inside_k - Ring::chunk * Config::kWarps * kChunkK;
      const int inside = along_k ? (k_left > 0 ? inside_rows : 0) : (inside_rows > 0 ? k_left : 0);
      if (along_k && vectors) {
        copy_slot<Config, 4, true>(at, next_copy, inside, Ring::policy, to);
      } else if (along_k) {
        copy_slot<Config, 1, true>(at, next_copy, inside, Ring::policy, to);
      } else if (vectors) {
        copy_slot<Config, 4, false>(at, next_copy, inside, Ring::policy, to);
      } else {
        copy_slot<Config, 1, false>(at, next_copy, inside, Ring::policy, to);
      }
      if (++Ring::chunk == Ring::chunks_per_group) {
        Ring::chunk = 0;
        from += next_group;
        inside_rows -= static_cast<int>(Ring::clusters * Config::kRows);
        if (!Ring::rows.advance(jobs, Ring::clusters)) find(jobs);
      }
    }
    Ring::advance_slot();
    device::copy_async_commit();
  }

  // As BoxCopies; waits once for all slots of a group.
  __device__ void wait_for_group(bool is_first) const {
    // Copies have begun to all slots; later, not to those of the previous group, which are refilled
    // after this.
    const int copied = is_first ? Config::kSlots : Config::kSlots - Ring::chunks_per_group;
    wait_for_copies<Config::kSlots>(copied - Ring::chunks_per_group);
    __syncwarp();  // all lanes have waited for their copies
  }
  __device__ void wait_for_slot(int /*index*/, unsigned /*phase*/,
                                AheadStorage<Config>& /*smem*/) const {}
};

// Finalizer: sends the block's statistics of a group to all blocks of the cluster.
template <typename Config>
__device__ void send_stats(int buffer, unsigned cluster, AheadStorage<Config>& smem) {
  const unsigned lane = threadIdx.x % 32, row = lane % Config::kRows, first = lane / Config::kRows;
  RowStats stats;
#pragma unroll
  for (unsigned warp = 0; warp < Config::kWarps; warp += 32 / Config::kRows) {
    stats.add(stats_of(smem.stats[buffer][warp + first][row]));
  }
  reduce_lanes(stats, Config::kRows, 32);
  device::Barrier& stats_ready = smem.stats_ready[buffer];
  if (lane == 0)
    device::barrier_arrive_expect(stats_ready, cluster * Config::kRows * sizeof(float4));
  for (unsigned to = first; to < cluster; to += 32 / Config::kRows) {
    device::store_remote(smem.block_stats[buffer][row][device::cluster_rank()], vector_of(stats),
                         stats_ready, to);
  }
}

// Finalizer: computes the scales of a group from the statistics of all blocks; the first block
// stores them for the GEMM. Returns the widths of the group.
template <typename Config>
__device__ float4 finalize_group(const SplitJobs& jobs, const RowGroup<Config>& rows, int buffer,
                                 unsigned phase, AheadStorage<Config>& smem) {
  const unsigned lane = threadIdx.x % 32, row = lane % Config::kRows;
  device::barrier_wait(smem.stats_ready[buffer], phase % 2);
  RowStats stats;
#pragma unroll 2
  for (unsigned block = 0; block < jobs.cluster; ++block) {
    stats.add(stats_of(smem.block_stats[buffer][row][block]));
  }
  const Scale scale = scale_of(stats);
  if (lane < Config::kRows) smem.scale[buffer][row] = scale;
  if (device::cluster_rank() == 0 && lane < Config::kRows) {
    rows.pointers(jobs)
        .steps[rows.batch_index * rows.job(jobs).planes.rows() + rows.first_row + row] = scale.step;
  }
  const float4 widths =
      widths_of_group<Config::kRows>(width_of(stats, scale, static_cast<float>(rows.job(jobs).k)));
  if (lane == 0) smem.has_digits[buffer] = widths.z <= jobs.most_spread;
  return widths;
}

// One warp: reduces the statistics of its range of group i of the cluster. `slot`, `phase`: of the
// range's first chunk, and then of the next group's.
template <typename Config, typename Copies>
__device__ void reduce_rows(bool along_k, unsigned i, int& slot, unsigned& phase,
                            const Copies& copies, AheadStorage<Config>& smem) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const bool exchanged = exchanges_pairs<Config>(along_k);
  RowStats stats;
  float v[kSegment];
  copies.wait_for_group(i == 0);
  for (int chunk = 0; chunk < copies.chunks_per_group; ++chunk) {
    copies.wait_for_slot(slot, phase, smem);
    read_slot<Config>(smem.slots[slot][warp], along_k, v);
    if (++slot == Config::kSlots) {
      slot = 0;
      phase ^= 1;
    }
#pragma unroll
    for (int j = 0; j < kSegment; ++j) stats.add(v[j]);
#pragma unroll
    for (int j = 0; j < kSegment; j += kRootsK) stats.add_root(exchanged ? v[j + 1] : v[j]);
  }
  reduce_lanes(stats, Config::kRows, 32);
  if (lane < Config::kRows) smem.stats[i % 2][warp][lane] = vector_of(stats);
}

// One warp: writes the digits of its range of a group, and refills the slots.
template <typename Config, typename Copies>
__device__ void write_rows(const SplitJobs& jobs, const RowGroup<Config>& rows, int buffer,
                           Copies& copies, AheadStorage<Config>& smem) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const unsigned row = lane % Config::kRows;
  const Scale scale = smem.scale[buffer][row];
  const bool has_digits = smem.has_digits[buffer];
  const bool along_k = rows.job(jobs).along_k;
  const PairSelectors selectors =
      exchanges_pairs<Config>(along_k) ? kExchangedPairs : PairSelectors{};
  std::byte* planes =
      rows.pointers(jobs).planes +
      rows.job(jobs).planes.chunk(rows.batch_index, rows.first_row / kChunkRows,
                                  copies.first_chunk) +
      offset_in_chunk(static_cast<int>(rows.first_row % kChunkRows + row), lane / Config::kRows);
  float v[kSegment];
  for (int i = 0; i < copies.chunks_per_group; ++i, planes += Config::kWarps * kChunkBytes) {
    read_slot<Config>(smem.slots[copies.slot][warp], along_k, v);
    __syncwarp();  // all lanes have read the slot
    std::uint32_t loaded = 0;
#pragma unroll
    for (const float x : v) loaded |= bits_of(x);
    copies.begin_next(jobs, loaded, smem);
    if (has_digits) store_segment(v, scale, planes, selectors);
  }
}

// The body of both kernels, which differ in `Copies`.
template <typename Config, typename Copies, typename... Maps>
__device__ void split_groups(const SplitJobs& jobs, const Maps&... maps) {
  auto& smem = device::shared_storage<AheadStorage<Config>>();
  const int lane = static_cast<int>(threadIdx.x) % 32,
            warp = __shfl_sync(~0U, static_cast<int>(threadIdx.x) / 32, 0);  // uniform
  const bool is_finalizer = warp == Config::kWarps;
  if (is_finalizer && lane == 0) {
    for (device::Barrier& stats_ready : smem.stats_ready) device::barrier_init(stats_ready, 1);
    device::barrier_init_fence();
  }
  if (warp < Config::kWarps && lane < Config::kSlots) {
    device::barrier_init(smem.copied[lane][warp], 1);
    device::barrier_init_fence();
  }
  __syncwarp();  // the warp's barriers are initialised
  device::cluster_arrive();
  const unsigned clusters = gridDim.x / jobs.cluster;
  RowGroup<Config> rows(jobs, blockIdx.x / jobs.cluster);  // the group whose digits are written
  Copies copies(jobs, rows, warp, maps...);
  device::wait_for_previous_kernel(copies.source());
  device::launch_dependents();
  clear_flags(jobs);
  if (threadIdx.x >= Config::kSplitThreads) {
    device::cluster_wait();
    sample_pairs(jobs, blockIdx.x, gridDim.x, smem.pairs);
    return;
  }
  if (!is_finalizer) {
#pragma unroll 1
    for (int i = 0; i < Config::kSlots; ++i) copies.begin_next(jobs, 0, smem);
  }
  device::cluster_wait();  // all blocks have initialised their barriers
  // Iteration i reduces this cluster's group i and writes the digits of group i - 1.
  int slot = 0;
  unsigned phase = 0;
  unsigned group = rows.group_index;  // the group whose statistics are reduced
  for (unsigned i = 0; i == 0 || rows.group_index < jobs.groups(); ++i, group += clusters) {
    const int buffer = static_cast<int>(i % 2);
    const bool is_left = group < jobs.groups();
    if (!is_finalizer && is_left) {
      reduce_rows<Config>(jobs.job[group >= jobs.groups_of_first].along_k, i, slot, phase, copies,
                          smem);
    }
    float4 widths{};
    if (is_finalizer && i > 0) widths = finalize_group(jobs, rows, 1 - buffer, (i - 1) / 2, smem);
    // This group's statistics and the previous group's scales are stored.
    device::named_barrier<1>(Config::kSplitThreads);
    if (is_finalizer) {
      if (is_left) send_stats<Config>(buffer, jobs.cluster, smem);
      if (i > 0 && device::cluster_rank() == 0 && lane == 0) {
        device::store_vector(
            rows.pointers(jobs).widths + std::int64_t{rows.group(jobs)} * kNumWidths, widths);
      }
    } else if (i > 0) {
      write_rows<Config>(jobs, rows, 1 - buffer, copies, smem);
    }
    if (i > 0) rows.advance(jobs, clusters);
  }
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm)
    split_ahead(SplitJobs jobs) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  split_groups<Config, ThreadCopies<Config>>(jobs);
#endif
}

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm)
    split_boxes(SplitJobs jobs, const __grid_constant__ device::TensorMap map_a,
                const __grid_constant__ device::TensorMap map_b) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  split_groups<Config, BoxCopies<Config>>(jobs, map_a, map_b);
#endif
}

}  // namespace tilegate::int8x3
