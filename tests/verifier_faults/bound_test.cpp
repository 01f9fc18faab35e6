// The bound from below: a stage that is wrong by twice its bound in a single element is rejected on
// every case, wherever the element is; one that is wrong by half the bound is not.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "verifier/case.hpp"
#include "verifier_faults/faults.hpp"

namespace tilegate::faults {
namespace {

using verifier::Case;
using verifier::Padded;
using verifier::Verdict;

constexpr std::array kOneOrder = {verifier::Order::kForward};

std::vector<Case> bound_cases() {
  struct Form {
    Op op_a = Op::kN, op_b = Op::kN;
    std::int64_t batch = 1, gap = 0;
  };
  std::vector<Case> cases;
  for (const Form& form :
       {Form{}, Form{Op::kT, Op::kN}, Form{Op::kN, Op::kT, 2, 1}, Form{Op::kT, Op::kT, 3, -1}}) {
    for (const Shape& shape : {Shape{5, 7, 9}, Shape{17, 16, 33}, Shape{1, 20, 300},
                               Shape{20, 1, 64}, Shape{3, 4, 2053}}) {
      for (const auto& [alpha, beta] : {std::array{1.0F, 0.0F}, std::array{-0.7F, 3.0F}}) {
        cases.push_back({.problem = Padded{.shape = shape,
                                           .pad = {1, 2, 3},
                                           .alpha = alpha,
                                           .beta = beta,
                                           .op_a = form.op_a,
                                           .op_b = form.op_b,
                                           .batch = form.batch,
                                           .gap = form.gap}});
      }
    }
  }
  return cases;
}

TEST(Bound, TwiceIsRejectedAnywhereAndHalfIsNot) {
  int half = 0, twice = 0;
  for (const Stage& stage : rounding_faults()) {
    const bool is_half = stage.name.starts_with("HalfTheBound");
    const bool is_twice = stage.name.starts_with("TwiceTheBound");
    if (!is_half && !is_twice) continue;
    (is_half ? half : twice) += 1;
    for (const Case& test_case : bound_cases()) {
      const Verdict verdict = verify(stage, test_case, kOneOrder);
      EXPECT_EQ(verdict.check, is_half ? "" : "bound")
          << stage.name << " " << name_of(test_case) << "\n"
          << verdict.report;
      if (is_twice) {
        EXPECT_NE(verdict.report.find("\n  1 of "), std::string::npos) << verdict.report;
      }
    }
  }
  EXPECT_EQ(half, 1);
  EXPECT_EQ(twice, 5);
}

// Otherwise a rung could make its bound as wide as it likes.
TEST(Bound, AChainLongerThanKAndAFewIsRefused) {
  for (const Stage& stage : rounding_faults()) {
    const Verdict verdict = verify(stage, {.problem = Problem::dense({5, 7, 9})}, kOneOrder);
    if (stage.name == "DeclaresLongChain") {
      EXPECT_EQ(verdict.check, "bound");
      EXPECT_NE(verdict.report.find("26 is not in [1, 25]"), std::string::npos) << verdict.report;
    }
    if (stage.name.starts_with("Right")) {
      EXPECT_TRUE(verdict.ok) << verdict.report;
    }
  }
}

}  // namespace
}  // namespace tilegate::faults
