// The limit of a plan's workspace: what plans take within it. Values are in int8x3/panels_test.cpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/int8x3.hpp>
#include <tilegate/sgemm.hpp>
#include <tilegate/split_k.hpp>

#include "api/made_up.hpp"

namespace tilegate {
namespace {

Plan plan_within(std::size_t limit, const Problem& problem) {
  return sgemm::stage.plan(problem, gpu(90), {}, limit);
}

bool is_in_panels(const Plan& plan) {
  return plan.configuration().find("_panels") != std::string::npos;
}

TEST(WorkspaceLimit, ChangesNothingWhereThePlanFits) {
  for (const Problem& problem :
       {split(Problem::dense({8192, 8192, 8192})), Problem::dense({256, 256, 16384}),
        split(Problem::dense({1024, 1024, 1024}, Op::kT, Op::kN, 9))}) {
    const Plan plan = sgemm::stage.plan(problem, gpu(90));
    ASSERT_GT(plan.workspace_bytes(), std::size_t{0});
    const Plan same = plan_within(plan.workspace_bytes(), problem);
    EXPECT_EQ(same.configuration(), plan.configuration());
    EXPECT_EQ(same.workspace_bytes(), plan.workspace_bytes());
    EXPECT_EQ(same.rounding_chain(), plan.rounding_chain());
    const Plan other = plan_within(plan.workspace_bytes() - 1, problem);
    EXPECT_TRUE(other.ok());
    EXPECT_NE(other.configuration(), plan.configuration());
    EXPECT_LT(other.workspace_bytes(), plan.workspace_bytes());
  }
}

TEST(WorkspaceLimit, SplitsOperandsInPanels) {
  constexpr std::size_t kLimit = 256 << 20;
  for (const std::int64_t size : {8192, 16384}) {
    const Plan plan = plan_within(kLimit, split(Problem::dense({size, size, size})));
    EXPECT_TRUE(is_in_panels(plan)) << plan.configuration();
    EXPECT_LE(plan.workspace_bytes(), kLimit);
    EXPECT_GT(plan.operand_error(), 0.0);
    EXPECT_TRUE(plan.decides_on_device());
  }
}

// By the cost models.
TEST(WorkspaceLimit, KeepsTheSpeedOfLargeProductsIn256MiB) {
  const auto fastest = [](const std::vector<Candidate>& candidates) {
    return std::ranges::min_element(candidates, {}, &Candidate::seconds)->seconds;
  };
  for (const std::int64_t size : {8192, 16384}) {
    const Problem problem = split(Problem::dense({size, size, size}));
    EXPECT_GE(fastest(sgemm::stage.candidates(problem, gpu(90))) /
                  fastest(sgemm::stage.panels(problem, gpu(90), 256 << 20)),
              0.93)
        << size;
  }
}

TEST(WorkspaceLimit, TakesWholeProductsOfABatch) {
  const Problem problem = split(Problem::dense({1024, 1024, 1024}, Op::kN, Op::kN, 100));
  const Plan plan = plan_within(64 << 20, problem);
  EXPECT_NE(plan.configuration().find("x1024x1024x1024"), std::string::npos)
      << plan.configuration();
}

// Random problems of every form: a plan without any workspace exists.
TEST(WorkspaceLimit, LeavesAPlanForEveryProblem) {
  std::mt19937 random(1);
  const auto extent = [&] { return std::int64_t{1} << random() % 15; };
  const auto bit = [&] { return random() % 2 == 1; };
  for (int i = 0; i < 500; ++i) {
    Problem problem =
        Problem::dense({extent() - bit(), extent() + bit(), extent() + bit()},
                       bit() ? Op::kT : Op::kN, bit() ? Op::kT : Op::kN, bit() ? 1 : 3);
    if (bit()) problem.math = Math::fp32_split;
    if (bit()) problem.offset_bytes = {4, 4, 4};
    for (const int capability : {80, 90, 100}) {
      for (const std::size_t limit : {std::size_t{0}, std::size_t{1000}, std::size_t{3} << 20}) {
        const Plan plan = sgemm::stage.plan(problem, gpu(capability), {}, limit);
        ASSERT_TRUE(plan.ok()) << to_string(problem) << ": " << plan.status().message();
        ASSERT_LE(plan.workspace_bytes(), limit) << to_string(problem);
      }
    }
  }
}

TEST(WorkspaceLimit, IsPlannedWithoutDigitsWhereNoPanelFits) {
  const Problem problem = split(Problem::dense({4096, 4096, 4096}));
  EXPECT_TRUE(plan_within(100'000, problem).configuration().starts_with("Bf16x6:"));
  const Plan plan = plan_within(1000, problem),
             fp32 = plan_within(1000, Problem::dense({4096, 4096, 4096}));
  EXPECT_EQ(plan.configuration(), fp32.configuration());
  EXPECT_FALSE(plan.decides_on_device());
}

TEST(WorkspaceLimit, OfARungThatNeedsMoreIsAnError) {
  const auto expect_none = [](const Plan& plan, const std::string& message) {
    EXPECT_EQ(plan.status().code(), Status::Code::kUnsupported);
    EXPECT_EQ(plan.status().message(), message);
  };
  const Problem problem = Problem::dense({64, 64, 4096});
  expect_none(split_k::stage.plan(problem, gpu(90), {}, 5),
              "SplitK has no configuration for this problem with a workspace of at most 5 bytes");
  expect_none(int8x3::stage.plan(problem, gpu(90), "128x64", 5),
              "Int8x3 has no configuration '128x64' for this problem with a workspace of at most 5 "
              "bytes");
}

}  // namespace
}  // namespace tilegate
