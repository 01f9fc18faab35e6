// Plans: their schedules, their errors, and the agreement of ranks.
#include "plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/sgemm.hpp>

#include "api/made_up.hpp"
#include "digits.hpp"
#include "distributed/ranks.hpp"

namespace tilegate::distributed {
namespace {

struct Planned {
  Status status;
  Schedule schedule;
  double seconds;
  std::vector<std::string> configurations;
  std::int64_t rounding_chain;
  double operand_error;
  std::size_t memory_bytes;
};

// The plans of all ranks for an H200; `change(rank, problem)` changes a rank's problem.
std::vector<Planned> plan_on(int ranks, const DistributedProblem& problem,
                             const std::function<void(int, DistributedProblem&)>& change = nullptr,
                             Device device = gpu(90)) {
  device.ordinal = -1;  // plans for a device that is not current have no memory
  ThreadGroup group(ranks, kPatience);
  std::vector<Planned> plans(static_cast<std::size_t>(ranks));
  for_each_rank(ranks, [&](int rank) {
    DistributedProblem own = problem;
    const Problem dense = Problem::dense(own.shard(rank));
    own.lda = dense.lda;
    own.ldb = dense.ldb;
    own.ldc = dense.ldc;
    if (change) change(rank, own);
    const std::unique_ptr<Transport> transport = group.join(rank);
    const DistributedSgemm sgemm(*transport, own, device);
    plans[static_cast<std::size_t>(rank)] = {sgemm.status(),           sgemm.schedule(),
                                             sgemm.expected_seconds(), sgemm.configurations(),
                                             sgemm.rounding_chain(),   sgemm.operand_error(),
                                             sgemm.memory_bytes()};
  });
  return plans;
}

DistributedProblem problem_of(Form form, std::int64_t size, int ranks, Schedule schedule) {
  DistributedProblem problem = DistributedProblem::even(form, {size, size, size}, ranks, 0);
  problem.schedule = schedule;
  return problem;
}

TEST(DistributedPlan, TakesTheFasterScheduleOfItsCostModel) {
  for (const Form form : kForms) {
    std::vector<Schedule> taken;
    for (const std::int64_t size : {256, 1024, 4096, 16384}) {
      const auto planned = [&](Schedule schedule) {
        return plan_on(4, problem_of(form, size, 4, schedule)).front();
      };
      const Planned faster = planned(Schedule::kFaster),
                    overlapped = planned(Schedule::kOverlapped),
                    in_turn = planned(Schedule::kInTurn);
      EXPECT_EQ(faster.seconds, std::min(overlapped.seconds, in_turn.seconds)) << size;
      EXPECT_EQ(overlapped.configurations.size(), 4U);
      EXPECT_EQ(in_turn.configurations.size(), 1U);
      taken.push_back(faster.schedule);
    }
    // Small products take less time than starting an exchange.
    EXPECT_EQ(taken.front(), Schedule::kInTurn);
    EXPECT_EQ(taken.back(), Schedule::kOverlapped);
  }
}

// A schedule that differs between ranks would exchange other messages.
TEST(DistributedPlan, AllRanksTakeTheSameSchedule) {
  bool some_differ = false;  // where each rank takes its own
  for (const std::int64_t size : {256, 512, 768, 1024, 1536, 2048}) {
    for (const Form form : kForms) {
      DistributedProblem problem = problem_of(form, size, 3, Schedule::kFaster);
      problem.rows = {size / 16, size / 16, size - size / 8};
      const std::vector<Planned> plans = plan_on(3, problem);
      std::vector<Schedule> own;
      for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(plans[static_cast<std::size_t>(rank)].schedule, plans[0].schedule);
        const auto seconds = [&](Schedule schedule) {
          problem.schedule = schedule;
          return plan_on(3, problem)[static_cast<std::size_t>(rank)].seconds;
        };
        own.push_back(seconds(Schedule::kOverlapped) < seconds(Schedule::kInTurn)
                          ? Schedule::kOverlapped
                          : Schedule::kInTurn);
      }
      some_differ = some_differ || own[0] != own[1] || own[0] != own[2];
    }
  }
  EXPECT_TRUE(some_differ);
}

// Records the request for a second stream, and ends the launch there.
class WithoutBranch : public ForwardingTransport {
 public:
  WithoutBranch(Transport& transport, bool& goes_first)
      : ForwardingTransport(transport), goes_first_(goes_first) {}
  Status branch(Stream /*stream*/, bool goes_first, Stream* /*side*/) override {
    goes_first_ = goes_first;
    return Status::device_error("no second stream");
  }

