// The whole rung, with elements near the ends of the range: in the sample, so that their work tile
// is multiplied in FP64, or not, so that it fails and is multiplied again in FP64.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/bf16x6.hpp>

#include "split_call.hpp"

namespace tilegate::bf16x6 {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::int64_t kK = 160;
constexpr std::size_t kInSample = 3, kNotInSample = 20;  // k

class Bf16Gemm : public SplitTest<stage> {
 protected:
  // 5×3 results, row 1 of A times `factor` of A, all of B times `factor` of B.
  static Operation scaled(float of_a, float of_b) {
    Operation operation(Problem::dense({5, 3, kK}, Op::kN, Op::kT));
    for (std::int64_t i = 0; i < kK; ++i) operation.a[static_cast<std::size_t>(kK + i)] *= of_a;
    for (float& b : operation.b) b *= of_b;
    return operation;
  }

  // The largest error of row 1 of C, relative to (|A||B|)ij.
  static double error_of_row_1(const Operation& operation) {
    const std::vector<float> c = run(stage, operation).c;
    double worst = 0.0;
    for (std::size_t col = 0; col < 3; ++col) {
      const Exact exact(operation.rows(Operand::kA, 0), 1, operation.rows(Operand::kB, 0),
                        static_cast<std::int64_t>(col));
      worst = std::fmax(worst, std::fabs(c[3 + col] - exact.sum) / exact.magnitude);
    }
    return worst;
  }
};

TEST_F(Bf16Gemm, SmallElementsAreAsAccurateAsOthers) {
  for (const float of_a : {0x1p-100F, 0x1p-112F, 0x1p-120F, 0x1p-130F}) {
    EXPECT_LT(error_of_row_1(scaled(of_a, 0x1p100F)), 0x1p-20) << of_a;
    EXPECT_LT(error_of_row_1(scaled(of_a, 0x1p20F)), 0x1p-14) << of_a;  // subnormal results
  }
}

TEST_F(Bf16Gemm, LargeElementsAreAsAccurateAsOthers) {
  EXPECT_LT(error_of_row_1(scaled(0x1p127F, 0x1p-20F)), 0x1p-20);
  for (const std::size_t k : {kInSample, kNotInSample}) {
    Operation operation = scaled(0x1p-10F, 1.0F);
    operation.a[kK + k] = std::numeric_limits<float>::max();  // rounds to Inf in BF16
    operation.b[k] = operation.b[kK + k] = operation.b[2 * kK + k] = 0x1p-126F;
    EXPECT_LT(error_of_row_1(operation), 0x1p-20) << k;
  }
}

TEST_F(Bf16Gemm, InfinityStaysInfinity) {
  for (const std::size_t k : {kInSample, kNotInSample}) {
    Operation operation = scaled(1.0F, 1.0F);
    operation.a[kK + k] = kInf;
    for (std::size_t col = 0; col < 3; ++col) operation.b[col * kK + k] = 1.0F;
    const Result result = run(stage, operation);
    EXPECT_EQ(result.decision, 64);
    for (std::size_t i = 0; i < result.c.size(); ++i) {
      EXPECT_EQ(result.c[i] == kInf, i / 3 == 1) << i;
      EXPECT_FALSE(std::isnan(result.c[i])) << i;
    }
  }
}

}  // namespace
}  // namespace tilegate::bf16x6
