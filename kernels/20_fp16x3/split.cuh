// The split pass: reads the rows of op(A) and the columns of op(B), here called rows both, scales
// each by its largest element, and writes its halves to the workspace.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "halves.cuh"
#include "planes.cuh"

namespace tilegate::fp16x3 {

constexpr int kPiece = kSliceK;  // k that a thread takes at a time: a row of each plane of a slice
constexpr int kKept = 3;         // pieces that it keeps in shared memory; one more in registers

// Blocks of the split pass: kRows rows each, with all of their k. Few rows make more blocks; many
// read more neighbours of a row of memory at a time.
template <int kThreads_, int kRows_>
struct SplitConfig {
  static constexpr int kThreads = kThreads_, kRows = kRows_;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kWarpK = 32 / kRows * kPiece;  // k of a warp at a time: a piece per lane
  static constexpr int kBlockK = kWarps * kWarpK;
  static constexpr int kBlocksPerSm = 1024 / kThreads;
  static_assert(kChunkRows % kRows == 0 && 32 % kRows == 0);
  static_assert(kWarps >= kRows && kWarps <= 32, "a warp settles a row, a lane has a warp's part");
};
using FewRows = SplitConfig<512, 8>;
using ManyRows = SplitConfig<1024, 16>;

// One operand. Element (row, k) is at from[row · ld + k], or at from[k · ld + row].
struct Job {
  Planes planes;
  bool along_k = false, vectors = false;
  std::int64_t rows = 0, k = 0;
  Divisor blocks;  // of one product

  std::int64_t num_blocks() const { return planes.products * blocks.value(); }
};

struct Place {
  const float* from = nullptr;
  std::int64_t ld = 0, stride = 0;
  std::byte* planes = nullptr;
  float* steps = nullptr;  // of each row
};

struct SplitJobs {
  Job job[2];
  Place place[2];
  float* counted = nullptr;  // of each block: elements that count; Inf if a row cannot be scaled
  unsigned blocks_of_first = 0;
};

// What a thread has at one time, as it keeps it in shared memory: lanes next to each other.
template <typename Config>
using Kept = float4[kPiece / 4][Config::kThreads];

template <typename Config>
struct SplitStorage {
  Seen seen[Config::kWarps][Config::kRows];
  float step[Config::kRows], counted[Config::kWarps];
  Kept<Config> kept[kKept];
};

// v[i] ← element (row, k + i), or 0 outside the operand.
__device__ inline void load_piece(const Job& job, const Place& place, std::int64_t row,
                                  std::int64_t k, float (&v)[kPiece]) {
  const std::int64_t next = job.along_k ? 1 : place.ld;
  const float* from = place.from + (job.along_k ? row * place.ld + k : k * place.ld + row);
  const std::int64_t inside = row < job.rows ? job.k - k : 0;
  if (job.vectors && inside >= kPiece) {
#pragma unroll
    for (int i = 0; i < kPiece; i += 4) {
      const auto vector = device::load_vector<float4>(from + i);
      v[i] = vector.x;
      v[i + 1] = vector.y;
      v[i + 2] = vector.z;
      v[i + 3] = vector.w;
    }
  } else if (inside >= kPiece) {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) v[i] = from[i * next];
  } else {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) v[i] = i < inside ? from[i * next] : 0.0F;
  }
}

// Of all lanes whose numbers differ from this one's in the bits from `first` on.
__device__ inline void add_lanes(Seen& seen, int first) {
#pragma unroll
  for (int lanes = first; lanes < 32; lanes *= 2) {
    seen.add({__shfl_xor_sync(~0U, seen.largest, lanes), __shfl_xor_sync(~0U, seen.sum, lanes)});
  }
}

// Stores each row's step, once all warps have seen their part of it.
template <typename Config>
__device__ void settle_rows(const Job& job, const Place& place, std::int64_t first_row,
                            std::int64_t product, SplitStorage<Config>& smem) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32;
  if (row < Config::kRows) {
    Seen seen;
    if (lane < Config::kWarps) seen = smem.seen[lane][row];
    add_lanes(seen, 1);
    if (lane == 0) {
      smem.step[row] = step_of(seen);
      place.steps[product * job.planes.rows() + first_row + row] = smem.step[row];
    }
  }
  __syncthreads();  // all steps are there
}

// The sum of what the block's threads have counted.
template <typename Config>
__device__ void store_counted(float counted, float* to, SplitStorage<Config>& smem) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) counted += __shfl_xor_sync(~0U, counted, lanes);
  if (threadIdx.x % 32 == 0) smem.counted[threadIdx.x / 32] = counted;
  __syncthreads();  // all warps have counted
  if (threadIdx.x == 0) {
    counted = 0.0F;
    for (const float of_warp : smem.counted) counted += of_warp;
    to[blockIdx.x] = counted;
  }
}