 private:
  bool& goes_first_;
};

// Whether the rows of the other rank go first, on the first of two ranks.
bool others_go_first(std::int64_t size) {
  DistributedProblem problem = DistributedProblem::even(Form::kRowParallel, {size, size, 2}, 2, 0);
  problem.schedule = Schedule::kOverlapped;
  std::vector<float> a(static_cast<std::size_t>(size), 1.0F), b = a;
  std::vector<float> c(static_cast<std::size_t>(size * size / 2));
  ThreadGroup group(2, kPatience);
  std::unique_ptr<Transport> joined[2];
  std::unique_ptr<WithoutBranch> transports[2];
  std::unique_ptr<DistributedSgemm> plans[2];
  bool goes_first = false;
  for_each_rank(2, [&](int rank) {
    joined[rank] = group.join(rank);
    transports[rank] = std::make_unique<WithoutBranch>(*joined[rank], goes_first);
    plans[rank] = std::make_unique<DistributedSgemm>(*transports[rank], problem);
    EXPECT_TRUE(plans[rank]->ok()) << plans[rank]->status().message();
  });
  EXPECT_FALSE(plans[0]->launch({.a = a.data(), .b = b.data(), .c = c.data()}).ok());
  return goes_first;
}

TEST(DistributedPlan, OthersRowsGoFirstWhereTheirExchangeIsLong) {
  EXPECT_FALSE(others_go_first(3000));
  EXPECT_TRUE(others_go_first(3600));
}

TEST(DistributedPlan, ShardsHaveTheirPartOfOneExtent) {
  const Shape whole{5, 7, 9};
  EXPECT_EQ(DistributedProblem::even(Form::kColumnParallel, whole, 2, 0).shard(1),
            (Shape{5, 4, 9}));
  EXPECT_EQ(DistributedProblem::even(Form::kRowParallel, whole, 2, 0).shard(1), (Shape{5, 7, 5}));
}

// When the last multiplication of a rank ends, and in a row-parallel product the last exchange.
// Multiplications run on one stream, messages on another: a column-parallel product waits for rows,
// and a row-parallel one sends sums. `number` is the distance of the rank whose rows they are.
double end_of_overlapped(Form form, int ranks, const std::function<double(int)>& multiplication,
                         const std::function<double(int)>& message) {
  double multiplied = 0.0, exchanged = 0.0;
  for (int i = 0; i < ranks; ++i) {
    if (form == Form::kColumnParallel) {
      if (i > 0) exchanged += message(i);
      multiplied = std::max(multiplied, exchanged) + multiplication(i);
    } else {
      const int number = (i + 1) % ranks;
      multiplied += multiplication(number);
      if (number > 0) exchanged = std::max(exchanged, multiplied) + message(number);
    }
  }
  return std::max(multiplied, exchanged);
}

TEST(DistributedPlan, SecondsAreThoseOfItsSteps) {
  constexpr int kRanks = 3;
  constexpr std::int64_t kM = 3584, kN = 768, kK = 1536;
  const std::vector<std::int64_t> rows{512, 1024, 2048};
  for (const Form form : kForms) {
    const bool by_columns = form == Form::kColumnParallel;
    DistributedProblem problem = DistributedProblem::even(form, {kM, kN, kK}, kRanks, 0);
    problem.rows = rows;
    const Shape shard = problem.shard(0);
    const auto multiplication_of = [&](std::int64_t of_rows) {
      const Shape product{of_rows, shard.n, shard.k};
      return plan_on(1, DistributedProblem::even(form, product, 1, 0)).front().seconds;
    };
    for (const Schedule schedule : kSchedules) {
      problem.schedule = schedule;
      const std::vector<Planned> plans = plan_on(kRanks, problem);
      for (int rank = 0; rank < kRanks; ++rank) {
        const auto rows_at = [&](int distance) {
          return rows[static_cast<std::size_t>((rank + distance) % kRanks)];
        };
        const auto bytes_at = [&](int distance) {
          return bytes_of(rows_at(distance) * (by_columns ? kK : kN));
        };
        double expected =
            schedule == Schedule::kInTurn
                ? multiplication_of(kM) + exchange_seconds(bytes_at(1) + bytes_at(2))
                : end_of_overlapped(
                      form, kRanks, [&](int i) { return multiplication_of(rows_at(i)); },
                      [&](int i) { return exchange_seconds(bytes_at(i)); });
        if (!by_columns) {
          expected += stream_seconds(kRanks * bytes_at(0), bytes_at(0));
        } else if (schedule == Schedule::kInTurn) {  // own rows are copied to the others
          expected += stream_seconds(bytes_at(0), bytes_at(0));
        }
        EXPECT_DOUBLE_EQ(plans[static_cast<std::size_t>(rank)].seconds, expected)
            << "form " << by_columns << ", rank " << rank;
      }
    }
  }
}

TEST(DistributedPlan, OfDigitsSecondsAreThoseOfItsSteps) {
  constexpr int kRanks = 3;
  constexpr std::int64_t kM = 3584, kN = 768, kK = 1536;
  const std::vector<std::int64_t> rows{512, 1024, 2048};
  DistributedProblem problem =
      DistributedProblem::even(Form::kRowParallel, {kM, kN, kK}, kRanks, 0);
  problem.rows = rows;
  problem.math = Math::fp32_split;
  problem.same_bits = true;
  const std::int64_t k = kK / kRanks;
  const auto split = [&](std::int64_t of_rows) {
    const auto elements = static_cast<std::size_t>((of_rows + kN) * k);
    return stream_seconds(2 * sizeof(float) * elements, 3 * elements);
  };
  const auto sums = [&](std::int64_t of_rows) {
    return static_cast<std::size_t>(of_rows * kN) * sizeof(std::int64_t);
  };
  const auto scale = [&](std::size_t ranks, std::int64_t of_rows) {
    return stream_seconds(ranks * sums(of_rows), bytes_of(of_rows * kN));
  };
  const auto multiplication_of = [&](std::int64_t of_rows) {
    DistributedProblem alone = DistributedProblem::even(Form::kRowParallel, {of_rows, kN, k}, 1, 0);
    alone.math = problem.math;
    alone.same_bits = true;
    return plan_on(1, alone).front().seconds - split(of_rows) - scale(1, of_rows);
  };
  const double statistics = 2 * exchange_seconds((kRanks - 1) * (kM + kN) * sizeof(RowBits));
  for (const Schedule schedule : kSchedules) {
    problem.schedule = schedule;
    const std::vector<Planned> plans = plan_on(kRanks, problem);
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto rows_at = [&](int distance) {
        return rows[static_cast<std::size_t>((rank + distance) % kRanks)];
      };
      const double steps = schedule == Schedule::kInTurn
                               ? multiplication_of(512) + multiplication_of(1024) +
                                     multiplication_of(2048) +
                                     exchange_seconds(sums(rows_at(1)) + sums(rows_at(2)))
                               : end_of_overlapped(
                                     Form::kRowParallel, kRanks,
                                     [&](int i) { return multiplication_of(rows_at(i)); },
                                     [&](int i) { return exchange_seconds(sums(rows_at(i))); });
      const double expected = steps + split(kM) + statistics + scale(kRanks, rows_at(0));
      EXPECT_NEAR(plans[static_cast<std::size_t>(rank)].seconds, expected, 1e-9 * expected)
          << "rank " << rank;
    }
  }
}

