// Every planted hazard is caught, with its place; no clean twin is.
#include <ostream>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>
#include <tilegate/device/cpu/executor.hpp>

#include "planted.hpp"

namespace tilegate {

namespace planted {

static void PrintTo(const Plant& plant, std::ostream* out) { *out << plant.name; }

}  // namespace planted

namespace {

using planted::Plant;
using simt::Schedule;

class HazardsTest : public testing::TestWithParam<Plant> {
 protected:
  HazardsTest() : memory_(planted::kWords * sizeof(float)) {
    for (std::size_t i = 0; i < planted::kWords; ++i) memory()[i] = 0.0F;
  }
  ~HazardsTest() override { simt::executor::set_schedule(Schedule::forward()); }

  float* memory() const { return reinterpret_cast<float*>(memory_.data()); }

 private:
  device::Buffer memory_;
};

TEST_P(HazardsTest, IsCaught) {
  const Status status = GetParam().faulty(memory());
  ASSERT_EQ(status.code(), Status::Code::kDeviceError);
  EXPECT_TRUE(std::regex_search(status.message(), std::regex(GetParam().message)))
      << status.message();
  EXPECT_TRUE(std::regex_search(status.message(),
                                std::regex(R"(^planted: block \d+, thread \(\d+,\d+,\d+\): )")))
      << status.message();
}

// The order in which threads run decides whether a fault does harm, not whether it is one.
TEST_P(HazardsTest, IsCaughtUnderEverySchedule) {
  for (const Schedule schedule : {Schedule::reverse(), Schedule::shuffled(7)}) {
    simt::executor::set_schedule(schedule);
    EXPECT_FALSE(GetParam().faulty(memory()).ok());
  }
}

TEST_P(HazardsTest, CleanTwinPasses) {
  for (const Schedule schedule :
       {Schedule::forward(), Schedule::reverse(), Schedule::shuffled(7)}) {
    simt::executor::set_schedule(schedule);
    const Status status = GetParam().clean(memory());
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, HazardsTest,
                         testing::ValuesIn(planted::plants().begin(), planted::plants().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace tilegate
