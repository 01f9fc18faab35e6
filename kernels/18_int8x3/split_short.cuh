// The split pass for rows that a block can keep in shared memory, or nearly.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

#include "decision.cuh"
#include "digits.cuh"
#include "planes.cuh"
#include "split_jobs.cuh"

namespace tilegate::int8x3 {

// Blocks of the split pass: kRows rows each, with all of their k. Few rows make more blocks; many
// read more neighbours of a row of memory at a time.
template <int kThreads_, int kRows_>
struct ShortConfig {
  static constexpr int kThreads = kThreads_, kRows = kRows_;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kWarpK = 32 / kRows * kPiece;  // k of a warp at a time: a piece per lane
  static constexpr int kBlockK = kWarps * kWarpK;
  static constexpr int kBlocksPerSm = 1024 / kThreads;
  static constexpr int kKept = 3;  // pieces that a thread keeps in shared memory; one in registers
  static_assert(kChunkRows % kRows == 0 && 32 % kRows == 0);
  static_assert(kWarps >= kRows && kWarps <= 32, "a warp settles a row, a lane has a warp's part");
};
using FewRows = ShortConfig<512, 8>;
using ShortRows = ShortConfig<512, 16>;
// For any K, in the shared memory that every GPU has.
struct AnyRows : ShortConfig<512, 8> {
  static constexpr int kKept = 1;
};

// What a thread has at one time, as it keeps it in shared memory: lanes next to each other.
template <typename Config>
using Kept = float4[kPiece / 4][Config::kThreads];

template <typename Config>
struct ShortStorage {
  Seen seen[Config::kWarps][Config::kRows];
  Scale scale[Config::kRows];
  float width[Config::kRows];
  Kept<Config> kept[Config::kKept];
};

// v[i] ← element (row, k + i), or 0 outside the operand.
__device__ inline void load_piece(const Job& job, const Place& place, std::int64_t row,
                                  std::int64_t k, float (&v)[kPiece]) {
  const std::int64_t next = job.along_k ? 1 : place.ld;
  const float* from = place.from + (job.along_k ? row * place.ld + k : k * place.ld + row);
  const std::int64_t inside = row < job.rows ? job.k - k : 0;
  if (job.along_k && job.vectors && inside >= kPiece) {
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

// Stores each row's scale, and the sum of the block's widths, once all warps have seen their part.
template <typename Config>
__device__ void settle_rows(const Job& job, const Place& place, std::int64_t first_row,
                            std::int64_t product, unsigned group, ShortStorage<Config>& smem) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = static_cast<int>(threadIdx.x) / 32;
  if (row < Config::kRows) {
    Seen seen;
    if (lane < Config::kWarps) seen = smem.seen[lane][row];
    add_lanes(seen, 1, 32);
    const Scale scale = scale_of(seen);
    if (lane == 0) {
      smem.scale[row] = scale;
      smem.width[row] = width_of(seen, scale, static_cast<float>(job.k));
      place.steps[product * job.planes.rows() + first_row + row] = scale.step;
    }
  }
  __syncthreads();  // all scales and widths are there
  if (threadIdx.x == 0) {
    float sum = 0.0F;
    for (const float width : smem.width) sum += width;
    place.widths[group] = sum;
  }
}

__device__ inline void store_piece(const float (&v)[kPiece], const Scale& scale, std::byte* to) {
  std::uint32_t biased[kPiece / 4][4];
#pragma unroll
  for (int i = 0; i < kPiece; ++i) biased[i / 4][i % 4] = biased_digits(integer_of(v[i], scale));
#pragma unroll
  for (int plane = 0; plane < kPlanes; ++plane) {
    float words[kPiece / 4];  // bits in, bits out: vectors are of floats
#pragma unroll
    for (int i = 0; i < kPiece / 4; ++i) words[i] = float_of(pack_digits(biased[i], plane));
    device::store_vector(reinterpret_cast<float*>(to + plane * kPlaneBytes),
                         make_float4(words[0], words[1], words[2], words[3]));
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
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm)
    split_short(SplitJobs jobs) {
  auto& smem = device::shared_storage<ShortStorage<Config>>();
  const bool second = blockIdx.x >= jobs.groups_of_first;
  const Job& job = jobs.job[second];
  const unsigned block = second ? blockIdx.x - jobs.groups_of_first : blockIdx.x;
  const unsigned product = job.groups.quotient(block);
  const std::int64_t first_row = std::int64_t{job.groups.remainder(block, product)} * Config::kRows;
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
    if (turn < Config::kKept) keep_piece<Config>(v, smem.kept[turn]);
#pragma unroll
    for (int i = 0; i < kPiece; ++i) seen.add(v[i]);
  }
  add_lanes(seen, Config::kRows, 32);
  if (lane < Config::kRows) smem.seen[warp][row] = seen;
  __syncthreads();  // what each warp has seen is there
  settle_rows<Config>(job, place, first_row, product, block, smem);

  const Scale scale = smem.scale[row];
  std::byte* planes = place.planes + job.planes.chunk(product, first_row / kChunkRows, 0) +
                      offset_in_plane(static_cast<int>(first_row % kChunkRows) + row,
                                      static_cast<int>(first_k % kChunkK) / kPiece);
  for (bool is_latest = true; turn > 0; is_latest = false) {
    --turn;
    k -= Config::kBlockK;
    if (turn < Config::kKept) {
      kept_piece<Config>(smem.kept[turn], v);
    } else if (!is_latest) {
      load_piece(job, place, first_row + row, k, v);
    }
    store_piece(v, scale, planes + k / kChunkK * kChunkBytes);
  }
}

}  // namespace tilegate::int8x3
