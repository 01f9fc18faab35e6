// No stage rounds more than it declares: neither its operands nor, along K, more often than its
// rounding chain, which sets its bound.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"
#include "ladder/stage_test.hpp"
#include "thorough.hpp"
#include "verifier/summation.hpp"

namespace tilegate::ladder {
namespace {

class FullSignificands : public StageCaseTest {};

TEST_P(FullSignificands, AreKept) { expect_right(); }

INSTANTIATE_TEST_SUITE_P(Ladder, FullSignificands,
                         testing::ValuesIn(for_every_stage("FullSignificands", significand_cases)),
                         name_case);

bool is_plain(const Problem& problem) {
  return problem.op_a == Op::kN && problem.op_b == Op::kN && problem.batch == 1;
}

class Summation : public StageCaseTest {
 protected:
  // The products whose depth is measured, for the stage's own choice: the first one, which is the
  // deepest of a sum in the order of K. For the plain problem two more; on the executor by day only
  // if C is small.
  std::vector<std::int64_t> products() const {
    constexpr std::int64_t kSmall = 100;  // elements of C
    const auto [m, n, k] = test_case().problem.shape;
    if (is_variant(stage()) || !is_plain(test_case().problem)) return {0};
    if (TILEGATE_ON_SIMT && m * n > kSmall && !is_thorough()) return {0};
    return {0, k / 2, k - 1};
  }

  // The stage's own choice; for the plain problem also some other configurations.
  std::vector<std::string> configurations() const {
    constexpr std::size_t kMost = 6;
    std::vector<std::string> names = {""};
    const Problem& problem = test_case().problem;
    if (stage().candidates == nullptr || is_variant(stage()) || !is_plain(problem)) return names;
    const auto candidates = stage().candidates(problem, device::current());
    const std::size_t count = std::min(kMost, candidates.size());
    for (std::size_t i = 0; i < count; ++i) {
      names.push_back(candidates[i * candidates.size() / count].choice.configuration);
    }
    return names;
  }
};

TEST_P(Summation, IsNoDeeperThanDeclared) {
  constexpr std::int64_t kOtherRoundings = 3;  // the product, alpha, beta
  for (const std::string& configuration : configurations()) {
    const Plan plan = stage().plan(test_case().problem, device::current(), configuration);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const std::vector<std::int64_t> first = {0};
    const bool is_own = configuration.empty();
    const auto found =
        verifier::find_depth(stage(), plan, is_own || is_thorough() ? products() : first);
    const std::string of = std::string(stage().name) + " " + to_string(test_case().problem) + ": ";
    if (!found.status.ok()) FAIL() << of << found.status.message();
    const std::int64_t needed = found.additions + kOtherRoundings;
    if (needed <= plan.rounding_chain()) continue;
    ADD_FAILURE() << of << found.where << " goes through " << found.additions
                  << " additions, besides its own rounding, alpha and beta: a chain of " << needed
                  << ", declared are " << plan.rounding_chain() << "\n  configuration "
                  << plan.configuration();
  }
}

INSTANTIATE_TEST_SUITE_P(Ladder, Summation,
                         testing::ValuesIn(for_every_stage("Summation", summation_cases)),
                         name_case);

}  // namespace
}  // namespace tilegate::ladder
