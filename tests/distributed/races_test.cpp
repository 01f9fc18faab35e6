// Races between a rank's stream and its exchanges: planted races are reported, their clean twins
// pass.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "distributed/ranks.hpp"
#include "verifier/oracle.hpp"

namespace tilegate::distributed {
namespace {

// A call that every rank's transport omits.
enum class Call { kNone, kFork, kWait };
struct Omitted {
  Call call = Call::kNone;
  int number = 0;  // which of these calls
};

class ForgetfulTransport : public ForwardingTransport {
 public:
  // `hides`: also omits the accesses of steps.
  ForgetfulTransport(std::unique_ptr<Transport> transport, Omitted omitted, bool hides)
      : ForwardingTransport(*transport),
        owned_(std::move(transport)),
        omitted_(omitted),
        hides_(hides) {}

  Status fork(Stream stream) override {
    return omits(Call::kFork) ? Status() : ForwardingTransport::fork(stream);
  }
  Status wait(int number, Stream stream) override {
    return omits(Call::kWait) ? Status() : ForwardingTransport::wait(number, stream);
  }
  Status begin_step(std::string_view name, std::span<const Access> accesses) override {
    return hides_ ? Status() : ForwardingTransport::begin_step(name, accesses);
  }

 private:
  bool omits(Call call) { return omitted_.call == call && omitted_.number-- == 0; }

