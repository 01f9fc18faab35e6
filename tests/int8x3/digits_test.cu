// Scaling, digits, folding and the decision, on the host, against the model in exact integers.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/common/fp64_fallback.cuh>

#include "18_int8x3/digits.cuh"
#include "models/int8x3.hpp"
#include "thorough.hpp"

namespace tilegate::int8x3 {
namespace {

namespace model = models::int8x3;

RowStats stats_of(const std::vector<float>& row) {
  RowStats seen;
  for (const float value : row) seen.add(value);
  for (std::size_t k = 0; k < row.size(); k += kRootsK) seen.add_root(row[k]);
  return seen;
}

void expect_model(const std::vector<float>& values) {
  const auto k = static_cast<std::int64_t>(values.size());
  const model::Row expected = model::quantized({values.data(), 1, k, k, 1}, 0);
  const RowStats seen = stats_of(values);
  const Scale scale = scale_of(seen);
  ASSERT_EQ(bits_of(scale.step), bits_of(expected.step)) << seen.largest;
  const auto [width, spread, is_long] = width_of(seen, scale, static_cast<float>(k));
  if (std::isinf(expected.width)) {
    ASSERT_EQ(width, expected.width) << seen.largest;
    ASSERT_EQ(spread, expected.width) << seen.largest;
    return;
  }
  const bool has_long =
      std::ranges::any_of(values, [](float value) { return (bits_of(value) & kShortBits) != 0; });
  ASSERT_EQ(is_long, has_long ? 1.0F : 0.0F);
  ASSERT_NEAR(width, expected.width, 1e-5 * expected.width) << seen.largest;
  if (seen.sum < seen.largest * 1.01F) {  // FP32 does not hold what the others add
    ASSERT_GT(spread, 30.0F * width) << seen.largest;
  } else {
    ASSERT_NEAR(spread, expected.spread, 1e-4 * expected.spread) << seen.largest;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(integer_of(values[i], scale), expected.integers[i]) << values[i];
    ASSERT_LE(std::abs(expected.integers[i]), kLargest) << values[i];
    ASSERT_EQ(tail_of(values[i], scale), expected.tails[i]) << values[i];
  }
}

// Each in its own byte of four integers side by side.
void expect_digits(std::int32_t x) {
  const std::int32_t all[4] = {-x, x, x / 3, 1 - x};
  std::uint32_t biased[4];
  for (int i = 0; i < 4; ++i) {
    biased[i] = biased_digits(static_cast<float>(all[i]), {.to_integer = 1.0F, .step = 1.0F});
  }
  for (int plane = 0; plane < kPlanes; ++plane) {
    const std::uint32_t packed = pack_digits(biased, plane);
    for (int i = 0; i < 4; ++i) {
      const auto digit = static_cast<std::int8_t>(packed >> 8 * i & 0xFFU);
      ASSERT_EQ(digit, model::digits(all[i])[static_cast<std::size_t>(plane)]) << all[i];
    }
  }
}

TEST(Digits, SumToEveryInteger) {
  for (std::int32_t x = -kLargest + 1; x <= kLargest; x += is_thorough() ? 5 : 97) {
    ASSERT_NO_FATAL_FAILURE(expect_digits(x));
  }
  for (std::int32_t x = kLargest - 70000; x <= kLargest; x += 3) {
    ASSERT_NO_FATAL_FAILURE(expect_digits(x));
  }
  for (const std::int32_t digits : {0x7F7F7F, 0x7E7F80, 0x7E8080, 0x7E807F, 0x8080, 0x7F80}) {
    for (std::int32_t x = digits - 2; x <= digits + 2 && x <= kLargest; ++x) {
      ASSERT_NO_FATAL_FAILURE(expect_digits(x));
    }
  }
}

// Every significand, and for short ones every one that they have, at both ends of the exponents.
// At night of every significand.
TEST(Digits, HoldTheLargestElementOfARow) {
  const std::uint32_t step = is_thorough() ? 1 : 61;
  for (const int exponent : {-56, 0, 59}) {
    for (std::uint32_t bits = 0; bits < (1U << 23); bits += exponent == 0 ? step : 1021) {
      const float largest = std::ldexp(float_of(0x3F800000U | bits), exponent);
      ASSERT_NO_FATAL_FAILURE(expect_model({-largest}));
      const std::int32_t x = integer_of(largest, scale_of(stats_of({largest})));
      ASSERT_GE(x, (kLargest - 1) / 4) << largest;
    }
    for (std::uint32_t bits = 0; bits < (1U << 23); bits += 1U << 12) {
      const float largest = std::ldexp(float_of(0x3F800000U | bits), exponent);
      ASSERT_NO_FATAL_FAILURE(expect_model({largest}));
    }
  }
}

// Short significands take a power of two: halves between integers are ties, of either sign.
TEST(Digits, RoundTiesToEven) {
  for (const float largest : {1.0F, 0x1.FDEp0F, 0x1.FEp0F, 0x1.FFEp0F, -0x1.8p0F}) {
    std::vector<float> row = {largest};
    for (int i = 1; i < 200; ++i) {
      for (const float unit : {0x1p-24F, 0x1p-23F, 0x1p-22F, 0x1p-13F}) {
        row.push_back(static_cast<float>(i) * unit);
        row.push_back(static_cast<float>(-i) * unit);
      }
    }
    expect_model(row);
    row.push_back(0x1.001p-3F);  // a long one: no power of two any more
    expect_model(row);
  }
}

// Zeros, numbers that vanish beside the largest, equal elements, both ends of the range.
TEST(Digits, MatchModelForEdgeValues) {
  expect_model({0.0F, -0.0F});
  expect_model({-0x1p-149F, 0x1p-56F, 0x1p-126F, -0x1p-79F, 0x3p-80F});
  expect_model({0x1.FFFFFEp-56F, 0x1p-149F, -0x1.FFFFFEp-56F});
  expect_model(std::vector<float>(300, -0x1.FFFFFEp3F));
  expect_model(std::vector<float>(300, 0x1.FFEp3F));
  expect_model({0x1p60F, 0x1.FFFFFEp59F, -0x1.000002p37F, 0x1p36F});
  expect_model({0x1p60F, 0x1.8p37F, -0x1p37F});
}

// So that C is rounded once less, also where elements are as small as they may be.
TEST(Digits, ProductsOfScalesAreExact) {
  const auto step_of = [](float largest) { return scale_of(stats_of({largest})).step; };
  for (const float smallest : {kSmallestScaled, 1.0F, kLargestScaled / 2}) {
    for (std::uint32_t bits = 0; bits < (1U << 23); bits += 1U << 11) {  // short and long ones
      const float step = step_of(smallest * float_of(0x3F800000U | bits));
      for (const float other : {step_of(smallest), step_of(1.0001F * smallest), step}) {
        ASSERT_EQ(step * other, static_cast<double>(step) * other) << bits;
      }
    }
  }
}

TEST(Digits, ShortSignificandsAreExact) {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 2000; ++turn) {
    std::vector<float> row(16);
    for (float& value : row) value = static_cast<float>(static_cast<int>(random() % 8191) - 4095);
    const Scale scale = scale_of(stats_of(row));
    for (const float value : row) {
      ASSERT_EQ(static_cast<float>(integer_of(value, scale)) * scale.step * 0x1p-16F, value);
    }
  }
}

// Random bit patterns of any sign and significand, over 2^30 of exponents.
TEST(Digits, RoundingErrorIsWithinTheBound) {
  std::mt19937_64 random(2);
  for (int turn = 0; turn < (is_thorough() ? 200000 : 5000); ++turn) {
    std::vector<float> row(16);
    const auto first = static_cast<std::uint32_t>(71 + random() % 86);
    for (float& value : row) {
      const auto bits = static_cast<std::uint32_t>(random());
      value = float_of((bits & 0x807FFFFFU) | (first + bits % 31) << 23);
      if (turn % 2 == 0) value = float_of(bits_of(value) & ~kShortBits);
    }
    ASSERT_NO_FATAL_FAILURE(expect_model(row));
    const RowStats seen = stats_of(row);
    ASSERT_TRUE(is_scalable(seen));
    const Scale scale = scale_of(seen);
    for (const float value : row) {
      const double back = integer_of(value, scale) * static_cast<double>(scale.step) * 0x1p-16;
      ASSERT_LE(std::fabs(back - static_cast<double>(value)), 0x1p-22 * 1.001 * seen.largest);
    }
  }
}

void expect_fold(const std::int32_t (&level)[4]) {
  const std::int32_t three[3] = {level[0], level[1], level[2]};
  ASSERT_EQ(bits_of(fold(three)), bits_of(model::folded({level[0], level[1], level[2]})))
      << level[0] << " " << level[1] << " " << level[2];
  const std::vector<std::int64_t> four = {level[0], level[1], level[2], level[3]};
  ASSERT_EQ(bits_of(fold(level)), bits_of(model::folded(four)))
      << level[0] << " " << level[1] << " " << level[2] << " " << level[3];
  for (const auto& [a, b] : {std::pair(1.0F, 1.0F), std::pair(0x1.ABCp-20F, 0x1.357p-9F)}) {
    ASSERT_EQ(
        bits_of(scaled_fold_ten(level, exact_step(a) * exact_step(b))),
        bits_of(model::scaled_folded_ten(four, 65536.0 / (65536.0F / a), 65536.0 / (65536.0F / b))))
        << level[0] << " " << level[1] << " " << level[2] << " " << level[3] << " · " << a << b;
  }
}

TEST(Digits, FoldMatchesModel) {
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 100000; ++turn) {
    const auto draw = [&](std::int64_t products) {
      const auto most = static_cast<std::uint64_t>(kMaxExactK * products * 128 * 128) >> turn % 31;
      return static_cast<std::int32_t>(static_cast<std::int64_t>(random() % (2 * most + 1)) -
                                       static_cast<std::int64_t>(most));
    };
    ASSERT_NO_FATAL_FAILURE(expect_fold({draw(1), draw(2), draw(3), draw(2)}));
  }
}

