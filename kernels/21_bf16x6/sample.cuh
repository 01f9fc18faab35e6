// The decision for a work tile: halves, planes or FP64, from a sample of the operands.
//
// Tensor cores truncate. That harms a result which few products make up: an FP32 sum rounds it a
// few times only. So halves and planes are taken only where many products count. The distance of an
// element is log2(largest / |x|), in octaves, where `largest` is the largest element of its row's
// sample, of op(A) or op(B). If the mean distances of a row of A and of a column of B are d
// together, the geometric mean of their products is 2^-d times the largest possible product.
//
// Nor are they taken where all elements are almost equal: then all truncations have one sign. Nor
// where elements spread far, so that few products count outside the sample, nor where products grow
// along k, so that few sums of FP32 are large.
//
// Of both, halves are taken if few elements are far below the largest of the tile, whose scale they
// share, if the roundings of a row's elements have no bias, and if rows do not share elements.
// README.md says why; EXPERIMENTS.md has the operands that limits lie between.
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

// The mean distance of all rows, times that of the row where it is largest, both operands together,
// in octaves²; of 0 the distance is 0 here. Less where the products of a result have one sign.
constexpr float kMostSpread = 185.0F, kMostSpreadOfOneSign = 40.0F;

// Octaves by which products grow along k: over the work tile; in a k tile of 32 k, one octave in
// 400 k. And 6 / n more for each operand of n rows: few rows may differ by chance.
constexpr float kMostGrowth = 1.5F, kMostGrowthOfKTile = 32.0F / 400, kGrowthNoise = 6.0F;

// For halves: rows that share an element with another row of the sample, where elements are
// rounded. Of elements of few values the roundings do not average.
constexpr std::uint32_t kMostEqual = 2;

// For halves: the mean distances of both operands together, from the largest elements of the tile.
constexpr float kMostBelowTile = 10.0F;
// The largest element of the sample of a tile is scaled to [2^kScaled, 2^(kScaled + 1)). The others
// of the tile may be up to 2^(15 − kScaled) times as large. Exponents that a scale exists for.
constexpr int kScaled = 7, kMostExponent = 50;
constexpr std::uint32_t kMostAboveSample = 15 - kScaled;  // octaves
// The sum of the roundings of half of a row's sample, in units of the last bit of elements. Where
// they are random its standard deviation is 2.
constexpr std::uint32_t kMostBias = 10;

constexpr int kSampled = 32;      // elements of a row
constexpr int kSampledTiles = 2;  // of the k tiles of a work tile: half of the elements of each

// Magnitudes are those of BF16, as integers: about 128·log2(|x|). Distances are summed over the
// sample of a row.
constexpr std::uint32_t kOctave = 128;

template <typename T>
__host__ __device__ T larger(T a, T b) {
  return a > b ? a : b;
}

// Of the elements of a row that are tested, one has more than 11 bits, in fixed point below the
// row's largest; all have at most 8, in floating point.
constexpr std::uint32_t kFine = 1, kFew = 2;

// Of rows of an operand: the largest value of a row, or the sum over all rows.
struct alignas(16) Distances {
  std::uint32_t in_row = 0;       // largest: the sum of a row's distances
  std::uint32_t near_in_row = 0;  // largest: the same without elements that are 0
  std::uint32_t largest = 0;      // magnitude
  int in_tile = kNoRow;           // largest: `in_row`, from a magnitude of 0 instead
  std::uint32_t near = 0;         // sum: of near_in_row
  int growth = 0;                 // sum: `near` of the first sampled k tile, less the second's
  std::uint32_t counts = 0;       // sum: see kRow, kEqual, kSign
  std::uint32_t bits = 0;         // of any row: kFine, kFew
  static constexpr int kNoRow = -(1 << 30), kBiased = 1 << 29;
  // Counted: rows; rows with an element of another row; how many more of kSigns elements of a row
  // have one sign than the other.
  static constexpr std::uint32_t kRow = 1, kEqual = 1 << 9, kSign = 1 << 18;
  static constexpr int kSigns = 8;

  __host__ __device__ void add(const Distances& other) {
    in_row = larger(in_row, other.in_row);
    near_in_row = larger(near_in_row, other.near_in_row);
    largest = larger(largest, other.largest);
    in_tile = larger(in_tile, other.in_tile);
    near += other.near;
    growth += other.growth;
    counts += other.counts;
    bits |= other.bits;
  }
  __host__ __device__ std::uint32_t rows() const { return counts % kEqual; }
  __host__ __device__ std::uint32_t equal() const { return counts / kEqual % (kSign / kEqual); }
  __host__ __device__ std::uint32_t signs() const { return counts / kSign; }
  // The largest sum of distances from the largest element of all rows.
  __host__ __device__ int below_largest() const {
    return in_tile + static_cast<int>(largest * kSampled);
  }
  // Exponent of the largest element.
  __host__ __device__ int exponent() const { return static_cast<int>(largest / kOctave) - 127; }
  // Whether an element of this magnitude is too large for halves.
  __host__ __device__ bool is_exceeded_by(std::uint32_t magnitude) const {
    return magnitude / kOctave > largest / kOctave + kMostAboveSample;
  }
  // Scale of the elements for halves.
  __host__ __device__ float scale() const {
    return float_of(static_cast<std::uint32_t>(kScaled - exponent() + 127) << 23);
  }
};

