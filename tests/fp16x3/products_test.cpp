// The whole rung: the bits that an H200 gave, which path the device decides for, and small elements
// beside large ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/fp16x3.hpp>

#include "skips.hpp"
#include "split_call.hpp"

namespace tilegate::fp16x3 {
namespace {

constexpr int kHalves = 3, kFp32 = 32;  // decisions

class Fp16Products : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = check_device(stage.requirements, device::current()).message();
    if (why.empty()) return;
    RecordProperty(kNotOnThisDevice, why);
    GTEST_SKIP() << why;
  }
};

std::uint32_t checksum(const std::vector<float>& values) {
  std::uint32_t sum = 0;
  for (const float value : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    sum = (sum ^ bits) * 0x01000193U;
  }
  return sum;
}

// Odd numbers of chunks and runs, several tiles, more rows than a block of the split pass keeps;
// the last with long runs.
TEST_F(Fp16Products, HaveTheBitsOfAnH200) {
  const auto bits = [](const Problem& problem) {
    const Result result = run(stage, Operation(problem));
    EXPECT_EQ(result.decision, kHalves);
    return checksum(result.c);
  };
  EXPECT_EQ(bits(Problem::dense({131, 67, 133})), 0x7F5E8BDFU);
  EXPECT_EQ(bits(Problem::dense({20, 140, 300}, Op::kT, Op::kT)), 0x9E44CA96U);
  EXPECT_EQ(bits(Problem::dense({3, 5, 2500}, Op::kN, Op::kT)), 0xB73B3269U);
  EXPECT_EQ(bits(Problem::dense({40, 70, 130}, Op::kT, Op::kN, 3)), 0xB5201FD8U);
  EXPECT_EQ(bits(Problem::dense({3, 5, 30000}, Op::kN, Op::kT)), 0x6E1FFF7EU);
}

TEST_F(Fp16Products, AreNotTakenForSmallK) {
  const auto taken = [](const Shape& shape) {
    return stage.plan(Problem::dense(shape)).configuration();
  };
  EXPECT_EQ(taken({2048, 2048, 128}), "128x128");
  EXPECT_EQ(taken({2048, 2048, 127}), "fp32");
}

TEST_F(Fp16Products, AreDecidedByTheDevice) {
  const auto decided = [](const std::function<void(Operation&)>& change) {
    Operation operation(Problem::dense({9, 8, 800}));
    change(operation);
    return run(stage, operation).decision;
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(decided([](Operation&) {}), kHalves);
  const auto of_one_sign = [](std::vector<float>& values) {
    for (float& value : values) value = std::fabs(value);
  };
  EXPECT_EQ(decided([&](Operation& o) { of_one_sign(o.a); }), kHalves);
  EXPECT_EQ(decided([&](Operation& o) { of_one_sign(o.a), of_one_sign(o.b); }), kFp32);
  EXPECT_EQ(decided([](Operation& o) { o.a[77] = kInf; }), kFp32);
  EXPECT_EQ(decided([](Operation& o) { o.b[77] = std::nanf(""); }), kFp32);
  EXPECT_EQ(decided([](Operation& o) { o.b[77] = 0x1p61F; }), kFp32);
  EXPECT_EQ(decided([](Operation& o) { o.a[5] = 1000.0F; }), kHalves);
  EXPECT_EQ(decided([](Operation& o) { std::fill_n(o.a.begin(), o.a.size() * 9 / 10, 0.0F); }),
            kFp32);
  EXPECT_EQ(decided([](Operation& o) {
              for (std::size_t i = 0; i < o.a.size(); ++i) o.a[i] *= i % 9 == 0 ? 1.0F : 0x1p-30F;
            }),
            kFp32);
}

// By the same kernel: zero times infinity is NaN, and rows without either are as they were.
TEST_F(Fp16Products, FallBackToFp32WhereOperandsAreNotFinite) {
  Operation operation(Problem::dense({130, 70, 600}));
  operation.a[5] = std::numeric_limits<float>::infinity();
  operation.b[5 * 70 + 3] = 0.0F;
  const Result result = run(stage, operation);
  EXPECT_EQ(result.decision, kFp32);
  EXPECT_TRUE(std::isnan(result.c[3]));
  EXPECT_TRUE(std::isinf(result.c[4]));
  EXPECT_TRUE(std::all_of(result.c.begin() + 70, result.c.end(),
                          [](float value) { return std::isfinite(value); }));
}

// What tensor cores cut off, and what is lost when a run is added, does not grow with K: 1.1e-7 of
// the product, where 32 runs that are simply added are off by 1.8e-7.
TEST_F(Fp16Products, AreAsAccurateWhereKIsLong) {
  constexpr std::int64_t m = 24, n = 40, k = 1024;
  const Operation operation(Problem::dense({m, n, k}));
  const Result result = run(stage, operation);
  EXPECT_EQ(result.decision, kHalves);
  double error = 0.0, squares = 0.0;
  for (std::int64_t i = 0; i < m * n; ++i) {
    double sum = 0.0;
    for (std::int64_t x = 0; x < k; ++x) {
      sum += static_cast<double>(operation.a[i / n * k + x]) * operation.b[x * n + i % n];
    }
    error += (result.c[i] - sum) * (result.c[i] - sum);
    squares += sum * sum;
  }
  EXPECT_LE(std::sqrt(error / squares), 1.35e-7);
}

// Elements of 2^-12 beside one of 1 keep 23 bits: with three digits of 8 they would keep 11.
TEST_F(Fp16Products, KeepSmallElementsBesideLargeOnes) {
  constexpr std::int64_t k = 512;
  Operation operation(Problem::dense({1, 1, k}));
  double expected = 0.0, magnitudes = 0.0;
  for (std::size_t i = 0; i < k; ++i) {
    operation.a[i] = i == 0 ? 1.0F : operation.a[i] * 0x1p-12F;
    if (i == 0) operation.b[i] = 0x1p-12F;
    const double product = static_cast<double>(operation.a[i]) * operation.b[i];
    expected += product;
    magnitudes += std::fabs(product);
  }
  const Result result = run(stage, operation);
  EXPECT_EQ(result.decision, kHalves);
  EXPECT_LE(std::fabs(result.c[0] - expected), 4e-7 * magnitudes);
}

}  // namespace
}  // namespace tilegate::fp16x3
