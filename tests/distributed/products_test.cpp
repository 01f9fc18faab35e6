// Products over ranks are right: the ladder's cases, judged by the verifier, in uneven shards.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/sgemm.hpp>
#include <tilegate/warptile.hpp>

#include "distributed/ranks.hpp"
#include "ladder/cases.hpp"
#include "thorough.hpp"
#include "verifier/case.hpp"
#include "verifier/oracle.hpp"

namespace tilegate::distributed {
namespace {

Layout layout_of_stage;

// The bounds of the plans of all ranks.
Choice choose(const Problem& problem, const Device& /*device*/) {
  Choice choice;
  const DistributedProblem shared = distributed(layout_of_stage, problem);
  ThreadGroup group(layout_of_stage.ranks, kPatience);
  std::mutex mutex;
  for_each_rank(layout_of_stage.ranks, [&](int number) {
    const Rank rank = Rank::make(shared, problem, number);
    const std::unique_ptr<Transport> transport = group.join(number);
    const DistributedSgemm sgemm(*transport, rank.problem);
    const std::lock_guard lock(mutex);
    if (!sgemm.ok()) choice.status = sgemm.status();
    choice.rounding_chain = std::max(choice.rounding_chain, sgemm.rounding_chain());
    choice.operand_error = std::max(choice.operand_error, sgemm.operand_error());
  });
  choice.enqueue = [problem](const KernelArgs& args, Stream /*stream*/) {
    return multiply(layout_of_stage, problem, args.a, args.b, args.c);
  };
  return choice;
}

void expect_right(const Layout& given, const verifier::Case& test_case) {
  layout_of_stage = given;
  const std::string name = name_of(layout_of_stage);
  const Stage stage{.name = name, .takes_transposed = true, .choose = choose};
  const verifier::Verdict verdict = verify(stage, test_case);
  EXPECT_TRUE(verdict.ok) << verdict.report;
}

// Every case on one layout, the next in turn; by day a sample of them.
void expect_right_in_turn(const std::vector<verifier::Case>& cases, std::size_t by_day) {
  std::size_t turn = 0;
  for (std::size_t i = 0; i < cases.size(); i += is_thorough() ? 1 : cases.size() / by_day + 1) {
    const auto& [m, n, k] = cases[i].problem.shape;
    if (cases[i].problem.batch > 1 || m * n * k > (is_thorough() ? 1 << 24 : 1 << 18)) continue;
    expect_right({.form = kForms[turn % 2],
                  .ranks = static_cast<int>(1 + turn / 2 % 8),
                  .schedule = kSchedules[turn / 2 % 3 % 2],
                  .seed = 1 + turn},
                 cases[i]);
    ++turn;
  }
}

TEST(DistributedProducts, MatchReferenceInUnevenShards) {
  expect_right_in_turn(ladder::shape_cases(sgemm::stage), 60);
}

TEST(DistributedProducts, KeepBlasSemantics) {
  expect_right_in_turn(ladder::semantics_cases(sgemm::stage), 30);
}

// Every number of ranks, both forms, both schedules.
TEST(DistributedProducts, MatchReferenceOnOneToEightRanks) {
  verifier::Case test_case;
  ASSERT_TRUE(
      parse_problem("45x37x28/NT/ld41x49x52/off4x8x12/alpha2/beta-1", &test_case.problem).ok());
  test_case.inputs = verifier::Inputs::kIntegers;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const Form form : kForms) {
      for (const Schedule schedule : kSchedules) {
        expect_right({.form = form, .ranks = ranks, .schedule = schedule}, test_case);
      }
    }
  }
}

TEST(DistributedProducts, SplitOperandsAreWithinTheirBound) {
  verifier::Case test_case;
  ASSERT_TRUE(parse_problem("140x70x300/split", &test_case.problem).ok());
  for (const Form form : kForms) expect_right({.form = form, .ranks = 2, .seed = 3}, test_case);
}

// Uniform operands of a problem, and C after a product of it.
class SameBits : public testing::Test {
 protected:
  explicit SameBits() {
    problem_ = Problem::dense({150, 139, 331});
    problem_.alpha = 0.7F;
    problem_.beta = -0.3F;
    for (std::size_t i = 0; i < 3; ++i) {
      auto& operand = operands_[i];
      operand.resize(static_cast<std::size_t>(problem_.span(static_cast<Operand>(i))));
      for (std::size_t j = 0; j < operand.size(); ++j) {
        operand[j] = verifier::input_value(verifier::Inputs::kUniform, i + 1, j);
      }
    }
  }

  std::vector<float> product_over(const Layout& over) const {
    std::vector<float> c = operands_[2];
    const Status status =
        multiply(over, problem_, operands_[0].data(), operands_[1].data(), c.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return c;
  }

  Problem problem_;
  std::array<std::vector<float>, 3> operands_;
};

TEST_F(SameBits, OnAnyNumberOfRanks) {
  const std::vector<float> one = product_over({.ranks = 1, .same_bits = true});
  for (const int ranks : {2, 3, 4, 8}) {
    for (const Schedule schedule : kSchedules) {
      for (const std::uint64_t seed : {0, 5}) {
        const Layout over{.ranks = ranks, .schedule = schedule, .same_bits = true, .seed = seed};
        EXPECT_EQ(product_over(over), one) << name_of(over);
      }
    }
  }
}

// A kernel of another rung, which adds in the order of K whatever the shape.
TEST_F(SameBits, AreThoseOfASumInOrder) {
  std::vector<float> c = operands_[2];
  const Plan plan = warptile::stage.plan(problem_);
  ASSERT_TRUE(
      plan.launch({.a = operands_[0].data(), .b = operands_[1].data(), .c = c.data()}).ok());
  EXPECT_EQ(product_over({.ranks = 3, .same_bits = true, .seed = 2}), c);
}

TEST_F(SameBits, OfASecondLaunch) {
  const Layout over{.form = Form::kRowParallel, .ranks = 5, .seed = 4};
  EXPECT_EQ(product_over(over), product_over(over));
}

}  // namespace
}  // namespace tilegate::distributed