// Where a level is half of a unit of the one above, or beside it, and the sum half of a unit of the
// float.
TEST(Digits, FoldOfTiesMatchesModel) {
  for (const std::int32_t top : {0, 1, -1, 127 * 127, (1 << 24) - 1, 1 << 24, (1 << 24) + 1,
                                 -(1 << 24) - 3, (1 << 25) + 2, -(1 << 29) - 32}) {
    for (const std::int32_t middle : {0, -1, 128, -128, (1 << 24) + 1, -(1 << 24) - 1}) {
      for (const std::int32_t low : {0, 127, 128, 129, -127, -128, -129, 383, 384, 385, -384}) {
        for (const std::int32_t lowest : {0, 127, 128, -128, -129, 32640, -32640}) {
          ASSERT_NO_FATAL_FAILURE(expect_fold({top, middle, low, lowest}));
        }
      }
    }
  }
}

TEST(Digits, SumsOfTheLargestDigitsDoNotOverflow) {
  constexpr std::int64_t k = kMaxExactK, most = 128 * 128;
  constexpr std::int64_t kInt = std::numeric_limits<std::int32_t>::max();
  static_assert(k == model::kMostExactK);
  static_assert(3 * most * k + ((2 * most * k + 128) >> 8) + 128 <= kInt);
  static_assert(2 * most * k + ((3 * most * k + (2 * most * k >> 8)) >> 8) + 2 <= kInt);
  static_assert(3 * most * (k + 256) > kInt, "nor is K split earlier than it must be");
  static_assert(kMaxExactTenK == model::kMostExactTenK && 4 * most * kMaxExactTenK <= kInt);
  static_assert(4 * most * (kMaxExactTenK + 32) > kInt);
}

