// The decision for planes or FP32.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/bf16x6.hpp>

#include "split_call.hpp"

namespace tilegate::bf16x6 {
namespace {

constexpr int kByPlanes = 6, kByFp32 = 32;

class Bf16Decision : public SplitTest<stage> {};

// Element (row, k) of an operand, multiplied by factor(row, k).
using Factor = std::function<float(std::int64_t row, std::int64_t k)>;
void scale(Operation& operation, Operand operand, const Factor& factor) {
  std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
  const models::Rows rows = operation.rows(operand, 0);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t k = 0; k < rows.k; ++k) {
      values[static_cast<std::size_t>(row * rows.next_row + k * rows.next_k)] *= factor(row, k);
    }
  }
}

void expect_decision(const Factor& of_a, const Factor& of_b, int decision) {
  for (const Op op_a : {Op::kN, Op::kT}) {
    for (const Op op_b : {Op::kN, Op::kT}) {
      Operation operation(Problem::dense({70, 40, 200}, op_a, op_b));
      scale(operation, Operand::kA, of_a);
      scale(operation, Operand::kB, of_b);
      EXPECT_EQ(run(stage, operation).decision, decision) << to_string(operation.problem);
    }
  }
}

float one(std::int64_t /*row*/, std::int64_t /*k*/) { return 1.0F; }

TEST_F(Bf16Decision, TakesPlanesForOrdinaryOperands) { expect_decision(one, one, kByPlanes); }

TEST_F(Bf16Decision, IgnoresTheScalesOfRows) {
  expect_decision(
      [](std::int64_t row, std::int64_t) {
        return std::exp2(static_cast<float>(row % 41) - 20.0F);
      },
      [](std::int64_t row, std::int64_t) { return std::exp2(7.0F - static_cast<float>(row % 23)); },
      kByPlanes);
}

TEST_F(Bf16Decision, TakesPlanesWhereHalfOfOneOperandIsZero) {
  expect_decision([](std::int64_t row, std::int64_t k) { return (row + k) % 2 == 0 ? 0.0F : 1.0F; },
                  one, kByPlanes);
}

TEST_F(Bf16Decision, TakesFp32WhereOneRowHasFewElements) {
  const auto one_in_100 = [](std::int64_t row, std::int64_t k) {
    return row != 33 || k % 100 == 0 ? 1.0F : 0.0F;
  };
  expect_decision(one_in_100, one, kByFp32);
  expect_decision(one, one_in_100, kByFp32);
}

TEST_F(Bf16Decision, TakesFp32ForWideOperands) {
  const auto wide = [](std::int64_t row, std::int64_t k) {
    return std::exp2(static_cast<float>((row * 37 + k * 59) % 81) - 40.0F);
  };
  expect_decision(wide, wide, kByFp32);
}

// In both operands. The values are 1, but for the last bits.
TEST_F(Bf16Decision, TakesFp32WhereAllElementsAreAlmostEqual) {
  Operation operation(Problem::dense({70, 40, 200}));
  for (float& a : operation.a) a = 1.0F + a * 1e-6F;
  EXPECT_EQ(run(stage, operation).decision, kByPlanes);
  for (float& b : operation.b) b = 1.0F + b * 1e-6F;
  EXPECT_EQ(run(stage, operation).decision, kByFp32);
}

// A group in the last rows, and in the last product of a batch.
TEST_F(Bf16Decision, SamplesEveryGroupOfRows) {
  Operation operation(Problem::dense({70, 40, 200}, Op::kN, Op::kN, 3));
  EXPECT_EQ(run(stage, operation).decision, kByPlanes);
  const std::size_t last_row = operation.a.size() - 200;
  for (std::size_t k = 1; k < 200; ++k) operation.a[last_row + k] = 0.0F;
  EXPECT_EQ(run(stage, operation).decision, kByFp32);
}

}  // namespace
}  // namespace tilegate::bf16x6
