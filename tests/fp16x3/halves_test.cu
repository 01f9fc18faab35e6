// Scaling and splitting, against exact arithmetic in double; on the device too, where conversions
// are instructions.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "20_fp16x3/halves.cuh"
#include "simt/device_array.hpp"

namespace tilegate::fp16x3 {
namespace {

// Bits of every kind, the exponent brought into [first, last].
float random_float(std::mt19937_64& random, int first, int last) {
  const auto exponent = static_cast<std::uint32_t>(
      127 + first + static_cast<int>(random() % static_cast<unsigned>(last - first + 1)));
  const auto bits = static_cast<std::uint32_t>(random());
  return float_of((bits & 0x807F'FFFFU) | exponent << 23);
}

TEST(Halves, EveryFp16IsItself) {
  for (std::uint32_t half = 0; half < 0x7C00U; ++half) {
    ASSERT_EQ(half_of(value_of_half(half)), half);
    ASSERT_EQ(half_of(-value_of_half(half)), half | 0x8000U);
  }
  EXPECT_EQ(value_of_half(1), 0x1p-24F);
  EXPECT_EQ(value_of_half(0x3C01), 1.0F + 0x1p-10F);
  EXPECT_EQ(half_of(1.0F + 0x1p-11F), 0x3C00U) << "to the even one of two";
  EXPECT_EQ(half_of(1.0F + 0x3p-11F), 0x3C02U);
  EXPECT_EQ(half_of(0x1.FFFp-15F), 0x0400U) << "from subnormal to normal";
}

TEST(Halves, AddUpToTheElement) {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 300000; ++turn) {
    const float x = random_float(random, -40, 14);
    const Halves halves = split_element(x);
    const double sum = static_cast<double>(value_of_half(halves.hi)) +
                       static_cast<double>(value_of_half(halves.lo));
    ASSERT_LE(std::fabs(sum - x), 0x1p-23 * std::fabs(x) + 0x1p-25) << x;
    // What lo·lo leaves out.
    ASSERT_LE(std::fabs(value_of_half(halves.lo)), 0x1p-11F * std::fabs(x) + 0x1p-24F) << x;
  }
}

TEST(Halves, TheLargestOfARowIsScaledIntoPlace) {
  std::mt19937_64 random(2);
  for (int turn = 0; turn < 100000; ++turn) {
    RowStats seen;
    seen.add(random_float(random, -59, 59));
    const float step = step_of(seen);
    const float scaled = seen.largest / step;
    ASSERT_GE(scaled, 0x1p14F) << seen.largest;
    ASSERT_LT(scaled, 0x1p15F) << seen.largest;
    ASSERT_EQ(scaled * step, seen.largest);
  }
}

TEST(Halves, RowsThatCannotBeScaledAreSeen) {
  const auto is_fine = [](float value) {
    RowStats seen;
    seen.add(1.0F);
    seen.add(value);
    return is_scalable(seen);
  };
  EXPECT_TRUE(is_fine(0.0F));
  EXPECT_TRUE(is_fine(0x1p60F));
  EXPECT_FALSE(is_fine(0x1p61F));
  EXPECT_FALSE(is_fine(INFINITY));
  EXPECT_FALSE(is_fine(std::nanf("")));
  RowStats tiny;
  tiny.add(0x1p-61F);
  EXPECT_FALSE(is_scalable(tiny));
  EXPECT_EQ(step_of(tiny), INFINITY);
  EXPECT_TRUE(is_scalable(RowStats{}));
}

constexpr int kLong = 2, kShort = 1, kFp32 = 0;  // chunks of a run

// Of K = 2048 and operands of which `share` of the products count, where cuBLAS adds up `summed`.
int decided(float share, float summed, float one_sign_a = 0.0F, float one_sign_b = 0.0F) {
  constexpr float k = 2048.0F;
  return decide({share * k, one_sign_a}, {k, one_sign_b}, {k, summed, 12.0F});
}

TEST(Decision, IsByHowManyProductsThatCountCublasAddsUp) {
  EXPECT_EQ(decided(1.0F, 64.0F), kShort);
  EXPECT_EQ(decided(1.0F, 30.0F), kFp32);
  EXPECT_EQ(decided(0.25F, 64.0F), kFp32);
  EXPECT_EQ(decided(1.0F, 2048.0F), kLong);
  EXPECT_EQ(decided(0.15F, 2048.0F), kShort);
  EXPECT_EQ(decided(0.01F, 2048.0F), kFp32);
}

// Up to there the bound of errors does not count on long runs.
TEST(Decision, IsForShortRunsBelowK1024) {
  EXPECT_EQ(decide({1024.0F, 0.0F}, {1024.0F, 0.0F}, {1024.0F, 1024.0F, 12.0F}), kLong);
  EXPECT_EQ(decide({1023.0F, 0.0F}, {1023.0F, 0.0F}, {1023.0F, 1023.0F, 12.0F}), kShort);
}

TEST(Decision, IsByRowsThatCannotBeScaled) {
  EXPECT_EQ(decided(INFINITY, 2048.0F), kFp32);
  EXPECT_EQ(decide({INFINITY, 0.0F}, {}, {2048.0F, 2048.0F, 2048.0F}), kFp32);
}

// Only where both operands have one sign do products have it.
TEST(Decision, IsBySigns) {
  EXPECT_EQ(decided(1.0F, 64.0F, 1.0F, 1.0F), kFp32);
  EXPECT_EQ(decided(1.0F, 64.0F, 1.0F, 0.0F), kShort);
  EXPECT_EQ(decided(1.0F, 64.0F, 0.5F, 0.5F), kFp32);
  EXPECT_EQ(decided(1.0F, 64.0F, 0.02F, 0.02F), kShort);
  EXPECT_EQ(decided(1.0F, 2048.0F, 0.02F, 0.02F), kLong);
}

TEST(Decision, SignsAreSeen) {
  const auto seen = [](float first, float second) {
    RowStats of_one, of_both;
    of_one.add(first);
    of_both.add(second);
    of_both.add(of_one);
    return one_sign_of(of_both);
  };
  EXPECT_EQ(seen(1.0F, 3.0F), 1.0F);
  EXPECT_EQ(seen(-1.0F, -3.0F), 1.0F);
  EXPECT_EQ(seen(1.0F, -3.0F), 0.5F);
  EXPECT_EQ(one_sign_of(RowStats{}), 0.0F);
}

__global__ void split_all(const float* x, std::uint32_t* halves) {
  const unsigned i = blockIdx.x * 128 + threadIdx.x;
  const Halves split = split_element(x[i]);
  halves[i] = split.hi | split.lo << 16;
}

TEST(Halves, AreTheSameOnTheDevice) {
  std::mt19937_64 random(3);
  std::vector<float> x(128 * 64);
  for (float& value : x) value = random_float(random, -40, 14);
  const DeviceArray<float> in(x);
  const DeviceArray<std::uint32_t> out(x.size());
  ASSERT_TRUE(is_ok(device::launch({.kernel = "split_all", .blocks = 64, .threads_x = 128}, nullptr,
                                   split_all, static_cast<const float*>(in.data()), out.data())));
  const std::vector<std::uint32_t> found = out.to_host();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Halves split = split_element(x[i]);
    ASSERT_EQ(found[i], split.hi | split.lo << 16) << x[i];
  }
}

}  // namespace
}  // namespace tilegate::fp16x3
