// Every stage computes the right C, changes nothing else, and repeats its bits.
#include <array>
#include <cmath>
#include <cstdio>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

#include "ladder/cases.hpp"
#include "ladder/memory_turn.hpp"
#include "ladder/stage_test.hpp"
#include "thorough.hpp"

namespace tilegate::ladder {
namespace {

using verifier::Order;

class ExactOnIntegers : public StageCaseTest {};

TEST_P(ExactOnIntegers, MatchesReference) { expect_right(); }

INSTANTIATE_TEST_SUITE_P(Ladder, ExactOnIntegers,
                         testing::ValuesIn(for_every_stage("ExactOnIntegers", integer_shape_cases)),
                         name_case);

class WithinForwardErrorBound : public StageCaseTest {};

TEST_P(WithinForwardErrorBound, MatchesReference) { expect_right(); }

INSTANTIATE_TEST_SUITE_P(Ladder, WithinForwardErrorBound,
                         testing::ValuesIn(for_every_stage("WithinForwardErrorBound",
                                                           uniform_shape_cases)),
                         name_case);

class MemoryContract : public StageCaseTest {
 protected:
  void SetUp() override {
    StageCaseTest::SetUp();
    if (IsSkipped()) return;
    if (TILEGATE_ON_SIMT && is_long(test_case()) && stage().restrictions.int_indices) {
      GTEST_SKIP() << record_not_applicable(Status::unsupported(
          "has int indices, and the executor runs only a part of so large a grid"));
    }
    if (!device::current().is_cuda) return;
    if (stage().name == "Cublas") {  // it may refuse what the library gets wrong; a rung may not
      const Status status = stage().plan(test_case().problem).status();
      if (status.code() == Status::Code::kUnsupported) GTEST_SKIP() << status.message();
    }
    const std::size_t needed = device_bytes(test_case());
    if (needed > device::current().total_memory) return skip(needed);
    if (needed > MemoryTurn::kMuch) turn_.emplace();
  }

  static void skip(std::size_t needed) {
    GTEST_SKIP() << "needs " << needed << " bytes of device memory, there are "
                 << device::current().total_memory << " or fewer";
  }

 private:
  std::optional<MemoryTurn> turn_;
};

TEST_P(MemoryContract, Holds) {
  try {
    if (is_long(test_case())) {
      // With a workspace all blocks of all kernels run.
      const std::size_t workspace = stage().plan(test_case().problem).workspace_bytes();
      if (TILEGATE_ON_SIMT && workspace > 0 && !is_thorough()) {
        GTEST_SKIP() << "takes the executor seconds; TILEGATE_THOROUGH=1 runs it";
      }
      expect_right(std::array{Order::kSample});
    } else {
      expect_right();
    }
  } catch (const std::bad_alloc&) {
    if (!device::current().is_cuda) throw;
    skip(device_bytes(test_case()));  // other programs use some of the memory
  }
}

INSTANTIATE_TEST_SUITE_P(Ladder, MemoryContract,
                         testing::ValuesIn(for_every_stage("MemoryContract", memory_cases)),
                         name_case);

class BlasSemantics : public StageCaseTest {
 protected:
  void SetUp() override {
    StageCaseTest::SetUp();
    if (IsSkipped() || std::isfinite(test_case().problem.alpha)) return;
    const Status status = stage().plan(test_case().problem).status();
    if (status.code() == Status::Code::kUnsupported) GTEST_SKIP() << status.message();
  }
};

TEST_P(BlasSemantics, Hold) { expect_right(); }

INSTANTIATE_TEST_SUITE_P(Ladder, BlasSemantics,
                         testing::ValuesIn(for_every_stage("BlasSemantics", semantics_cases)),
                         name_case);

// A plan takes the fastest configuration; this suite runs the others.
class Configurations : public StageCaseTest {
 protected:
  std::vector<std::string> configurations() const {
    if (stage().candidates == nullptr) return {""};
    std::vector<std::string> names;
    std::set<std::string> rungs;
    for (const Candidate& candidate :
         stage().candidates(test_case().problem, device_of(test_case()))) {
      const std::string& name = candidate.choice.configuration;
      // Only one "<Rung>:<configuration>" per rung: that rung's tests run all of them.
      const std::size_t colon = name.find(':');
      if (colon != std::string::npos && !rungs.insert(name.substr(0, colon)).second) continue;
      names.push_back(name);
    }
    return names;
  }
};

TEST_P(Configurations, MatchReference) {
  std::set<std::string> seen;
  for (const std::string& configuration : configurations()) {
    EXPECT_TRUE(seen.insert(configuration).second) << configuration << " is a duplicate";
    verifier::Case test_case = this->test_case();
    test_case.configuration = configuration;
    expect_right(test_case, orders_of(test_case));
  }
}

INSTANTIATE_TEST_SUITE_P(Ladder, Configurations,
                         testing::ValuesIn(for_every_stage("Configurations", configuration_cases)),
                         name_case);

class PlanBoundaries : public StageCaseTest {
 protected:
  void SetUp() override {
    StageCaseTest::SetUp();
    // The cases have configurations of plans for compute capability 8.0 to 9.0.
    const Device& device = device::current();
    if (!IsSkipped() && device.is_cuda && device.compute_capability != 90) {
      GTEST_SKIP() << record_not_applicable(Status::unsupported("planned for another GPU"));
    }
  }
};

TEST_P(PlanBoundaries, MatchReference) { expect_right(); }

INSTANTIATE_TEST_SUITE_P(Ladder, PlanBoundaries,
                         testing::ValuesIn(for_every_stage("PlanBoundaries", reach_cases)),
                         name_case);

class Repeatable : public StageCaseTest {
 protected:
  void SetUp() override {
    StageCaseTest::SetUp();
    const std::string why(stage().restrictions.not_repeatable);
    if (IsSkipped() || why.empty()) return;
    GTEST_SKIP() << record_not_applicable(Status::unsupported("not repeatable: " + why));
  }
};

TEST_P(Repeatable, SameBits) {
  expect_right(std::array{Order::kForward, Order::kReverse, Order::kShuffled, Order::kForward});
}

INSTANTIATE_TEST_SUITE_P(Ladder, Repeatable,
                         testing::ValuesIn(for_every_stage("Repeatable", repeat_cases)), name_case);

class RandomSweep : public StageCaseTest {
 protected:
  static void SetUpTestSuite() {
    std::printf("TILEGATE_SWEEP_SEED=%llu\n", static_cast<unsigned long long>(sweep_seed()));
  }
};

TEST_P(RandomSweep, MatchesReference) { expect_right(verifier::kBothOrders); }

INSTANTIATE_TEST_SUITE_P(Ladder, RandomSweep,
                         testing::ValuesIn(for_every_stage("RandomSweep", random_cases)),
                         name_case);

}  // namespace
}  // namespace tilegate::ladder
