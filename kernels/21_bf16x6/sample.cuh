// The decision for a work tile: halves, planes or FP64, from a sample of the operands.
//
// Tensor cores truncate. That harms a result which few products make up: an FP32 sum rounds it a
// few times only. So halves and planes are taken only where many products count. The distance of an
// element is log2(largest / |x|), in octaves, where `largest` is the largest element of its row of
// op(A), or column of op(B). If the mean distances of a row of A and of a column of B are d
// together, the geometric mean of their products is 2^-d times the largest possible product.
//
// Nor are they taken where all elements are almost equal: then all truncations have one sign.
//
// Of both, halves are taken if few elements are far below the largest of the tile, whose scale they
// share, and if the roundings of a row's elements have no bias. README.md derives the limits.
#pragma once

#include <cstdint>

#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

#include "fp16.cuh"

namespace tilegate::bf16x6 {

// In octaves. kMostDistance is for the mean distances of both operands together, each of the row
// where it is largest: a product 24 octaves below the largest just changes an FP32 sum. Less by
// half, because a sample that is 0 but for one element has a mean of 23.25. An element that is
// farther than kFarthest, or 0, counts as kFarthest.
constexpr float kMostDistance = 23.5F, kLeastDistance = 0.0625F;
constexpr int kFarthest = 24;

// For halves: the mean distances of both operands together, from the largest elements of the tile.
constexpr float kMostBelowTile = 10.0F;
// The largest element of the sample of a tile is scaled to [2^kScaled, 2^(kScaled + 1)). The others
// of the tile may be up to 2^(15 − kScaled) times as large. Exponents that a scale exists for.
constexpr int kScaled = 7, kMostExponent = 50;
// The sum of the roundings of a row's sample, in units of the last bit of elements. Where they are
// random its standard deviation is 2.8.
constexpr std::uint32_t kMostBias = 14;

// Rows are sampled at kPieces places of their K, kPieceK elements each.
constexpr int kPieces = 4, kPieceK = 8;
constexpr int kSampled = kPieces * kPieceK;  // per row
constexpr int kSampledWarps = 8;             // that share the rows of a tile

// Magnitudes are those of BF16, as integers: about 128·log2(|x|). Distances are summed over the
// sample of a row.
constexpr std::uint32_t kOctave = 128;

__host__ __device__ inline std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
  return a > b ? a : b;
}
__host__ __device__ inline int larger(int a, int b) { return a > b ? a : b; }

// Of rows of an operand.
struct alignas(16) Distances {
  std::uint32_t in_row = 0;   // the largest sum of distances of a row
  std::uint32_t largest = 0;  // magnitude
  int in_tile = kNoRow;       // the same sum, from a magnitude of 0 instead of the row's largest
  static constexpr int kNoRow = -(1 << 30), kBiased = 1 << 29;

  __host__ __device__ void add(const Distances& other) {
    in_row = larger(in_row, other.in_row);
    largest = larger(largest, other.largest);
    in_tile = larger(in_tile, other.in_tile);
  }
  // The largest sum of distances from the largest element of all rows.
  __host__ __device__ int below_largest() const {
    return in_tile + static_cast<int>(largest * kSampled);
  }
  // Exponent of the largest element.
  __host__ __device__ int exponent() const { return static_cast<int>(largest / kOctave) - 127; }
  // Scale of the elements for halves.
  __host__ __device__ float scale() const {
    return float_of(static_cast<std::uint32_t>(kScaled - exponent() + 127) << 23);
  }
};

// How a work tile is multiplied: three products of halves, six of planes, or in FP64. See
// Choice::decides_on_device.
enum class Path : std::int32_t { kThree = 3, kSix = 6, kFp64 = 64 };

__host__ __device__ inline Path decide(const Distances& a, const Distances& b) {
  constexpr float kSum = kOctave * kSampled;
  const float distance = static_cast<float>(a.in_row + b.in_row) / kSum;
  if (!(distance >= kLeastDistance && distance <= kMostDistance)) return Path::kFp64;
  const float below = static_cast<float>(a.below_largest() + b.below_largest()) / kSum;
  const auto is_scalable = [](int exponent) {
    return exponent >= -kMostExponent && exponent <= kMostExponent;
  };
  return below <= kMostBelowTile && is_scalable(a.exponent()) && is_scalable(b.exponent())
             ? Path::kThree
             : Path::kSix;
}