TEST(Decision, RejectsRowsOutsideTheRange) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const auto is_fine = [](float value) { return is_scalable(stats_of({0.0F, value, 0.0F})); };
  for (const float value : {kInf, -kInf, std::nanf(""), 0x1p61F, std::nextafter(0x1p60F, kInf),
                            0x1p-57F, std::nextafter(0x1p-56F, 0.0F), 0x1p-140F}) {
    EXPECT_FALSE(is_fine(value)) << value;
    expect_model({0.0F, value});
  }
  EXPECT_TRUE(is_fine(0x1p60F));
  EXPECT_TRUE(is_fine(-0x1p-56F));
  EXPECT_TRUE(is_fine(0.0F));
}

// The width without outliers and other zeros.
Width kept_width_of(const std::vector<float>& row) {
  const RowStats seen = stats_of(row);
  const float factor = 1.0F / std::fmax(seen.largest, 1.0F);
  float squares = 0.0F, filled = 0.0F;
  for (const float value : row) {
    squares += value * factor * (value * factor);
    if (value != 0.0F) ++filled;
  }
  const auto k = static_cast<float>(row.size());
  return width_without_outliers(seen, scale_of(seen), k, filled / k, squares / k, factor);
}

// Rows may consist of almost equal elements, and of zeros in place of outliers or others.
TEST(Decision, WidthWithoutOutliersMatchesModel) {
  for (const std::int64_t k : {100, 400}) {
    for (const std::int64_t zeros : {0, 16, 17, 40, 100}) {
      for (const float spread : {0.0F, 1e-4F, 0.1F, 0.9F, -9.0F}) {
        std::vector<float> row(static_cast<std::size_t>(k));
        for (std::int64_t i = zeros; i < k; ++i) {
          row[static_cast<std::size_t>(i)] = 1.1F - spread * (static_cast<float>(i % 7) / 7.0F);
        }
        const model::Row expected = model::quantized({row.data(), 1, k, k, 1}, 0);
        const Width kept = kept_width_of(row);
        EXPECT_NEAR(kept.width, expected.kept_width, 1e-5 * expected.kept_width)
            << k << " " << zeros << " " << spread;
        EXPECT_NEAR(kept.spread, expected.kept_spread, 1e-4 * expected.kept_spread)
            << k << " " << zeros << " " << spread;
      }
    }
  }
  EXPECT_EQ(kept_width_of(std::vector<float>(100, 0x1p61F)).width, INFINITY);
}

