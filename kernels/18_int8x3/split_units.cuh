// What a thread of split_long.cuh keeps in registers: units of four elements, as memory has them,
// read from the operand and written as digits.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/device/device.cuh>

#include "digits.cuh"
#include "planes.cuh"
#include "split_jobs.cuh"

namespace tilegate::int8x3 {

constexpr int kUnits = 16;  // of four elements, that a thread keeps

// A cluster of blocks has kRows rows with all of their k; each thread keeps a share of them in
// registers, so that device memory is read once.
template <int kThreads_, int kBlocksPerSm_>
struct LongConfig {
  static constexpr int kThreads = kThreads_, kBlocksPerSm = kBlocksPerSm_;
  static constexpr int kRows = 16;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kChunks = kThreads * kUnits * 4 / (kRows * kChunkK);  // of K, at a time
  static_assert(kChunkRows % kRows == 0 && 32 % kWarps == 0 && kWarps % 4 == 0);
};

// A block's part of the rows that it shares.
struct Part {
  Job job;
  Place place;
  std::int64_t product = 0, first_row = 0;
  std::int64_t begin = 0, end = 0;  // of K, in chunks
  std::int64_t end_k = 0;           // inside the operand
};

// Where the units of a thread lie: along k of one row, or in four rows at one k, as memory has
// them.
template <typename Config, bool kAlongK>
struct UnitShare {
  int row, k;  // of unit 0, from the first of the block's rows and k

  __device__ UnitShare() {
    const int thread = static_cast<int>(threadIdx.x);
    row = kAlongK ? thread / 8 % Config::kRows : thread % 4 * 4;
    k = kAlongK ? thread / 128 * kChunkK + thread % 8 * 4 : thread / 4 * 4;
  }
  // Of a unit, from that of unit 0.
  static constexpr __host__ __device__ int next_k(int unit) {
    return kAlongK ? unit * (Config::kWarps / 4) * kChunkK
                   : unit / 4 * Config::kWarps * kChunkK + unit % 4;
  }
};

// Four words, zeros from the `inside`th on.
__device__ inline float4 load_unit(const float* from, int inside, bool vector) {
  if (vector && inside > 0) return device::load_vector<float4>(from);
  float4 v = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  if (inside > 0) v.x = from[0];
  if (inside > 1) v.y = from[1];
  if (inside > 2) v.z = from[2];
  if (inside > 3) v.w = from[3];
  return v;
}

// The units of the chunks from `first` on, zeros outside the operand and beyond the part.
template <typename Config, bool kAlongK>
__device__ void load_units(const Part& part, const UnitShare<Config, kAlongK>& share,
                           std::int64_t first, float4 (&units)[kUnits]) {
  const std::int64_t row = part.first_row + share.row, k = first * kChunkK + share.k;
  const std::int64_t ld = part.place.ld;
  const int rows = clamped(part.job.rows - row), ks = clamped(part.end_k - k);
  const float* from = part.place.from + (kAlongK ? row * ld + k : k * ld + row);
#pragma unroll
  for (int unit = 0; unit < kUnits; ++unit) {
    const int left = ks - share.next_k(unit);
    const int inside = kAlongK ? (rows > 0 ? left : 0) : (left > 0 ? rows : 0);
    units[unit] = load_unit(kAlongK ? from + share.next_k(unit) : from, inside, part.job.vectors);
    if constexpr (!kAlongK) from += (share.next_k(unit + 1) - share.next_k(unit)) * ld;
  }
}

__device__ inline float element(const float4& of, int i) {
  return i == 0 ? of.x : i == 1 ? of.y : i == 2 ? of.z : of.w;
}

// The digits of four elements along k, to the four bytes of each plane from `to` on.
__device__ inline void store_digits(const float (&v)[4], const Scale& scale, std::byte* to) {
  std::uint32_t biased[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) biased[i] = biased_digits(integer_of(v[i], scale));
#pragma unroll
  for (int plane = 0; plane < kPlanes; ++plane) {
    *reinterpret_cast<std::uint32_t*>(to + plane * kNextPlane) = pack_digits(biased, plane);
  }
}

// The digits of the units of the chunks from `first` on.
template <typename Config, bool kAlongK>
__device__ void store_units(const Part& part, const UnitShare<Config, kAlongK>& share,
                            std::int64_t first, const float4 (&units)[kUnits],
                            const Scale (&scales)[Config::kRows]) {
  constexpr int kPer = kAlongK ? 1 : 4;  // units whose digits lie together
  const int row = static_cast<int>(part.first_row % kChunkRows) + share.row;
  const int chunk = share.k / kChunkK;
  const int left = clamped(part.end - first - chunk);
  std::byte* planes =
      part.place.planes +
      part.job.planes.chunk(part.product, part.first_row / kChunkRows, first + chunk) +
      share.k % kPiece;
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const Scale scale = scales[share.row + i];
    std::byte* to = planes + offset_in_chunk(row + i, share.k % kChunkK / kPiece);
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

}  // namespace tilegate::int8x3
