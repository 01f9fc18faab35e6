// Splitting, scaling and folding, on the host, against exact integers.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/common/fp32_fallback.cuh>

#include "18_int8x3/digits.cuh"
#include "thorough.hpp"

namespace tilegate::int8x3 {
namespace {

RowStats stats_of(const std::vector<float>& row) {
  RowStats seen;
  for (const float value : row) seen.add(value);
  return seen;
}

// From its digits, as they are stored.
std::int32_t integer_of_digits(std::int32_t x) {
  std::int32_t sum = 0;
  for (int plane = 0; plane < kPlanes; ++plane) {
    const std::uint32_t biased[4] = {biased_digits(-x), biased_digits(x), 0, biased_digits(1)};
    sum = sum * 256 + static_cast<std::int8_t>(pack_digits(biased, plane) >> 8 & 0xFFU);
  }
  return sum;
}

TEST(Digits, HoldEveryInteger) {
  for (std::int32_t x = -kLargest; x <= kLargest; x += 97) ASSERT_EQ(integer_of_digits(x), x);
  for (std::int32_t x = kLargest - 70000; x <= kLargest; ++x) {
    ASSERT_EQ(integer_of_digits(x), x);
    ASSERT_EQ(integer_of_digits(-x), -x);
  }
  EXPECT_NE(integer_of_digits(kLargest + 1), kLargest + 1) << "the top digit would be 128";
}

// Every significand, and for short ones every one that they have, at both ends of the exponents.
// At night of every significand.
TEST(Digits, TheLargestOfARowFits) {
  const std::uint32_t step = is_thorough() ? 1 : 11;
  for (const int exponent : {-60, 0, 59}) {
    for (std::uint32_t bits = 0; bits < (1U << 23); bits += exponent == 0 ? step : 61) {
      const float largest = std::ldexp(float_of(0x3F800000U | bits), exponent);
      const Scale scale = scale_of(stats_of({largest}));
      const std::int32_t x = integer_of(largest, scale);
      ASSERT_LE(x, kLargest) << largest;
      ASSERT_GE(x, (kLargest - 1) / 4) << largest;
      ASSERT_EQ(integer_of(-largest, scale), -x) << largest;
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
TEST(Digits, RoundToWhatTheBoundSays) {
  std::mt19937_64 random(2);
  for (int turn = 0; turn < 20000; ++turn) {
    std::vector<float> row(16);
    const auto first = static_cast<std::uint32_t>(67 + random() % 90);
    for (float& value : row) {
      const auto bits = static_cast<std::uint32_t>(random());
      value = float_of((bits & 0x807FFFFFU) | (first + bits % 31) << 23);
      if (turn % 2 == 0) value = float_of(bits_of(value) & ~kShortBits);
    }
    const RowStats seen = stats_of(row);
    ASSERT_TRUE(is_scalable(seen));
    const Scale scale = scale_of(seen);
    for (const float value : row) {
      const std::int32_t x = integer_of(value, scale);
      ASSERT_LE(std::abs(x), kLargest);
      const double back = x * static_cast<double>(scale.step) * 0x1p-16;
      ASSERT_LE(std::fabs(back - static_cast<double>(value)), 0x1p-22 * 1.001 * seen.largest);
    }
  }
}

TEST(Digits, FoldsExactSums) {
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 100000; ++turn) {
    const auto draw = [&](std::int64_t products) {
      const auto most = static_cast<std::uint64_t>(kMaxExactK * products * 128 * 128) >> turn % 31;
      return static_cast<std::int32_t>(static_cast<std::int64_t>(random() % (2 * most + 1)) -
                                       static_cast<std::int64_t>(most));
    };
    const std::int32_t level[4] = {draw(1), draw(2), draw(3), draw(2)};
    const std::int32_t three[3] = {level[0], level[1], level[2]};
    const double exact = level[0] + level[1] * 0x1p-8 + level[2] * 0x1p-16;
    const double largest = std::fabs(level[0]) + std::fabs(level[1]) * 0x1p-8;
    const double allowed = 3 * 0x1p-24 * largest + 0x1p-8;
    ASSERT_NEAR(static_cast<double>(fold(three)), exact, allowed);
    ASSERT_NEAR(static_cast<double>(fold(level)), exact + level[3] * 0x1p-24, allowed);
  }
}

TEST(Digits, SumsOfTheLargestDigitsDoNotOverflow) {
  constexpr std::int64_t k = kMaxExactK, most = 128 * 128;
  constexpr std::int64_t kInt = std::numeric_limits<std::int32_t>::max();
  static_assert(3 * most * k + ((2 * most * k + 128) >> 8) + 128 <= kInt);
  static_assert(2 * most * k + ((3 * most * k + (2 * most * k >> 8)) >> 8) + 2 <= kInt);
  static_assert(3 * most * (k + 256) > kInt, "nor is K split earlier than it must be");
}

TEST(Decision, RowsThatCannotBeScaled) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float value : {kInf, -kInf, std::nanf(""), 0x1p61F, 0x1p-61F, 0x1p-140F}) {
    const RowStats seen = stats_of({1e-20F * 0.0F, value, 0.0F});
    EXPECT_FALSE(is_scalable(seen)) << value;
    EXPECT_EQ(width_of(seen, scale_of(seen), 3), kInf) << value;
  }
  const RowStats zeros = stats_of({0.0F, -0.0F});
  EXPECT_TRUE(is_scalable(zeros));
  EXPECT_EQ(width_of(zeros, scale_of(zeros), 2), 0.0F);
}

TEST(Decision, TakesTheFewestProductsThatAreAccurateEnough) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNormal = 16.0F, kWide = 200.0F;  // (largest / mean)² of normal elements; wide
  EXPECT_EQ(decide(kNormal, kNormal, 1024, Path::kSix), Path::kSix);
  EXPECT_EQ(decide(kNormal, kNormal, 200, Path::kSix), Path::kEight);
  EXPECT_EQ(decide(kNormal, kNormal, 64, Path::kSix), Path::kFp32);
  EXPECT_EQ(decide(kWide, kNormal, 1024, Path::kSix), Path::kEight);
  EXPECT_EQ(decide(100 * kWide, kNormal, 4096, Path::kSix), Path::kFp32);
  EXPECT_EQ(decide(kInf, kNormal, 4096, Path::kSix), Path::kFp32);
  EXPECT_EQ(decide(kInf, 0, 4096, Path::kSix), Path::kFp32) << "infinity times zero";
  EXPECT_EQ(decide(kNormal, kNormal, 1024, Path::kEight), Path::kEight);
  EXPECT_EQ(decide(kNormal, kNormal, 1024, Path::kFp32), Path::kFp32);
}

TEST(Fp32Parts, AreAsManyAsBlocksAreLeftAndWorthIt) {
  EXPECT_EQ(Fp32Parts(300, 1, 132).count, 4U);
  EXPECT_EQ(Fp32Parts(300, 1, 132).k, 96);
  EXPECT_EQ(Fp32Parts(4096, 42, 132).count, 3U);
  EXPECT_EQ(Fp32Parts(16384, 1, 132).count, 16U);
  EXPECT_EQ(Fp32Parts(127, 1, 132).count, 1U) << "short";
  EXPECT_EQ(Fp32Parts(4096, 67, 132).count, 1U) << "more tiles than half of the blocks";
  EXPECT_EQ(Fp32Parts(4096, 500, 132).count, 1U);
}

}  // namespace
}  // namespace tilegate::int8x3
