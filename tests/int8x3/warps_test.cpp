// The digits multiplied by warps, as on GPUs without wgmma: the same bits as by warpgroups.
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "int8x3/run.hpp"

namespace tilegate::int8x3 {
namespace {

constexpr const char* kWarps = "128x64warps";

TEST(Warps, GiveTheBitsOfTheModelInEveryForm) {
  for (const Op op_a : {Op::kN, Op::kT}) {
    for (const Op op_b : {Op::kN, Op::kT}) {
      const Shape shape = op_b == Op::kN ? Shape{131, 9, 132} : Shape{20, 67, 132};
      const Operation operation(Problem::dense(shape, op_a, op_b));
      const Result six = run(stage, operation, kWarps);
      EXPECT_EQ(six.decision, 6);
      expect_same_bits(six.c, model(operation.problem, operation.a, operation.b, 6));
    }
  }
}

// Rows of which a block of the split pass keeps a part only.
TEST(Warps, TakeEightProductsOfLongRows) {
  const Operation operation(Problem::dense({3, 5, 2100}));
  const Result more = run(*variants()[0], operation, kWarps);
  EXPECT_EQ(more.decision, 8);
  expect_same_bits(more.c, model(operation.problem, operation.a, operation.b, 8));
}

TEST(Warps, TakeBatches) {
  const Operation operation(Problem::dense({10, 20, 130}, Op::kN, Op::kT, 2));
  expect_same_bits(run(stage, operation, kWarps).c,
                   model(operation.problem, operation.a, operation.b, 6));
}

TEST(Warps, FallBackToFp32) {
  Operation operation(Problem::dense({30, 20, 300}));
  operation.a[5] = std::numeric_limits<float>::infinity();
  const Result result = run(stage, operation, kWarps);
  EXPECT_EQ(result.decision, 32);
  EXPECT_TRUE(std::isinf(result.c[4]));
  EXPECT_TRUE(std::isfinite(result.c[20]));
}

TEST(Warps, AreTakenWhereThereAreNoWarpgroups) {
  const Problem problem = Problem::dense({4096, 4096, 4096});
  for (const int capability : {75, 80, 86, 89, 90, 100, 120}) {
    const Device device{.is_cuda = true,
                        .name = "made up",
                        .compute_capability = capability,
                        .multiprocessors = 132};
    const std::string taken = stage.plan(problem, device).configuration();
    EXPECT_EQ(taken, capability == 90 ? "128x128pairs" : kWarps) << capability;
  }
}

}  // namespace
}  // namespace tilegate::int8x3
