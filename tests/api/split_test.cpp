// Math::fp32_split: what Sgemm makes of it, and that nothing splits operands without it.
#include <string>

#include <gtest/gtest.h>

#include <tilegate/sgemm.hpp>

#include "api/made_up.hpp"
#include "verifier/case.hpp"

namespace tilegate {
namespace {

bool splits_operands(const std::string& configuration) {
  return configuration.starts_with("Int8x3:");
}

TEST(Fp32Split, IsTakenOnlyOnRequest) {
  for (const Problem& problem :
       {Problem::dense({4096, 4096, 4096}), Problem::dense({1000, 1001, 1002}, Op::kT)}) {
    for (const Candidate& candidate : sgemm::stage.candidates(problem, gpu(90))) {
      EXPECT_FALSE(splits_operands(candidate.choice.configuration))
          << candidate.choice.configuration;
      EXPECT_EQ(candidate.choice.operand_error, 0.0) << candidate.choice.configuration;
    }
  }
}

TEST(Fp32Split, TakesTensorCoresWhereTheyAreFaster) {
  const Plan plan = sgemm::stage.plan(split(Problem::dense({4096, 4096, 4096})), gpu(90));
  EXPECT_TRUE(plan.configuration().starts_with("Int8x3:")) << plan.configuration();
  EXPECT_GT(plan.operand_error(), 0.0);
  EXPECT_TRUE(plan.decides_on_device());
  EXPECT_GT(plan.workspace_bytes(), std::size_t{2} * 3 * 4096 * 4096);
  EXPECT_EQ(plan.problem().math, Math::fp32_split);
}

// For few results, for short sums, as the tuned table says, and where the device has no such tensor
// cores.
TEST(Fp32Split, PlansAsFp32Elsewhere) {
  const auto expect_same = [](const Problem& problem, const Device& device) {
    const Plan plan = sgemm::stage.plan(split(problem), device);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan.configuration(), sgemm::stage.plan(problem, device).configuration());
    EXPECT_EQ(plan.operand_error(), 0.0);
    EXPECT_FALSE(plan.decides_on_device());
  };
  expect_same(Problem::dense({64, 64, 64}), gpu(90));
  expect_same(Problem::dense({1, 8192, 8192}), gpu(90));
  expect_same(Problem::dense({4096, 4096, 64}), gpu(90));
  expect_same(Problem::dense({4096, 4096, 14}), gpu(90));
  Device model = gpu(90);
  model.name = "NVIDIA H200";
  expect_same(Problem::dense({8192, 8192, 64}), model);  // 13x13x6/NN/vvv of the tuned table
  expect_same(Problem::dense({4096, 4096, 4096}), gpu(70));
}

TEST(Fp32Split, TakesWarpMmaWithoutWgmma) {
  for (const int capability : {75, 80, 86, 89, 100, 120}) {
    const Problem problem = split(Problem::dense({4096, 4096, 4096}));
    EXPECT_EQ(sgemm::stage.plan(problem, gpu(capability)).configuration(), "Int8x3:128x64warps");
  }
}

// Within the bound that the plan declares, by each way to split and by Sgemm's own choice.
TEST(Fp32Split, KeepsTheBoundOfItsPlan) {
  if (!check_device({.compute_capability = 90, .no_later = true}, device::current()).ok()) {
    GTEST_SKIP() << "needs compute capability 9.0";
  }
  for (const char* configuration : {"", "Int8x3:128x64", "Int8x3:128x64warps"}) {
    const verifier::Case test_case{.problem = split(Problem::dense({67, 40, 200}, Op::kT)),
                                   .configuration = configuration};
    const verifier::Verdict verdict = verify(sgemm::stage, test_case);
    EXPECT_TRUE(verdict.ok) << verdict.report;
  }
}

}  // namespace
}  // namespace tilegate
