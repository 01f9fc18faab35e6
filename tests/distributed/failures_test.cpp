// If a rank ends, hangs or passes another problem, every other rank fails, names it, and ends.
#include <chrono>
#include <future>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "distributed/ranks.hpp"
#include "thorough.hpp"

namespace tilegate::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// The timeout of groups with a hanging rank: longer than other ranks take on a busy machine.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::chrono::milliseconds kTimeout{10000};
#else
constexpr std::chrono::milliseconds kTimeout{1000};
#endif

enum class Fault { kEnds, kHangs, kOtherProblem };
enum class Moment { kBeforePlan, kBeforeLaunch, kBetweenLaunches, kInLaunch };

struct Planted {
  Layout layout;
  int rank = 0;  // the faulty rank
  Fault fault = Fault::kEnds;
  Moment moment = Moment::kBeforePlan;
};

Planted planted(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int end) {
    return std::uniform_int_distribution<int>(0, end - 1)(random);
  };
  Planted plan;
  plan.layout.ranks = 2 + below(7);
  plan.layout.form = below(2) == 0 ? Form::kColumnParallel : Form::kRowParallel;
  plan.layout.schedule = below(2) == 0 ? Schedule::kOverlapped : Schedule::kInTurn;
  plan.rank = below(plan.layout.ranks);
  plan.fault = seed % 5 == 0 ? Fault::kHangs : below(2) == 0 ? Fault::kEnds : Fault::kOtherProblem;
  plan.moment = static_cast<Moment>(below(4));
  return plan;
}

// A transport that ends or hangs at call number `call` of fork, exchange or wait.
class FaultyTransport : public ForwardingTransport {
 public:
  struct Ends {};

  FaultyTransport(Transport& transport, int call, bool hangs)
      : ForwardingTransport(transport), call_(call), hangs_(hangs) {}

  Status fork(Stream stream) override {
    count();
    return ForwardingTransport::fork(stream);
  }
  Status exchange(int number, const Memory& memory, std::span<const Outgoing> out,
                  std::span<const Incoming> in) override {
    count();
    return ForwardingTransport::exchange(number, memory, out, in);
  }
  Status wait(int number, Stream stream) override {
    count();
    return ForwardingTransport::wait(number, stream);
  }

 private:
  void count() {
    if (--call_ != 0) return;
    while (hangs_ && poll().ok()) std::this_thread::sleep_for(kTimeout / 50);
    throw Ends{};
  }

  int call_;
  bool hangs_;
};

// The final status of a rank.
Status run_rank(const Planted& plan, ThreadGroup& group, int number) {
  const bool at_fault = number == plan.rank;
  const Problem whole = Problem::dense({13, 11, 9});
  DistributedProblem shared = distributed(plan.layout, whole);
  if (at_fault && plan.fault == Fault::kOtherProblem) {
    shared = distributed(plan.layout, Problem::dense({13, 11, 10}));
  }
  Rank rank = Rank::make(shared, whole, number);
  const std::unique_ptr<Transport> joined = group.join(number);
  const auto fails = [&](Moment moment) {
    if (!at_fault || plan.moment != moment || plan.fault == Fault::kOtherProblem) return false;
    while (plan.fault == Fault::kHangs && joined->poll().ok()) {
      std::this_thread::sleep_for(kTimeout / 50);
    }
    return true;
  };
  if (fails(Moment::kBeforePlan)) return joined->poll();
  FaultyTransport transport(
      *joined,
      at_fault && plan.moment == Moment::kInLaunch && plan.fault != Fault::kOtherProblem ? 2 : 0,
      plan.fault == Fault::kHangs);
  DistributedSgemm sgemm(transport, rank.problem);
  if (!sgemm.ok()) return sgemm.status();
  if (fails(Moment::kBeforeLaunch)) return joined->poll();
  for (int launch = 0; launch < 2; ++launch) {
    if (launch == 1 && fails(Moment::kBetweenLaunches)) return joined->poll();
    try {
      if (Status s = sgemm.launch(rank.operands()); !s.ok()) return s;
    } catch (const FaultyTransport::Ends&) {
      return joined->poll();
    }
  }
  // A rank that has nothing more to exchange may succeed; its next plan fails.
  return DistributedSgemm(transport, rank.problem).status();
}

