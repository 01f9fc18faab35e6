// The FP32 fallback, which Fp16x3 has, too: bit for bit what the model says.
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

void expect_model(const Operation& operation, const models::fp32::Summation& summation,
                  const std::string& configuration) {
  SCOPED_TRACE(configuration + " " + to_string(operation.problem));
  const Result result = run(stage, operation, configuration);
  if (configuration != "fp32") {
    EXPECT_EQ(result.decision, 32);
  }
  expect_same_bits(result.c, operation.expected([&](const models::Rows& a, const models::Rows& b,
                                                    const models::Epilogue& epilogue) {
    return models::fp32::product(a, b, summation, epilogue);
  }));
}

// One run, several, short ones; K that ends with a run, within one and after it.
TEST_F(Int8Fp32, MatchesModelForSmallK) {
  for (const std::int64_t k : {4, 18, 33, 64, 65, 96, 127}) {
    const Op op_a = k % 2 == 0 ? Op::kN : Op::kT, op_b = k % 3 == 0 ? Op::kN : Op::kT;
    for (const std::int64_t batch : {1, 15, 16}) {
      if ((batch == 15 && k != 33) || (batch == 16 && k < 33)) continue;
      const Problem problem = Problem::dense({5, 3, k}, op_a, op_b, batch);
      expect_model(operation_of(problem), models::fp32::whole(k, batch, summed(problem)), "fp32");
    }
  }
}

// A row that no scale fits: all is multiplied in FP32. As many parts of K as a plan takes for this
// device: whole tiles, too, and parts that end within a run.
TEST_F(Int8Fp32, MatchesModelWithSplitK) {
  const auto expect = [](const Problem& problem, const char* configuration, std::int64_t tiles,
                         std::int64_t blocks) {
    Operation operation = operation_of(problem);
    operation.a[7] = 0x1p61F;
    expect_model(operation, models::fp32::split(problem.shape.k, tiles, blocks, summed(problem)),
                 configuration);
  };
  const std::int64_t all = device::current().multiprocessors;
  for (const std::int64_t k : {128, 300, 512, 513, 1090}) {
    expect(Problem::dense({6, 4, k}), "128x64", 1, all);
  }
  expect(Problem::dense({6, 134, 300}, Op::kT), "128x64", 2, all);
  expect(Problem::dense({3, 5, 260}, Op::kT, Op::kN, 65), "128x64", 65, all);   // runs of 64
  expect(Problem::dense({3, 3, 1024}, Op::kN, Op::kN, 64), "128x64", 64, all);  // of 256
  expect(Problem::dense({3, 5, 300}, Op::kN, Op::kT, all), "128x64", all, all);
  expect(Problem::dense({6, 134, 300}, Op::kT, Op::kT), "128x128pairs", 1, all / 2);
  const std::int64_t more = all / 2 + 1;  // tiles than half of the blocks: parts in several waves
  expect(Problem::dense({3, 5, 1090}, Op::kN, Op::kT, more), "128x64", more, all);
  expect(Problem::dense({3, 5, 1540}), "128x128streamk", 1, 3);
}

TEST_F(Int8Fp32, MatchesModelByWarps) {
  for (const std::int64_t k : {300, 600}) {
    Operation operation = operation_of(Problem::dense({6, 4, k}));
    operation.a[7] = 0x1p61F;
    const double of_cublas = summed(operation.problem);
    expect_model(operation, models::fp32::whole(k, 1, of_cublas), "128x64warps");
  }
}

}  // namespace
}  // namespace tilegate::int8x3