TEST(DistributedPlan, OfNoElementsIsNotOfDigits) {
  for (const Shape& empty : {Shape{0, 8, 8}, Shape{8, 0, 8}, Shape{8, 8, 0}}) {
    DistributedProblem problem = DistributedProblem::even(Form::kColumnParallel, empty, 2, 0);
    problem.math = Math::fp32_split;
    problem.same_bits = true;
    const Planned planned = plan_on(2, problem).front();
    EXPECT_TRUE(planned.status.ok()) << planned.status.message();
    EXPECT_EQ(planned.operand_error, 0.0);
  }
}

TEST(DistributedPlan, RowsWithGapsArePackedBeforeTheyAreSent) {
  constexpr std::int64_t kK = 1536, kGap = 64;
  DistributedProblem problem =
      DistributedProblem::even(Form::kColumnParallel, {513, kK + kGap, kK}, 2, 0);
  problem.rows = {1, 512};
  problem.schedule = Schedule::kOverlapped;
  const std::vector<Planned> dense = plan_on(2, problem);
  const std::vector<Planned> padded =
      plan_on(2, problem, [](int, DistributedProblem& own) { own.lda += kGap; });
  const std::size_t bytes = bytes_of(512 * kK);
  EXPECT_DOUBLE_EQ(padded[0].seconds, dense[0].seconds);  // one row has no gap
  EXPECT_DOUBLE_EQ(padded[1].seconds, dense[1].seconds + stream_seconds(bytes, bytes));
}

