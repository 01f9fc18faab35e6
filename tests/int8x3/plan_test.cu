// Parameters of launches at the limits of what digits sum exactly, of panels and normal operands.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <tuple>
#include <vector>

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
                     Workspace(problem, gpu(90), config.uses_mma_sync));
}

// Other configurations take several launches for a longer K.
TEST(Int8Launches, StreamKAllowsTenProductsUpToTheirLargestExactK) {
  constexpr std::int64_t kMost = models::int8x3::kMostExactTenK;
  EXPECT_EQ(max_exact_k(true), kMost);
  EXPECT_EQ(max_exact_k(false), models::int8x3::kMostExactK);
  EXPECT_TRUE(launches_of("128x128streamk", {512, 512, kMost}).params.allows_ten);
  EXPECT_FALSE(launches_of("128x128streamk", {512, 512, kMost + 1}).params.allows_ten);
  EXPECT_TRUE(launches_of("64x128pingpong", {512, 512, kMost + 1}).params.allows_ten);
}

// cuBLAS would compute the whole product, whose sums may be longer than those of a panel.
TEST(Int8Launches, PanelsAreComparedWithCublasOnTheWholeProduct) {
  const Problem problem = Problem::dense({1024, 1024, 1000});
  const PanelCall call{&config_of("128x64"), Path::kSix, problem, gpu(90), kNoWorkspaceLimit};
  const PanelSize panel{1, {128, 128, 512}};
  EXPECT_EQ(call.launches(panel, panel).params.allowed, squared_error_of(summed_in_fp32(problem)));
  EXPECT_NE(summed_in_fp32(problem), summed_in_fp32(Problem::dense(panel.shape)));
}

// From 256 tiles on, ten products may have the error of a sum of all K, though cuBLAS splits K.
TEST(Int8Launches, AllowTenProductsTheErrorOfOneSum) {
  const auto expect = [](const Shape& shape, float summed, float of_ten) {
    const GemmParams params = launches_of("64x128pingpong", shape).params;
    EXPECT_EQ(params.allowed, squared_error_of(summed));
    EXPECT_EQ(params.allowed_of_ten, squared_error_of(of_ten));
  };
  expect({3072, 3072, 8192}, 2048.0F, 8192.0F);
  expect({1920, 2048, 1024}, 512.0F, 512.0F);
  expect({512, 512, 512}, 112.0F, 112.0F);
}

// Each further launch along K rounds an element once more, each product of an outlier twice.
TEST(Int8Launches, CountRoundings) {
  const auto roundings = [](std::int64_t k, bool allows_ten, bool allows_outliers) {
    GemmParams params;
    params.allows_ten = allows_ten;
    params.allows_outliers = allows_outliers;
    return rounding_chain(config_of("64x128pingpong"), Problem::dense({512, 512, k}), params);
  };
  constexpr std::int64_t kMost = models::int8x3::kMostExactK;
  constexpr std::int64_t kMostOfTen = models::int8x3::kMostExactTenK;
  EXPECT_EQ(roundings(kMost, false, false), 16);
  EXPECT_EQ(roundings(kMost + 1, false, false), 17);
  EXPECT_EQ(roundings(kMostOfTen, true, false), 16);
  EXPECT_EQ(roundings(kMostOfTen + 1, true, false), 17);
  EXPECT_EQ(roundings(kMostOfTen, true, true), 16 + 2 * 16);
  EXPECT_EQ(roundings(kMostOfTen + 1, true, true), 17 + 2 * 16);
}

// Few tiles: as many clusters as balance shorter sums with more partial sums.
TEST(Int8Launches, ShareTilesInFp64) {
  EXPECT_EQ(fp64_clusters(1, 128, 132), 16);
  EXPECT_EQ(fp64_clusters(64, 32, 132), 128);
  EXPECT_EQ(fp64_clusters(100, 8, 132), 100) << "too little for what partial sums cost";
  EXPECT_EQ(fp64_clusters(1, 3, 132), 1);
  EXPECT_EQ(fp64_clusters(132, 128, 132), 132);
  EXPECT_EQ(fp64_clusters(500, 128, 132), 132);
  const auto shared = [](const Shape& shape) {
    return launches_of("64x128pingpong", shape).params.fp64.stream_k;
  };
  EXPECT_EQ(shared({4096, 4096, 4096}).full_waves, 6U);
  EXPECT_EQ(shared({4096, 4096, 4096}).count, 1024U - 6 * 132);
  EXPECT_EQ(shared({1536, 1408, 512}).count, 0U) << "a whole wave";
}

