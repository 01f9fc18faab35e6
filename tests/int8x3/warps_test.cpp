// The digits multiplied by warps, as on GPUs without wgmma: the model's bits, too.
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "int8x3/run.hpp"

namespace tilegate::int8x3 {
namespace {

constexpr const char* kWarps = "128x64warps";

// Rows of which a block of the split pass keeps a part only.
TEST(Int8WarpGemm, MatchesIntegerModelForLongRows) {
  expect_model(eight(), Operation(Problem::dense({3, 5, 2100})), 8, kWarps);
}

TEST(Int8WarpGemm, MatchesIntegerModelForBatches) {
  expect_model(stage, Operation(Problem::dense({10, 20, 130}, Op::kN, Op::kT, 2)), 6, kWarps);
}

TEST(Int8WarpGemm, FallsBackToFp32) {
  Operation operation(Problem::dense({30, 20, 300}));
  operation.a[5] = std::numeric_limits<float>::infinity();
  const Result result = run(stage, operation, kWarps);
  EXPECT_EQ(result.decision, 32);
  EXPECT_TRUE(std::isinf(result.c[4]));
  EXPECT_TRUE(std::isfinite(result.c[20]));
}

TEST(Int8WarpGemm, IsTakenWithoutWgmma) {
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
