// The suites that the counted kernels have beside the ladder's.
#include <array>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <tilegate/catalogue.hpp>

#include "counters/path_cases.hpp"
#include "ladder/case_list.hpp"
#include "ladder/stage_test.hpp"

namespace tilegate::ladder {
namespace {

// Whatever a stage may choose is among its paths.
TEST(PathCases, CoverEveryConfiguration) {
  for (const Stage* stage : catalogue_stages()) {
    if (stage->candidates == nullptr || is_variant(*stage)) continue;
    std::set<std::string> tiles;
    for (const Case& test_case : path_cases(*stage)) tiles.insert(tile_of(test_case.configuration));
    for (const Shape& shape : {Shape{300, 300, 300}, Shape{2048, 2048, 2048}, Shape{1, 4096, 4096},
                               Shape{3, 4096, 4096}, Shape{16, 4096, 4096}, Shape{24, 4096, 4096},
                               Shape{4096, 32, 4096}, Shape{1000, 999, 1001}}) {
      const Case at{.problem = Problem::dense(shape), .compute_capability = 90};
      for (const Candidate& candidate : stage->candidates(at.problem, device_of(at))) {
        const std::string& name = candidate.choice.configuration;
        EXPECT_TRUE(is_borrowed(name) || tiles.contains(tile_of(name)))
            << stage->name << " " << name << " " << to_string(at.problem);
      }
    }
  }
}

class Paths : public StageCaseTest {};

TEST_P(Paths, HaveNoHazard) { expect_right(std::array{verifier::Order::kForward}); }

INSTANTIATE_TEST_SUITE_P(Ladder, Paths, testing::ValuesIn(for_every_stage("Paths", path_cases)),
                         name_case);

class WatchedPlanBoundaries : public StageCaseTest {};

TEST_P(WatchedPlanBoundaries, HaveNoHazard) { expect_right(std::array{verifier::Order::kForward}); }

INSTANTIATE_TEST_SUITE_P(Ladder, WatchedPlanBoundaries,
                         testing::ValuesIn(for_every_stage("WatchedPlanBoundaries",
                                                           watched_reach_cases)),
                         name_case);

}  // namespace
}  // namespace tilegate::ladder
