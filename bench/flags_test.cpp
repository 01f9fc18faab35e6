#include "flags.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "errors.hpp"

namespace tilegate::bench {
namespace {

constexpr double kDefaultMinTime = 0.25;

Flags parse(const std::vector<std::string>& args) { return parse_flags(args, kDefaultMinTime); }

bool passes_on(const Flags& flags, const std::string& arg) {
  return std::ranges::find(flags.passed_on, arg) != flags.passed_on.end();
}

const std::string kSuffix = TILEGATE_BENCH_SECONDS_SUFFIX;

TEST(Flags, DefaultsApply) {
  const Flags flags = parse({});
  EXPECT_EQ(flags.seed, 1U);
  EXPECT_FALSE(flags.cold);
  EXPECT_FALSE(flags.variants);
  EXPECT_FALSE(flags.alone);
  EXPECT_FALSE(flags.prepared);
  EXPECT_FALSE(flags.help);
  EXPECT_FALSE(flags.list);
  EXPECT_EQ(flags.placements, 1);
  EXPECT_EQ(flags.min_time_s, kDefaultMinTime);
  EXPECT_TRUE(passes_on(flags, "--benchmark_min_time=0.250000" + kSuffix));
}

TEST(Flags, OursAreTakenAndTheOthersPassedOn) {
  const Flags flags = parse({"--shapes=1x2x3", "--cold", "--variants", "--alone", "--placements=3",
                             "--seed=18446744073709551615", "--benchmark_filter=Naive", "--v=2"});
  EXPECT_EQ(flags.shapes, "1x2x3");
  EXPECT_TRUE(flags.cold);
  EXPECT_TRUE(flags.variants);
  EXPECT_TRUE(flags.alone);
  EXPECT_EQ(flags.placements, 3);
  EXPECT_EQ(flags.seed, ~std::uint64_t{0});
  EXPECT_TRUE(passes_on(flags, "--benchmark_filter=Naive"));
  EXPECT_TRUE(passes_on(flags, "--v=2"));
  EXPECT_EQ(flags.passed_on.size(), 3U);
}

TEST(Flags, MinTimeTakesEitherFormOfSeconds) {
  for (const char* text : {"0.5", "0.5s"}) {
    const Flags flags = parse({std::string("--benchmark_min_time=") + text});
    EXPECT_EQ(flags.min_time_s, 0.5);
    EXPECT_TRUE(passes_on(flags, "--benchmark_min_time=0.5" + kSuffix));
  }
}

TEST(Flags, MinTimeInIterationsLeavesTheNumberToGoogleBenchmark) {
  const Flags flags = parse({"--benchmark_min_time=7x"});
  EXPECT_FALSE(flags.min_time_s);
  EXPECT_TRUE(passes_on(flags, "--benchmark_min_time=7x"));
}

TEST(Flags, APlantIsARungAndPercent) {
  const Flags flags = parse({"--plant=Warptile:0.5", "--samples=s.csv"});
  ASSERT_TRUE(flags.plant);
  EXPECT_EQ(flags.plant->rung, "Warptile");
  EXPECT_EQ(flags.plant->percent, 0.5);
  EXPECT_EQ(flags.plant->to_string(), "Warptile:0.5");
  EXPECT_EQ(flags.samples, "s.csv");
}

TEST(Flags, ConfigurationsAreACount) {
  EXPECT_EQ(parse({}).configurations, 0);
  EXPECT_EQ(parse({"--configurations=8"}).configurations, 8);
}

TEST(Flags, YardstickIsCublasOrAFile) {
  EXPECT_EQ(parse({"--yardstick=cublas"}).yardstick, "");
  EXPECT_EQ(parse({"--yardstick=best:a.csv"}).yardstick, "a.csv");
  const Flags choose = parse({"--choose-yardstick=a.csv"});
  EXPECT_TRUE(choose.choose_yardstick);
  EXPECT_EQ(choose.samples, "a.csv");
  EXPECT_THROW(parse({"--choose-yardstick=a.csv", "--alone"}), UsageError);
  EXPECT_THROW(parse({"--choose-yardstick=a.csv", "--yardstick=best:b.csv"}), UsageError);
}

TEST(Flags, WorkspaceLimitIsACountOfBytes) {
  EXPECT_EQ(parse({}).workspace_limit, kNoWorkspaceLimit);
  EXPECT_EQ(parse({"--workspace-limit=0"}).workspace_limit, 0U);
}

TEST(Flags, ListingIsSeen) {
  EXPECT_TRUE(parse({"--benchmark_list_tests"}).list);
  EXPECT_TRUE(parse({"--benchmark_list_tests=true"}).list);
  EXPECT_FALSE(parse({"--benchmark_list_tests=false"}).list);
}

TEST(Flags, WhatMakesNoSenseIsAnError) {
  for (const char* arg : {"--fast",
                          "Naive",
                          "--shapes",
                          "--shapes=",
                          "--cold=1",
                          "--seed=",
                          "--seed=-1",
                          "--seed=1x",
                          "--benchmark_min_time=",
                          "--benchmark_min_time=soon",
                          "--benchmark_min_time=-1",
                          "--benchmark_min_time=nan",
                          "--samples=",
                          "--configurations=",
                          "--configurations=-1",
                          "--configurations=all",
                          "--yardstick=",
                          "--yardstick=best",
                          "--yardstick=best:",
                          "--choose-yardstick=",
                          "--workspace-limit=1M",
                          "--plant=",
                          "--plant=Warptile",
                          "--plant=:3",
                          "--plant=Warptile:",
                          "--plant=Warptile:0",
                          "--plant=Warptile:nan",
                          "--plant=Warptile:3%"}) {
    EXPECT_THROW(parse({arg}), UsageError) << arg;
  }
}

}  // namespace
}  // namespace tilegate::bench
