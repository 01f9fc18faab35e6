// PreparedOperand over counted kernels: each configuration with A or B prepared, the split kernels
// of short and long rows, every decision.
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "int8x3/prepared_stage.hpp"
#include "verifier/case.hpp"

namespace tilegate::int8x3 {
namespace {

using verifier::Padded;
using verifier::Plant;

void expect_no_hazard(const Padded& problem, int decision, const std::vector<Plant>& plants = {},
                      const std::string& configuration = {}) {
  for (const Stage* by : {&kPreparedA, &kPreparedB}) {
    verifier::Case test_case{
        .problem = problem, .plants = plants, .decision = decision, .compute_capability = 90};
    const std::vector<Candidate> all = by->candidates(test_case.problem, device_of(test_case));
    EXPECT_EQ(all.size(), problem.shape.k < 512 ? 6U : 7U);  // the last one splits K
    for (const Candidate& candidate : all) {
      test_case.configuration = candidate.choice.configuration;
      if (!configuration.empty() && test_case.configuration != configuration) continue;
      const verifier::Order forward[] = {verifier::Order::kForward};
      const verifier::Verdict verdict = verifier::verify(*by, test_case, forward);
      EXPECT_TRUE(verdict.ok) << verdict.report;
    }
  }
}

TEST(WatchedPrepared, HasNoHazard) {
  expect_no_hazard(Padded{.shape = {37, 140, 131}, .pad = {1, 2, 3}, .beta = 0.5F}, 6);
}

TEST(WatchedPrepared, HasNoHazardInLongRows) {
  for (const Op op : {Op::kN, Op::kT}) {
    expect_no_hazard(Padded{.shape = {5, 9, 1090}, .op_a = op, .op_b = op}, 6, {}, "128x64");
  }
}

TEST(WatchedPrepared, HasNoHazardInOtherDecisions) {
  const Padded problem{.shape = {9, 140, 400}};
  const auto wide = [](float value) {
    return std::vector<Plant>{{Operand::kA, 3, 7, value}, {Operand::kB, 7, 3, value}};
  };
  expect_no_hazard(problem, 8, wide(2.0F), "128x64");
  expect_no_hazard(problem, 10, wide(40.0F), "128x64");
  expect_no_hazard(problem, 64, wide(std::numeric_limits<float>::infinity()), "128x64");
}

}  // namespace
}  // namespace tilegate::int8x3
