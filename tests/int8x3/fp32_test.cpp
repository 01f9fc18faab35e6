// FP32 without digits: for small K, and by warps; bit for bit what the model says.
#include "models/fp32.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "int8x3/run.hpp"
#include "models/layout.hpp"

namespace tilegate::int8x3 {
namespace {

class Int8Fp32 : public SplitTest<stage> {};

// Elements of 12 significant bits and unlike exponents: products are exact, so that an FMA rounds
// as an addition does.
Operation operation_of(Problem problem) {
  set_alpha_and_beta(problem);
  Operation operation(problem);
  std::mt19937 random(1);
  for (std::vector<float>* values : {&operation.a, &operation.b}) {
    for (float& x : *values) {
      x = std::ldexp(std::rint(4095.0F * x), -static_cast<int>(random() % 8));
    }
  }
  return operation;
}

// Products that cuBLAS adds one after another.
double summed(const Problem& problem) { return models::summed_in_fp32(product_of(problem)); }

void expect_model(const Operation& operation, std::int64_t of_run,
                  const std::string& configuration) {
  SCOPED_TRACE(configuration + " " + to_string(operation.problem));
  const Result result = run(stage, operation, configuration);
  if (configuration != "fp32") {
    EXPECT_EQ(result.decision, 32);
  }
  expect_same_bits(result.c, operation.expected([&](const models::Rows& a, const models::Rows& b,
                                                    const models::Epilogue& epilogue) {
    return models::fp32::product(a, b, of_run, epilogue);
  }));
}

// One run, several, short ones; K that ends with a run, within one and after it.
TEST_F(Int8Fp32, MatchesModelForSmallK) {
  for (const std::int64_t k : {4, 18, 33, 64, 65, 96, 127}) {
    const Op op_a = k % 2 == 0 ? Op::kN : Op::kT, op_b = k % 3 == 0 ? Op::kN : Op::kT;
    for (const std::int64_t batch : {1, 15, 16}) {
      if ((batch == 15 && k != 33) || (batch == 16 && k < 33)) continue;
      const Problem problem = Problem::dense({5, 3, k}, op_a, op_b, batch);
      expect_model(operation_of(problem), models::fp32::run_of(k, batch, summed(problem)), "fp32");
    }
  }
}

TEST_F(Int8Fp32, MatchesModelByWarps) {
  for (const std::int64_t k : {300, 600}) {
    Operation operation = operation_of(Problem::dense({6, 4, k}));
    operation.a[7] = 0x1p61F;
    const double of_cublas = summed(operation.problem);
    expect_model(operation, models::fp32::run_of(k, 1, of_cublas), "128x64warps");
  }
}

}  // namespace
}  // namespace tilegate::int8x3
