// The verifier's own test: every planted fault is rejected, by a check that is meant to see it, and
// the right twins pass. Prints which check caught which fault on which case.
#include "verifier_faults/faults.hpp"

#include <array>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

#include "verifier/case.hpp"

namespace tilegate::faults {
namespace {

using verifier::Case;
using verifier::Inputs;
using verifier::Order;
using verifier::Padded;
using verifier::Verdict;
using verifier::verify;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const Problem kLongSum = Problem::dense({3, 5, 16411});

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasAddressSanitizer = true;
#else
constexpr bool kHasAddressSanitizer = false;
#endif

// A modest list: what any rung is tested on at the least.
std::vector<Case> modest_cases() {
  constexpr std::array<std::array<std::int64_t, 3>, 3> kPads = {{{0, 0, 0}, {3, 1, 2}, {4, 8, 4}}};
  std::vector<Case> cases;
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{5, 7, 3}, Shape{16, 16, 16}, Shape{17, 33, 9},
                             Shape{33, 20, 35}, Shape{64, 48, 32}}) {
    for (const auto& pad : kPads) {
      for (const int offset : {0, 4, 8, 12}) {
        for (const Inputs inputs : {Inputs::kUniform, Inputs::kIntegers}) {
          cases.push_back({.problem = Padded{.shape = shape,
                                             .pad = pad,
                                             .offset_bytes = {offset, offset, offset},
                                             .alpha = 2.0F,
                                             .beta = offset == 0 || offset == 8 ? 0.0F : -1.0F},
                           .inputs = inputs});
        }
      }
    }
  }
  cases.push_back({.problem = kLongSum});
  cases.push_back({.problem = kLongSum, .inputs = Inputs::kIntegers});
  cases.push_back({.problem = Problem::dense({9, 9, 9}), .plants = {{Operand::kA, 2, 3, kNan}}});
  return cases;
}

struct Catch {
  std::string check, test_case;
};

std::optional<Catch> first_catch(const Stage& stage, std::span<const Order> orders) {
  for (const Case& test_case : modest_cases()) {
    const Verdict verdict = verify(stage, test_case, orders);
    if (verdict.ok) continue;
    EXPECT_NE(verdict.report.find(stage.name), std::string::npos) << verdict.report;
    EXPECT_NE(verdict.report.find(name_of(test_case)), std::string::npos) << verdict.report;
    EXPECT_NE(verdict.report.find("`" + verdict.check + "`"), std::string::npos) << verdict.report;
    return Catch{verdict.check, name_of(test_case)};
  }
  return std::nullopt;
}

class InjectedFault : public testing::TestWithParam<const PlantedFault*> {
 protected:
  static void SetUpTestSuite() { table() = "fault -> check that caught it -> case\n"; }
  static void TearDownTestSuite() { std::printf("%s", table().c_str()); }

  static std::string& table() {
    static std::string text;
    return text;
  }

  void judge(const char* schedule, std::span<const Order> orders) {
    const PlantedFault& fault = *GetParam();
    const std::optional<Catch> caught = first_catch(fault.stage, orders);
    char row[200];
    std::snprintf(row, sizeof(row), "  %-24s %-8s -> %-7s -> %s\n", fault.stage.name.data(),
                  schedule, caught ? caught->check.c_str() : "none",
                  caught ? caught->test_case.c_str() : "all");
    table() += row;
    if (fault.caught_by.empty()) {
      EXPECT_FALSE(caught) << "a right kernel is rejected by " << caught->check << " on "
                           << caught->test_case;
      return;
    }
    ASSERT_TRUE(caught) << "the fault survives";
    const std::string meant = "|" + std::string(fault.caught_by) + "|";
    EXPECT_NE(meant.find("|" + caught->check + "|"), std::string::npos)
        << "caught by " << caught->check << ", which should not see it";
  }
};

