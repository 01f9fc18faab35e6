// Scaling and splitting against the model in exact integers, on the device too, where conversions
// are instructions; the decision at its thresholds.
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "20_fp16x3/fp16.cuh"
#include "models/fp16x3.hpp"
#include "simt/device_array.hpp"

namespace tilegate::fp16x3 {
namespace {

namespace model = models::fp16x3;

// Bits of every kind, the exponent brought into [first, last].
float random_float(std::mt19937_64& random, int first, int last) {
  const auto exponent = static_cast<std::uint32_t>(
      127 + first + static_cast<int>(random() % static_cast<unsigned>(last - first + 1)));
  const auto bits = static_cast<std::uint32_t>(random());
  return float_of((bits & 0x807F'FFFFU) | exponent << 23);
}

TEST(Fp16Split, RoundTripEveryFp16) {
  for (std::uint32_t bits = 0; bits < 0x7C00U; ++bits) {
    ASSERT_EQ(to_fp16(from_fp16(bits)), bits);
    ASSERT_EQ(to_fp16(-from_fp16(bits)), bits | 0x8000U);
  }
  EXPECT_EQ(from_fp16(1), 0x1p-24F);
  EXPECT_EQ(from_fp16(0x3C01), 1.0F + 0x1p-10F);
  EXPECT_EQ(to_fp16(1.0F + 0x1p-11F), 0x3C00U) << "to the even one of two";
  EXPECT_EQ(to_fp16(1.0F + 0x3p-11F), 0x3C02U);
  EXPECT_EQ(to_fp16(0x1.FFFp-15F), 0x0400U) << "from subnormal to normal";
}

// A row whose largest element is in [2^14, 2^15) already: nothing is scaled.
void expect_fp16_split(const std::vector<float>& values) {
  std::vector<float> row = {-0x1.8p14F};
  row.insert(row.end(), values.begin(), values.end());
  const auto k = static_cast<std::int64_t>(row.size());
  const model::Row expected = model::split({row.data(), 1, k, k, 1}, 0);
  ASSERT_EQ(expected.step, 1.0F);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Fp16Split split = split_element(row[i]);
    ASSERT_EQ(split.hi, expected.hi[i]) << row[i];
    ASSERT_EQ(split.lo, expected.lo[i]) << row[i];
  }
}

TEST(Fp16Split, MatchModel) {
  std::mt19937_64 random(4);
  for (int turn = 0; turn < 100; ++turn) {
    std::vector<float> row(1000);
    for (float& value : row) value = random_float(random, -40, 14);
    ASSERT_NO_FATAL_FAILURE(expect_fp16_split(row));
  }
}

// Ties between two FP16 numbers for hi and for lo, and values beside them.
TEST(Fp16Split, RoundTiesToEven) {
  std::vector<float> row = {0.0F, -0.0F, 0x1p-149F, 0x1.FFFFFEp14F, 0x1.FFEp14F, -0x1.FFDp14F};
  for (const float hi : {1.0F, -0x1.004p3F, 0x1.ffcp-15F, 0x1p-14F, 0x1.8p-20F, 0x1.ff8p13F}) {
    const float unit = std::fmax(std::ldexp(1.0F, std::ilogb(hi) - 10), 0x1p-24F);
    for (const float tie : {0.5F * unit, 1.5F * unit, 0.25F * unit, 0x1.004p-4F * unit}) {
      for (const float beside : {hi + tie, hi - tie}) {
        row.push_back(beside);
        row.push_back(std::nextafter(beside, 0.0F));
        row.push_back(std::nextafter(beside, 2.0F * beside));
      }
    }
  }
  for (int i = 0; i < 300; ++i) row.push_back(static_cast<float>(i) * 0x1p-26F);
  expect_fp16_split(row);
}

TEST(Fp16Split, SumToTheElement) {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 100000; ++turn) {
    const float x = random_float(random, -40, 14);
    const Fp16Split split = split_element(x);
    const double sum =
        static_cast<double>(from_fp16(split.hi)) + static_cast<double>(from_fp16(split.lo));
    ASSERT_LE(std::fabs(sum - x), 0x1p-23 * std::fabs(x) + 0x1p-25) << x;
    // What lo·lo leaves out.
    ASSERT_LE(std::fabs(from_fp16(split.lo)), 0x1p-11F * std::fabs(x) + 0x1p-24F) << x;
  }
}

TEST(Fp16Split, ScaleTheLargestElementOfARow) {
  std::mt19937_64 random(2);
  for (int turn = 0; turn < 100000; ++turn) {
    RowStats seen;
    seen.add(random_float(random, -56, 59));
    const float step = step_of(seen);
    ASSERT_EQ(step, model::split({&seen.largest, 1, 1, 1, 1}, 0).step) << seen.largest;
    const float scaled = seen.largest / step;
    ASSERT_GE(scaled, 0x1p14F) << seen.largest;
    ASSERT_LT(scaled, 0x1p15F) << seen.largest;
    ASSERT_EQ(scaled * step, seen.largest);
  }
}

TEST(Fp16Split, ReportRowsThatCannotBeScaled) {
  const auto is_fine = [](float value) {
    RowStats seen;
    seen.add(1.0F);
    seen.add(value);
    return is_scalable(seen);
  };
  EXPECT_TRUE(is_fine(0.0F));
  EXPECT_TRUE(is_fine(0x1p60F));
  EXPECT_FALSE(is_fine(std::nextafter(0x1p60F, INFINITY)));
  EXPECT_FALSE(is_fine(0x1p61F));
  EXPECT_FALSE(is_fine(INFINITY));
  EXPECT_FALSE(is_fine(std::nanf("")));
  RowStats least, tiny;
  least.add(-0x1p-56F);
  EXPECT_TRUE(is_scalable(least));
  tiny.add(std::nextafter(0x1p-56F, 0.0F));
  EXPECT_FALSE(is_scalable(tiny));
  EXPECT_EQ(step_of(tiny), INFINITY);
  EXPECT_TRUE(is_scalable(RowStats{}));
}

constexpr int kLong = 2, kShort = 1, kFp64 = 0;  // chunks of a run

int decided(const model::Statistics& a, const model::Statistics& b, const model::Summed& summed) {
  const auto seen = [](const model::Statistics& of) {
    return OperandStats{static_cast<float>(of.counted), static_cast<float>(of.one_sign),
                        static_cast<float>(of.squares), static_cast<float>(of.largest_squares)};
  };
  return decide(seen(a), seen(b),
                {static_cast<float>(summed.k), static_cast<float>(summed.either_sign),
                 static_cast<float>(summed.one_sign)});
}

// An operand in whose rows so many elements count, that are of one sign so far, and have the norm
// of so many of the largest.
model::Statistics seen(double counted, double one_sign, double few) {
  constexpr double kLargest = 3.0;  // of all rows, squares
  return {counted, one_sign, few * kLargest, kLargest};
}

// 1 % from where halves in such runs are as accurate as they must be, on either side: by the number
// of products that cuBLAS adds up, with either sign or with one. `few` of A; B's elements are
// alike.
void expect_threshold(int run, double k, double share, double one_sign, double either_sign = 0.0,
                      double few = 0.0) {
  SCOPED_TRACE("K = " + std::to_string(k) + ", share " + std::to_string(share) + ", one sign " +
               std::to_string(one_sign) + ", few " + std::to_string(few));
  model::Summed at{k, 1.0, 0.0}, bare{k, 0.0, 1.0};
  double& summed = either_sign == 0.0 ? at.either_sign : at.one_sign;
  const model::Statistics a = seen(share * k, one_sign, few == 0.0 ? 0.3 * k : few),
                          b = seen(k, one_sign, k);
  if (either_sign == 0.0) {
    summed = model::expected_error(run, a, b, at);
  } else {
    at.either_sign = 0.0;
    summed = model::expected_error(run, a, b, bare);
  }
  for (const double beside : {0.99, 1.01}) {
    model::Summed of = at;
    of.either_sign *= beside;
    of.one_sign *= beside;
    EXPECT_EQ(decided(a, b, of), model::decision(a, b, of)) << "at " << beside;
    EXPECT_EQ(decided(a, b, of) == run, beside > 1.0) << "at " << beside;
    EXPECT_EQ(decided(b, a, of), decided(a, b, of)) << "at " << beside;
  }
}

// Each with another constant that makes up most of the error.
TEST(Decision, MatchesModelAtItsThresholds) {
  expect_threshold(kLong, 1024, 1.0, 0.0);  // of a run
  expect_threshold(kShort, 256, 1.0, 0.0);
  expect_threshold(kLong, 4096, 1.0, 1.0);  // of one whose products have one sign
  expect_threshold(kShort, 1000, 1.0, 1.0);
  expect_threshold(kShort, 1000, 1.0, 1.0, 1.0);
  expect_threshold(kShort, 640, 0.25, 0.0);  // runs added to a sum, whose number is limited
  expect_threshold(kLong, 0x1p26, 1.0, 0.0);
  expect_threshold(kLong, 0x1p26, 0.5, 0.7);
  expect_threshold(kLong, 0x1p20, 0.5, 0.02);
  for (const double few : {1.0, 6.0, 100.0}) {  // where few products make up an element of C
    expect_threshold(kShort, 512, 1.0, 0.0, 0.0, few);
    expect_threshold(kLong, 4096, 0.5, 0.3, 0.0, few);
  }
}

// A constant times a constant, whatever cuBLAS's error.
TEST(Decision, TakesFp64ForElementsThatAreAlmostEqual) {
  constexpr double k = 1024;
  const model::Summed summed{k, k, k};
  const auto of = [](double one_sign, double few) { return seen(k, one_sign, few * k); };
  const auto decision = [&](const model::Statistics& a, const model::Statistics& b) {
    EXPECT_EQ(decided(a, b, summed), model::decision(a, b, summed));
    return decided(a, b, summed);
  };
  EXPECT_EQ(decision(of(1.0, 0.9969), of(1.0, 0.9969)), kLong);
  EXPECT_EQ(decision(of(1.0, 0.9971), of(1.0, 0.9969)), kLong);
  EXPECT_EQ(decision(of(1.0, 0.9969), of(1.0, 0.9971)), kLong);
  EXPECT_EQ(decision(of(1.0, 0.9971), of(1.0, 0.9971)), kFp64);
  EXPECT_EQ(decision(of(0.51, 1.0), of(1.0, 1.0)), kFp64);
  EXPECT_EQ(decision(of(0.49, 1.0), of(1.0, 1.0)), kLong);
  EXPECT_EQ(decision(of(0.7, 1.0), of(0.7, 1.0)), kLong);
  EXPECT_EQ(decision(of(0.72, 1.0), of(0.72, 1.0)), kFp64);
}

TEST(Decision, NeedsAnEighthOfARow) {
  EXPECT_TRUE(counts_enough(32.0F, 256.0F));
  EXPECT_FALSE(counts_enough(31.0F, 256.0F));
  EXPECT_FALSE(counts_enough(32.0F, 257.0F));
  EXPECT_TRUE(counts_enough(0x1p24F, 0x1p27F));
  EXPECT_FALSE(counts_enough(0x1p24F - 1.0F, 0x1p27F));
}

// Up to there the bound of errors does not count on long runs.
TEST(Decision, TakesShortRunsBelowK1024) {
  const auto of = [](double k) {
    return decided(seen(k, 0.0, 0.3 * k), seen(k, 0.0, 0.3 * k), {k, 1024.0, 12.0});
  };
  EXPECT_EQ(of(1024.0), kLong);
  EXPECT_EQ(of(1023.0), kShort);
}

TEST(Decision, TakesFp64ForRowsThatCannotBeScaled) {
  const model::Statistics scaled = seen(2048.0, 0.0, 600.0),
                          not_scaled = seen(INFINITY, 0.0, 600.0);
  EXPECT_EQ(decided(not_scaled, scaled, {2048.0, 2048.0, 12.0}), kFp64);
  EXPECT_EQ(decided(scaled, not_scaled, {2048.0, 2048.0, 12.0}), kFp64);
  EXPECT_EQ(decide({INFINITY, 0.0F}, {}, {2048.0F, 2048.0F, 2048.0F}), kFp64);
}

// Sums of squares overflow, of all elements or of the largest, too; for zeros nothing is known.
TEST(Decision, TakesFp64WhereNoSquaresAreKnown) {
  const auto of = [](float squares, float largest) {
    return OperandStats{2048.0F, 0.0F, squares, largest};
  };
  const OperandStats fine = of(600.0F, 1.0F);
  const Summed summed{2048.0F, 2048.0F, 12.0F};
  EXPECT_EQ(decide(of(0x1.8p127F, 0x1p120F), fine, summed), kLong);
  for (const OperandStats& overflown : {of(INFINITY, 0x1p120F), of(INFINITY, INFINITY)}) {
    EXPECT_EQ(decide(overflown, fine, summed), kFp64);
    EXPECT_EQ(decide(fine, overflown, summed), kFp64);
  }
  EXPECT_EQ(decide({}, fine, summed), kFp64);
  EXPECT_EQ(decide(fine, {}, summed), kFp64);
}

TEST(Decision, DependsOnSigns) {
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
  const Fp16Split split = split_element(x[i]);
  halves[i] = split.hi | split.lo << 16;
}

TEST(Fp16Split, DeviceMatchesHost) {
  std::mt19937_64 random(3);
  std::vector<float> x(128 * 64);
  for (float& value : x) value = random_float(random, -40, 14);
  const DeviceArray<float> in(x);
  const DeviceArray<std::uint32_t> out(x.size());
  ASSERT_TRUE(is_ok(device::launch({.kernel = "split_all", .blocks = 64, .threads_x = 128}, nullptr,
                                   split_all, static_cast<const float*>(in.data()), out.data())));
  const std::vector<std::uint32_t> found = out.to_host();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Fp16Split split = split_element(x[i]);
    ASSERT_EQ(found[i], split.hi | split.lo << 16) << x[i];
  }
}

}  // namespace
}  // namespace tilegate::fp16x3
