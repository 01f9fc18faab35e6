// The split pass: reads the rows of op(A) and the columns of op(B), here called rows both, scales
// each by its largest element, and writes its halves to the workspace.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

#include "halves.cuh"
#include "layout.cuh"

namespace tilegate::fp16x3 {

static_assert(kSplitPiece == kSliceK, "a thread writes a row of each plane of a slice");

using FewRows = SplitRowsConfig<512, 8>;
using ManyRows = SplitRowsConfig<1024, 16>;

struct SplitJobs {
  SplitJob<Planes> job[2];
  SplitPlace place[2];
  SeenRows* seen = nullptr;  // of each block: sums over its rows
  unsigned groups_of_first = 0;
};

template <typename Config>
struct SplitStorage {
  Seen seen[Config::kWarps][Config::kRows];
  float step[Config::kRows], one_sign[Config::kRows], counted[Config::kWarps];
  KeptPiece<Config> kept[Config::kKept];
};

// Of all lanes whose numbers differ from this one's in the bits from `first` on.
__device__ inline void add_lanes(Seen& seen, int first) {
#pragma unroll
  for (int lanes = first; lanes < 32; lanes *= 2) {
    seen.add({__shfl_xor_sync(~0U, seen.largest, lanes), __shfl_xor_sync(~0U, seen.sum, lanes),
              __shfl_xor_sync(~0U, seen.signed_sum, lanes)});
  }
}

// Stores each row's step, once all warps have seen their part of it.
template <typename Config>
__device__ void settle_rows(const SplitJob<Planes>& job, const SplitPlace& place,
                            std::int64_t first_row, std::int64_t product,
                            SplitStorage<Config>& smem) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32;
  if (row < Config::kRows) {
    Seen seen;
    if (lane < Config::kWarps) seen = smem.seen[lane][row];
    add_lanes(seen, 1);
    if (lane == 0) {
      smem.step[row] = step_of(seen);
      smem.one_sign[row] = one_sign_of(seen);
      place.steps[product * job.planes.rows() + first_row + row] = smem.step[row];
    }
  }
  __syncthreads();  // all steps are there
}

// What the block has seen of its rows; `counted`: by this thread.
template <typename Config>
__device__ void store_seen(float counted, SeenRows* to, SplitStorage<Config>& smem) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) counted += __shfl_xor_sync(~0U, counted, lanes);
  if (threadIdx.x % 32 == 0) smem.counted[threadIdx.x / 32] = counted;
  __syncthreads();  // all warps have counted
  if (threadIdx.x == 0) {
    SeenRows rows;
    for (const float of_warp : smem.counted) rows.counted += of_warp;
    for (const float of_row : smem.one_sign) rows.one_sign += of_row;
    to[blockIdx.x] = rows;
  }
}

__device__ inline float count(const float (&v)[kSplitPiece], float scale) {
  float counted = 0.0F;
#pragma unroll
  for (int i = 0; i < kSplitPiece; ++i)
    counted += std::fabs(v[i] * scale) >= kLeastCounted ? 1.0F : 0.0F;
  return counted;
}

// `to`: the first piece of the row in plane hi of the slice.
__device__ inline void store_piece(const float (&v)[kSplitPiece], float scale, std::byte* to,
                                   int to_second) {
#pragma unroll
  for (int piece = 0; piece < 2; ++piece) {
    float hi[4], lo[4];  // bits in, bits out: vectors are of floats
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Halves even = split_element(v[8 * piece + 2 * i] * scale);
      const Halves odd = split_element(v[8 * piece + 2 * i + 1] * scale);
      hi[i] = float_of(even.hi | odd.hi << 16);
      lo[i] = float_of(even.lo | odd.lo << 16);
    }
    std::byte* at = to + (piece == 0 ? 0 : to_second);
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
  const auto [product, first_row, first_k, row] = RowsOfBlock<Config>(job, group);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t end_k = job.planes.chunks_k * kChunkK;
  SplitPlace place = jobs.place[second];
  place.from += product * place.stride;

  device::wait_for_previous_kernel();
  device::launch_dependents();
  Seen seen;
  float v[kSplitPiece];
  int turn = 0;
  std::int64_t k = first_k;
  for (; k < end_k; k += Config::kBlockK, ++turn) {
    load_piece(job, place, first_row + row, k, v);
    if (turn < Config::kKept) keep_piece<Config>(v, smem.kept[turn]);
#pragma unroll
    for (int i = 0; i < kSplitPiece; ++i) seen.add(v[i]);
  }
  add_lanes(seen, Config::kRows);
  if (lane < Config::kRows) smem.seen[warp][row] = seen;
  __syncthreads();  // what each warp has seen is there
  settle_rows<Config>(job, place, first_row, product, smem);

  const float step = smem.step[row];
  const float scale = step == 0.0F ? 0.0F : 1.0F / step;  // a power of two: exact
  float counted = step == INFINITY ? INFINITY : 0.0F;
  const int in_chunk = static_cast<int>(first_row % kChunkRows) + row;
  const int first_piece = offset_in_plane(in_chunk, 0);
  const int to_second = offset_in_plane(in_chunk, 1) - first_piece;
  std::byte* planes =
      place.planes + job.planes.chunk(product, first_row / kChunkRows, 0) + first_piece;
  for (bool is_latest = true; turn > 0; is_latest = false) {
    --turn;
    k -= Config::kBlockK;
    if (turn < Config::kKept) {
      kept_piece<Config>(smem.kept[turn], v);
    } else if (!is_latest) {
      load_piece(job, place, first_row + row, k, v);
    }
    counted += count(v, scale);
    store_piece(v, scale, planes + k / kSliceK * kSliceBytes, to_second);
  }
  store_seen<Config>(counted, jobs.seen, smem);
}

}  // namespace tilegate::fp16x3