std::string wrong_with(std::uint64_t seed) {
  const Planted plan = planted(seed);
  std::vector<Status> statuses(static_cast<std::size_t>(plan.layout.ranks));
  {
    ThreadGroup group(plan.layout.ranks, plan.fault == Fault::kHangs ? kTimeout : kPatience);
    std::vector<std::jthread> threads;  // joined at the end of the block
    for (int rank = 0; rank < plan.layout.ranks; ++rank) {
      threads.emplace_back(
          [&, rank] { statuses[static_cast<std::size_t>(rank)] = run_rank(plan, group, rank); });
    }
  }
  const std::string name = "rank " + std::to_string(plan.rank);
  const std::string said = plan.fault == Fault::kEnds    ? " has ended"
                           : plan.fault == Fault::kHangs ? " has not answered"
                                                         : " plans ";
  std::string wrong;
  for (int rank = 0; rank < plan.layout.ranks; ++rank) {
    const Status& status = statuses[static_cast<std::size_t>(rank)];
    if (rank == plan.rank || status.message().starts_with(name + said)) continue;
    wrong += "\nrank " + std::to_string(rank) + ": " + (status.ok() ? "ok" : status.message());
  }
  if (wrong.empty()) return wrong;
  return "seed " + std::to_string(seed) + ", " + name_of(plan.layout) + ", " + name + said +
         ", moment " + std::to_string(static_cast<int>(plan.moment)) + wrong;
}

// A group with a hanging rank takes a whole timeout, so these groups run concurrently.
TEST(DistributedFailures, EveryOtherRankNamesTheRankAtFault) {
  constexpr std::uint64_t kGroup = 50;  // seeds; ten of them hang, more would need too many fibers
  for (std::uint64_t first = 1; first <= (is_thorough() ? 500U : 100U); first += kGroup) {
    std::vector<std::future<std::string>> running;
    for (const auto policy : {std::launch::async, std::launch::deferred}) {
      for (std::uint64_t seed = first; seed < first + kGroup; ++seed) {
        const bool hangs = planted(seed).fault == Fault::kHangs;
        if (hangs != (policy == std::launch::async)) continue;
        running.push_back(std::async(policy, wrong_with, seed));
      }
    }
    std::ranges::reverse(running);  // deferred futures run when get() is called
    for (std::future<std::string>& one : running) EXPECT_EQ(one.get(), "");
  }
}

// Rank 0 waits for rank 1, rank 1 for rank 2, and rank 2 hangs. Rank 0 times out first.
TEST(DistributedFailures, ARankThatWaitsItselfIsNotAtFault) {
  constexpr std::chrono::milliseconds kShort{600};
  ThreadGroup group(3, kShort);
  std::vector<Status> statuses(3);
  for_each_rank(3, [&](int rank) {
    const std::unique_ptr<Transport> transport = group.join(rank);
    Status& status = statuses[static_cast<std::size_t>(rank)];
    if (rank == 1) std::this_thread::sleep_for(kShort / 2);
    while (rank == 2 && status.ok()) {
      std::this_thread::sleep_for(kShort / 30);
      status = transport->poll();
    }
    const Incoming in[] = {{.rank = rank + 1, .bytes = sizeof(float)}};
    std::unique_ptr<Memory> memory;
    if (status.ok()) status = transport->allocate(sizeof(float), &memory);
    if (status.ok()) status = transport->exchange(1, *memory, {}, in);
    if (status.ok()) status = transport->wait(1, nullptr);
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.message(),
              "rank 2 has not answered for 600 ms; rank 0 waited for exchange 1 of rank 1");
  }
}

TEST(DistributedFailures, ARankWithoutRoomFailsOnAll) {
  ThreadGroup group(2, kTimeout);
  for_each_rank(2, [&](int rank) {
    const std::unique_ptr<Transport> transport = group.join(rank);
    std::unique_ptr<Memory> memory;
    Status status = transport->allocate(rank == 1 ? std::size_t{1} << 60 : 4, &memory);
    std::vector<Card> cards;
    if (status.ok()) status = transport->agree({}, cards);  // where the others learn of it
    EXPECT_EQ(status.message(), "rank 1 fails: no room for 1152921504606846976 bytes");
  });
}

// All ranks have valid plans; one launches with wrong operands.
class LaunchErrors : public testing::Test {
 protected:
  // The statuses of two ranks; the second one changes its operands.
  static std::vector<Status> launch_with(Form form, const std::function<void(Operands&)>& change) {
    const Problem whole = Problem::dense({6, 5, 4});
    const DistributedProblem shared = distributed({.form = form, .ranks = 2}, whole);
    ThreadGroup group(2, kPatience);
    std::vector<Status> statuses(2);
    for_each_rank(2, [&](int number) {
      Rank rank = Rank::make(shared, whole, number);
      const std::unique_ptr<Transport> transport = group.join(number);
      DistributedSgemm sgemm(*transport, rank.problem);
      Operands operands = rank.operands();
      if (number == 1) change(operands);
      statuses[static_cast<std::size_t>(number)] = sgemm.launch(operands);
    });
    return statuses;
  }
};

