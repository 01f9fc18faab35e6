// What stages offer for a problem, planned for made-up devices.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/catalogue.hpp>
#include <tilegate/choices/sgemm.hpp>
#include <tilegate/sgemm.hpp>
#include <tilegate/tuned/sgemm.hpp>

#include "api/made_up.hpp"

namespace tilegate {
namespace {

const std::vector<Problem> kProblems = {Problem::dense({1, 4096, 4096}),
                                        Problem::dense({4096, 16, 4096}),
                                        Problem::dense({1000, 1001, 1002}),
                                        Problem::dense({7, 7, 7}),
                                        Problem::dense({100, 3, 0}),
                                        Problem::dense({24, 4096, 512}, Op::kT, Op::kT),
                                        Problem::dense({16, 16, 16}, Op::kN, Op::kN, 100)};

bool offers(const Problem& problem, const Device& device, const std::string& rung) {
  for (const Candidate& candidate : sgemm::stage.candidates(problem, device)) {
    if (candidate.choice.configuration.starts_with(rung + ":")) return true;
  }
  return false;
}

TEST(Candidates, HaveUniqueNamesAndExpectedTimes) {
  for (const Stage* stage : catalogue_stages()) {
    if (stage->candidates == nullptr) continue;
    for (const Problem& problem : kProblems) {
      if (!stage->takes(problem).ok()) continue;
      std::set<std::string> seen;
      for (const Candidate& candidate : stage->candidates(problem, gpu(90))) {
        const std::string& name = candidate.choice.configuration;
        EXPECT_TRUE(seen.insert(name).second) << stage->name << " offers " << name << " twice";
        EXPECT_TRUE(candidate.choice.status.ok()) << candidate.choice.status.message();
        EXPECT_TRUE(std::isfinite(candidate.seconds)) << stage->name << " " << name;
        EXPECT_GT(candidate.seconds, 0.0) << stage->name << " " << name;
        EXPECT_TRUE(stage->plan(problem, gpu(90), name).ok()) << stage->name << " " << name;
      }
    }
  }
}

TEST(Sgemm, TakesTheExpectedRung) {
  const auto rung_of = [](const Problem& problem) {
    const std::string name = sgemm::stage.plan(problem, gpu(90)).configuration();
    return name.substr(0, name.find(':'));
  };
  EXPECT_EQ(rung_of(Problem::dense({4, 4096, 14336})), "Skinny");
  EXPECT_NE(rung_of(Problem::dense({4096, 4096, 4096})), "Skinny");
}

// Of the rungs that split operands.
TEST(Sgemm, TakesTheExpectedSplit) {
  const auto rung_of = [](const Shape& shape) {
    Problem problem = Problem::dense(shape);
    problem.math = Math::fp32_split;
    const std::string name = sgemm::stage.plan(problem, gpu(90)).configuration();
    return name.substr(0, name.find(':'));
  };
  EXPECT_EQ(rung_of({4096, 4096, 4096}), "Int8x3");
  EXPECT_EQ(rung_of({128, 4096, 4096}), "Bf16x6");
  EXPECT_EQ(rung_of({4096, 64, 4096}), "Bf16x6");
  EXPECT_EQ(rung_of({1024, 1024, 1024}), "Int8x3");
  EXPECT_EQ(rung_of({768, 768, 768}), "Bf16x6");  // FP64 after digits would take too long
  EXPECT_EQ(rung_of({1023, 1025, 1027}), "Int8x3");
  EXPECT_EQ(rung_of({16, 4096, 4096}), "Skinny");  // most rows of a tile would be outside C
}

TEST(ProblemClass, EncodesSizeOpsVectorsAndBatch) {
  EXPECT_EQ(problem_class(Problem::dense({4096, 5000, 60}, Op::kN, Op::kT)), "12x12x6/NT/vvv");
  EXPECT_EQ(problem_class(Problem::dense({1, 7, 8}, Op::kN, Op::kN, 8)), "0x3x3/NN/v--/b3");
  Problem off = Problem::dense({64, 64, 64});
  off.offset_bytes = {0, 8, 0};
  EXPECT_EQ(problem_class(off), "6x6x6/NN/v-v");
}

// One that has the class "12x12x6/NT/vv-".
Problem of_class(const std::string& name) {
  const auto op = [&](std::size_t at) { return name[at] == 'T' ? Op::kT : Op::kN; };
  int m = 0, n = 0, k = 0;
  std::sscanf(name.c_str(), "%dx%dx%d", &m, &n, &k);
  const std::size_t slash = name.find('/');
  Problem problem =
      Problem::dense({std::int64_t{1} << m, std::int64_t{1} << n, std::int64_t{1} << k},
                     op(slash + 1), op(slash + 2));
  for (std::size_t i = 0; i < 3; ++i) problem.offset_bytes[i] = name[slash + 4 + i] == 'v' ? 0 : 4;
  return problem;
}

TEST(Sgemm, FollowsTheTunedTableOfTheGpu) {
  for (const auto& cell : sgemm::kTuned) {
    const Problem problem = of_class(std::string(cell.problem_class));
    ASSERT_EQ(problem_class(problem), cell.problem_class);
    Device model = gpu(90);
    const std::string untuned = sgemm::stage.plan(problem, model).configuration();
    model.name = cell.gpu;
    const std::string tuned = sgemm::stage.plan(problem, model).configuration();
    bool is_offered = false;
    for (const Candidate& candidate : sgemm::stage.candidates(problem, model)) {
      is_offered = is_offered || candidate.is_tuned;
    }
    const std::string family(cell.family.substr(0, cell.family.find('*')));
    EXPECT_EQ(tuned.substr(0, is_offered ? family.size() : untuned.size()),
              is_offered ? family : untuned)
        << cell.problem_class;
  }
}

TEST(Sgemm, HasTheTileSizesOfEachRung) {
  for (const Stage* rung : sgemm::kChoices) {
    for (const std::int64_t size : rung->tile_sizes) {
      EXPECT_NE(std::ranges::find(sgemm::stage.tile_sizes, size), sgemm::stage.tile_sizes.end())
          << rung->name << " " << size;
    }
  }
}

TEST(Sgemm, SkipsRungsThatTheDeviceCannotRun) {
  const Problem problem = Problem::dense({4, 4096, 4096});
  EXPECT_TRUE(offers(problem, gpu(80), "Skinny"));
  EXPECT_FALSE(offers(problem, gpu(75), "Skinny"));
  EXPECT_TRUE(offers(problem, gpu(75), "Tiles"));
}

TEST(Sgemm, SaysWhyNoRungSupportsTheProblem) {
  const Problem problem = Problem::dense({std::int64_t{1} << 32, 1, 1}, Op::kT);
  const Status status = sgemm::stage.plan(problem, gpu(75)).status();
  EXPECT_EQ(status.code(), Status::Code::kUnsupported);
  EXPECT_NE(status.message().find("Skinny: needs compute capability 80"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("Tiles takes no transposed operands"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace tilegate
