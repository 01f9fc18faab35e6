// Which products the device decides to take, and those in FP32.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "int8x3/run.hpp"

namespace tilegate::int8x3 {
namespace {

TEST_F(Products, AreDecidedByTheDevice) {
  const auto decided = [](const std::function<void(Operation&)>& change) {
    Operation operation(Problem::dense({9, 8, 400}));
    change(operation);
    return run(stage, operation).decision;
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(decided([](Operation&) {}), 6);
  EXPECT_EQ(decided([](Operation& o) { o.a[77] = kInf; }), 32);
  EXPECT_EQ(decided([](Operation& o) { o.b[77] = std::nanf(""); }), 32);
  EXPECT_EQ(decided([](Operation& o) { o.b[77] = 0x1p61F; }), 32);
  EXPECT_EQ(decided([](Operation& o) { std::fill(o.a.begin(), o.a.end(), 0.0F); }), 6);
  EXPECT_EQ(decided([](Operation& o) {
              for (std::size_t i = 0; i < o.a.size(); i += 100) o.a[i] = 1.25F;
            }),
            8);
  EXPECT_EQ(decided([](Operation& o) {
              for (std::size_t i = 0; i < o.a.size(); i += 100) o.a[i] = 1000.0F;
            }),
            32);
}

// By the same kernel: zero times infinity is NaN, and rows without either are as they were.
void expect_fallback_to_fp32(const Shape& shape, const char* configuration) {
  SCOPED_TRACE(configuration);
  Operation operation(Problem::dense(shape));
  operation.a[5] = std::numeric_limits<float>::infinity();
  operation.b[static_cast<std::size_t>(5 * shape.n + 3)] = 0.0F;
  const Result result = run(stage, operation, configuration);
  EXPECT_EQ(result.decision, 32);
  EXPECT_TRUE(std::isnan(result.c[3]));
  EXPECT_TRUE(std::isinf(result.c[4]));
  for (std::int64_t row = 1; row < shape.m; ++row) {
    for (std::int64_t col = 0; col < shape.n; ++col) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < shape.k; ++k) {
        sum += static_cast<double>(operation.a[static_cast<std::size_t>(row * shape.k + k)]) *
               operation.b[static_cast<std::size_t>(k * shape.n + col)];
      }
      ASSERT_NEAR(result.c[static_cast<std::size_t>(row * shape.n + col)], sum, 2e-5) << row;
    }
  }
}

TEST_F(Products, FallBackToFp32WhereOperandsAreNotFinite) {
  expect_fallback_to_fp32({130, 70, 300}, "128x64");
}

// Blocks without a tile take a part of K, in every kind of form.
TEST_F(Products, InFp32AreSharedWhereTilesAreFew) {
  expect_fallback_to_fp32({3, 5, 300}, "128x64");
  expect_fallback_to_fp32({3, 70, 140}, "128x128pairs");
  expect_fallback_to_fp32({3, 5, 1540}, "128x128streamk");
}

}  // namespace
}  // namespace tilegate::int8x3