TEST_F(LaunchErrors, AreValuesOnAllRanks) {
  struct Wrong {
    std::function<void(Operands&)> change;
    std::string argument, message;
  };
  const std::vector<Wrong> all = {{[](Operands& o) { o.a = nullptr; }, "a", "a is a null pointer"},
                                  {[](Operands& o) { o.b = nullptr; }, "b", "b is a null pointer"},
                                  {[](Operands& o) { o.c = nullptr; }, "c", "c is a null pointer"},
                                  {[](Operands& o) { ++o.c; }, "c", "c is not "}};
  for (const Form form : {Form::kColumnParallel, Form::kRowParallel}) {
    for (const Wrong& wrong : all) {
      const std::vector<Status> statuses = launch_with(form, wrong.change);
      EXPECT_EQ(statuses[1].argument(), wrong.argument);
      EXPECT_NE(statuses[1].message().find(wrong.message), std::string::npos)
          << statuses[1].message();
      EXPECT_TRUE(statuses[0].message().starts_with("rank 1 failed to launch: "))
          << statuses[0].message();
    }
  }
}

TEST_F(LaunchErrors, ARankWithoutElementsNeedsNoPointer) {
  const Problem whole = Problem::dense({6, 5, 4});
  for (const Form form : {Form::kColumnParallel, Form::kRowParallel}) {
    DistributedProblem shared = distributed({.form = form, .ranks = 2}, whole);
    shared.rows = {6, 0};
    ThreadGroup group(2, kPatience);
    for_each_rank(2, [&](int number) {
      Rank rank = Rank::make(shared, whole, number);
      const std::unique_ptr<Transport> transport = group.join(number);
      DistributedSgemm sgemm(*transport, rank.problem);
      Operands operands = rank.operands();
      if (number == 1 && form == Form::kColumnParallel) operands.a = nullptr;
      if (number == 1 && form == Form::kRowParallel) operands.c = nullptr;
      Status status = sgemm.launch(operands);
      if (status.ok()) status = transport->synchronize(nullptr);
      EXPECT_TRUE(status.ok()) << status.message();
    });
  }
  ThreadGroup group(1, kPatience);
  Rank rank = Rank::make(distributed({}, whole), whole, 0);
  const std::unique_ptr<Transport> transport = group.join(0);
  DistributedSgemm sgemm(*transport, rank.problem);
  ASSERT_EQ(sgemm.memory_bytes(), 0U);
  const Status status = sgemm.launch(rank.operands());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(LaunchErrors, APlanForAnotherDeviceIsNotLaunched) {
  const Problem whole = Problem::dense({6, 5, 4});
  Rank rank = Rank::make(distributed({}, whole), whole, 0);
  ThreadGroup group(1, kPatience);
  const std::unique_ptr<Transport> transport = group.join(0);
  Device other = device::current();
  ++other.ordinal;
  DistributedSgemm sgemm(*transport, rank.problem, other);
  EXPECT_TRUE(sgemm.ok());
  EXPECT_EQ(sgemm.launch(rank.operands()).message(),
            "the plan is for a device that was not current");
}

// Both ranks make two plans, and launch them in different orders.
TEST_F(LaunchErrors, OtherPlansAreFound) {
  const Problem whole = Problem::dense({6, 5, 4});
  const DistributedProblem shared = distributed({.ranks = 2}, whole);
  ThreadGroup group(2, kPatience);
  std::vector<Status> statuses(2);
  for_each_rank(2, [&](int number) {
    Rank rank = Rank::make(shared, whole, number);
    DistributedProblem less = DistributedProblem::even(shared.form, {6, 5, 3}, 2, number);
    const std::unique_ptr<Transport> transport = group.join(number);
    DistributedSgemm first(*transport, rank.problem), second(*transport, less);
    statuses[static_cast<std::size_t>(number)] =
        (number == 0 ? first : second).launch(rank.operands());
  });
  for (const Status& status : statuses) {
    EXPECT_NE(status.message().find("bytes in exchange 1; rank "), std::string::npos)
        << status.message();
  }
}

}  // namespace
}  // namespace tilegate::distributed