// Tiles of 64 columns for less than a wave of tiles of 128, unless they have many k tiles.
TEST(Int8Launches, TakeNarrowTilesInFp64) {
  const auto params = [](const Shape& shape, const char* configuration = "64x128pingpong") {
    return launches_of(configuration, shape).params.fp64;
  };
  EXPECT_EQ(params({1024, 1024, 1024}).columns, 64);
  EXPECT_EQ(params({1024, 1024, 1024}).scheduler.count, 128U);
  EXPECT_EQ(params({1024, 1024, 1024}).stream_k.count, 0U) << "a tile for each block";
  EXPECT_EQ(params({1024, 1024, 1024}, "128x128pairs").columns, 128);
  EXPECT_EQ(params({1024, 1024, 92 * 32}).columns, 64);
  EXPECT_EQ(params({1024, 1024, 93 * 32}).columns, 128) << "45 k tiles per multiprocessor";
  EXPECT_EQ(params({1536, 1408, 512}).columns, 128) << "a whole wave";
}

// The plan expects what the device decides for normal operands.
TEST(Int8Launches, ExpectsTheDecisionOfNormalOperands) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const auto& [m, k, path] : {std::tuple{384, 256, 64},
                                   {512, 256, 8},
                                   {768, 768, 8},
                                   {768, 1536, 64},
                                   {1024, 1024, 6},
                                   {1024, 1536, 8}}) {
    const Problem problem = Problem::dense({m, m, k});
    models::int8x3::Widths widths{};
    std::vector<float> row(static_cast<std::size_t>(k));
    for (int i = 0; i < m; ++i) {
      for (float& x : row) x = normal(random);
      const models::int8x3::Row seen = models::int8x3::quantized({row.data(), 1, k, k, 1}, 0);
      widths.width += seen.width / m;
      widths.spread += seen.spread / m;
      widths.most = std::max(widths.most, seen.spread);
    }
    EXPECT_EQ(models::int8x3::decision({widths, widths}, summed_in_fp32(problem), false), path)
        << m << " " << k;
    EXPECT_EQ(static_cast<int>(path_of_normal(problem)), path) << m << " " << k;
  }
}

// Short calls, too, allow ten products where normal operands need them.
TEST(Int8Launches, AllowsTheProductsThatNormalOperandsNeed) {
  EXPECT_FALSE(launches_of("128x64", {1024, 1024, 1024}).params.allows_ten);
  EXPECT_FALSE(launches_of("128x64", {768, 768, 768}).params.allows_ten);
  EXPECT_FALSE(launches_of("128x64", {768, 768, 1536}).params.allows_ten);  // too short
  EXPECT_TRUE(launches_of("128x64", {768, 768, 4096}).params.allows_ten);
  EXPECT_FALSE(launches_of("128x64", {1024, 1024, 3072}).params.allows_ten);  // eight
}

// Their time is what Sgemm compares with FP32: more than that of six products where normal operands
// need more.
TEST(Int8Launches, ExpectTheTimeOfNormalOperands) {
  const auto more = [](const Shape& shape) {
    const Problem problem = Problem::dense(shape);
    const Launches launches = launches_of("128x64", shape);
    return 1e6 * (normal_seconds(config_of("128x64"), launches, problem) -
                  call_seconds(config_of("128x64"), launches, problem));
  };
  const double of_six = more({1024, 1024, 1024});  // for any short call
  EXPECT_LT(of_six, 4.0);
  EXPECT_NEAR(more({768, 768, 768}) - of_six, 1.8, 0.1);  // eight
  EXPECT_GT(more({768, 768, 1536}) - of_six, 10.0);       // ten
}

// Operands that are not split do not count: those beside a prepared one (prepared.cuh).
TEST(Int8Launches, CopyBoxesWhereTmaCanCopyBothOperands) {
  const auto copies_boxes = [](const Problem& problem) {
    return Workspace(problem, gpu(90), false).split.boxes;
  };
  Problem odd_rows = Problem::dense({64, 65, 256}), off = Problem::dense({64, 64, 256}),
          odd_strides = Problem::dense({64, 64, 256}, Op::kN, Op::kN, 2);
  EXPECT_TRUE(copies_boxes(off));
  EXPECT_TRUE(copies_boxes(odd_strides));
  EXPECT_FALSE(copies_boxes(odd_rows));
  odd_rows.shape.n = 0;
  EXPECT_TRUE(copies_boxes(odd_rows));
  off.offset_bytes[0] = 8;
  EXPECT_FALSE(copies_boxes(off));
  ++odd_strides.stride_b;
  EXPECT_FALSE(copies_boxes(odd_strides));
  EXPECT_FALSE(copies_boxes(Problem::dense({64, 64, 16'384})));  // split_long
}

// On an NVIDIA H200 it takes 56 µs, and the split of as many elements in shorter rows 13 less.
TEST(Int8Launches, ExpectThatLongRowsAreReadTwice) {
  const Shape shape{256, 256, 16384};
  const double seconds = call_seconds(config_of("128x64splitk"), launches_of("128x64splitk", shape),
                                      Problem::dense(shape));
  EXPECT_NEAR(seconds, 56e-6, 5e-6);
}

}  // namespace
}  // namespace tilegate::int8x3