// Of kRows rows from `from` on; `rows` of them are in the operand. Element (row, k) is at
// from[row · ld + k], or at from[k · ld + row]. `warp`: of the kRows rows, among those of the tile.
// Called by a warp; the result is the same in all lanes.
//
// Rows that lie along k are sampled at different k, others at different k for each warp: so that a
// k whose elements are large in all rows is likely in the sample of one.
template <bool kAlongK, int kRows>
__device__ Distances sample_rows(const float* from, std::int64_t ld, int rows, int k, int warp) {
  // The lanes of a load lie beside each other in memory: pieces of some rows, or some k of all
  // rows. kLanes lanes have the elements of a row.
  constexpr int kLanes = kAlongK ? kPieceK : 32 / kRows;
  constexpr int kLoads = kRows * kPieceK / 32;  // per piece
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = kAlongK ? lane / kPieceK : lane % kRows,
            first_k = kAlongK ? lane % kPieceK : lane / kRows;
  const std::int64_t next_k = kAlongK ? 1 : ld, next_row = kAlongK ? ld : 1;
  const std::int64_t next_load = kAlongK ? 32 / kPieceK * next_row : kLanes * next_k;
  // The first piece begins in the first of kPieces equal parts of k, the others as far apart.
  const int part = k / kPieces & -kPieceK, places = part / kPieceK;
  const std::int64_t next_piece = part * next_k;
  from += row * next_row + first_k * next_k;
  const auto place = [&](int load) {
    constexpr int kTileRows = kRows * kSampledWarps;
    return kAlongK ? (warp * kRows + load * (32 / kPieceK) + row) * places / kTileRows * kPieceK
                   : static_cast<std::int64_t>(warp * places / kSampledWarps * kPieceK) * next_k;
  };
  std::uint32_t magnitude[kLoads][kPieces];
  constexpr std::uint32_t kRounding = 1U << 20;  // above sums of distances
  std::uint32_t roundings[kLoads]{};
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece, from += next_piece) {
    const float* at = from;
#pragma unroll
    for (int i = 0; i < kLoads; ++i, at += next_load) {
      const float x = row + (kAlongK ? i * (32 / kPieceK) : 0) < rows ? at[place(i)] : 0.0F;
      magnitude[i][piece] = bits_of(x) << 1 >> 17;
      roundings[i] += rounding_of_halves(bits_of(x)) * kRounding;
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
  const auto distances_of = [&](int begin, int end) {
    // At least so much, so that a row of zeros is far from it; 0 outside the operand.
    const bool is_inside = row + (kAlongK ? begin * (32 / kPieceK) : 0) < rows;
    std::uint32_t largest = is_inside ? kFarthest * kOctave : 0, distance = 0;
#pragma unroll
    for (int i = begin; i < end; ++i) {
#pragma unroll
      for (const std::uint32_t of_piece : magnitude[i]) largest = larger(largest, of_piece);
    }
    largest = over_lanes(largest, kMost, kLeast,
                         [](std::uint32_t a, std::uint32_t b) { return larger(a, b); });
#pragma unroll
    for (int i = begin; i < end; ++i) {
#pragma unroll
      for (const std::uint32_t of_piece : magnitude[i]) {
        const std::uint32_t below = largest - of_piece;
        distance += below < kFarthest * kOctave ? below : kFarthest * kOctave;
      }
      distance += roundings[i];
    }
    distance = over_lanes(distance, kMost, kLeast, sum);
    const std::uint32_t bias = distance / kRounding;
    distance %= kRounding;
    const bool is_biased = bias < kSampled - kMostBias || bias > kSampled + kMostBias;
    return Distances{.in_row = distance,
                     .largest = is_inside ? largest : 0,
                     .in_tile = !is_inside  ? Distances::kNoRow
                                : is_biased ? Distances::kBiased
                                            : static_cast<int>(distance - largest * kSampled)};
  };
  Distances most;
#pragma unroll
  for (int i = 0; i < kLoads; i += kAlongK ? 1 : kLoads) {
    most.add(distances_of(i, kAlongK ? i + 1 : kLoads));
  }
  const auto of_rows = [&](auto value) {
    return over_lanes(value, kAlongK ? 16 : kRows / 2, kAlongK ? kLanes : 1,
                      [](auto a, auto b) { return larger(a, b); });
  };
  return {.in_row = of_rows(most.in_row),
          .largest = of_rows(most.largest),
          .in_tile = of_rows(most.in_tile)};
}

// The sample of a work tile, of each consumer warp's rows.
struct Sample {
  static constexpr int kWarps = kSampledWarps;
  Distances x[kWarps], y[kWarps];
  bool allows_halves = true;
};

// The decision for a work tile, and the scales of its halves.
struct Decision {
  Path path;
  float scale_x = 1.0F, scale_y = 1.0F;

  __device__ explicit Decision(const Sample& sample) {
    Distances x, y;
#pragma unroll
    for (int warp = 0; warp < Sample::kWarps; ++warp) {
      x.add(sample.x[warp]);
      y.add(sample.y[warp]);
    }
    path = decide(x, y);
    if (path == Path::kThree && !sample.allows_halves) path = Path::kSix;
    if (path != Path::kThree) return;
    scale_x = x.scale();
    scale_y = y.scale();
  }
  __device__ float unscale() const { return 1.0F / (scale_x * scale_y); }
};

}  // namespace tilegate::bf16x6
