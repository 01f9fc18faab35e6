// The split pass for rows that fill much of a multiprocessor's shared memory: one block there goes
// from group to group of rows and copies the next rows while it writes the digits of these.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/once.cuh>

#include "digits.cuh"
#include "planes.cuh"
#include "split_jobs.cuh"
#include "split_pieces.cuh"

namespace tilegate::int8x3 {

// In one turn a warp has a slot: kRows rows with kWarpK of their k.
template <int kThreads_, int kRows_, int kSlots_>
struct AheadConfig {
  static constexpr int kThreads = kThreads_, kRows = kRows_, kSlots = kSlots_;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kSlotWords = 32 * kPiece;
  static constexpr int kWarpK = kSlotWords / kRows;
  static constexpr int kBlockK = kWarps * kWarpK;
  static constexpr int kMaxK = kSlots * kBlockK;  // a group's rows are there until all are seen
  static_assert(kChunkRows % kRows == 0 && 32 % kRows == 0);
  static_assert(kWarps >= kRows && kWarps <= 32, "a warp settles a row, a lane has a warp's part");
};

using AheadRows = AheadConfig<512, 16, 6>;

template <typename Config>
struct AheadStorage {
  float slots[Config::kSlots][Config::kWarps][Config::kSlotWords];
  SettledRows<Config> rows;
};

// Where an element is in a warp's slot, in words: as memory has it, so that it comes in vectors,
// but for what goes elsewhere lest a warp's lanes meet in a bank when each reads its own k.
template <typename Config>
__device__ int word_of(bool along_k, int row, int k) {
  return along_k ? row * Config::kWarpK + ((k / 4) ^ (row % 8)) * 4 + k % 4
                 : (k ^ (k / kPiece)) * Config::kRows + row;
}

// A group of rows, of all products and both operands.
template <typename Config>
struct RowGroup {
  const Job& job;
  const Place& place;
  unsigned group;  // of the operand
  std::int64_t product, first_row;

  __device__ RowGroup(const SplitJobs& jobs, unsigned of_all)
      : job(jobs.job[of_all >= jobs.groups_of_first]),
        place(jobs.place[of_all >= jobs.groups_of_first]),
        group(of_all >= jobs.groups_of_first ? of_all - jobs.groups_of_first : of_all),
        product(job.groups.quotient(group)),
        first_row(std::int64_t{job.groups.remainder(group, static_cast<unsigned>(product))} *
                  Config::kRows) {}
};

// By a warp: the k from `first_k` on of the group's rows, zeros outside the operand.
template <typename Config, int kWords>
__device__ void copy_slot(const RowGroup<Config>& rows, std::int64_t first_k, bool once,
                          float* slot) {
  const Job& job = rows.job;
  const float* from = rows.place.from + rows.product * rows.place.stride;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 4
  for (int i = 0; i < kPiece / kWords; ++i) {
    const int word = (i * 32 + lane) * kWords;
    const int row = job.along_k ? word / Config::kWarpK : word % Config::kRows;
    const int in_k = job.along_k ? word % Config::kWarpK : word / Config::kRows;
    const std::int64_t x = rows.first_row + row, k = first_k + in_k;
    float* to = &slot[word_of<Config>(job.along_k, row, in_k)];
    const float* element = from + (job.along_k ? x * rows.place.ld + k : k * rows.place.ld + x);
    const bool inside = x < job.rows && k < job.k;
    if (once) {
      device::copy_async_once<4 * kWords>(to, element, inside);
    } else {
      device::copy_async<4 * kWords>(to, element, inside);
    }
  }
}

// v ← the thread's 16 elements of its warp's slot, along k.
template <typename Config>
__device__ void read_slot(const float* slot, bool along_k, float (&v)[kPiece]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane % Config::kRows, k = lane / Config::kRows * kPiece;
  if (along_k) {
#pragma unroll
    for (int i = 0; i < kPiece; i += 4) {
      const auto vector = device::load_vector<float4>(slot + word_of<Config>(true, row, k + i));
      v[i] = vector.x;
      v[i + 1] = vector.y;
      v[i + 2] = vector.z;
      v[i + 3] = vector.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) v[i] = slot[word_of<Config>(false, row, k + i)];
  }
}

// The slots of a warp, in turn: what is copied next, group after group.
template <typename Config>
struct CopiesAhead {
  unsigned group;  // of all
  int turn = 0, slot = 0;

