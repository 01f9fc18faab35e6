// Races that only a GPU has: up to 12 configurations of every stage, called many times, alone and
// behind a kernel that writes memory and uses all shared memory. All calls have the same bits.
//
// The executor ends each load and copy at once, so that it cannot find a copy by TMA that
// overwrites what a pending load reads. With such a race 163 of 11,200 calls of Int8x3 were wrong
// (NVIDIA H200).
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/catalogue.hpp>
#include <tilegate/device.hpp>
#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"
#include "skips.hpp"
#include "verifier/oracle.hpp"

namespace tilegate {
namespace {

constexpr int kThreads = 1024, kBlocks = 264;
constexpr std::int64_t kStirred = std::int64_t{16} << 20;  // floats: more than L2
// All of a multiprocessor's on compute capability 9.0. Other GPUs have the least.
constexpr std::size_t kSharedBytes = 227 << 10, kLeastSharedBytes = sizeof(float[kThreads]);

__global__ void stir(float* data) {
  auto& shared = device::shared_storage<float[kThreads]>();
  shared[threadIdx.x] = 0.0F;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < kStirred;
       i += std::int64_t{gridDim.x} * kThreads) {
    data[i] = shared[threadIdx.x];
  }
}

// Clears b, so that the next call has to write every element.
__global__ void count_differences(const std::uint32_t* a, std::uint32_t* b, std::int64_t count,
                                  unsigned* differences) {
  unsigned found = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    found += a[i] != b[i] ? 1 : 0;
    b[i] = ~0U;
  }
  if (found > 0) atomicAdd(differences, found);
}

struct Way {
  const Stage* stage;
  Math math;
};

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.yardstick || !entry.stage->restrictions.not_repeatable.empty()) continue;
    all.push_back({entry.stage, entry.stage->math});
    if (!entry.chooses_from.empty()) all.push_back({entry.stage, Math::fp32_split});
  }
  return all;
}

std::string name_of(const Way& way) {
  const bool chooses_split = way.math != way.stage->math;
  return std::string(way.stage->name) + (chooses_split ? "Split" : "");
}

class ManyCalls : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const std::string why =
        check_device(GetParam().stage->requirements, device::current()).message();
    if (why.empty()) return;
    RecordProperty(kNotOnThisDevice, why);
    GTEST_SKIP() << why;
  }
};

// The first configurations by expected time; one without a name where there is but one.
std::vector<std::string> configurations(const Stage& stage, const Problem& problem) {
  if (stage.candidates == nullptr) return {""};
  constexpr std::size_t kMost = 12;
  std::vector<Candidate> all = stage.candidates(problem, device::current());
  std::ranges::sort(all, {}, &Candidate::seconds);
  std::vector<std::string> names;
  for (const Candidate& candidate : all) {
    if (candidate.choice.status.ok()) names.push_back(candidate.choice.configuration);
  }
  names.resize(std::min(names.size(), kMost));
  return names;
}

// `count`: elements of C; `stir_bytes`: shared memory of the kernel before each call, 0: none.
void expect_same_bits(const Plan& plan, const Operands& operands, std::int64_t count,
                      float* stirred, std::size_t stir_bytes) {
  constexpr int kCalls = 40, kMilliseconds = 100;
  const DeviceArray<float> first(static_cast<std::size_t>(count)),
      other(static_cast<std::size_t>(count));
  const DeviceArray<unsigned> differences(kCalls);
  const auto launch = [&](const DeviceArray<float>& c) {
    Operands call = operands;
    call.c = c.data();
    ASSERT_TRUE(is_ok(plan.launch(call)));
  };
  launch(first);
  const auto start = std::chrono::steady_clock::now();
  int calls = 0;
  while (calls < kCalls &&
         std::chrono::steady_clock::now() - start < std::chrono::milliseconds(kMilliseconds)) {
    for (int i = 0; i < 4; ++i, ++calls) {
      if (stir_bytes > 0) {
        ASSERT_TRUE(is_ok(device::launch({.kernel = "stir",
                                          .blocks = kBlocks,
                                          .threads_x = kThreads,
                                          .shared_bytes = stir_bytes},
                                         {}, stir, stirred)));
      }
      launch(other);
      ASSERT_TRUE(is_ok(device::launch(
          {.kernel = "count differences", .blocks = kBlocks, .threads_x = kThreads}, {},
          count_differences, reinterpret_cast<const std::uint32_t*>(first.data()),
          reinterpret_cast<std::uint32_t*>(other.data()), count, differences.data() + calls)));
    }
    ASSERT_TRUE(is_ok(device::synchronize()));
  }
  const std::vector<unsigned> found = differences.to_host();
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](unsigned n) { return n > 0; }), 0)
      << "of " << calls << " calls differ";
}

TEST_P(ManyCalls, HaveTheSameBits) {
  const auto [stage, math] = GetParam();
  ASSERT_TRUE(is_ok(stage->prepare()));
  const std::size_t most =
      device::allow_shared_memory(stir, kSharedBytes).ok() ? kSharedBytes : kLeastSharedBytes;
  const DeviceArray<float> stirred(kStirred);
  for (const char* text :
       {"512x11008x4096", "1024x1024x1024", "1000x1001x1003", "2048x2048x1536/TN", "129x4096x4096",
        "30x4096x4096", "4096x1x4096", "300x3000x50/NT", "256x256x512/batch16"}) {
    Problem problem;
    ASSERT_TRUE(is_ok(parse_problem(text, &problem)));
    problem.math = math;
    if (!stage->takes(problem).ok()) continue;
    const auto elements = [&](Operand of) { return static_cast<std::size_t>(problem.span(of)); };
    const DeviceArray<float> a(elements(Operand::kA)), b(elements(Operand::kB));
    for (const Operand of : {Operand::kA, Operand::kB}) {
      float* data = of == Operand::kA ? a.data() : b.data();
      ASSERT_TRUE(is_ok(verifier::fill(data, problem.span(of), verifier::Inputs::kUniform,
                                       of == Operand::kA ? 1 : 2, Stream{})));
    }
    for (const std::string& configuration : configurations(*stage, problem)) {
      const Plan plan = stage->plan(problem, device::current(), configuration);
      ASSERT_TRUE(is_ok(plan.status()));
      const DeviceArray<std::byte> workspace(plan.workspace_bytes());
      for (const std::size_t stir_bytes : {std::size_t{0}, most}) {
        SCOPED_TRACE(std::string(text) + " " + configuration +
                     (stir_bytes > 0 ? " behind another kernel" : ""));
        expect_same_bits(plan,
                         {.a = a.data(),
                          .b = b.data(),
                          .workspace = workspace.data(),
                          .workspace_bytes = plan.workspace_bytes()},
                         problem.span(Operand::kC), stirred.data(), stir_bytes);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ladder, ManyCalls, testing::ValuesIn(ways()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace tilegate