TEST(DistributedPlan, AnEmptyKIsNotExchanged) {
  for (const Form form : kForms) {
    DistributedProblem problem = DistributedProblem::even(form, {8, 8, 0}, 2, 0);
    problem.schedule = Schedule::kOverlapped;
    const Planned planned = plan_on(2, problem).front();
    EXPECT_EQ(planned.schedule, Schedule::kInTurn);
    EXPECT_EQ(planned.memory_bytes, 0U);
  }
}

TEST(DistributedPlan, OfOneRankHasTheRoundingsOfItsProduct) {
  for (const Math math : {Math::fp32, Math::fp32_split}) {
    Problem whole = Problem::dense({4096, 4096, 4096});
    whole.math = math;
    const Plan plan = sgemm::stage.plan(whole, gpu(90));
    const Planned planned = plan_on(1, distributed({}, whole)).front();
    EXPECT_EQ(planned.rounding_chain, plan.rounding_chain());
    EXPECT_EQ(planned.operand_error, plan.operand_error());
    EXPECT_EQ(planned.operand_error > 0.0, math == Math::fp32_split);
  }
}

TEST(DistributedPlan, OfDigitsTakesTheFasterSchedule) {
  for (const Form form : kForms) {
    std::vector<Schedule> taken;
    for (const std::int64_t size : {256, 16384}) {
      DistributedProblem problem = problem_of(form, size, 4, Schedule::kFaster);
      problem.math = Math::fp32_split;
      problem.same_bits = true;
      const Planned planned = plan_on(4, problem).front();
      ASSERT_TRUE(planned.status.ok()) << planned.status.message();
      EXPECT_EQ(planned.configurations.size(), 4U);
      taken.push_back(planned.schedule);
    }
    EXPECT_EQ(taken, (std::vector{Schedule::kInTurn, Schedule::kOverlapped}));
  }
}

TEST(DistributedPlan, ExactSumsNeedTheirInstructions) {
  for (const Form form : kForms) {
    DistributedProblem problem = problem_of(form, 256, 2, Schedule::kFaster);
    problem.math = Math::fp32_split;
    problem.same_bits = true;
    const Status status = plan_on(2, problem, nullptr, gpu(80)).front().status;
    EXPECT_EQ(status.ok(), form == Form::kColumnParallel) << status.message();
    EXPECT_EQ(status.message().starts_with("needs compute capability 90"), !status.ok());
  }
}