// Squares that have lost bits beside the largest outlier's are not used.
TEST(Decision, WidthWithoutOutliersIsOfTheMeanWhereSquaresAreTiny) {
  std::vector<float> row(100, 1.1F);
  row[0] = 9.9F;
  const RowStats seen = stats_of(row);
  const Scale scale = scale_of(seen);
  const auto width = [&](float mean_square) {
    return width_without_outliers(seen, scale, 100.0F, 1.0F, mean_square, 0x1p-47F).width;
  };
  EXPECT_EQ(width(0x1p-100F), width_of(seen, scale, 100.0F).width);
  const double largest = static_cast<double>(scale.step) * kFull / 65536.0 * 0x1p-47;
  const double direct = largest * largest / 0x1p-100;
  EXPECT_NEAR(width(0x1.000002p-100F), direct, 1e-6 * direct);
}

// K products in FP32, of which that many are as accurate as `products` of digits.
double as_accurate(int products, const model::Statistics& of) {
  constexpr double kMany = 1e9;  // with an error far above that of one rounding
  return kMany * model::expected_error(products, of, kMany);
}

Path decided(const model::Statistics& of, double summed, Path least = Path::kSix,
             bool allows_ten = true, double in_fp32 = 0.0) {
  const auto of_operand = [](const model::Widths& w) {
    return Widths{static_cast<float>(w.width), static_cast<float>(w.spread),
                  static_cast<float>(w.most), static_cast<float>(w.zeros)};
  };
  const Match match{static_cast<float>(of.match.squares), static_cast<float>(of.match.roots),
                    static_cast<float>(of.match.centre), static_cast<float>(of.match.rounding),
                    static_cast<float>(of.match.equal)};
  const DigitSquares digits{static_cast<float>(of.digits.six), static_cast<float>(of.digits.eight),
                            static_cast<float>(of.digits.rounded_a),
                            static_cast<float>(of.digits.rounded_b),
                            of.digits.are_exact ? 0.0F : 1.0F};
  return decide(of_operand(of.a), of_operand(of.b), match, digits, of.digits.are_short,
                static_cast<float>(of.k), squared_error_of(static_cast<float>(summed)),
                squared_error_of(static_cast<float>(std::max(summed, in_fp32))), least, allows_ten,
                of.kept);
}

