// The operands of a case are as random as it says, and what surrounds them shows when it is used.
#include "verifier/operands.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace tilegate::verifier {
namespace {

constexpr Operand kOperands[] = {Operand::kA, Operand::kB, Operand::kC};

std::vector<float> elements_of(const Case& test_case, Operand operand) {
  GuardedMatrix matrix = make_operand(test_case, operand);
  std::vector<float> elements;
  matrix.for_each_row([&](const float* row, std::int64_t, std::int64_t) {
    elements.insert(elements.end(), row, row + matrix.cols());
  });
  return elements;
}

// No two elements are alike, in whatever operand, matrix or row, and with whatever seed.
TEST(Operands, DependOnSeedOperandMatrixAndRow) {
  std::set<float> values;
  std::size_t count = 0;
  for (const std::uint64_t seed : {1, 2}) {
    const Case test_case{.problem = Padded{.shape = {6, 5, 7}, .beta = 1.0F, .batch = 5},
                         .seed = seed};
    for (const Operand operand : kOperands) {
      const std::vector<float> elements = elements_of(test_case, operand);
      values.insert(elements.begin(), elements.end());
      count += elements.size();
    }
  }
  EXPECT_EQ(count, 2U * 5 * (42 + 35 + 30));
  EXPECT_EQ(values.size(), count);
}

struct Picks {
  std::map<std::int64_t, int> of_k;  // how many lines pick each
  std::set<float> factors;
  int none = 0, lines = 0;
  bool are_single = true;
};

Picks picks_in(const Case& test_case, std::int64_t index) {
  const bool from_a = test_case.inputs == Inputs::kPicksFromA;
  const Problem& problem = test_case.problem;
  const bool line_is_row = from_a ? problem.op_b == Op::kT : problem.op_a == Op::kN;
  const GuardedMatrix matrix = make_operand(test_case, from_a ? Operand::kB : Operand::kA);
  Picks picks;
  picks.lines = static_cast<int>(line_is_row ? matrix.rows() : matrix.cols());
  for (int line = 0; line < picks.lines; ++line) {
    int found = 0;
    for (std::int64_t k = 0; k < problem.shape.k; ++k) {
      const float value =
          line_is_row ? matrix.expected(line, index)[k] : matrix.expected(k, index)[line];
      if (value == 0.0F) continue;
      ++picks.of_k[k];
      picks.factors.insert(value);
      ++found;
    }
    picks.none += found == 0 ? 1 : 0;
    picks.are_single = picks.are_single && found <= 1;
  }
  return picks;
}

TEST(Operands, MasksPickEveryKWithEveryFactor) {
  for (const Inputs inputs : {Inputs::kPicksFromA, Inputs::kPicksFromB}) {
    for (const Op op : {Op::kN, Op::kT}) {
      for (const float beta : {0.0F, 1.0F}) {
        const Case test_case{
            .problem =
                Padded{.shape = {100, 100, 20}, .beta = beta, .op_a = op, .op_b = op, .batch = 4},
            .inputs = inputs};
        for (std::int64_t index = 0; index < 4; ++index) {
          const Picks picks = picks_in(test_case, index);
          EXPECT_EQ(picks.lines, 100);
          EXPECT_TRUE(picks.are_single);
          EXPECT_EQ(picks.of_k.size(), 20U);
          EXPECT_EQ(picks.factors.size(), beta == 0.0F ? 7U : 6U);  // powers of two, 1/8 … 8
          EXPECT_EQ(picks.none > 0, beta != 0.0F);
        }
      }
    }
  }
}

TEST(Operands, MasksOfABatchBeginAtDifferentK) {
  const Case test_case{.problem = Padded{.shape = {1, 1, 9}, .batch = 9},
                       .inputs = Inputs::kPicksFromA};
  std::set<std::int64_t> first;
  for (std::int64_t index = 0; index < 9; ++index) {
    for (const auto& [k, lines] : picks_in(test_case, index).of_k) first.insert(k);
  }
  EXPECT_EQ(first.size(), 9U);
}

// The operand of the picks may be one for all products, whose lines pick the same then.
TEST(Operands, CIsZeroWhereALinePicksAndNowhereElse) {
  for (const Inputs inputs : {Inputs::kPicksFromA, Inputs::kPicksFromB}) {
    const bool from_a = inputs == Inputs::kPicksFromA;
    for (const bool shares_a : {false, true}) {
      Problem problem = Padded{.shape = {60, 70, 5}, .pad = {1, 2, 3}, .beta = 1.0F, .batch = 3};
      (shares_a ? problem.stride_a : problem.stride_b) = 0;
      const Case test_case{.problem = problem, .inputs = inputs};
      const GuardedMatrix picks = make_operand(test_case, from_a ? Operand::kB : Operand::kA);
      const GuardedMatrix c = make_operand(test_case, Operand::kC);
      for (std::int64_t index = 0; index < 3; ++index) {
        const std::int64_t of = shares_a == from_a ? index : 0;
        for (std::int64_t row = 0; row < 60; ++row) {
          for (std::int64_t col = 0; col < 70; ++col) {
            bool picked = false;
            for (std::int64_t k = 0; k < 5; ++k) {
              picked |= (from_a ? picks.expected(k, of)[col] : picks.expected(row, of)[k]) != 0.0F;
            }
            ASSERT_EQ(c.expected(row, index)[col] == 0.0F, picked) << row << ' ' << col;
          }
          EXPECT_EQ(c.expected(row, index)[70], kSentinel);
        }
      }
    }
  }
}

TEST(Operands, UnreadOperandsAreNan) {
  Case test_case{.problem = Padded{.shape = {3, 4, 5}, .pad = {2, 2, 2}, .beta = 1.0F}};
  for (const Operand operand : kOperands) {
    const GuardedMatrix matrix = make_operand(test_case, operand);
    for (std::int64_t col = matrix.cols(); col < matrix.pitch(); ++col) {
      const float padding = matrix.expected(1)[col];
      EXPECT_TRUE(operand == Operand::kC ? padding == kSentinel : std::isnan(padding));
    }
  }
  for (const float c : elements_of(test_case, Operand::kC)) EXPECT_TRUE(std::isfinite(c));
  test_case.problem.beta = 0.0F;
  for (const float c : elements_of(test_case, Operand::kC)) EXPECT_TRUE(std::isnan(c));
}

TEST(Operands, WorkspaceIsDirtyAndAlignedTo16Bytes) {
  const Stage stage{.name = "Planted", .choose = [](const Problem&, const Device&) {
                      return Choice{.rounding_chain = 1, .workspace_bytes = 20};
                    }};
  std::set<std::uint32_t> leftovers;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Case test_case{.problem = Problem::dense({1, 1, 1}), .seed = seed};
    const GuardedMatrix workspace = make_workspace(test_case, stage.plan(test_case.problem));
    ASSERT_EQ(workspace.cols(), 5);
    for (std::int64_t i = 0; i < 5; ++i) {
      leftovers.insert(std::bit_cast<std::uint32_t>(workspace.expected()[i]));
    }
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(workspace.on_device()) % 32, 16U);
  }
  EXPECT_GT(leftovers.size(), 1U);
  EXPECT_FALSE(leftovers.contains(0));
}

