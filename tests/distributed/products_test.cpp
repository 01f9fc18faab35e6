// Products over ranks: the ladder's cases in uneven shards, checked by the verifier.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/sgemm.hpp>
#include <tilegate/warptile.hpp>

#include "distributed/ranks.hpp"
#include "kernels.hpp"
#include "ladder/cases.hpp"
#include "simt/device_array.hpp"
#include "thorough.hpp"
#include "verifier/case.hpp"
#include "verifier/oracle.hpp"

namespace tilegate::distributed {
namespace {

Layout layout_of_stage;

// The product of operands in device memory.
Status multiply_on_host(const Problem& problem, const KernelArgs& args) {
  Whole whole{.problem = problem};
  const auto copy = [&](Operand operand, std::vector<float>& host, const float* data) {
    host.resize(static_cast<std::size_t>(problem.span(operand)));
    return device::copy_to_host(host.data(), data, host.size() * sizeof(float));
  };
  Status status = copy(Operand::kC, whole.c, args.c);
  if (problem.reads_a_and_b()) {
    if (status.ok()) status = copy(Operand::kA, whole.a, args.a);
    if (status.ok()) status = copy(Operand::kB, whole.b, args.b);
  }
  if (status.ok()) status = multiply(layout_of_stage, whole);
  if (!status.ok()) return status;
  return device::copy_to_device(args.c, whole.c.data(), whole.c.size() * sizeof(float));
}

// The largest bounds over the plans of all ranks.
Choice choose(const Problem& problem, const Device& /*device*/) {
  Choice choice;
  const DistributedProblem shared = distributed(layout_of_stage, problem);
  Group group(layout_of_stage.ranks, kPatience);
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
    return multiply_on_host(problem, args);
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

// Runs each case on one layout, in turn; by day only a sample of the cases.
void expect_right_in_turn(const std::vector<verifier::Case>& cases, std::size_t by_day) {
  std::size_t turn = 0;
  for (std::size_t i = 0; i < cases.size(); i += is_thorough() ? 1 : cases.size() / by_day + 1) {
    const auto& [m, n, k] = cases[i].problem.shape;
    if (cases[i].problem.batch > 1 || m * n * k > (is_thorough() ? 1 << 24 : 1 << 18)) continue;
    expect_right({.form = kForms[turn % 2],
                  .ranks = 1 + static_cast<int>(turn) / 2 % most_ranks(),
                  .schedule = kSchedules[turn / 2 % 3 % 2],
                  .seed = 1 + turn},
                 cases[i]);
    ++turn;
  }
}

// Of rank 2: (1e8 - 1e8) + 1, not 1 + 1e8 - 1e8.
TEST(DistributedSums, AreInTheOrderOfTheRanks) {
  const DeviceArray<float> own(1, 1.0F), others(std::vector<float>{1e8F, -1e8F}), c(1);
  ASSERT_TRUE(is_ok(enqueue_sum({.own = own.data(),
                                 .others = others.data(),
                                 .rank = 2,
                                 .size = 3,
                                 .rows = 1,
                                 .n = 1,
                                 .c = c.data(),
                                 .ldc = 1},
                                nullptr)));
  EXPECT_EQ(c.to_host()[0], 1.0F);
}

class DistributedProducts : public OverRanks {};

TEST_F(DistributedProducts, MatchReferenceInUnevenShards) {
  expect_right_in_turn(ladder::integer_shape_cases(sgemm::stage), 30);
  expect_right_in_turn(ladder::uniform_shape_cases(sgemm::stage), 30);
}

TEST_F(DistributedProducts, KeepBlasSemantics) {
  expect_right_in_turn(ladder::semantics_cases(sgemm::stage), 30);
}

// Every number of ranks, both forms, both schedules.
TEST_F(DistributedProducts, MatchReferenceOnOneToEightRanks) {
  verifier::Case test_case;
  ASSERT_TRUE(
      parse_problem("45x37x28/NT/ld41x49x52/off4x8x12/alpha2/beta-1", &test_case.problem).ok());
  test_case.inputs = verifier::Inputs::kIntegers;
  for (int ranks = 1; ranks <= most_ranks(); ++ranks) {
    for (const Form form : kForms) {
      for (const Schedule schedule : kSchedules) {
        expect_right({.form = form, .ranks = ranks, .schedule = schedule}, test_case);
      }
    }
  }
}

TEST_F(DistributedProducts, SplitOperandsAreWithinTheirBound) {
  verifier::Case test_case;
  ASSERT_TRUE(parse_problem("140x70x300/split", &test_case.problem).ok());
  for (const Form form : kForms) {
    for (const bool same_bits : {false, true}) {
      expect_right({.form = form, .ranks = 2, .same_bits = same_bits, .seed = 3}, test_case);
    }
  }
}

class SameBits : public OverRanks {
 protected:
  SameBits() {
    Problem problem = Problem::dense({150, 139, 331});
    problem.alpha = 0.7F;
    problem.beta = -0.3F;
    whole_ = random_whole(problem, verifier::Inputs::kUniform, 0);
  }

  std::vector<float> product_over(const Layout& layout) const {
    Whole whole = whole_;
    const Status status = multiply(layout, whole);
    EXPECT_TRUE(status.ok()) << status.message();
    return whole.c;
  }

  Whole whole_;
};

TEST_F(SameBits, OnAnyNumberOfRanks) {
  const std::vector<float> one = product_over({.ranks = 1, .same_bits = true});
  for (const int ranks : {2, 3, 4, 8}) {
    if (ranks > most_ranks()) break;
    for (const Schedule schedule : kSchedules) {
      for (const std::uint64_t seed : {0, 5}) {
        const Layout over{.ranks = ranks, .schedule = schedule, .same_bits = true, .seed = seed};
        EXPECT_EQ(product_over(over), one) << name_of(over);
      }
    }
  }
}

// Compares with a kernel of another rung, which always adds in the order of K.
TEST_F(SameBits, AreThoseOfASumInOrder) {
  Whole whole = whole_;
  const Plan plan = warptile::stage.plan(whole.problem);
  std::array<device::Buffer, 3> buffers;
  std::array<std::vector<float>*, 3> images = {&whole.a, &whole.b, &whole.c};
  for (std::size_t i = 0; i < 3; ++i) {
    buffers[i] = device::Buffer(images[i]->size() * sizeof(float));
    ASSERT_TRUE(
        device::copy_to_device(buffers[i].data(), images[i]->data(), buffers[i].size()).ok());
  }
  const auto floats = [&](std::size_t i) { return reinterpret_cast<float*>(buffers[i].data()); };
  ASSERT_TRUE(plan.launch({.a = floats(0), .b = floats(1), .c = floats(2)}).ok());
  ASSERT_TRUE(device::copy_to_host(whole.c.data(), buffers[2].data(), buffers[2].size()).ok());
  EXPECT_EQ(product_over({.ranks = 2, .same_bits = true, .seed = 2}), whole.c);
}

TEST_F(SameBits, OfASecondLaunch) {
  const Layout layout{.form = Form::kRowParallel, .ranks = 2, .seed = 4};
  EXPECT_EQ(product_over(layout), product_over(layout));
}

}  // namespace
}  // namespace tilegate::distributed
