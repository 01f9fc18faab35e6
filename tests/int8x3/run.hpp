// What the tests of Int8x3 share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/int8x3.hpp>

#include "models/int8x3.hpp"
#include "split_call.hpp"

namespace tilegate::int8x3 {

std::span<const Stage* const> variants();

// The decision against digits; see Choice::decides_on_device.
constexpr int kNoDigits = 64;

// With at least eight, or ten, products of digits.
inline const Stage& eight() { return *variants()[0]; }
inline const Stage& ten() { return *variants()[1]; }
// With outliers apart.
inline const Stage& outliers() { return *variants()[3]; }

inline std::vector<float> expected(const Operation& operation, int products,
                                   std::int64_t most = models::int8x3::kMostExactK) {
  return operation.expected(
      [&](const models::Rows& a, const models::Rows& b, const models::Epilogue& epilogue) {
        return models::int8x3::product(a, b, products, epilogue, most);
      });
}

// The result has the model's bits, and the device has decided for so many products.
inline void expect_model(const Stage& by, const Operation& operation, int products,
                         const std::string& configuration = {}) {
  SCOPED_TRACE(configuration + " " + to_string(operation.problem));
  const Result result = run(by, operation, configuration);
  EXPECT_EQ(result.decision, products);
  expect_same_bits(result.c, expected(operation, products));
}

class Int8Gemm : public SplitTest<stage> {};
class Int8Decision : public SplitTest<stage> {};

}  // namespace tilegate::int8x3