TEST(Operands, AWorkspaceEndsWithAWholeElement) {
  for (const std::size_t bytes : {21U, 22U, 24U}) {
    static std::size_t asked;
    asked = bytes;
    const Stage stage{.name = "Planted", .choose = [](const Problem&, const Device&) {
                        return Choice{.rounding_chain = 1, .workspace_bytes = asked};
                      }};
    const Case test_case{.problem = Problem::dense({1, 1, 1})};
    EXPECT_EQ(make_workspace(test_case, stage.plan(test_case.problem)).cols(), 6) << bytes;
  }
}

TEST(Operands, InjectedValuesAreInPlace) {
  for (const Operand operand : kOperands) {
    const Problem problem = Padded{.shape = {3, 4, 5}, .beta = 1.0F};
    const GuardedMatrix matrix = make_operand(
        {.problem = problem,
         .plants = {{operand, 0, 0, 66.0F}, {operand, 1, 2, 77.0F}, {operand, -1, -2, 88.0F}}},
        operand);
    const std::vector<float> plain = elements_of({.problem = problem}, operand);
    for (std::int64_t row = 0; row < matrix.rows(); ++row) {
      for (std::int64_t col = 0; col < matrix.cols(); ++col) {
        float expected = plain[static_cast<std::size_t>(row * matrix.cols() + col)];
        if (row == 0 && col == 0) expected = 66.0F;
        if (row == 1 && col == 2) expected = 77.0F;
        if (row == matrix.rows() - 1 && col == matrix.cols() - 2) expected = 88.0F;
        EXPECT_EQ(matrix.expected(row)[col], expected) << row << " " << col;
      }
    }
  }
}

}  // namespace
}  // namespace tilegate::verifier