// How a work tile is multiplied: three products of halves, six of planes, or in FP64. See
// Choice::decides_on_device.
enum class Path : std::int32_t { kThree = 3, kSix = 6, kFp64 = 64 };

// For a work tile of `k_tiles` k tiles, more than kSampledTiles. Sums replace means, so that
// nothing is divided.
__host__ __device__ inline Path decide(const Distances& a, const Distances& b, int k_tiles) {
  constexpr float kSum = kOctave * kSampled;  // of a row, for one octave
  constexpr auto kLeast = static_cast<std::uint32_t>(kLeastDistance * kSum),
                 kMost = static_cast<std::uint32_t>(kMostDistance * kSum);
  const std::uint32_t distance = a.in_row + b.in_row;
  const bool is_flat = distance < kLeast;
  const bool is_sparse = distance > kMost;
  const auto rows_a = static_cast<float>(a.rows()), rows_b = static_cast<float>(b.rows()),
             rows = rows_a * rows_b, count = static_cast<float>(k_tiles);
  const auto spread_of = [](const Distances& of) {
    return static_cast<float>(of.near) * static_cast<float>(of.near_in_row);
  };
  constexpr std::uint32_t kAllSigns = Distances::kSigns * Distances::kSigns;
  const bool have_one_sign = 2 * a.signs() * b.signs() > kAllSigns * a.rows() * b.rows();
  const float spread = spread_of(a) * rows_b + spread_of(b) * rows_a,
              most_spread = have_one_sign ? kMostSpreadOfOneSign : kMostSpread;
  const bool is_wide = spread > most_spread * (kSum * kSum) * rows;
  const float growth =
      static_cast<float>(a.growth) * rows_b + static_cast<float>(b.growth) * rows_a;
  const float most_growth = larger(kMostGrowth, count * kMostGrowthOfKTile);
  const float least = most_growth * rows + kGrowthNoise * (rows_a + rows_b);
  const bool grows = growth * count > least * (kSum / 2) * (count - kSampledTiles);
  const int below = a.below_largest() + b.below_largest();
  const auto is_scalable = [](int exponent) {
    return exponent >= -kMostExponent && exponent <= kMostExponent;
  };
  const bool allows_halves = below <= static_cast<int>(kMostBelowTile * kSum) &&
                             a.equal() <= kMostEqual && b.equal() <= kMostEqual &&
                             is_scalable(a.exponent()) && is_scalable(b.exponent());
  if (is_flat || is_sparse || is_wide || grows) return Path::kFp64;
  return allows_halves ? Path::kThree : Path::kSix;
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

// The magnitudes of two elements, as a pair.
inline __device__ std::uint32_t magnitudes_of(std::uint32_t first, std::uint32_t second) {
  return (first >> 16 | (second & 0xFFFF'0000U)) & 0x7FFF'7FFFU;
}

// Of a row, and two of its elements. `is_rounded`: halves round one of the 16 tested.
struct SampledRow {
  Distances distances;
  std::uint32_t elements[2] = {};
  bool is_rounded = false;
};
// load(i) returns four sampled elements. The first half of them is of the first k tile.
template <typename Load>
__device__ SampledRow sample_row(Load load) {
  constexpr std::uint32_t kPair = 0x1'0001;
  constexpr int kPairs = kSampled / 2;
  const auto sum_of = [](std::uint32_t pair) { return (pair & 0xFFFFU) + (pair >> 16); };
  std::uint32_t magnitudes[kPairs];
  std::uint32_t largest = 0, roundings = 0, rounded = 0;  // in pairs
  int negative = 0;
  SampledRow row;
#pragma unroll
  for (int i = 0; i < kSampled / 4; ++i) {
    const float4 v = load(i);
    const std::uint32_t bits[] = {bits_of(v.x), bits_of(v.y), bits_of(v.z), bits_of(v.w)};
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
      const std::uint32_t magnitude = magnitudes_of(bits[j], bits[j + 1]);
      magnitudes[i * 2 + j / 2] = magnitude;
      largest = larger_of_pairs(largest, magnitude);
      if (i % 2 == 0) {
        const std::uint32_t low = (bits[j] & 0xFFFFU) | bits[j + 1] << 16, are = are_rounded(low);
        rounded |= are;
        roundings += roundings_of_halves(low, are);
      }
    }
    negative += static_cast<int>(bits[0] >> 31);
    if (i % 4 == 0) row.elements[i / 4] = bits[0];
  }
  constexpr std::uint32_t kFar = kFarthest * kOctave;
  // At least so much, so that a row of zeros is far from it.
  const std::uint32_t of_row = larger(kFar, larger(largest & 0xFFFFU, largest >> 16));
  std::uint32_t all = 0, near[2];
#pragma unroll
  for (int tile = 0; tile < kSampledTiles; ++tile) {
    std::uint32_t distances = 0, not_0 = 0;
#pragma unroll
    for (int i = 0; i < kPairs / kSampledTiles; ++i) {
      const std::uint32_t pair = magnitudes[tile * (kPairs / kSampledTiles) + i];
      distances += smaller_of_pairs(of_row * kPair - pair, kFar * kPair);
      not_0 += smaller_of_pairs(pair, kPair);
    }
    all += sum_of(distances);
    near[tile] = sum_of(distances) - (kSampled / kSampledTiles - sum_of(not_0)) * kFar;
  }
  constexpr std::uint32_t kUnbiased = kSampled / 2;
  const std::uint32_t bias = sum_of(roundings);
  const bool is_biased = bias < kUnbiased - kMostBias || bias > kUnbiased + kMostBias;
  const auto of_one_sign = static_cast<std::uint32_t>(std::abs(2 * negative - Distances::kSigns));
  row.is_rounded = rounded != 0;
  row.distances = {.in_row = all,
                   .near_in_row = near[0] + near[1],
                   .largest = of_row,
                   .in_tile = is_biased
                                  ? Distances::kBiased
                                  : static_cast<int>(all) - static_cast<int>(of_row) * kSampled,
                   .near = near[0] + near[1],
                   .growth = static_cast<int>(near[0]) - static_cast<int>(near[1]),
                   .counts = Distances::kRow + of_one_sign * Distances::kSign,
                   .bits = bits_of_row(of_row, load(0))};
  return row;
}

// Of the rows of all lanes.
inline __device__ Distances of_warp(const SampledRow& row) {
  const auto add = [](auto v) { return __reduce_add_sync(~0U, v); };
  const auto most = [](auto v) { return __reduce_max_sync(~0U, v); };
  // Each row is compared with five others.
  bool is_equal = false;
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const std::uint32_t other = __shfl_xor_sync(~0U, row.elements[0], lanes);
#pragma unroll
    for (const std::uint32_t element : row.elements) {
      is_equal = is_equal || (element == other && other << 1 != 0);
    }
  }
  is_equal = is_equal && row.is_rounded;
  const Distances& of = row.distances;
  return {.in_row = most(of.in_row),
          .near_in_row = most(of.near_in_row),
          .largest = most(of.largest),
          .in_tile = most(of.in_tile),
          .near = add(of.near),
          .growth = add(of.growth),
          .counts = add(of.counts + (is_equal ? Distances::kEqual : 0)),
          .bits = __reduce_or_sync(~0U, of.bits)};
}

// What tensor cores take from a sum by truncation, relative to it: of products of halves, which
// have 22 bits, and of shorter ones, of planes or of elements of few bits. On average planes lose
// more, but this does not change a result that one product makes up.
constexpr float kLostByHalves = 0x1p-24F, kLostOfShortProducts = 0x1p-25F;

// Of a power of two, from 2^-126 to 2^126.
__host__ __device__ inline float reciprocal(float power) {
  return float_of((2U * 127 << 23) - bits_of(power));
}

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

// `largest`: the largest magnitudes of all elements of the sampled k tiles, of x in the upper half,
// of y in the lower. The work tile would fail by halves if one is too large.
__host__ __device__ inline Decision decision_of(const Distances& x, const Distances& y,
                                                std::uint32_t largest, int k_tiles, Level level) {
  Decision decision{.path = level == kOnlyFp64 ? Path::kFp64 : decide(x, y, k_tiles)};
  const bool overflow = x.is_exceeded_by(largest >> 16) || y.is_exceeded_by(largest & 0xFFFFU);
  if (decision.path == Path::kThree && overflow) decision.path = Path::kFp64;
  if (decision.path == Path::kThree && level == kNoHalves) decision.path = Path::kSix;
  if (decision.path == Path::kThree) {
    decision.scale_x = x.scale(), decision.scale_y = y.scale();
    decision.unscale = reciprocal(decision.scale_x) * reciprocal(decision.scale_y);
  }
  const std::uint32_t bits = x.bits | y.bits;
  if ((bits & kFine) != 0) {
    const bool are_long = decision.path == Path::kThree && (bits & kFew) == 0;
    decision.lost = are_long ? kLostByHalves : kLostOfShortProducts;
  }
  return decision;
}

}  // namespace tilegate::bf16x6