TEST_P(InjectedFault, IsRejected) {
  const Needs needs = GetParam()->needs;
  if (needs == Needs::kSanitizer && !kHasAddressSanitizer)
    GTEST_SKIP() << "only in the asan preset";
  if (device::current().is_cuda) {
    if (needs == Needs::kExecutor) GTEST_SKIP() << "a GPU may run it right by luck";
    judge("cuda", verifier::kBothOrders);
    return;
  }
  judge("forward", std::array{Order::kForward, Order::kReverse});
  judge("reverse", std::array{Order::kReverse, Order::kForward});
}

std::vector<const PlantedFault*> all_faults() {
  std::vector<const PlantedFault*> all;
  for (const PlantedFault& fault : element_faults()) all.push_back(&fault);
  for (const PlantedFault& fault : tile_faults()) all.push_back(&fault);
  return all;
}

std::string name_fault(const testing::TestParamInfo<const PlantedFault*>& info) {
  return std::string(info.param->stage.name);
}

INSTANTIATE_TEST_SUITE_P(Verifier, InjectedFault, testing::ValuesIn(all_faults()), name_fault);

const Stage& find_fault(std::string_view name) {
  for (const PlantedFault* fault : all_faults()) {
    if (fault->stage.name == name) return fault->stage;
  }
  throw std::out_of_range(std::string(name));
}

// Why every shape runs on integers too.
TEST(LongSums, BoundAloneMissesADroppedTerm) {
  const Stage& stage = find_fault("DropsTermOfLongSum");
  EXPECT_TRUE(verify(stage, {.problem = kLongSum}).ok);
  EXPECT_EQ(verify(stage, {.problem = kLongSum, .inputs = Inputs::kIntegers}).check, "exact");
}

TEST(Report, BeginsWithTheElementAndListsEight) {
  const Verdict verdict =
      verify(find_fault("ReturnsConstant"), {.problem = Problem::dense({5, 7, 300}), .seed = 9});
  EXPECT_FALSE(verdict.ok);
  EXPECT_TRUE(verdict.report.starts_with("ReturnsConstant 5x7x300: element (0, 0) is 1, expected "))
      << verdict.report;
  for (const char* words :
       {"(bound ", "\n  check `bound`, case 5x7x300_s9, seed 9", "(1, 0)", "..."}) {
    EXPECT_NE(verdict.report.find(words), std::string::npos) << words << "\n" << verdict.report;
  }
  EXPECT_EQ(verdict.report.find("(1, 1)"), std::string::npos) << verdict.report;
}

TEST(Report, RejectsIntegersThatMayNotBeExact) {
  const Case too_long{.problem = Problem::dense({1, 1, 2'000'000}), .inputs = Inputs::kIntegers};
  EXPECT_EQ(verify(find_fault("RightTiles"), too_long).check, "exact");
}

TEST(Report, RejectsARoundingChainThatBoundsNothing) {
  Stage stage = find_fault("RightTiles");
  stage.choose = [](const Problem&, const Device&) {
    return Choice{.rounding_chain = std::int64_t{1} << 24};
  };
  EXPECT_EQ(verify(stage, {.problem = Problem::dense({4, 4, 4})}).check, "bound");
  stage.choose = [](const Problem&, const Device&) { return Choice{}; };
  EXPECT_EQ(verify(stage, {.problem = Problem::dense({4, 4, 4})}).check, "bound");
}

TEST(Report, RejectsAnotherDecision) {
  Stage stage = workspace_faults().front();
  Case test_case{.problem = Problem::dense({4, 4, 4})};
  EXPECT_TRUE(verify(stage, test_case).ok);
  test_case.decision = 6;
  EXPECT_NE(verify(stage, test_case).report.find("decides nothing on the device"),
            std::string::npos);
  stage.choose = [](const Problem& problem, const Device& device) {
    Choice choice = workspace_faults().front().choose(problem, device);
    choice.decides_on_device = true;  // the first word of the workspace is a partial sum
    return choice;
  };
  const Verdict verdict = verify(stage, test_case);
  EXPECT_EQ(verdict.check, "decision");
  EXPECT_NE(verdict.report.find("expected 6, got "), std::string::npos) << verdict.report;
}

}  // namespace
}  // namespace tilegate::faults
