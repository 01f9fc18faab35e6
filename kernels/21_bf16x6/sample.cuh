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

#include <cmath>
#include <cstdint>

#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

#include "bf16.cuh"
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

constexpr int kSampled = 32;  // elements of a row

// Magnitudes are those of BF16, as integers: about 128·log2(|x|). Distances are summed over the
// sample of a row.
constexpr std::uint32_t kOctave = 128;

__host__ __device__ inline std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
  return a > b ? a : b;
}
__host__ __device__ inline int larger(int a, int b) { return a > b ? a : b; }

// Of the elements of a row that are tested, one has more than 11 bits, in fixed point below the
// row's largest; all have at most 8, in floating point.
constexpr std::uint32_t kFine = 1, kFew = 2;

// Of rows of an operand.
struct alignas(16) Distances {
  std::uint32_t in_row = 0;   // the largest sum of distances of a row
  std::uint32_t largest = 0;  // magnitude
  int in_tile = kNoRow;       // the same sum, from a magnitude of 0 instead of the row's largest
  std::uint32_t bits = 0;     // of any row: kFine, kFew
  static constexpr int kNoRow = -(1 << 30), kBiased = 1 << 29;

  __host__ __device__ void add(const Distances& other) {
    in_row = larger(in_row, other.in_row);
    largest = larger(largest, other.largest);
    in_tile = larger(in_tile, other.in_tile);
    bits |= other.bits;
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

// Of four elements of a row, whose largest element has the magnitude `largest`: kFine, kFew.
inline __device__ std::uint32_t bits_of_row(std::uint32_t largest, const float4& v) {
  // Adding this and subtracting it again rounds to 11 bits.
  const float rounder = float_of((largest / kOctave + 23 - 10) << 23 | 1U << 22);
  const auto lost = [&](float x) { return std::fabs((x + rounder) - rounder - x); };
  const bool are_fine = (lost(v.x) + lost(v.y)) + (lost(v.z) + lost(v.w)) != 0.0F,
             are_few = ((bits_of(v.x) | bits_of(v.y) | bits_of(v.z) | bits_of(v.w)) & 0xFFFFU) == 0;
  return (are_fine ? kFine : 0) | (are_few ? kFew : 0);
}

// Of a row, of which load(i) returns four sampled elements.
template <typename Load>
__device__ Distances distances_of_row(Load load) {
  std::uint32_t magnitudes[kSampled / 2];
  std::uint32_t largest = 0, roundings = 0;  // all in pairs
#pragma unroll
  for (int i = 0; i < kSampled / 4; ++i) {
    const float4 v = load(i);
    const std::uint32_t bits[] = {bits_of(v.x), bits_of(v.y), bits_of(v.z), bits_of(v.w)};
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
      const std::uint32_t magnitude = (bits[j] >> 16 | (bits[j + 1] & 0xFFFF'0000U)) & 0x7FFF'7FFFU;
      magnitudes[i * 2 + j / 2] = magnitude;
      largest = larger_of_pairs(largest, magnitude);
      roundings += roundings_of_halves((bits[j] & 0xFFFFU) | bits[j + 1] << 16);
    }
  }
  constexpr std::uint32_t kFar = kFarthest * kOctave, kPair = 0x1'0001;
  // At least so much, so that a row of zeros is far from it.
  const std::uint32_t of_row = larger(kFar, larger(largest & 0xFFFFU, largest >> 16));
  std::uint32_t distances = 0;
#pragma unroll
  for (const std::uint32_t magnitude : magnitudes) {
    distances += smaller_of_pairs(of_row * kPair - magnitude, kFar * kPair);
  }
  const std::uint32_t distance = (distances & 0xFFFFU) + (distances >> 16),
                      bias = (roundings & 0xFFFFU) + (roundings >> 16);
  const bool is_biased = bias < kSampled - kMostBias || bias > kSampled + kMostBias;
  return {.in_row = distance,
          .largest = of_row,
          .in_tile = is_biased ? Distances::kBiased
                               : static_cast<int>(distance) - static_cast<int>(of_row) * kSampled,
          .bits = bits_of_row(of_row, load(0))};
}

// Of the rows of all lanes.
inline __device__ Distances of_warp(Distances of) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    of.add({.in_row = __shfl_xor_sync(~0U, of.in_row, lanes),
            .largest = __shfl_xor_sync(~0U, of.largest, lanes),
            .in_tile = __shfl_xor_sync(~0U, of.in_tile, lanes),
            .bits = __shfl_xor_sync(~0U, of.bits, lanes)});
  }
  return of;
}

// What tensor cores take from a sum by truncation, relative to it: of products of halves, which
// have 22 bits, and of shorter ones, of planes or of elements of few bits. On average planes lose
// more, but this does not change a result that one product makes up.
constexpr float kLostByHalves = 0x1p-24F, kLostOfShortProducts = 0x1p-25F;

// The decision for a work tile, the scales of its halves, and what its sums lose.
struct alignas(16) Decision {
  Path path;
  float scale_x = 1.0F, scale_y = 1.0F, unscale = 1.0F;
  float lost = 0.0F;
};

// What the work tiles of a block may take. Where one fails by halves, the next but one and all
// later ones take planes in their place, where one fails by planes FP64. The next one may be
// decided already. So at most two of a block fail by halves, and two by planes.
enum Level : int { kAllPaths, kNoHalves, kOnlyFp64 };
constexpr int kMostFailed = 4;

__host__ __device__ inline Decision decision_of(const Distances& x, const Distances& y,
                                                Level level) {
  Decision decision{.path = level == kOnlyFp64 ? Path::kFp64 : decide(x, y)};
  if (decision.path == Path::kThree && level == kNoHalves) decision.path = Path::kSix;
  if (decision.path == Path::kThree) {
    decision.scale_x = x.scale(), decision.scale_y = y.scale();
    decision.unscale = 1.0F / (decision.scale_x * decision.scale_y);
  }
  const std::uint32_t bits = x.bits | y.bits;
  if ((bits & kFine) != 0) {
    const bool are_long = decision.path == Path::kThree && (bits & kFew) == 0;
    decision.lost = are_long ? kLostByHalves : kLostOfShortProducts;
  }
  return decision;
}

}  // namespace tilegate::bf16x6
