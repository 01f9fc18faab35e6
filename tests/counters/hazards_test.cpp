// Every planted hazard is caught, with its place; no clean twin is.
#include <algorithm>
#include <iostream>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>
#include <tilegate/device/cpu/executor.hpp>

#include "count.hpp"
#include "planted.hpp"
#include "recorder.hpp"

namespace tilegate {

namespace planted {

static void PrintTo(const Plant& plant, std::ostream* out) { *out << plant.name; }
static void PrintTo(const PlantedCall& call, std::ostream* out) { *out << call.name; }

}  // namespace planted

namespace {

using namespace std::string_literals;
using planted::Plant;
using planted::PlantedCall;
using simt::Schedule;

class Hazards : public testing::TestWithParam<Plant> {
 protected:
  Hazards() : memory_(planted::kWords * sizeof(float)) {
    for (std::size_t i = 0; i < planted::kWords; ++i) memory()[i] = static_cast<float>(i);
  }
  ~Hazards() override { simt::executor::set_schedule(Schedule::forward()); }

  float* memory() const { return reinterpret_cast<float*>(memory_.data()); }

 private:
  device::Buffer memory_;
};

TEST_P(Hazards, IsCaught) {
  const Status status = GetParam().faulty(memory());
  ASSERT_EQ(status.code(), Status::Code::kDeviceError);
  std::cout << GetParam().name << ": " << status.message() << '\n';
  EXPECT_TRUE(std::regex_search(status.message(), std::regex(GetParam().message)))
      << status.message();
  EXPECT_TRUE(std::regex_search(status.message(),
                                std::regex(R"(^planted: block \d+, thread \(\d+,\d+,\d+\): )")))
      << status.message();
}

// The order in which threads run decides whether a fault does harm, not whether it is one.
TEST_P(Hazards, IsCaughtUnderEverySchedule) {
  for (const Schedule schedule : {Schedule::reverse(), Schedule::shuffled(7)}) {
    simt::executor::set_schedule(schedule);
    EXPECT_FALSE(GetParam().faulty(memory()).ok());
  }
}

TEST_P(Hazards, CleanTwinPasses) {
  for (const Schedule schedule :
       {Schedule::forward(), Schedule::reverse(), Schedule::shuffled(7)}) {
    simt::executor::set_schedule(schedule);
    const Status status = GetParam().clean(memory());
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// Two blocks whose half-warps store in turn, with barriers between.
TEST(Recorder, BlockBarrierEndsWarpInstructions) {
  const auto plants = planted::plants();
  const auto in_turns = std::find_if(plants.begin(), plants.end(), [](const Plant& plant) {
    return plant.name == "store_in_turns"s;
  });
  ASSERT_NE(in_turns, plants.end());
  const device::Buffer memory(planted::kWords * sizeof(float));
  using namespace simt::counted;
  Recorder::instance().begin_counting();
  EXPECT_TRUE(in_turns->clean(reinterpret_cast<float*>(memory.data())).ok());
  EXPECT_EQ(Recorder::instance().end_counting().of(Kind::kSharedStore).requests, 2U * 4U);
}

INSTANTIATE_TEST_SUITE_P(Planted, Hazards,
                         testing::ValuesIn(planted::plants().begin(), planted::plants().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });
INSTANTIATE_TEST_SUITE_P(PlantedCluster, Hazards,
                         testing::ValuesIn(planted::cluster_plants().begin(),
                                           planted::cluster_plants().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });
INSTANTIATE_TEST_SUITE_P(PlantedMma, Hazards,
                         testing::ValuesIn(planted::mma_plants().begin(),
                                           planted::mma_plants().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });
INSTANTIATE_TEST_SUITE_P(PlantedPlain, Hazards,
                         testing::ValuesIn(planted::plain_plants().begin(),
                                           planted::plain_plants().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });
INSTANTIATE_TEST_SUITE_P(PlantedAsync, Hazards,
                         testing::ValuesIn(planted::async_plants().begin(),
                                           planted::async_plants().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Every way to break the contract of a call, whatever the schedule; no clean twin does.
class AccessContract : public testing::TestWithParam<PlantedCall> {
 protected:
  ~AccessContract() override { simt::executor::set_schedule(Schedule::forward()); }

  Status call(Status (*enqueue)(const KernelArgs& args, Stream stream)) const {
    constexpr std::size_t kGuard = 16;  // elements before and after each operand
    const Problem& problem = GetParam().problem;
    std::vector<device::Buffer> buffers;
    const auto allocate = [&](std::size_t elements) {
      buffers.emplace_back((elements + 2 * kGuard) * sizeof(float));
      auto* const data = reinterpret_cast<float*>(buffers.back().data());
      std::fill_n(data, elements + 2 * kGuard, 1.0F);
      return data + kGuard;
    };
    const auto elements_of = [&](Operand operand) {
      return static_cast<std::size_t>(problem.span(operand));
    };
    const auto results = static_cast<std::size_t>(problem.shape.m * problem.shape.n);
    const Operands operands{.a = allocate(elements_of(Operand::kA)),
                            .b = allocate(elements_of(Operand::kB)),
                            .c = allocate(elements_of(Operand::kC)),
                            .workspace = allocate(results),
                            .workspace_bytes = results * sizeof(float)};
    KernelArgs args{.shape = problem.shape,
                    .alpha = problem.alpha,
                    .a = operands.a,
                    .lda = problem.lda,
                    .b = operands.b,
                    .ldb = problem.ldb,
                    .beta = problem.beta,
                    .c = operands.c,
                    .ldc = problem.ldc,
                    .workspace = operands.workspace,
                    .batch = problem.batch,
                    .stride_a = problem.stride_a,
                    .stride_b = problem.stride_b,
                    .stride_c = problem.stride_c};
    if (!problem.reads_a_and_b()) args.shape.k = 0;
    char stream = 0;
    simt::executor::begin_call(problem, operands, reinterpret_cast<Stream>(&stream));
    const Status launched = enqueue(args, reinterpret_cast<Stream>(&stream));
    const Status kept = simt::executor::end_call();
    return launched.ok() ? kept : launched;
  }
};

TEST_P(AccessContract, IsCaughtUnderEverySchedule) {
  for (const Schedule schedule :
       {Schedule::forward(), Schedule::reverse(), Schedule::shuffled(7)}) {
    simt::executor::set_schedule(schedule);
    const Status status = call(GetParam().faulty);
    EXPECT_EQ(status.code(), Status::Code::kDeviceError);
    EXPECT_TRUE(std::regex_search(status.message(), std::regex(GetParam().message)))
        << status.message();
  }
}

TEST_P(AccessContract, CleanTwinPasses) {
  for (const Schedule schedule :
       {Schedule::forward(), Schedule::reverse(), Schedule::shuffled(7)}) {
    simt::executor::set_schedule(schedule);
    const Status status = call(GetParam().clean);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, AccessContract,
                         testing::ValuesIn(planted::planted_calls().begin(),
                                           planted::planted_calls().end()),
                         [](const auto& tested) {
                           return tested.param.name + ("_" + std::to_string(tested.index));
                         });

const PlantedCall& leaves_element() {
  const auto calls = planted::planted_calls();
  return *std::find_if(calls.begin(), calls.end(),
                       [](const PlantedCall& call) { return call.name == "LeavesElement"s; });
}

// No launch of the call fails; only its end tells.
TEST(Count, ReportsFindingsAtTheEndOfACall) {
  const Stage stage{.name = "Planted", .choose = [](const Problem&, const Device&) {
                      return Choice{.rounding_chain = 1, .enqueue = leaves_element().faulty};
                    }};
  const Status status = simt::counted::count(stage, leaves_element().problem).status;
  EXPECT_TRUE(std::regex_search(status.message(), std::regex(leaves_element().message)))
      << status.message();
}

}  // namespace
}  // namespace tilegate