// Whatever the other rows are: the split pass writes no digits of such a row.
TEST(Decision, TakesNoDigitsOfARowTooWideForEight) {
  constexpr float kLeast = 0.01F;  // of which most rows are zeros
  for (const float summed : {1.0F, 100.0F, 10000.0F}) {
    const float allowed = squared_error_of(summed), most = most_spread_of_eight(allowed);
    const auto decided_for = [&](float spread, Path least) {
      const Widths wide{kLeast, kLeast, spread, 0.0F}, other{};
      for (const auto& [a, b] : {std::pair{wide, other}, std::pair{other, wide}}) {
        const Path path = decide(a, b, {}, {}, true, 1000.0F, allowed, allowed, least, false);
        if (path != Path::kFp64) return path;
      }
      return Path::kFp64;
    };
    EXPECT_EQ(decided_for(most, Path::kSix), Path::kFp64);
    EXPECT_EQ(decided_for(0.9F * most, Path::kEight), Path::kEight) << "or it could be smaller";
  }
}

// Of either side of each threshold, 1 % away from it; the widths are such that one constant after
// another makes up most of the error.
TEST(Decision, MatchesModelAtItsThresholds) {
  const auto expect_threshold_of = [&](const model::Statistics& of) {
    SCOPED_TRACE(std::to_string(of.a.width) + " " + std::to_string(of.b.width) + " " +
                 std::to_string(of.a.most) + " " + std::to_string(of.b.most));
    for (const int products : {6, 8, 10}) {
      const double summed = as_accurate(products, of);
      if (model::expected_error(products, of, 0.0) <= 1.0) continue;  // of one rounding
      if (products == 10 && summed >= as_accurate(8, of)) continue;   // eight leave out less
      const auto decided_beside = [&](double beside, bool allows_ten = true) {
        return decided(of, beside, Path::kSix, allows_ten);
      };
      for (const double beside : {0.99 * summed, 1.01 * summed}) {
        for (const bool allows_ten : {false, true}) {
          EXPECT_EQ(static_cast<int>(decided_beside(beside, allows_ten)),
                    model::decision(of, beside, allows_ten));
        }
      }
      EXPECT_NE(decided_beside(0.99 * summed), decided_beside(1.01 * summed));
      // Where cuBLAS's sums are too short, and those of FP32 are just long enough.
      for (const double in_fp32 : {0.99 * summed, 1.01 * summed}) {
        for (const bool allows_ten : {false, true}) {
          EXPECT_EQ(static_cast<int>(decided(of, 0.9 * summed, Path::kSix, allows_ten, in_fp32)),
                    model::decision(of, 0.9 * summed, allows_ten, in_fp32));
        }
      }
    }
  };
  const auto expect_threshold = [&](const model::Widths& a, const model::Widths& b) {
    // Unrelated rows; large elements meet small ones, in the mean and in one pair; large products
    // come last; zeros.
    for (const model::Match& match :
         {model::Match{}, {.squares = 0.3}, {.roots = 0.6}, {.centre = 0.7}, {.rounding = 0.4}}) {
      expect_threshold_of({a, b, match, false});
      expect_threshold_of({a, b, match, true});
    }
  };
  const auto even = [](double width) { return model::Widths{width, width, width}; };
  expect_threshold(even(0), even(0));     // kFolded
  expect_threshold(even(1000), even(0));  // kRounded
  expect_threshold(even(0), even(1000));
  expect_threshold(even(100), even(100));  // kLeftOut, of six
  expect_threshold(even(3000), even(200));
  expect_threshold(even(1e7), even(1e7));  // kLowest, of eight
  expect_threshold(even(1e6), even(1e9));
  expect_threshold(even(4), even(4));               // evenly distributed elements
  expect_threshold({100, 100, 300}, even(100));     // one row of A
  expect_threshold(even(100), {100, 100, 300});     // one column of B
  expect_threshold({100, 400, 400}, {10, 90, 90});  // elements of |A|·|B| far below their mean
  expect_threshold({10, 90, 900}, {100, 200, 200});
  expect_threshold_of({{4, 4, 4, 0.5}, even(4), {}, true});  // rows of A are half zeros
  expect_threshold_of({{4, 4, 9, 0.9}, {4, 9, 9, 0.7}, {}, true});
}

