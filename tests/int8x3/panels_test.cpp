// Products in panels, which share a workspace: their values, and what they keep.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "int8x3/run.hpp"
#include "thorough.hpp"
#include "verifier/case.hpp"

namespace tilegate::int8x3 {
namespace {

class Int8Panels : public SplitTest<stage> {};

using verifier::Padded;

// Fewer multiprocessors take fewer partial sums.
constexpr int kMultiprocessors = 2;
constexpr std::size_t kPartials = 400'000;  // of stream-K on them

using Names = std::set<std::string>;
const Names kFive = {"64x128pingpong", "128x64", "128x128pairs", "128x128streamk",
                     "128x128pairsstreamk"};
const Names kTwo = {"128x64", "128x128pairsstreamk"};

// The call is right in panels, by these configurations of the GEMM; nightly by all, in both orders.
// `digits`: the limit, beside partial sums; `size`: of the panels where there are none.
void expect_right(const Problem& problem, std::size_t digits, const std::string& size,
                  const Names& by_day, const std::vector<verifier::Plant>& plants = {}) {
  Names seen;
  for (const std::size_t limit : {digits, digits + kPartials}) {
    verifier::Case test_case{.problem = problem,
                             .plants = plants,
                             .multiprocessors = kMultiprocessors,
                             .workspace_limit = limit};
    for (const Candidate& candidate : stage.panels(problem, device_of(test_case), limit)) {
      test_case.configuration = candidate.choice.configuration;
      const std::string name = test_case.configuration.substr(0, test_case.configuration.find('_'));
      if (name.ends_with("streamk") != (limit > digits)) continue;
      if (!is_thorough() && !by_day.contains(name)) continue;
      seen.insert(name);
      if (limit == digits) {
        EXPECT_EQ(test_case.configuration, name + "_panels" + size);
      }
      const std::span<const verifier::Order> both = verifier::kBothOrders;
      const verifier::Verdict verdict =
          verify(stage, test_case, is_thorough() ? both : both.subspan(seen.size() % 2, 1));
      EXPECT_TRUE(verdict.ok) << verdict.report;
    }
  }
  EXPECT_TRUE(std::ranges::includes(seen, by_day)) << "a configuration offers no panels";
}

// Rows and columns of C, and K, each in two panels, the last of which is small.
TEST_F(Int8Panels, AreRightInEveryDirection) {
  const Padded problem{
      .shape = {130, 131, 260}, .pad = {1, 2, 3}, .alpha = 1.1F, .beta = -0.7F, .op_a = Op::kT};
  expect_right(problem, 150'000, "128x128x160", kFive);
}

TEST_F(Int8Panels, AreRightWithoutAlignment) {
  const Padded problem{.shape = {130, 5, 259}, .offset_bytes = {4, 8, 12}, .op_b = Op::kT};
  expect_right(problem, 130'000, "128x5x160", kTwo);
}

// Some whole products at once, and one product in panels; A and B are shared or not.
TEST_F(Int8Panels, AreRightForBatches) {
  const Padded own{.shape = {20, 6, 140}, .beta = 2.0F, .batch = 3, .gap = 1};
  expect_right(own, 300'000, "2x20x6x140", kTwo);
  const Padded shared{.shape = {20, 6, 260}, .op_b = Op::kT, .batch = 2, .gap = -1};
  expect_right(shared, 150'000, "1x20x6x160", kTwo);
  // Matrices that begin at odd words, but for the first.
  const Padded shifted{.shape = {20, 8, 140}, .batch = 3, .shift = {1, 2, 1}};
  expect_right(shifted, 150'000, "1x20x8x140", kTwo);
  expect_right(shifted, 300'000, "2x20x8x140", kTwo);
}

// The products share both operands, so that no panel but the first splits any.
TEST_F(Int8Panels, AreRightWhereNothingIsSplitAgain) {
  const verifier::Case test_case{
      .problem = Padded{.shape = {20, 6, 140}, .op_b = Op::kT, .batch = 3, .gap = -1},
      .configuration = "128x128streamk_panels1x20x6x140",
      .multiprocessors = kMultiprocessors,
      .workspace_limit = kPartials};
  const verifier::Verdict verdict = verify(stage, test_case);
  EXPECT_TRUE(verdict.ok) << verdict.report;
}

// Each panel along K adds to C once more.
TEST_F(Int8Panels, AlongKMakeTheChainOfRoundingsLonger) {
  const auto chain = [](std::int64_t k, const std::string& of) {
    const Problem problem = Problem::dense({3, 5, k});
    return k == 0 ? 0 : stage.plan(problem, device::current(), of).rounding_chain();
  };
  std::set<std::int64_t> more;
  for (const Candidate& candidate :
       stage.panels(Problem::dense({3, 5, 700}), device::current(), 250'000)) {
    const std::string& name = candidate.choice.configuration;
    const std::int64_t k = std::stoll(name.substr(name.rfind('x') + 1));
    more.insert((700 + k - 1) / k - 1);
    const std::string whole = name.substr(0, name.find("_panels"));
    EXPECT_EQ(candidate.choice.rounding_chain,
              std::max(chain(k, whole), chain(700 % k, whole)) + (700 + k - 1) / k - 1)
        << name;
  }
  EXPECT_GT(*more.rbegin(), 0);
}

TEST(Int8Plan, OffersPanelsFromK128) {
  const auto offers = [](std::int64_t k) {
    return !stage.panels(Problem::dense({256, 256, k}), device::current(), 10'000'000).empty();
  };
  EXPECT_FALSE(offers(127));
  EXPECT_TRUE(offers(128));
}

// One panel multiplies in FP32, the others by digits.
TEST_F(Int8Panels, AreRightForNonFiniteElements) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  expect_right(Padded{.shape = {130, 5, 260}}, 130'000, "128x5x160", kTwo,
               {{Operand::kA, -1, 3, kInfinity}, {Operand::kB, 7, 2, 0.0F}});
}

// Rows and columns have the same digits in each panel, where the device decides the same: A's
// digits stay for three panels of columns, B's for rows in panels of two tiles and of one.
TEST_F(Int8Panels, OfRowsAndColumnsKeepTheBits) {
  const struct {
    Shape shape;
    std::size_t limit;
    const char* configuration;
  } calls[] = {{{3, 300, 130}, 130'000, "128x64_panels3x128x130"},
               {{300, 70, 130}, 190'000, "64x128pingpong_panels256x70x130"}};
  for (const auto& [shape, limit, configuration] : calls) {
    SCOPED_TRACE(configuration);
    Problem problem = Problem::dense(shape);
    set_alpha_and_beta(problem);
    const Operation operation(problem);
    const Result result = run(eight(), operation, configuration, limit);
    EXPECT_EQ(result.decision, 8);
    expect_same_bits(result.c, expected(operation, 8));
  }
}

// Its columns are as wide for the last panel of rows, which is smaller, as for the first.
TEST_F(Int8Panels, OfFewerRowsDecideByTheSameColumns) {
  Operation operation(Problem::dense({300, 70, 130}));
  for (float& x : operation.a) x = std::copysign(0.75F + x * x / 4.0F, x);
  for (float& x : operation.b) x = std::copysign(0.75F + x * x / 4.0F, x);
  for (std::size_t col = 0; col < 70; ++col) operation.b[5 * 70 + col] = 3.0F;
  const Result whole = run(stage, operation);
  EXPECT_EQ(whole.decision, 8);
  EXPECT_EQ(run(stage, operation, "64x128pingpong_panels256x70x130", 190'000).decision, 8);
}

}  // namespace
}  // namespace tilegate::int8x3
