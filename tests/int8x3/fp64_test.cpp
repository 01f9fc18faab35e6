// Products in FP64, without digits: exact sums, rounded once where one block computes all of K.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "int8x3/run.hpp"
#include "models/float32.hpp"

namespace tilegate::int8x3 {
namespace {

class Int8Fp64 : public SplitTest<stage> {};

// The first row is one that no scale fits, so that the device takes no digits. It has one element
// other than 0, so that its products are exact. `element(random)`: all others.
template <typename Element>
Operation operation_of(const Problem& problem, Element element) {
  Operation operation(problem);
  std::mt19937 random(1);
  for (std::vector<float>* values : {&operation.a, &operation.b}) {
    for (float& x : *values) x = element(random);
  }
  for (std::int64_t k = 0; k < problem.shape.k; ++k) {
    const std::int64_t at = problem.op_a == Op::kN ? k : k * problem.lda;
    operation.a[static_cast<std::size_t>(at)] = k == problem.shape.k - 1 ? 0x1p61F : 0.0F;
  }
  return operation;
}

// C is the FP32 number nearest to the exact sum, then alpha and beta.
void expect_rounded_once(const Operation& operation, const std::string& configuration) {
  SCOPED_TRACE(configuration + " " + to_string(operation.problem));
  const Result result = run(stage, operation, configuration);
  EXPECT_EQ(result.decision, kNoDigits);
  expect_same_bits(result.c, operation.expected([](const models::Rows& a, const models::Rows& b,
                                                   const models::Epilogue& epilogue) {
    std::vector<float> c;
    for (std::int64_t row = 0; row < a.count; ++row) {
      for (std::int64_t col = 0; col < b.count; ++col) {
        double sum = 0.0;
        for (std::int64_t k = 0; k < a.k; ++k) {
          sum += static_cast<double>(a.at(row, k)) * b.at(col, k);
        }
        const float scaled = models::multiply(epilogue.alpha, static_cast<float>(sum));
        c.push_back(
            epilogue.beta == 0.0F
                ? scaled
                : models::add(scaled, models::multiply(epilogue.beta, epilogue.c[c.size()])));
      }
    }
    return c;
  }));
}

// Integers, so small that partial sums of any part of K are exact in FP32, too.
float small_integer(std::mt19937& random) {
  return static_cast<float>(static_cast<int>(random() % 31) - 15);
}

// Each part of K counts once, however blocks share it: one tile and several among all blocks, more
// tiles than blocks, pairs, whole tiles beside shared ones; all ops, with vectors and without.
TEST_F(Int8Fp64, SharesKAmongBlocks) {
  const auto expect = [](Problem problem, const char* configuration) {
    set_alpha_and_beta(problem);
    expect_rounded_once(operation_of(problem, small_integer), configuration);
  };
  const std::int64_t all = device::current().multiprocessors;
  for (const std::int64_t k : {128, 300, 513, 1090}) expect(Problem::dense({6, 4, k}), "128x64");
  for (const std::int64_t k : {144, 145}) {  // half of the last k tile, and one more
    expect(Problem::dense({6, 4, k}), "128x64");
    expect(Problem::dense({6, 4, k}), "128x128pairs");
    expect(Problem::dense({6, 4, k}, Op::kN, Op::kN, all), "128x64");
  }
  expect(Problem::dense({130, 134, 300}, Op::kT), "128x64");
  expect(Problem::dense({6, 72, 300}), "128x64");
  expect(Problem::dense({3, 5, 260}, Op::kT, Op::kN, 65), "128x64");
  expect(Problem::dense({4, 8, 260}, Op::kN, Op::kN, all + 1), "128x64");
  expect(Problem::dense({3, 5, 300}, Op::kN, Op::kT, all / 2 + 1), "128x64");
  expect(Problem::dense({8, 264, 300}, Op::kT, Op::kT), "128x128pairs");
  expect(Problem::dense({6, 134, 300}, Op::kN, Op::kT, all / 2 + 1), "128x128pairs");
  expect(Problem::dense({3, 5, 1540}), "128x128streamk");
  expect(Problem::dense({67, 3, 1060}, Op::kT, Op::kT), "128x64splitk");
}

// As many tiles as blocks. Elements of 12 significant bits and unlike exponents: their sums have
// more bits than an FP32 number.
TEST_F(Int8Fp64, RoundsOnce) {
  const auto wide = [](std::mt19937& random) {
    return std::ldexp(static_cast<float>(static_cast<int>(random() % 8191) - 4095),
                      -static_cast<int>(random() % 8));
  };
  const std::int64_t all = device::current().multiprocessors;
  for (const Op op : {Op::kN, Op::kT}) {
    expect_rounded_once(operation_of(Problem::dense({3, 5, 300}, op, Op::kT, all), wide), "128x64");
  }
}

}  // namespace
}  // namespace tilegate::int8x3