// With digits that are not uniform, few values, short significands, and a fold that rounds.
TEST(Decision, MatchesModelForDigits) {
  int taken[65] = {};
  for (const double width : {2.0, 12.0, 60.0}) {
    for (const double rounding : {1.0, 0.1, 0.0}) {
      for (const double equal : {0.0, 0.02}) {
        for (const model::DigitSquares& digits :
             {model::DigitSquares{},
              {.six = 9.0},
              {.eight = 1e5, .rounded_a = 3.0, .rounded_b = 5.0},
              {.are_short = true},
              {.are_short = true, .are_exact = true}}) {
          for (const double k : {200.0, 1e6}) {
            for (const double summed : {30.0, 200.0, 1000.0, 7000.0}) {
              const model::Widths widths{width, 1.1 * width, 1.3 * width};
              const model::Statistics of{widths, widths, {.rounding = rounding, .equal = equal},
                                         false,  digits, k};
              const int products = model::decision(of, summed, true);
              EXPECT_EQ(static_cast<int>(decided(of, summed)), products)
                  << width << " " << rounding << " " << equal << " " << digits.six << " "
                  << digits.are_short << " " << k << " " << summed;
              ++taken[products];
            }
          }
        }
      }
    }
  }
  for (const int products : {6, 8, 10}) EXPECT_GT(taken[products], 20) << products;
  // Ten products of few values leave out more.
  const model::Widths wide{900, 900, 900};
  EXPECT_EQ(decided({wide, wide, {.equal = 0.0}}, 1500), Path::kTen);
  EXPECT_EQ(decided({wide, wide, {.equal = 0.02}}, 1500), Path::kFp64);
}

// Of kRows rows each, all elements of which have the same digits.
constexpr int kRows = 32, kSampled = 64;
DigitSums sums_of(int hi, int mid, int lo, int tail) {
  const auto squares = [](int digit) { return kRows * kSampled * digit * digit; };
  const auto products = [&](int digit) { return (kSampled - 1) * squares(digit); };
  return {.hi_squares = squares(hi),
          .mid_squares = squares(mid),
          .lo_squares = squares(lo),
          .tail_squares = squares(tail),
          .hi_products = products(hi),
          .mid_products = products(mid),
          .lo_products = products(lo),
          .tail_products = products(tail)};
}
constexpr double kUniform = (256.0 * 256.0 - 1.0) / 12.0, kK = 1000.0;

DigitSquares squares_with(const DigitSums& a, const DigitSums& b) {
  return squares_of(a, b, kRows, kSampled, static_cast<float>(kK), 600.0F);
}

// All mid, or lo, are -128: they add up in all products.
TEST(Decision, CountsDigitsWithAMean) {
  const double square = 128.0 * 128.0 / kUniform, mean = square * (square - 45.0 / kUniform);
  const DigitSums lo = sums_of(0, 0, -128, 0);
  const DigitSquares six = squares_with(sums_of(0, -128, 0, 0), lo), eight = squares_with(lo, lo);
  EXPECT_NEAR(six.six, (square * square + 2.0 * kK * mean) / 2.2, 1e-4 * kK * mean);
  EXPECT_EQ(six.eight, 1.0F);
  EXPECT_NEAR(eight.eight, (square * square + kK * mean) / 1.1, 1e-4 * kK * mean);
  EXPECT_EQ(eight.six, 1.0F);
}

// A mean as small as that of a sample of uniform digits counts beside one that is clearly not 0.
TEST(Decision, CountsASmallMeanBesideALargeOne) {
  const auto six_with = [](double mean_of_a, double mean_of_b) {
    DigitSums a = sums_of(0, 74, 0, 0), b = sums_of(0, 0, 74, 0);
    const double products = kRows * kSampled * (kSampled - 1.0);
    a.mid_products = static_cast<int>(mean_of_a * products);
    b.lo_products = static_cast<int>(mean_of_b * products);
    return squares_with(a, b).six;
  };
  EXPECT_EQ(six_with(40, 40), 1.0F);
  EXPECT_EQ(six_with(5000, -40), 1.0F);
  const double expected = 1.0 + 2.0 * kK * (4955.0 / kUniform) * (40.0 / kUniform);
  EXPECT_NEAR(six_with(5000, 40), expected / 2.2, 0.01 * expected);
  EXPECT_NEAR(six_with(40, 5000), expected / 2.2, 0.01 * expected);
}