TEST(DistributedPlan, SameBitsTakesKernelsThatAddInOrder) {
  DistributedProblem problem = problem_of(Form::kColumnParallel, 512, 3, Schedule::kOverlapped);
  const auto has_parts = [](const std::string& name) {
    return name.find_first_of("s_", name.find(':')) != std::string::npos ||
           name.starts_with("Skinny") || name.starts_with("Packed");
  };
  const Planned any = plan_on(3, problem).front();
  EXPECT_TRUE(std::ranges::any_of(any.configurations, has_parts));
  DistributedProblem large =
      DistributedProblem::even(Form::kColumnParallel, {4096, 2048, 1000}, 3, 0);
  for (DistributedProblem* each : {&problem, &large}) {
    each->same_bits = true;
    const Planned same = plan_on(3, *each).front();
    ASSERT_TRUE(same.status.ok()) << same.status.message();
    EXPECT_TRUE(std::ranges::none_of(same.configurations, has_parts));
  }
}

TEST(DistributedPlan, ExactSumsFitIn64Bits) {
  for (const std::int64_t k : {kMostTerms - 1, kMostTerms}) {
    DistributedProblem problem = DistributedProblem::even(Form::kRowParallel, {2, 2, k}, 2, 0);
    problem.math = Math::fp32_split;
    problem.same_bits = true;
    const Status status = plan_on(2, problem).front().status;
    EXPECT_EQ(status.ok(), k < kMostTerms) << status.message();
  }
}

TEST(DistributedPlan, WrongProblemsSayWhichArgument) {
  struct Wrong {
    std::function<void(DistributedProblem&)> change;
    std::string argument, message;
  };
  const std::vector<Wrong> all = {
      {[](DistributedProblem& p) { p.rows = {8}; }, "rows", "has no size for each of 2 ranks"},
      {[](DistributedProblem& p) { p.rows = {9, -1}; }, "rows", "exceeds 8"},
      {[](DistributedProblem& p) { p.rows = {-1, 9}; }, "rows", "has a negative size"},
      {[](DistributedProblem& p) { p.rows = {3, 4}; }, "rows", "does not add up to 8"},
      {[](DistributedProblem& p) { p.parts = {3, 4}; }, "parts", "does not add up to 8"},
      {[](DistributedProblem& p) { p.lda = 7; }, "lda", "lda = 7"},
      {[](DistributedProblem& p) { p.offset_bytes[2] = 2; }, "c", "is not a multiple of 4"}};
  for (const Wrong& wrong : all) {
    const DistributedProblem problem = problem_of(Form::kColumnParallel, 8, 2, Schedule::kFaster);
    for (const Planned& planned :
         plan_on(2, problem, [&](int, DistributedProblem& own) { wrong.change(own); })) {
      EXPECT_EQ(planned.status.argument(), wrong.argument) << planned.status.message();
      EXPECT_NE(planned.status.message().find(wrong.message), std::string::npos)
          << planned.status.message();
    }
  }
  DistributedProblem row = problem_of(Form::kRowParallel, 8, 2, Schedule::kFaster);
  row.same_bits = true;
  EXPECT_NE(plan_on(2, row).front().status.message().find("make it column-parallel"),
            std::string::npos);
}

TEST(DistributedPlan, CardsDifferWhereOnlyTheEndsOfLongTextsDo) {
  const std::string text(300, 'x');
  EXPECT_NE(Card::of(text + "1").hash, Card::of(text + "2").hash);
  EXPECT_EQ(Card::of(text).text.data(), text.substr(0, Card().text.size() - 1));
}

TEST(DistributedPlan, OfDigitsHasTheirError) {
  DistributedProblem problem =
      DistributedProblem::even(Form::kColumnParallel, {1024, 2, 1024}, 2, 0);
  problem.same_bits = true;
  EXPECT_EQ(plan_on(2, problem).front().operand_error, 0.0);
  problem.math = Math::fp32_split;
  EXPECT_GT(plan_on(2, problem).front().operand_error, 0.0);
}

