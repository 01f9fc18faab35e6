// Planes, ranges, samples and the accuracy of sums, computed on the host.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/epilogue.cuh>
#include <tilegate/problem.hpp>

#include "21_bf16x6/bf16.cuh"
#include "21_bf16x6/sample.cuh"

namespace tilegate::bf16x6 {
namespace {

void expect_exact(float x) {
  const Split split(x, -x);
  double sum = 0.0, negative = 0.0;
  for (const std::uint32_t pair : split.plane) {
    sum += first_of(pair);
    negative += second_of(pair);
  }
  EXPECT_EQ(sum, x);
  EXPECT_EQ(negative, -static_cast<double>(x));
  EXPECT_LE(std::fabs(first_of(split.plane[1])), 0x1p-8F * std::fabs(x)) << x;
  EXPECT_LE(std::fabs(first_of(split.plane[2])), 0x1p-17F * std::fabs(x)) << x;
}

TEST(Bf16Planes, AreExactFromTheSmallestExactOn) {
  for (const float x : {0.0F, 1.0F, 0x1.FFFFFEp0F, 0x1.00FFFEp0F, 0x1.010002p0F, kSmallestExact,
                        0x1.FFFFFEp-110F, 0x1.FEFFFEp127F}) {
    expect_exact(x);
  }
  std::mt19937 random(1);
  std::uniform_int_distribution<std::uint32_t> bits(bits_of(kSmallestExact), 0x7F7F'0000U);
  for (int i = 0; i < 20'000; ++i) expect_exact(float_of(bits(random)));
}

TEST(Bf16Planes, LoseAtMostKLostBelow) {
  std::mt19937 random(2);
  std::uniform_int_distribution<std::uint32_t> bits(1, bits_of(kSmallestExact) - 1);
  double most = 0.0;
  for (int i = 0; i < 20'000; ++i) {
    const float x = float_of(bits(random));
    double sum = 0.0;
    for (const std::uint32_t pair : Split(x, 0.0F).plane) sum += first_of(pair);
    most = std::fmax(most, std::fabs(sum - x));
  }
  EXPECT_LE(most, kLost);
  EXPECT_GT(most, kLost / 2);
}

TEST(Bf16Planes, OfSpecialNumbersHoldNaN) {
  for (const float x : {INFINITY, -INFINITY, NAN, 0x1.FFFFFEp127F}) {
    bool any_nan = false;
    for (const std::uint32_t pair : Split(1.0F, x).plane) {
      any_nan = any_nan || std::isnan(second_of(pair));
    }
    EXPECT_TRUE(any_nan) << x;
  }
}

Range range_of(float first, float second) {
  Range range;
  range.add(first, second, Split(first, second));
  return range;
}

TEST(Bf16Range, KnowsTheLargestAndTheSmallestButZero) {
  EXPECT_EQ(Range::largest_of(range_of(-3.0F, 2.0F).word()), 3.0F);
  EXPECT_EQ(Range::largest_of(range_of(1.0F, -5.0F).word()), 5.0F);
  EXPECT_FALSE(Range::may_lose(Range{}.word()));
  EXPECT_FALSE(Range::may_lose(range_of(0.0F, -0.0F).word()));
  EXPECT_FALSE(Range::may_lose(range_of(kSmallestExact, -kSmallestExact).word()));
  const float below = float_of(bits_of(kSmallestExact) - 1);
  EXPECT_TRUE(Range::may_lose(range_of(below, 1.0F).word()));
  EXPECT_TRUE(Range::may_lose(range_of(1.0F, -below).word()));
  EXPECT_TRUE(Range::may_lose(range_of(0.0F, 0x1p-149F).word()));  // its planes are 0
}

constexpr std::uint32_t kOctaves = kOctave * kSampled;

// Rows whose largest element is 2^exponent. `in_row`: mean distance of their elements, in 1/64
// octaves; `in_tile`: from the largest of all rows.
Distances distances(std::uint32_t in_row, std::uint32_t in_tile, int exponent = 0) {
  Distances of;
  of.in_row = in_row * (kOctaves / 64);
  of.largest = static_cast<std::uint32_t>(exponent + 127) * kOctave;
  of.counts = Distances::kRow;
  of.in_tile =
      static_cast<int>(in_tile * (kOctaves / 64)) - static_cast<int>(of.largest * kSampled);
  return of;
}

TEST(Bf16Sample, AllowsPlanesBetweenItsBounds) {
  const auto is_fp64 = [](std::uint32_t a, std::uint32_t b) {
    return decide(distances(a, a), distances(b, b), 16) == Path::kFp64;
  };
  EXPECT_FALSE(is_fp64(2 * 64, 2 * 64));
  EXPECT_FALSE(is_fp64(4, 0));
  EXPECT_TRUE(is_fp64(2, 1));
  EXPECT_FALSE(is_fp64(12 * 64, 23 * 32));
  EXPECT_TRUE(is_fp64(12 * 64, 12 * 64));
}

TEST(Bf16Sample, AllowsHalvesWhereFewElementsAreFarBelowTheLargest) {
  const auto path = [](std::uint32_t a, std::uint32_t b, int exponent = 0) {
    return decide(distances(64, a, exponent), distances(64, b), 16);
  };
  EXPECT_EQ(path(5 * 64, 5 * 64), Path::kThree);
  EXPECT_EQ(path(5 * 64, 5 * 64 + 1), Path::kSix);
  EXPECT_EQ(path(64, 64, kMostExponent), Path::kThree);
  EXPECT_EQ(path(64, 64, kMostExponent + 1), Path::kSix);
  EXPECT_EQ(path(64, 64, -kMostExponent), Path::kThree);
  EXPECT_EQ(path(64, 64, -kMostExponent - 1), Path::kSix);
  Distances biased = distances(64, 64);
  biased.in_tile = Distances::kBiased;
  EXPECT_EQ(decide(biased, distances(64, 64), 16), Path::kSix);
  EXPECT_EQ(decide(distances(64, 64), biased, 16), Path::kSix);
}

// Rows with a mean distance of `octaves`, whose elements grow by `growth` octaves from the first k
// tile to the second.
Distances spread_of(float octaves, float growth = 0.0F, int rows = 128) {
  Distances of = distances(4 * 64, 4 * 64);
  of.near = of.near_in_row = static_cast<std::uint32_t>(octaves * kOctaves);
  of.growth = static_cast<int>(growth * kOctaves / 2);
  const Distances row = of;
  for (int i = 1; i < rows; ++i) of.add(row);
  return of;
}

TEST(Bf16Sample, AllowsHalvesAndPlanesWhereProductsCount) {
  const auto is_fp64 = [](const Distances& a, const Distances& b, int k_tiles = 16) {
    const bool found = decide(a, b, k_tiles) == Path::kFp64;
    EXPECT_EQ(decide(b, a, k_tiles) == Path::kFp64, found);
    return found;
  };
  EXPECT_FALSE(is_fp64(spread_of(9.6F), spread_of(9.6F)));
  EXPECT_TRUE(is_fp64(spread_of(9.65F), spread_of(9.65F)));
  Distances positive = spread_of(4.5F);
  positive.counts += 128 * Distances::kSigns * Distances::kSign;
  EXPECT_FALSE(is_fp64(positive, spread_of(4.5F)));
  EXPECT_TRUE(is_fp64(positive, positive));
  EXPECT_FALSE(is_fp64(spread_of(4.0F, 0.6F), spread_of(4.0F, 0.7F)));
  EXPECT_TRUE(is_fp64(spread_of(4.0F, 0.7F), spread_of(4.0F, 0.7F)));
  EXPECT_FALSE(is_fp64(spread_of(4.0F, -3.0F), spread_of(4.0F, 0.0F)));
  EXPECT_FALSE(is_fp64(spread_of(4.0F, 3.5F), spread_of(4.0F), 48));
  EXPECT_TRUE(is_fp64(spread_of(4.0F, 3.8F), spread_of(4.0F), 48));
  EXPECT_FALSE(is_fp64(spread_of(4.0F, 2.6F, 4), spread_of(4.0F)));
  EXPECT_TRUE(is_fp64(spread_of(4.0F, 2.7F, 4), spread_of(4.0F)));
}

TEST(Bf16Sample, AllowsNoHalvesForFewValues) {
  Distances few = distances(64, 64);
  few.counts += kMostEqual * Distances::kEqual;
  EXPECT_EQ(decide(few, distances(64, 64), 16), Path::kThree);
  few.counts += Distances::kEqual;
  EXPECT_EQ(decide(few, distances(64, 64), 16), Path::kSix);
  EXPECT_EQ(decide(distances(64, 64), few, 16), Path::kSix);
}

TEST(Bf16Sample, AllowsNoHalvesThatOverflow) {
  const auto path = [](int octaves_x, int octaves_y) {
    const auto magnitude = [](int octaves) {
      return (static_cast<std::uint32_t>(127 + octaves) + 1) * kOctave - 1;
    };
    return decision_of(distances(64, 64), distances(64, 64),
                       magnitude(octaves_x) << 16 | magnitude(octaves_y), 16, kAllPaths)
        .path;
  };
  EXPECT_EQ(path(-100, -127), Path::kThree);
  EXPECT_EQ(path(8, 8), Path::kThree);
  EXPECT_EQ(path(9, -100), Path::kFp64);
  EXPECT_EQ(path(-100, 9), Path::kFp64);
  EXPECT_EQ(path(128, 128), Path::kFp64);  // Inf
}

TEST(Fp16Halves, HoldAllBitsButTheLast) {
  std::mt19937 random(3);
  std::uniform_int_distribution<std::uint32_t> bits(bits_of(0x1p0F), bits_of(0x1p16F) - 0x2000);
  int rounded[3] = {};
  for (int i = 0; i < 20'000; ++i) {
    const float x = float_of(bits(random));
    const HalfSplit split(x, -x);
    const double sum = static_cast<double>(from_fp16(split.half[0] & 0xFFFFU)) +
                       from_fp16(split.half[1] & 0xFFFFU);
    const double negative =
        static_cast<double>(from_fp16(split.half[0] >> 16)) + from_fp16(split.half[1] >> 16);
    EXPECT_EQ(negative, -sum);
    const double last_bit = std::ldexp(1.0, std::ilogb(x) - 23);
    const std::uint32_t low = (bits_of(x) & 0xFFFFU) | bits_of(-x) << 16;
    const std::uint32_t roundings = roundings_of_halves(low, are_rounded(low));
    const std::uint32_t rounding = roundings & 0xFFFFU;
    ASSERT_EQ((sum - x) / last_bit, static_cast<double>(rounding) - 1.0) << x;
    ASSERT_EQ(roundings >> 16, rounding);
    ++rounded[rounding];
  }
  EXPECT_NEAR(rounded[0], 2500, 200);
  EXPECT_NEAR(rounded[2], 2500, 200);
}

TEST(Fp16Halves, AreNotFiniteWhereTheyOverflow) {
  for (const float x : {65520.0F, -1e20F, INFINITY, NAN}) {
    const HalfSplit split(1.0F, x);
    const float hi = from_fp16(split.half[0] >> 16), lo = from_fp16(split.half[1] >> 16);
    EXPECT_TRUE(std::isnan(hi + lo)) << x;
  }
}

// With any number of splits, where all products have one sign; with others Bf16x6 gains more. The
// squared error in units of 2^-24 of the result is
//   0.6 + 0.17 · (s / (t·n) + t / n + chain + 2) / 3
// for s k tiles of a sum, t sums of a split, and n splits; the last two terms only if n > 1. 0.6 is
// that of parts and of their products, after giving back (kLostByHalves), 0.17 that of a rounding.
// Addition i of a chain of m rounds i / m of the result, so the chain counts m / 3 roundings. The
// squared error of the model of cuBLAS is at least 10 % too small.
TEST(Bf16Sums, AreExpectedToBeAsAccurateAsCublas) {
  constexpr double kTruncation = 0.6, kAddition = 0.17 / 3, kAboveModel = 1.1;
  const double of_cublas = double{kCublasError} * 0x1p24;
  const auto expect_accurate = [&](const Problem& problem, std::int64_t k_splits) {
    const std::int64_t k_tiles = ceil_div(ceil_div(problem.shape.k, 32), k_splits);
    const double splits = static_cast<double>(k_splits),
                 sum = std::ceil(std::sqrt(static_cast<double>(k_tiles))),
                 sums = std::ceil(static_cast<double>(k_tiles) / sum);
    const std::int64_t of_partials = k_splits > 1 ? reduction_chain(k_splits) + 2 : 0;
    const double additions =
        sum / (sums * splits) + sums / splits + static_cast<double>(of_partials);
    ASSERT_LE(kTruncation + kAddition * additions,
              kAboveModel * of_cublas * of_cublas * products_of_one_sign_in_fp32(problem))
        << to_string(problem) << ", " << k_splits << " splits";
  };
  for (const std::int64_t rows : {1, 64, 128, 300, 1000, 1500, 4096}) {
    for (const std::int64_t cols : {1, 64, 128, 300, 1000, 1500, 4096}) {
      for (std::int64_t k = 128; k < 1'000'000; k = k * 8 / 7) {
        for (std::int64_t k_splits = 1;
             k_splits <= std::min<std::int64_t>(std::max<std::int64_t>(ceil_div(k, 32) / 4, 1), 64);
             ++k_splits) {
          for (const Op op : {Op::kN, Op::kT}) {
            ASSERT_NO_FATAL_FAILURE(expect_accurate(Problem::dense({rows, cols, k}, op), k_splits));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilegate::bf16x6