__device__ inline float count(const float (&v)[kPiece], float scale) {
  float counted = 0.0F;
#pragma unroll
  for (int i = 0; i < kPiece; ++i)
    counted += std::fabs(v[i] * scale) >= kLeastCounted ? 1.0F : 0.0F;
  return counted;
}

// `to`: the row in plane hi of the slice.
__device__ inline void store_piece(const float (&v)[kPiece], float scale, int row, std::byte* to) {
#pragma unroll
  for (int piece = 0; piece < 2; ++piece) {
    float hi[4], lo[4];  // bits in, bits out: vectors are of floats
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Halves first = split_element(v[8 * piece + 2 * i] * scale);
      const Halves second = split_element(v[8 * piece + 2 * i + 1] * scale);
      hi[i] = float_of(first.hi | second.hi << 16);
      lo[i] = float_of(first.lo | second.lo << 16);
    }
    std::byte* at = to + offset_in_plane(row, piece);
    device::store_vector(reinterpret_cast<float*>(at), make_float4(hi[0], hi[1], hi[2], hi[3]));
    device::store_vector(reinterpret_cast<float*>(at + kPlaneBytes),
                         make_float4(lo[0], lo[1], lo[2], lo[3]));
  }
}

template <typename Config>
__device__ void keep_piece(const float (&v)[kPiece], Kept<Config>& to) {
#pragma unroll
  for (int i = 0; i < kPiece / 4; ++i) {
    to[i][threadIdx.x] = make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
  }
}

template <typename Config>
__device__ void kept_piece(const Kept<Config>& from, float (&v)[kPiece]) {
#pragma unroll
  for (int i = 0; i < kPiece / 4; ++i) {
    const float4 vector = from[i][threadIdx.x];
    v[4 * i] = vector.x;
    v[4 * i + 1] = vector.y;
    v[4 * i + 2] = vector.z;
    v[4 * i + 3] = vector.w;
  }
}

// Twice over the rows, forwards and back: what the first pass cannot keep the second reads again,
// the latest first, from L2 where that still holds it.
template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm) split(SplitJobs jobs) {
  auto& smem = device::shared_storage<SplitStorage<Config>>();
  const bool second = blockIdx.x >= jobs.blocks_of_first;
  const Job& job = jobs.job[second];
  const unsigned block = second ? blockIdx.x - jobs.blocks_of_first : blockIdx.x;
  const unsigned product = job.blocks.quotient(block);
  const std::int64_t first_row = std::int64_t{job.blocks.remainder(block, product)} * Config::kRows;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = lane % Config::kRows;
  const std::int64_t first_k = warp * Config::kWarpK + lane / Config::kRows * kPiece;
  const std::int64_t end_k = job.planes.chunks_k * kChunkK;
  Place place = jobs.place[second];
  place.from += product * place.stride;

  device::wait_for_previous_kernel();
  device::let_next_kernel_start();
  Seen seen;
  float v[kPiece];
  int turn = 0;
  std::int64_t k = first_k;
  for (; k < end_k; k += Config::kBlockK, ++turn) {
    load_piece(job, place, first_row + row, k, v);
    if (turn < kKept) keep_piece<Config>(v, smem.kept[turn]);
#pragma unroll
    for (int i = 0; i < kPiece; ++i) seen.add(v[i]);
  }
  add_lanes(seen, Config::kRows);
  if (lane < Config::kRows) smem.seen[warp][row] = seen;
  __syncthreads();  // what each warp has seen is there
  settle_rows<Config>(job, place, first_row, product, smem);

  const float step = smem.step[row];
  const float scale = step == 0.0F ? 0.0F : 1.0F / step;  // a power of two: exact
  float counted = step == INFINITY ? INFINITY : 0.0F;
  std::byte* planes = place.planes + job.planes.chunk(product, first_row / kChunkRows, 0);
  for (bool is_latest = true; turn > 0; is_latest = false) {
    --turn;
    k -= Config::kBlockK;
    if (turn < kKept) {
      kept_piece<Config>(smem.kept[turn], v);
    } else if (!is_latest) {
      load_piece(job, place, first_row + row, k, v);
    }
    counted += count(v, scale);
    store_piece(v, scale, static_cast<int>(first_row % kChunkRows) + row,
                planes + k / kSliceK * kSliceBytes);
  }
  store_counted<Config>(counted, jobs.counted, smem);
}

}  // namespace tilegate::fp16x3