  std::unique_ptr<Transport> owned_;
  Omitted omitted_;
  bool hides_;
};

struct Outcome {
  Status status;
  std::vector<float> c;
};

Outcome multiply_without(Omitted omitted, const Layout& layout, bool hides = false) {
  Whole whole{.problem = Problem::dense({12, 10, 8}, Op::kT)};  // packed before it is sent
  if (layout.same_bits) whole.problem.math = Math::fp32_split;
  for (std::vector<float>* operand : {&whole.a, &whole.b}) {
    for (std::uint64_t i = 0; i < 12 * 8; ++i) {
      operand->push_back(verifier::input_value(verifier::Inputs::kIntegers, 1, i));
    }
  }
  whole.c.resize(12 * 10);
  const Wrap wrap = [&](std::unique_ptr<Transport> transport) {
    return std::make_unique<ForgetfulTransport>(std::move(transport), omitted, hides);
  };
  Status status = multiply(layout, whole, wrap);
  return {std::move(status), std::move(whole.c)};
}

TEST(DistributedRaces, PlantedOnesAreFoundAndTheirTwinsPass) {
  for (int i = 0; i < 8; ++i) {
    const Form form = kForms[i % 2];
    const bool digits = i >= 4;
    const Layout layout{
        .form = form, .ranks = 3, .schedule = kSchedules[i / 2 % 2], .same_bits = digits};
    const Outcome clean = multiply_without({}, layout);
    EXPECT_TRUE(clean.status.ok()) << clean.status.message();
    const bool by_columns = form == Form::kColumnParallel;
    for (const Call call : {Call::kFork, Call::kWait}) {
      const bool is_fork = call == Call::kFork;
      const int calls = !digits ? 1 : !by_columns ? 3 : is_fork ? 1 : 2;
      for (int number = 0; number < calls; ++number) {
        const std::string message = multiply_without({call, number}, layout).status.message();
        EXPECT_NE(message.find(": race: step '"), std::string::npos)
            << name_of(layout) << ": " << message;
        EXPECT_NE(message.find(is_fork ? "no fork()" : "no wait()"), std::string::npos) << message;
      }
    }
  }
}

TEST(DistributedRaces, ReportsNameStepExchangeAndRanks) {
  for (const Form form : kForms) {
    const Layout layout{.form = form, .ranks = 2, .schedule = Schedule::kOverlapped};
    const std::string message = multiply_without({Call::kWait}, layout).status.message();
    const std::string step = form == Form::kColumnParallel ? "multiply rows" : "add partial sums";
    EXPECT_EQ(message.substr(message.find(':')),
              ": race: step '" + step + "' reads what exchange 1 receives from rank " +
                  std::string(message.starts_with("rank 0") ? "1" : "0") +
                  ", with no wait() between them");
  }
}

TEST(DistributedRaces, NothingRacesWithNoBytes) {
  ThreadGroup group(2, kPatience);
  for_each_rank(2, [&](int rank) {
    const std::unique_ptr<Transport> transport = group.join(rank);
    std::unique_ptr<Memory> memory;
    ASSERT_TRUE(transport->allocate(4 * sizeof(float), &memory).ok());
    auto* const data = reinterpret_cast<float*>(memory->data());
    const auto exchange = [&](int number, float* from, std::size_t bytes) -> Status {
      if (Status s = transport->fork(nullptr); !s.ok()) return s;
      const auto at = static_cast<std::size_t>(from - data) * sizeof(float);
      const Outgoing out{1, from, bytes, at};
      const Incoming in{0, bytes, at};
      return rank == 0 ? transport->exchange(number, *memory, std::span(&out, 1), {})
                       : transport->exchange(number, *memory, {}, std::span(&in, 1));
    };
    const auto step = [&](float* at, std::size_t bytes) {
      const Access access{at, bytes, true};
      return transport->begin_step("writes", std::span(&access, 1));
    };
    Status status = exchange(1, data, 4 * sizeof(float));
    if (status.ok()) status = step(data + 2, 0);
    if (status.ok()) status = transport->wait(1, nullptr);
    if (status.ok()) status = exchange(2, data + 2, 0);
    if (status.ok()) status = step(data, 4 * sizeof(float));
    if (status.ok()) status = transport->wait(2, nullptr);
    if (status.ok()) status = transport->synchronize(nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
  });
}

// Rank 0 sends a message to offset 8 in exchange 1; rank 1 expects it otherwise.
std::string error_of_message(int number, std::size_t at) {
  std::string error;
  ThreadGroup group(2, kPatience);
  for_each_rank(2, [&](int rank) {
    const std::unique_ptr<Transport> transport = group.join(rank);
    std::unique_ptr<Memory> memory;
    ASSERT_TRUE(transport->allocate(16, &memory).ok());
    const Outgoing out{1, memory->data(), 4, 8};
    const Incoming in{0, 4, at};
    Status status = rank == 0 ? transport->exchange(1, *memory, std::span(&out, 1), {})
                              : transport->exchange(number, *memory, {}, std::span(&in, 1));
    if (status.ok()) status = transport->wait(number, nullptr);
    if (rank == 1) error = status.message();
  });
  return error;
}

TEST(DistributedRaces, RanksThatDisagreeOnAMessageAreNamed) {
  EXPECT_EQ(error_of_message(1, 8), "");
  EXPECT_EQ(error_of_message(1, 12), "rank 0 sends to offset 8 in exchange 1; rank 1 expects 12");
  EXPECT_EQ(error_of_message(2, 8), "rank 0 sends in exchange 1; rank 1 expects it in exchange 2");
}

// Without declared accesses the race shows in the result: data that have not arrived are NaN.
TEST(DistributedRaces, ChunksThatHaveNotArrivedSpoilTheResult) {
  for (const Form form : kForms) {
    const Layout layout{.form = form, .ranks = 3, .schedule = Schedule::kOverlapped};
    const Outcome clean = multiply_without({}, layout, /*hides=*/true);
    const Outcome planted = multiply_without({Call::kWait}, layout, /*hides=*/true);
    ASSERT_TRUE(clean.status.ok()) << clean.status.message();
    if (!planted.status.ok()) continue;  // the address sanitizer reports the kernel's access
    EXPECT_NE(planted.c, clean.c) << name_of(layout);
    EXPECT_TRUE(std::ranges::any_of(planted.c, [](float x) { return x != x; })) << name_of(layout);
  }
}

}  // namespace
}  // namespace tilegate::distributed
