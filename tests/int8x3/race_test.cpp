// Races that only a GPU has: many calls, all with the bits of the first.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/int8x3.hpp>

#include "split_call.hpp"

namespace tilegate::int8x3 {
namespace {

// Copies by TMA overwrote rows of A that a warp had not yet loaded, where digits of B were written
// faster than memory took them: in 8 % of these calls (an NVIDIA H200).
TEST(Int8x3Race, ManyCallsHaveTheSameBits) {
  if (device::current().compute_capability != 90) GTEST_SKIP() << "needs compute capability 9.0";
  constexpr int kCalls = 100;
  constexpr std::int64_t kM = 512, kN = 11008, kK = 4096;
  const Problem problem = Problem::dense({kM, kN, kK});
  ASSERT_TRUE(stage.prepare().ok());
  const Plan plan = stage.plan(problem);
  const DeviceArray<float> a(random_values(kM * kK, 1)), b(random_values(kK * kN, 2));
  const DeviceArray<float> c(static_cast<std::size_t>(kM * kN));
  const DeviceArray<std::byte> workspace(plan.workspace_bytes());
  std::vector<float> first;
  for (int call = 0; call < kCalls; ++call) {
    const Status status = plan.launch({.a = a.data(),
                                       .b = b.data(),
                                       .c = c.data(),
                                       .workspace = workspace.data(),
                                       .workspace_bytes = plan.workspace_bytes()});
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<float> result = c.to_host();
    if (call == 0) first = result;
    ASSERT_EQ(std::memcmp(result.data(), first.data(), first.size() * sizeof(float)), 0)
        << "call " << call;
  }
}

}  // namespace
}  // namespace tilegate::int8x3
