// Whether BF16 planes are as accurate as FP32, from a sample of the operands.
//
// Tensor cores truncate. That harms a result which few products make up: an FP32 sum rounds it a
// few times only. So planes are taken only where many products count. The distance of an element is
// log2(largest / |x|), in octaves, where `largest` is the largest element of its row of op(A), or
// column of op(B). If the mean distances of a row of A and of a column of B are d together, the
// geometric mean of their products is 2^-d times the largest possible product.
//
// Nor are planes taken where all elements are almost equal: then all truncations have one sign.
#pragma once

#include <cstdint>

#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate::bf16x6 {

// In octaves. kMostDistance is for the mean distances of both operands together, each of the row
// where it is largest: a product 24 octaves below the largest just changes an FP32 sum. Less by
// half, because a sample that is 0 but for one element has a mean of 23.25. An element that is
// farther than kFarthest, or 0, counts as kFarthest.
constexpr float kMostDistance = 23.5F, kLeastDistance = 0.0625F;
constexpr int kFarthest = 24;

// Rows are sampled at kPieces places of their K, kPieceK elements each.
constexpr int kPieces = 4, kPieceK = 8;
constexpr int kSampled = kPieces * kPieceK;  // per row

// Magnitudes are those of BF16, as integers: about 128·log2(|x|). Distances are summed over the
// sample of a row.
constexpr std::uint32_t kOctave = 128;

__host__ __device__ inline std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
  return a > b ? a : b;
}

// Whether planes are as accurate as FP32, from the largest sums of distances of both operands.
__host__ __device__ inline bool allows_planes(std::uint32_t a, std::uint32_t b) {
  const float distance = static_cast<float>(a + b) / (kOctave * kSampled);
  return distance >= kLeastDistance && distance <= kMostDistance;
}

// The largest sum of distances of a row, of kRows rows from `from` on; `rows` of them are in the
// operand. Element (row, k) is at from[row · ld + k], or at from[k · ld + row]. Called by a warp;
// the result is the same in all lanes.
template <bool kAlongK, int kRows>
__device__ std::uint32_t largest_distance(const float* from, std::int64_t ld, int rows, int k) {
  // The lanes of a load lie beside each other in memory: pieces of some rows, or some k of all
  // rows. kLanes lanes have the elements of a row.
  constexpr int kLanes = kAlongK ? kPieceK : 32 / kRows;
  constexpr int kLoads = kRows * kPieceK / 32;  // per piece
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = kAlongK ? lane / kPieceK : lane % kRows,
            first_k = kAlongK ? lane % kPieceK : lane / kRows;
  const std::int64_t next_k = kAlongK ? 1 : ld, next_row = kAlongK ? ld : 1;
  const std::int64_t next_load = kAlongK ? 32 / kPieceK * next_row : kLanes * next_k;
  const std::int64_t next_piece = (k - kPieceK) / (kPieces - 1) * next_k;
  from += row * next_row + first_k * next_k;
  std::uint32_t magnitude[kLoads][kPieces];
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece, from += next_piece) {
    const float* at = from;
#pragma unroll
    for (int i = 0; i < kLoads; ++i, at += next_load) {
      const float x = row + (kAlongK ? i * (32 / kPieceK) : 0) < rows ? *at : 0.0F;
      magnitude[i][piece] = bits_of(x) << 1 >> 17;
    }
  }
  // Of all lanes that differ by lane % (2·most) / least.
  const auto over_lanes = [](auto value, int most, int least, auto combine) {
    for (int lanes = most; lanes >= least; lanes /= 2) {
      value = combine(value, __shfl_xor_sync(~0U, value, lanes));
    }
    return value;
  };
  const auto sum = [](std::uint32_t a, std::uint32_t b) { return a + b; };
  constexpr int kMost = kAlongK ? kLanes / 2 : 16, kLeast = kAlongK ? 1 : kRows;  // lanes of a row
  // The elements of i to `end` are of one row.
  const auto distance_of = [&](int begin, int end) {
    // At least so much, so that a row of zeros is far from it; 0 outside the operand.
    const bool is_inside = row + (kAlongK ? begin * (32 / kPieceK) : 0) < rows;
    std::uint32_t largest = is_inside ? kFarthest * kOctave : 0, distance = 0;
#pragma unroll
    for (int i = begin; i < end; ++i) {
#pragma unroll
      for (const std::uint32_t of_piece : magnitude[i]) largest = larger(largest, of_piece);
    }
    largest = over_lanes(largest, kMost, kLeast, larger);
#pragma unroll
    for (int i = begin; i < end; ++i) {
#pragma unroll
      for (const std::uint32_t of_piece : magnitude[i]) {
        const std::uint32_t below = largest - of_piece;
        distance += below < kFarthest * kOctave ? below : kFarthest * kOctave;
      }
    }
    return over_lanes(distance, kMost, kLeast, sum);
  };
  std::uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < kLoads; i += kAlongK ? 1 : kLoads) {
    most = larger(most, distance_of(i, kAlongK ? i + 1 : kLoads));
  }
  return over_lanes(most, kAlongK ? 16 : kRows / 2, kAlongK ? kLanes : 1, larger);
}

// The sample of a work tile: the largest sums of distances of each consumer warp's rows.
struct Sample {
  static constexpr int kWarps = 8;
  std::uint32_t of_x[kWarps], of_y[kWarps];

  __device__ bool allows_planes() const {
    std::uint32_t x = 0, y = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      x = larger(x, of_x[warp]);
      y = larger(y, of_y[warp]);
    }
    return bf16x6::allows_planes(x, y);
  }
};

}  // namespace tilegate::bf16x6
