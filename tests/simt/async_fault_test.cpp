// Misused asynchronous hardware on the executor without counters: the launch ends with an error, or
// its result is wrong under the schedule that reveals the hazard.
#include <numeric>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/cpu/executor.hpp>

#include "counters/planted.hpp"
#include "simt/device_array.hpp"

namespace tilegate {

namespace planted {

static void PrintTo(const Plant& plant, std::ostream* out) { *out << plant.name; }

}  // namespace planted

namespace {

using planted::Plant;
using planted::Shows;
using simt::Schedule;

class AsyncFault : public testing::TestWithParam<Plant> {
 protected:
  ~AsyncFault() override { simt::executor::set_schedule(Schedule::forward()); }

  struct Outcome {
    Status status;
    std::vector<float> memory;
  };
  static Outcome run(Status (*launch)(float*), Schedule schedule) {
    std::vector<float> words(planted::kWords);
    std::iota(words.begin(), words.end(), 0.0F);
    const DeviceArray<float> memory(words);
    simt::executor::set_schedule(schedule);
    const Status status = launch(memory.data());
    return {status, memory.to_host()};
  }
};

TEST_P(AsyncFault, ChangesTheResult) {
  const Plant& plant = GetParam();
  const Outcome clean = run(plant.clean, Schedule::forward());
  ASSERT_TRUE(is_ok(clean.status));
  const Outcome forward = run(plant.faulty, Schedule::forward());
  const Outcome reverse = run(plant.faulty, Schedule::reverse());
  switch (plant.shows) {
    case Shows::kStops:
      for (const Status& status : {forward.status, reverse.status}) {
        EXPECT_TRUE(std::regex_search(status.message(), std::regex(plant.message)))
            << status.message();
      }
      break;
    case Shows::kWrongForward:
      EXPECT_TRUE(!forward.status.ok() || forward.memory != clean.memory);
      break;
    case Shows::kWrongReverse:
      EXPECT_TRUE(!reverse.status.ok() || reverse.memory != clean.memory);
      break;
    case Shows::kNowhere:
      EXPECT_EQ(forward.memory, clean.memory);
      break;
  }
}

TEST_P(AsyncFault, CleanTwinPassesUnderEverySchedule) {
  const std::vector<float> memory = run(GetParam().clean, Schedule::forward()).memory;
  for (const Schedule schedule :
       {Schedule::reverse(), Schedule::shuffled(1), Schedule::shuffled(2)}) {
    const Outcome outcome = run(GetParam().clean, schedule);
    EXPECT_TRUE(is_ok(outcome.status));
    EXPECT_EQ(outcome.memory, memory);
  }
}

INSTANTIATE_TEST_SUITE_P(PlantedCluster, AsyncFault,
                         testing::ValuesIn(planted::cluster_plants().begin(),
                                           planted::cluster_plants().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });
INSTANTIATE_TEST_SUITE_P(Planted, AsyncFault,
                         testing::ValuesIn(planted::async_plants().begin(),
                                           planted::async_plants().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace tilegate
