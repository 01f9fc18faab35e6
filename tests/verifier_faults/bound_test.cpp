// The bound from below: a stage that is wrong by twice its bound in a single element is rejected on
// every case, wherever the element is; one that is wrong by half the bound is not.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

#include "verifier/case.hpp"
#include "verifier/summation.hpp"
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

TEST(Bound, RejectsTwiceAndAcceptsHalfAnywhere) {
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
TEST(Bound, RejectsAChainMuchLongerThanK) {
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

Choice choose_huge_chain(const Problem& problem, const Device& device) {
  Choice choice = rounding_faults().front().choose(problem, device);
  choice.rounding_chain += std::int64_t{1} << 32;
  return choice;
}

TEST(Bound, RejectsAChainBeyond32Bits) {
  Stage stage = rounding_faults().front();
  stage.choose = choose_huge_chain;
  const Verdict verdict = verify(stage, {.problem = Problem::dense({5, 7, 9})}, kOneOrder);
  EXPECT_NE(verdict.report.find("4294967307 is not in [1, 25]"), std::string::npos)
      << verdict.report;
}

// A stage that rounds its operands, too: what it may be off by depends on the largest element of
// the row and of the column, not of others.
struct Largest {
  double of_row[4], of_col[5];
};

std::int64_t wrong_matrix, wrong_element;
double wrong_by;  // shares of what the operands' rounding allows there

Largest largest_of(const KernelArgs& args) {
  const auto [m, n, k] = args.shape;
  std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n));
  const float* const from_a = args.a + wrong_matrix * args.stride_a;
  const float* const from_b = args.b + wrong_matrix * args.stride_b;
  EXPECT_TRUE(device::copy_to_host(a.data(), from_a, a.size() * sizeof(float)).ok());
  EXPECT_TRUE(device::copy_to_host(b.data(), from_b, b.size() * sizeof(float)).ok());
  Largest largest{};
  for (std::int64_t i = 0; i < m * k; ++i) {
    double& of_row = largest.of_row[i / k];
    of_row = std::fmax(of_row, std::fabs(a[static_cast<std::size_t>(i)]));
  }
  for (std::int64_t i = 0; i < k * n; ++i) {
    double& of_col = largest.of_col[i % n];
    of_col = std::fmax(of_col, std::fabs(b[static_cast<std::size_t>(i)]));
  }
  return largest;
}

constexpr double kOperandError = 0x1p-10;

Status spoil_element(const KernelArgs& args, const Choice& right, Stream stream) {
  if (Status s = right.enqueue(args, stream); !s.ok()) return s;
  const Largest largest = largest_of(args);
  const auto row = static_cast<std::size_t>(wrong_element / args.shape.n);
  const auto col = static_cast<std::size_t>(wrong_element % args.shape.n);
  const double allowed =
      kOperandError * static_cast<double>(args.shape.k) * largest.of_row[row] * largest.of_col[col];
  float value = 0.0F;
  float* const at = args.c + wrong_matrix * args.stride_c + wrong_element;
  if (Status s = device::copy_to_host(&value, at, sizeof(float)); !s.ok()) return s;
  value += static_cast<float>(wrong_by * allowed);
  return device::copy_to_device(at, &value, sizeof(float));
}

Choice choose_rounding_operands(const Problem& problem, const Device& device) {
  Choice right = rounding_faults().front().choose(problem, device);
  Choice choice = right;
  choice.operand_error = kOperandError;
  choice.enqueue = [right](const KernelArgs& args, Stream stream) {
    return spoil_element(args, right, stream);
  };
  return choice;
}

TEST(Bound, OfRoundedOperandsUsesTheLargestOfRowAndColumn) {
  Stage stage = rounding_faults().front();
  stage.name = "RoundsOperands";
  stage.choose = choose_rounding_operands;
  // The largest of a row or a column stands first, last and between; in the second product of the
  // batch all are small.
  const Case test_case{.problem = Problem::dense({4, 5, 3}, Op::kN, Op::kN, 2),
                       .plants = {{Operand::kA, 0, 0, 100.0F},
                                  {Operand::kA, 2, 2, -1000.0F},
                                  {Operand::kB, 0, 1, -100.0F},
                                  {Operand::kB, 1, 3, 10.0F},
                                  {Operand::kB, 2, 4, 1000.0F}}};
  for (int i = 0; i < 2 * 4 * 5; ++i) {
    wrong_matrix = i / (4 * 5);
    wrong_element = i % (4 * 5);
    for (const double share : {0.9, 1.1}) {
      wrong_by = share;
      const Verdict verdict = verify(stage, test_case, kOneOrder);
      EXPECT_EQ(verdict.check, share < 1.0 ? "" : "bound") << i << "\n" << verdict.report;
    }
  }
}

// What others launch afterwards runs whole and in the usual order.
TEST(Bound, ScheduleEndsWithTheRun) {
  constexpr std::array kSample = {verifier::Order::kSample};
  const Case test_case{.problem = Problem::dense({65, 64, 3})};
  EXPECT_TRUE(verify(rounding_faults().front(), test_case, kSample).ok);
  constexpr std::int64_t kCount = 1 << 20;
  const device::Buffer buffer(kCount * sizeof(float));
  ASSERT_TRUE(
      fill(reinterpret_cast<float*>(buffer.data()), kCount, verifier::Inputs::kUniform, 1, nullptr)
          .ok());
  EXPECT_TRUE(device::synchronize().ok());
  EXPECT_EQ(verifier::blocks_run().run, verifier::blocks_run().all);
}

// Of every element: here there is only one.
TEST(SummationTree, CountsTheAdditionsOfEachElement) {
  const Stage& stage = rounding_faults().front();
  const Plan plan = stage.plan(Problem::dense({1, 1, 9}));
  const std::array<std::int64_t, 2> products = {0, 8};
  const auto found = verifier::find_depth(stage, plan, products);
  EXPECT_TRUE(found.status.ok()) << found.status.message();
  EXPECT_EQ(found.additions, 8);
  EXPECT_EQ(found.where, "product 0 of c(0, 0) of matrix 0");
}

// Of two products each is added once, and the other one tells: no pair is left out.
TEST(SummationTree, ProbesEveryOtherProduct) {
  const Stage& stage = rounding_faults().front();
  const Plan plan = stage.plan(Problem::dense({1, 1, 2}));
  for (const std::int64_t product : {0, 1}) {
    EXPECT_EQ(verifier::find_depth(stage, plan, std::array{product}).additions, 1) << product;
  }
}

TEST(SummationTree, ProbesEveryElementOfEveryMatrix) {
  const auto stages = rounding_faults();
  const Stage& stage = *std::find_if(stages.begin(), stages.end(), [](const Stage& each) {
    return each.name == "AddsOneProductTwice";  // in the last element of the last matrix
  });
  const Plan plan = stage.plan(Problem::dense({2, 3, 5}, Op::kN, Op::kN, 4));
  const std::array<std::int64_t, 1> first = {0};
  const std::string message = verifier::find_depth(stage, plan, first).status.message();
  EXPECT_NE(message.find("c(1, 2) of matrix 3 is not a sum of the products"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace tilegate::faults
