// The descriptors of the stages, with no device involved.
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/catalogue.hpp>
#include <tilegate/ladder.hpp>

#include "ladder/stage_test.hpp"

namespace tilegate::ladder {
namespace {

// The longest K that the benchmarks and the tests use.
constexpr Shape kLongest{16, 16, 1 << 20};

TEST(Catalogue, ListsTheLadderThenTheYardstick) {
  std::vector<const Stage*> listed;
  for (const CatalogueEntry& entry : catalogue()) {
    if (!entry.yardstick) listed.push_back(entry.stage);
  }
  EXPECT_EQ(listed, std::vector<const Stage*>(stages().begin(), stages().end()));
  EXPECT_TRUE(catalogue().back().yardstick);
  EXPECT_EQ(catalogue().back().stage->name, "Cublas");
}

TEST(Catalogue, NamesAreUniqueWords) {
  std::set<std::string> seen;
  for (const Stage* stage : catalogue_stages()) {
    EXPECT_TRUE(seen.insert(test_name(*stage)).second) << stage->name << " is there twice";
    ASSERT_FALSE(stage->name.empty());
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(stage->name.front()))) << stage->name;
    for (const char c : test_name(*stage)) {
      EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) || c == '_') << stage->name;
    }
  }
}

TEST(Catalogue, VariantsAreNamedAfterTheirRung) {
  for (const CatalogueEntry& entry : catalogue()) {
    const std::string rung(entry.stage->name);
    EXPECT_EQ(rung.find('.'), std::string::npos) << rung;
    for (const Stage* variant : entry.variants) {
      EXPECT_TRUE(variant->name.starts_with(rung + ".")) << variant->name;
    }
  }
}

// A configuration of Sgemm is "StreamK:128x128x16s2". ci/gate measures Sgemm again where the
// library of StreamK has changed.
TEST(Catalogue, ChoicesAreOfTheLibrariesThatTheEntryNames) {
  int others = 0;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.stage->candidates == nullptr) continue;
    const std::string named = ' ' + std::string(entry.chooses_from) + ' ';
    Problem problem = Problem::dense({1024, 1024, 1024});
    problem.math = Math::fp32_split;
    for (const Candidate& candidate : entry.stage->candidates(problem, device::current())) {
      const std::string& configuration = candidate.choice.configuration;
      const std::string rung = configuration.substr(0, configuration.find(':'));
      for (const CatalogueEntry& other : catalogue()) {
        if (other.stage->name != rung) continue;
        ++others;
        const std::string library(other.library);
        EXPECT_NE(named.find(' ' + library + ' '), std::string::npos) << configuration;
      }
    }
  }
  EXPECT_GT(others, 5);
}

TEST(Catalogue, DescriptorsAreComplete) {
  for (const CatalogueEntry& entry : catalogue()) {
    EXPECT_TRUE(entry.external || !entry.stage->idea.empty()) << entry.stage->name;
  }
  for (const Stage* stage : catalogue_stages()) {
    EXPECT_FALSE(stage->tile_sizes.empty()) << stage->name;
    for (const std::int64_t size : stage->tile_sizes) EXPECT_GT(size, 0) << stage->name;
    EXPECT_NE(stage->choose == nullptr, stage->candidates == nullptr) << stage->name;
  }
}

TEST(Catalogue, FindsEachStageByName) {
  for (const Stage* stage : catalogue_stages()) EXPECT_EQ(find_in_catalogue(stage->name), stage);
  for (const Stage* stage : stages()) EXPECT_EQ(find_stage(stage->name), stage);
  for (const char* name : {"", "naive", "NoSuchStage"}) {
    EXPECT_EQ(find_in_catalogue(name), nullptr);
    EXPECT_EQ(find_stage(name), nullptr);
  }
  EXPECT_EQ(find_stage("Cublas"), nullptr) << "the yardstick is no rung";
}