  __device__ void begin_next(const SplitJobs& jobs, AheadStorage<Config>& smem) {
    if (group < jobs.groups()) {
      const int warp = static_cast<int>(threadIdx.x) / 32;
      const RowGroup<Config> rows(jobs, group);
      const std::int64_t k = turn * Config::kBlockK + warp * Config::kWarpK;
      if (rows.job.vectors) {
        copy_slot<Config, 4>(rows, k, jobs.once, smem.slots[slot][warp]);
      } else {
        copy_slot<Config, 1>(rows, k, jobs.once, smem.slots[slot][warp]);
      }
      slot = slot + 1 < Config::kSlots ? slot + 1 : 0;
      if (++turn * Config::kBlockK >= rows.job.planes.chunks_k * kChunkK) {
        turn = 0;
        group += gridDim.x;
      }
    }
    device::copy_async_commit();
  }
};

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, 1) split_ahead(SplitJobs jobs) {
  auto& smem = device::shared_storage<AheadStorage<Config>>();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = lane % Config::kRows;
  const std::int64_t first_k = warp * Config::kWarpK + lane / Config::kRows * kPiece;
  const std::int64_t end_k = jobs.job[0].planes.chunks_k * kChunkK;
  const int turns = static_cast<int>(ceil_div(end_k, Config::kBlockK));
  CopiesAhead<Config> ahead{blockIdx.x};
  float v[kPiece];

  device::wait_for_previous_kernel();
  device::let_next_kernel_start();
  for (int i = 0; i < Config::kSlots; ++i) ahead.begin_next(jobs, smem);
  int slot = 0;
  const auto next_slot = [&slot] { slot = slot + 1 < Config::kSlots ? slot + 1 : 0; };
  for (unsigned of_all = blockIdx.x; of_all < jobs.groups(); of_all += gridDim.x) {
    const RowGroup<Config> rows(jobs, of_all);
    const int first_slot = slot;
    Seen seen;
    for (int turn = 0; turn < turns; ++turn, next_slot()) {
      device::copy_async_wait<Config::kSlots - 1>();
      device::copy_async_commit();  // of nothing: the next turn's copies are again so many behind
      __syncwarp();                 // all lanes have waited for their copies
      read_slot<Config>(smem.slots[slot][warp], rows.job.along_k, v);
#pragma unroll
      for (int i = 0; i < kPiece; ++i) seen.add(v[i]);
    }
    add_lanes(seen, Config::kRows, 32);
    if (lane < Config::kRows) smem.rows.seen[warp][row] = seen;
    __syncthreads();  // what each warp has seen is there
    settle_rows<Config>(rows.job, rows.place, rows.first_row, rows.product, rows.group, smem.rows);

    const Scale scale = smem.rows.scale[row];
    std::byte* planes = rows.place.planes +
                        rows.job.planes.chunk(rows.product, rows.first_row / kChunkRows, 0) +
                        offset_in_chunk(static_cast<int>(rows.first_row % kChunkRows) + row,
                                        static_cast<int>(first_k % kChunkK) / kPiece);
    slot = first_slot;
    for (std::int64_t k = first_k; k < turns * Config::kBlockK; k += Config::kBlockK, next_slot()) {
      read_slot<Config>(smem.slots[slot][warp], rows.job.along_k, v);
      __syncwarp();  // all lanes have read the slot
      ahead.begin_next(jobs, smem);
      if (k < end_k) store_piece(v, scale, planes + k / kChunkK * kChunkBytes);
    }
  }
}

}  // namespace tilegate::int8x3
