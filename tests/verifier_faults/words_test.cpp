// Every word around and in every operand is compared, after every run: a right stage that then
// flips one bit of one word is rejected by the check that the word belongs to.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

#include "verifier/case.hpp"
#include "verifier_faults/faults.hpp"

namespace tilegate::faults {
namespace {

using verifier::Case;
using verifier::Inputs;
using verifier::Order;
using verifier::Padded;
using verifier::Verdict;

constexpr std::int64_t kGuard = 64;  // words on each side of an operand
constexpr Operand kOperands[] = {Operand::kA, Operand::kB, Operand::kC};

// What follows the right kernels of a run; runs count from 0.
using Spoil = std::function<Status(const KernelArgs& args, int run, Stream stream)>;
Spoil spoil;
int runs;

Choice choose_spoilt(const Problem& problem, const Device& device) {
  const auto stages = rounding_faults();
  const auto right = std::find_if(stages.begin(), stages.end(), [](const Stage& stage) {
    return stage.name == "RightSumOfHalves";  // it has a workspace
  });
  Choice choice = right->choose(problem, device);
  choice.enqueue = [enqueue = choice.enqueue](const KernelArgs& args, Stream stream) {
    const Status status = enqueue(args, stream);
    return status.ok() ? spoil(args, runs++, stream) : status;
  };
  return choice;
}

Verdict verify_spoilt(const Case& test_case, const Spoil& with,
                      std::span<const Order> orders = verifier::kBothOrders,
                      std::string_view not_repeatable = {}) {
  Stage stage = rounding_faults().front();
  stage.restrictions.not_repeatable = not_repeatable;
  stage.name = "FlipsABit";
  stage.choose = choose_spoilt;
  spoil = with;
  runs = 0;
  return verify(stage, test_case, orders);
}

float* address_of(const KernelArgs& args, Operand operand) {
  if (operand == Operand::kC) return args.c;
  return const_cast<float*>(operand == Operand::kA ? args.a : args.b);
}

// In run `run`, the lowest bit or another.
Spoil flip(Operand operand, std::int64_t word, int run, std::uint32_t mask = 1) {
  return [=](const KernelArgs& args, int now, Stream stream) {
    return now == run ? flip_bits(address_of(args, operand) + word, mask, stream) : Status();
  };
}

struct Expected {
  std::string check, place;  // `place` is in the report
};

Expected expected_of(const Problem& problem, Operand operand, std::int64_t word, int run) {
  if (word < 0 || word >= problem.span(operand)) return {"guards", "first"};
  const std::int64_t stride = problem.stride(operand), ld = problem.ld(operand);
  const std::int64_t index = std::min(word / stride, problem.batch - 1);
  const std::int64_t row = (word - index * stride) / ld, col = (word - index * stride) % ld;
  const auto [rows, cols] = problem.extent(operand);
  const std::string at = std::to_string(row) + ", ";
  if (row >= rows || col >= cols) return {"padding", "column " + std::to_string(col)};
  if (operand != Operand::kC) return {"inputs", "column " + std::to_string(col)};
  return {run == 0 ? "exact" : "repeat", "element (" + std::to_string(index) + ": " +
                                             std::to_string(row) + ", " + std::to_string(col) +
                                             ")"};
}

void expect_rejected(const Case& test_case, Operand operand, std::int64_t word, int run) {
  const Verdict verdict = verify_spoilt(test_case, flip(operand, word, run));
  const Expected expected = expected_of(test_case.problem, operand, word, run);
  const bool is_guard = expected.check == "guards";
  // A guard that the address sanitizer closes ends the launch.
  EXPECT_TRUE(verdict.check == expected.check || (is_guard && verdict.check == "status"))
      << "word " << word << " of " << kOperandNames[static_cast<std::size_t>(operand)]
      << ": caught by `" << verdict.check << "`, not `" << expected.check << "`";
  if (is_guard) return;
  EXPECT_NE(verdict.report.find(expected.place), std::string::npos) << verdict.report;
}

// A batch of five with padding after the rows and between the matrices.
TEST(WordComparison, CoversEveryOperand) {
  const Case test_case{
      .problem = Padded{.shape = {2, 3, 2}, .pad = {1, 2, 1}, .beta = 1.0F, .batch = 5, .gap = 1},
      .inputs = Inputs::kIntegers};
  const auto right = [](const KernelArgs&, int, Stream) { return Status(); };
  ASSERT_TRUE(verify_spoilt(test_case, right).ok);
  for (const Operand operand : kOperands) {
    const std::int64_t span = test_case.problem.span(operand);
    for (std::int64_t word = -kGuard; word < span + kGuard; ++word) {
      expect_rejected(test_case, operand, word, 0);
    }
    for (std::int64_t word = -1; word <= span; ++word) expect_rejected(test_case, operand, word, 1);
  }
}

TEST(WordComparison, CoversLongPadding) {
  const Case test_case{
      .problem = Padded{.shape = {2, 1, 2}, .pad = {100, 100, 100}, .beta = 1.0F, .batch = 2},
      .inputs = Inputs::kIntegers};
  for (const Operand operand : kOperands) {
    const std::int64_t cols = test_case.problem.extent(operand).cols;
    for (std::int64_t word = cols; word < cols + 64; ++word) {
      expect_rejected(test_case, operand, word, 0);
    }
  }
}

TEST(WordComparison, CoversTheWorkspaceGuards) {
  const Problem problem = Problem::dense({2, 3, 2});
  constexpr std::int64_t kWords = 2 * 2 * 3;  // a partial sum of each half for each element
  for (std::int64_t word = -kGuard; word < kWords + kGuard; ++word) {
    if (word >= 0 && word < kWords) continue;
    const auto flip_workspace = [&](const KernelArgs& args, int run, Stream stream) {
      return run == 0 ? flip_bits(static_cast<float*>(args.workspace) + word, 1, stream) : Status();
    };
    const std::string check = verify_spoilt({.problem = problem}, flip_workspace).check;
    EXPECT_TRUE(check == "guards" || check == "status") << word << " " << check;
  }
}

// A later run gives the same bits, not only the same values, and not only values within the bound.
TEST(WordComparison, RequiresTheSameBitsInLaterRuns) {
  constexpr std::uint32_t kSign = 1U << 31;
  constexpr std::array kOneRun = {Order::kForward};
  Padded zeros{.shape = {2, 3, 2}};
  zeros.alpha = 0.0F;
  EXPECT_TRUE(verify_spoilt({.problem = zeros}, flip(Operand::kC, 4, 0, kSign), kOneRun).ok);
  EXPECT_EQ(verify_spoilt({.problem = zeros}, flip(Operand::kC, 4, 1, kSign)).check, "repeat");
  const Case uniform{.problem = Problem::dense({2, 3, 2})};
  EXPECT_TRUE(verify_spoilt(uniform, flip(Operand::kC, 5, 0), kOneRun).ok);
  EXPECT_EQ(verify_spoilt(uniform, flip(Operand::kC, 5, 1)).check, "repeat");
}

// Where a stage may give other bits, each run is judged by itself.
TEST(Words, OfALaterRunOfAStageThatIsNotRepeatable) {
  const Case uniform{.problem = Problem::dense({2, 3, 2})};
  const auto verify_second = [&](std::uint32_t mask) {
    return verify_spoilt(uniform, flip(Operand::kC, 5, 1, mask), verifier::kBothOrders, "atomics");
  };
  EXPECT_TRUE(verify_second(1).ok);
  EXPECT_EQ(verify_second(1U << 23).check, "bound");
}

// A shuffled order is that of the case's seed.
TEST(WordComparison, ShuffledOrderDependsOnTheSeed) {
  if (device::current().is_cuda) GTEST_SKIP() << "a GPU has its own order";
  const auto last_thread_stays = [](const KernelArgs& args, int, Stream stream) {
    return store_by_all_threads(args.c, stream);
  };
  std::set<std::string> last;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Case test_case{.problem = Problem::dense({1, 1, 0}), .seed = seed};
    const std::string report =
        verify_spoilt(test_case, last_thread_stays, std::array{Order::kShuffled}).report;
    last.insert(report.substr(0, report.find('\n')));
  }
  EXPECT_GT(last.size(), 4U);
}

}  // namespace
}  // namespace tilegate::faults
