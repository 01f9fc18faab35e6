// What blocks that have all k of their rows share: rows are settled once all of them has been seen,
// and each thread writes the digits of pieces of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/split_rows.cuh>
#include <tilegate/device/device.cuh>

#include "decision.cuh"
#include "digits.cuh"
#include "planes.cuh"
#include "split_jobs.cuh"

namespace tilegate::int8x3 {

static_assert(kPiece == kSplitPiece, "a thread writes what lies together");

// `seen`: by warps.
template <typename Config>
struct SettledRows {
  Seen seen[Config::kWarps][Config::kRows];
  Scale scale[Config::kRows];
  float width[Config::kRows];
};

// Stores each row's scale, and the sum of the block's widths, once all warps have seen their part.
template <typename Config>
__device__ void settle_rows(const Job& job, const Place& place, std::int64_t first_row,
                            std::int64_t product, unsigned group, SettledRows<Config>& smem) {
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
    device::store_vector(reinterpret_cast<float*>(to + plane * kNextPlane),
                         make_float4(words[0], words[1], words[2], words[3]));
  }
}

}  // namespace tilegate::int8x3