// Roundings with a mean add up beside elements of one sign: of each operand beside the other.
TEST(Decision, CountsRoundingsWithAMean) {
  const DigitSums positive = sums_of(50, 74, 74, 0);
  DigitSums few = sums_of(50, 74, 74, 127);
  few.hi_products = 0;  // of either sign
  const double square = 127.0 * 127.0 / kUniform, all = square * (1.0 + kK) / 1.1;
  const DigitSquares a = squares_with(few, positive), b = squares_with(positive, few);
  EXPECT_NEAR(a.rounded_a, all, 1e-4 * all);
  EXPECT_EQ(a.rounded_b, 1.0F);
  EXPECT_NEAR(b.rounded_b, all, 1e-4 * all);
  EXPECT_EQ(b.rounded_a, 1.0F);
  EXPECT_NEAR(squares_with(few, few).rounded_a, square / 1.1, 1e-4);
  // Sums of 600 products in FP32 are larger where both have one sign.
  few.hi_products = positive.hi_products;
  EXPECT_NEAR(squares_with(few, positive).rounded_a, all / (1.0 + 600.0 * 2.0 / 3.0), 1e-3);
}

// Where few products are not of zeros, one alone may make up an element of C.
TEST(Decision, TakesFp64WhereFewElementsAreNotZero) {
  const auto decided_of = [](double filled) {
    const model::Widths rows{16, 16, 16, 1.0 - filled};
    return decided({rows, rows, {}, true}, 4096);
  };
  EXPECT_EQ(decided_of(1.0), Path::kSix);
  EXPECT_EQ(decided_of(0.2), Path::kEight);
  EXPECT_EQ(decided_of(0.06), Path::kTen);  // of 4096 products some 15 are left
  EXPECT_EQ(decided_of(0.05), Path::kFp64);
}

// Two operands of almost equal elements need ten products; one, or beside zeros, does not.
TEST(Decision, TakesTenProductsOfTwoFlatOperands) {
  const auto decided_of = [](double width_a, double width_b) {
    return decided({{width_a, width_a, width_a}, {width_b, width_b, width_b}}, 1e6);
  };
  for (const double flat : {0.6, 0.6384}) {
    EXPECT_EQ(decided_of(flat, flat), Path::kTen);
    for (const double other : {0.0, 0.6386, 0.9}) {
      EXPECT_EQ(decided_of(flat, other), Path::kSix) << other;
      EXPECT_EQ(decided_of(other, flat), Path::kSix) << other;
    }
  }
}

TEST(Decision, TakesAtLeastTheProductsOfTheVariant) {
  const model::Widths narrow{16, 16, 16};
  EXPECT_EQ(decided({narrow, narrow}, 1024), Path::kSix);
  EXPECT_EQ(decided({narrow, narrow}, 1024, Path::kEight), Path::kEight);
  EXPECT_EQ(decided({narrow, narrow}, 1024, Path::kTen), Path::kTen);
  EXPECT_EQ(decided({narrow, narrow}, 1024, Path::kTen, false), Path::kFp64);
  EXPECT_EQ(decided({narrow, narrow}, 1024, Path::kFp64), Path::kFp64);
}

TEST(Decision, TakesFp64ForAnInfiniteWidth) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const model::Widths infinite{kInf, kInf, kInf}, narrow{16, 16, 16}, none{};
  EXPECT_EQ(decided({infinite, narrow}, 4096), Path::kFp64);
  EXPECT_EQ(decided({infinite, none}, 4096), Path::kFp64) << "infinity times zero";
  EXPECT_EQ(decided({none, infinite}, 4096, Path::kEight), Path::kFp64);
  EXPECT_EQ(decided({{16, kInf, kInf}, narrow}, 4096), Path::kFp64) << "a row with one element";
}

}  // namespace
}  // namespace tilegate::int8x3
