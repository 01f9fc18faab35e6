// Planes, ranges and samples, computed on the host.
#include <cmath>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

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

// Sums of distances over a sample.
TEST(Bf16Sample, AllowsPlanesBetweenItsBounds) {
  constexpr std::uint32_t kOctaves = kOctave * kSampled;
  EXPECT_TRUE(allows_planes(2 * kOctaves, 2 * kOctaves));
  EXPECT_TRUE(allows_planes(kOctaves / 16, 0));
  EXPECT_FALSE(allows_planes(kOctaves / 32, kOctaves / 64));
  EXPECT_TRUE(allows_planes(12 * kOctaves, 23 * kOctaves / 2));
  EXPECT_FALSE(allows_planes(12 * kOctaves, 12 * kOctaves));
}

}  // namespace
}  // namespace tilegate::bf16x6