// The memory of a rank has room for the partial sums and flags of the others' rows, whichever of
// them has some.
TEST(DistributedPlan, OfDigitsHasRoomForStreamKOfAnyRank) {
  Device device = gpu(90);
  device.multiprocessors = 3;
  DistributedProblem problem =
      DistributedProblem::even(Form::kColumnParallel, {256, 384, 3600}, 3, 0);
  problem.math = Math::fp32_split;
  problem.same_bits = true;
  std::vector<std::size_t> bytes;
  for (const int first : {0, 2}) {
    problem.rows = {first == 0 ? 256 : 0, 0, first == 2 ? 256 : 0};
    const Planned planned = plan_on(3, problem, nullptr, device)[1];
    EXPECT_EQ(planned.configurations[static_cast<std::size_t>(first)], "128x128streamk");
    bytes.push_back(planned.memory_bytes);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST(DistributedPlan, OfDigitsTellsThatARankHasTooManyRows) {
  for (const std::int64_t k : {12288, 12289}) {  // from there on more blocks split a row
    DistributedProblem problem =
        DistributedProblem::even(Form::kColumnParallel, {std::int64_t{1} << 33, 2, k}, 2, 0);
    problem.rows = {problem.shape.m, 0};
    problem.math = Math::fp32_split;
    problem.same_bits = true;
    EXPECT_EQ(plan_on(2, problem)[1].status.ok(), k == 12288);
  }
}

// That of the multiplication, of a sum per rank, and of C.
TEST(DistributedPlan, PartialSumsMakeTheChainOfRoundingsLonger) {
  for (const int ranks : {2, 3}) {
    DistributedProblem rows =
        DistributedProblem::even(Form::kRowParallel, {8, 8, 5 * ranks}, ranks, 0);
    DistributedProblem columns =
        DistributedProblem::even(Form::kColumnParallel, {8, 8, 5}, ranks, 0);
    EXPECT_EQ(plan_on(ranks, rows).front().rounding_chain,
              plan_on(ranks, columns).front().rounding_chain + ranks + 1);
  }
}

TEST(DistributedPlan, RanksThatDifferAreNamed) {
  const DistributedProblem problem = problem_of(Form::kRowParallel, 8, 3, Schedule::kFaster);
  const auto plans = [&](const std::function<void(DistributedProblem&)>& change) {
    return plan_on(3, problem, [&](int rank, DistributedProblem& own) {
      if (rank == 1) change(own);
    });
  };
  for (const Planned& planned : plans([](DistributedProblem& p) { p.beta = 2.0F; })) {
    EXPECT_FALSE(planned.status.ok());
  }
  EXPECT_EQ(plans([](DistributedProblem& p) { p.beta = 2.0F; })[2].status.message(),
            "rank 1 plans row-parallel 8x8x8/beta2, rows 2+3+3, K 2+3+3, for a device that is not "
            "current; rank 2 plans row-parallel 8x8x8, rows 2+3+3, K 2+3+3, for a device that is "
            "not current");
  EXPECT_EQ(plans([](DistributedProblem& p) { p.ldb = 7; })[0].status.message(),
            "rank 1 plans fails: ldb = 7 is shorter than a row of 8 elements; rank 0 plans "
            "row-parallel 8x8x8, rows 2+3+3, K 2+3+3, for a device that is not current");
  const std::function<void(DistributedProblem&)> differences[] = {
      [](DistributedProblem& p) { p.alpha = 2.0F; },
      [](DistributedProblem& p) { p.math = Math::fp32_split; },
      [](DistributedProblem& p) { p.same_bits = true; },
      [](DistributedProblem& p) { p.rows = {3, 2, 3}; },
      [](DistributedProblem& p) { p.parts = {3, 2, 3}; },
  };
  const DistributedProblem by_columns = problem_of(Form::kColumnParallel, 8, 3, Schedule::kFaster);
  for (const auto& change : differences) {
    const auto planned = plan_on(3, by_columns, [&](int rank, DistributedProblem& own) {
      if (rank == 1) change(own);
      own.ldb = own.ldc = 8;
    });
    for (const Planned& each : planned) EXPECT_FALSE(each.status.ok());
  }
  // The storage of shards may differ between ranks.
  for (const Planned& planned : plans([](DistributedProblem& p) { p.ldb = 9; })) {
    EXPECT_TRUE(planned.status.ok()) << planned.status.message();
  }
}

}  // namespace
}  // namespace tilegate::distributed
