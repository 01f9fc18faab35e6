// Races between a rank's stream and its exchanges: planted ones are found, and their clean twins
// pass.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "distributed/ranks.hpp"
#include "verifier/oracle.hpp"

namespace tilegate::distributed {
namespace {

// A call that the transport of each rank leaves out.
enum class Omitted { kNothing, kFork, kWait };

class ForgetfulTransport : public ForwardingTransport {
 public:
  // The first wait, or fork; `hides`: also what steps access.
  ForgetfulTransport(std::unique_ptr<Transport> transport, Omitted omitted, bool hides)
      : ForwardingTransport(*transport),
        owned_(std::move(transport)),
        omitted_(omitted),
        hides_(hides) {}

  Status fork(Stream stream) override {
    return omits(Omitted::kFork) ? Status() : ForwardingTransport::fork(stream);
  }
  Status wait(int number, Stream stream) override {
    return omits(Omitted::kWait) ? Status() : ForwardingTransport::wait(number, stream);
  }
  Status begin_step(std::string_view name, std::span<const Access> accesses) override {
    return hides_ ? Status() : ForwardingTransport::begin_step(name, accesses);
  }

 private:
  bool omits(Omitted call) { return omitted_ == call && std::exchange(left_, false); }

  std::unique_ptr<Transport> owned_;
  Omitted omitted_;
  bool hides_;
  bool left_ = true;
};

struct Outcome {
  Status status;
  std::vector<float> c;
};

Outcome multiply_without(Omitted omitted, const Layout& layout, bool hides = false) {
  Whole whole{.problem = Problem::dense({12, 10, 8}, Op::kT)};  // packed before it is sent
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
  for (const Form form : kForms) {
    for (const Schedule schedule : kSchedules) {
      const Layout layout{.form = form, .ranks = 3, .schedule = schedule};
      const Outcome clean = multiply_without(Omitted::kNothing, layout);
      EXPECT_TRUE(clean.status.ok()) << clean.status.message();
      for (const Omitted omitted : {Omitted::kFork, Omitted::kWait}) {
        const std::string message = multiply_without(omitted, layout).status.message();
        EXPECT_NE(message.find(": race: step '"), std::string::npos)
            << name_of(layout) << ": " << message;
        EXPECT_NE(message.find(omitted == Omitted::kFork ? "no fork()" : "no wait()"),
                  std::string::npos)
            << message;
      }
    }
  }
}

TEST(DistributedRaces, ReportsNameStepExchangeAndRanks) {
  const Layout layout{.ranks = 2, .schedule = Schedule::kOverlapped};
  const std::string message = multiply_without(Omitted::kWait, layout).status.message();
  EXPECT_EQ(message.substr(message.find(':')),
            ": race: step 'multiply rows' reads what exchange 1 receives from rank " +
                std::string(message.starts_with("rank 0") ? "1" : "0") +
                ", with no wait() between them");
}

// Without the plan's own account of its accesses: what has not arrived is NaN.
TEST(DistributedRaces, ChunksThatHaveNotArrivedSpoilTheResult) {
  for (const Form form : kForms) {
    const Layout layout{.form = form, .ranks = 3, .schedule = Schedule::kOverlapped};
    const Outcome clean = multiply_without(Omitted::kNothing, layout, /*hides=*/true);
    const Outcome planted = multiply_without(Omitted::kWait, layout, /*hides=*/true);
    ASSERT_TRUE(clean.status.ok()) << clean.status.message();
    if (!planted.status.ok()) continue;  // under the address sanitizer: the kernel's access is
    EXPECT_NE(planted.c, clean.c) << name_of(layout);
    EXPECT_TRUE(std::ranges::any_of(planted.c, [](float x) { return x != x; })) << name_of(layout);
  }
}

}  // namespace
}  // namespace tilegate::distributed
