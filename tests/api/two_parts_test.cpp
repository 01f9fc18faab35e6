// Plans of Sgemm that compute C in two parts: where they are taken, and that they are right.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/sgemm.hpp>

#include "api/made_up.hpp"
#include "verifier/case.hpp"

namespace tilegate {
namespace {

bool is_in_two(const std::string& configuration, const std::string& cut) {
  return configuration.find("_" + cut) != std::string::npos;
}
bool is_in_two(const std::string& configuration) {
  return is_in_two(configuration, "row") || is_in_two(configuration, "column");
}

TEST(TwoParts, AreTakenWhereAFewRowsOrColumnsWouldBeATileMore) {
  const auto configuration_of = [](const Problem& problem) {
    return sgemm::stage.plan(problem, gpu(90)).configuration();
  };
  const Problem rows = Problem::dense({4225, 86, 3404}),
                columns = Problem::dense({1565, 193, 6666});
  EXPECT_TRUE(is_in_two(configuration_of(rows), "row4224_")) << configuration_of(rows);
  EXPECT_TRUE(is_in_two(configuration_of(columns), "column192_")) << configuration_of(columns);
  for (const Problem& other :
       {Problem::dense({4096, 4096, 4096}), Problem::dense({1, 4097, 4096}),
        Problem::dense({33, 33, 33}), Problem::dense({4225, 86, 3404}, Op::kN, Op::kN, 2)}) {
    EXPECT_FALSE(is_in_two(configuration_of(other))) << configuration_of(other);
  }
}

TEST(TwoParts, ArePlansOfBothParts) {
  const Plan both = sgemm::stage.plan(Problem::dense({4225, 86, 3404}), gpu(90)),
             first = sgemm::stage.plan(Problem::dense({4224, 86, 3404}), gpu(90)),
             second = sgemm::stage.plan(Problem::dense({1, 86, 3404}), gpu(90));
  EXPECT_EQ(both.configuration(), first.configuration() + "_row4224_" + second.configuration());
  EXPECT_EQ(both.workspace_bytes(), std::max(first.workspace_bytes(), second.workspace_bytes()));
  EXPECT_EQ(both.rounding_chain(), std::max(first.rounding_chain(), second.rounding_chain()));
  EXPECT_FALSE(both.decides_on_device());
  EXPECT_EQ(both.choice().kernels().size(),
            first.choice().kernels().size() + second.choice().kernels().size());
}

// Each cut appears once. Parts are in FP32 also where the problem allows to split operands.
TEST(TwoParts, AreInFp32) {
  std::set<std::string> names;
  for (const Candidate& candidate :
       sgemm::stage.candidates(split(Problem::dense({2842, 199, 6886})), gpu(90))) {
    const std::string& name = candidate.choice.configuration;
    EXPECT_TRUE(names.insert(name).second) << name;
    if (!is_in_two(name)) continue;
    EXPECT_EQ(name.find("Int8x3"), std::string::npos) << name;
    EXPECT_EQ(name.find("Bf16x6"), std::string::npos) << name;
  }
  EXPECT_GE(std::ranges::count_if(names, [](const std::string& name) { return is_in_two(name); }),
            2);
}

// The second part begins at an address of its own, and may be a single column of op(B).
TEST(TwoParts, AreRight) {
  constexpr int kMultiprocessors = 1;  // so that a small C is expected to take 6 µs
  int rows = 0, columns = 0;
  for (const Op op_a : {Op::kN, Op::kT}) {
    for (const Op op_b : {Op::kN, Op::kT}) {
      for (const verifier::Padded& padded :
           {verifier::Padded{.shape = {65, 70, 200}, .op_a = op_a, .op_b = op_b},
            verifier::Padded{.shape = {97, 65, 130},
                             .pad = {3, 1, 2},
                             .offset_bytes = {4, 8, 12},
                             .alpha = -2.0F,
                             .beta = 0.5F,
                             .op_a = op_a,
                             .op_b = op_b}}) {
        verifier::Case test_case{.problem = padded, .multiprocessors = kMultiprocessors};
        for (const Candidate& candidate :
             sgemm::stage.candidates(test_case.problem, device_of(test_case))) {
          test_case.configuration = candidate.choice.configuration;
          if (!is_in_two(test_case.configuration)) continue;
          ++(is_in_two(test_case.configuration, "row") ? rows : columns);
          const verifier::Verdict verdict = verify(sgemm::stage, test_case);
          EXPECT_TRUE(verdict.ok) << verdict.report;
        }
      }
    }
  }
  EXPECT_GE(rows, 4);
  EXPECT_GE(columns, 4);
}

}  // namespace
}  // namespace tilegate