// What is skipped as a stage that cannot run here is one whose descriptor says so.
TEST(Plan, ChecksTheRequirementsOfTheStage) {
  const Device& here = device::current();
  for (const Stage* stage : catalogue_stages()) {
    const Requirements& needs = stage->requirements;
    const int has = here.compute_capability, needed = needs.compute_capability;
    const bool suits = needs.no_later ? has == needed : has >= needed;
    const bool runs = here.is_cuda ? suits : needs.not_on_simt.empty();
    EXPECT_EQ(cannot_run(*stage).empty(), runs) << stage->name;
    EXPECT_EQ(stage->prepare().ok(), runs) << stage->name;
    const auto& [m, n, k] = stage->restrictions.multiple_of;
    EXPECT_EQ(stage->plan(Problem::dense({5 * m, 7 * n, 3 * k})).ok(), runs) << stage->name;
  }
}

TEST(Plan, ChecksForOneComputeCapability) {
  const Requirements only{.compute_capability = 90, .no_later = true};
  const auto gpu = [](int has) {
    return Device{.ordinal = 0, .is_cuda = true, .name = "a GPU", .compute_capability = has};
  };
  EXPECT_TRUE(check_device(only, gpu(90)).ok());
  EXPECT_EQ(check_device(only, gpu(100)).message(),
            "needs compute capability 90 and no later one, a GPU has 100");
  EXPECT_FALSE(check_device(only, gpu(89)).ok());
  EXPECT_EQ(check_device({}, gpu(0)).message(), "no CUDA device is available");
  EXPECT_TRUE(check_device({.compute_capability = 90}, gpu(100)).ok());
}

TEST(Plan, RejectsRoundingChainsThatBoundNothing) {
  for (const Stage* stage : catalogue_stages()) {
    if (!cannot_run(*stage).empty()) continue;
    for (const Shape& shape : {Shape{1, 1, 0}, Shape{1, 1, 1}, Shape{100, 100, 100}, kLongest}) {
      if (!stage->takes(Problem::dense(shape)).ok()) continue;  // a kernel that joined, as it is
      const auto chain = static_cast<double>(stage->plan(Problem::dense(shape)).rounding_chain());
      EXPECT_GE(chain, 1.0) << stage->name << ": alpha alone rounds once";
      EXPECT_LT(chain * 0x1p-24, 1.0) << stage->name;
      EXPECT_LE(chain, static_cast<double>(shape.k + 16))
          << stage->name << ": longer than a serial sum and a few; see verifier/verify.cpp";
    }
  }
}

Choice named(std::string configuration, std::int64_t chain) {
  return {.configuration = std::move(configuration), .rounding_chain = chain};
}

TEST(Plan, TakesTheFastestOrTheNamedCandidate) {
  const Stage stage{.name = "Two", .candidates = [](const Problem&, const Device&) {
                      return std::vector<Candidate>{{named("slow", 1), 2.0},
                                                    {named("quick", 2), 1.0}};
                    }};
  const Problem problem = Problem::dense({1, 1, 1});
  EXPECT_EQ(stage.plan(problem).configuration(), "quick");
  EXPECT_EQ(stage.plan(problem, device::current(), "slow").rounding_chain(), 1);
  const Plan none = stage.plan(problem, device::current(), "quicker");
  EXPECT_EQ(none.status().code(), Status::Code::kUnsupported);
  EXPECT_NE(none.status().message().find("Two has no configuration 'quicker'"), std::string::npos);
  EXPECT_EQ(stage.plan(Problem::dense({0, 5, 3})).problem().shape.n, 5) << "also of what is empty";
}

TEST(Status, IsOkByDefaultAndHasAMessageOtherwise) {
  EXPECT_TRUE(Status().ok());
  const Status invalid = Status::invalid_argument("lda", "too short");
  EXPECT_FALSE(invalid.ok());
  EXPECT_EQ(invalid.argument(), "lda");
  EXPECT_EQ(invalid.message(), "too short");
  EXPECT_EQ(Status::unsupported("x").code(), Status::Code::kUnsupported);
  EXPECT_EQ(Status::device_error("x").code(), Status::Code::kDeviceError);
}

}  // namespace
}  // namespace tilegate::ladder
