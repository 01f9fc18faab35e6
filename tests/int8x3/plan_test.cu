// Parameters of launches at the limits of what digits sum exactly, and of panels.
#include <cstdint>
#include <string_view>

#include <gtest/gtest.h>

#include "18_int8x3/panels.hpp"
#include "api/made_up.hpp"
#include "models/int8x3.hpp"
#include "models/layout.hpp"

namespace tilegate::int8x3 {
namespace {

const GemmConfig& config_of(std::string_view name) {
  for (const GemmConfig& config : kGemmConfigs) {
    if (name == config.name) return config;
  }
  ADD_FAILURE() << "no configuration " << name;
  return kGemmConfigs[0];
}

Launches launches_of(std::string_view name, const Shape& shape) {
  const Problem problem = Problem::dense(shape);
  const GemmConfig& config = config_of(name);
  return launches_of(config, problem, gpu(90), Path::kSix,
                     Workspace(problem, gpu(90), config.by_warps));
}

// Other configurations take several launches for a longer K.
TEST(Int8Launches, StreamKAllowsTenProductsUpToTheirLargestExactK) {
  constexpr std::int64_t kMost = models::int8x3::kMostExactTenK;
  EXPECT_EQ(max_exact_k(true), kMost);
  EXPECT_EQ(max_exact_k(false), models::int8x3::kMostExactK);
  EXPECT_TRUE(launches_of("128x128streamk", {512, 512, kMost}).params.allows_ten);
  EXPECT_FALSE(launches_of("128x128streamk", {512, 512, kMost + 1}).params.allows_ten);
  EXPECT_TRUE(launches_of("128x128", {512, 512, kMost + 1}).params.allows_ten);
}

// cuBLAS would compute the whole product, whose sums may be longer than those of a panel.
TEST(Int8Launches, PanelsAreComparedWithCublasOnTheWholeProduct) {
  const Problem problem = Problem::dense({1024, 1024, 1000});
  const PanelCall call{&config_of("128x64"), Path::kSix, problem, gpu(90), kNoWorkspaceLimit};
  const PanelSize panel{1, {128, 128, 512}};
  EXPECT_EQ(call.launches(panel, panel).params.summed, summed_in_fp32(problem));
  EXPECT_NE(summed_in_fp32(problem), summed_in_fp32(Problem::dense(panel.shape)));
}

}  // namespace
}  // namespace tilegate::int8x3
