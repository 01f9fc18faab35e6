// Every test of the ladder runs: each stage of the catalogue has tests for all cases of its tables,
// and each test belongs to one entry of ctest. This file names no stage.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/catalogue.hpp>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"
#include "ladder/stage_test.hpp"

namespace tilegate::ladder {
namespace {

// A suite whose tests are the cases of a table, with the fewest cases that a stage or a variant
// has. This detects cases that a table has lost.
struct Suite {
  const char* name;
  std::vector<Case> (*table)(const Stage& stage);
  std::size_t least, least_of_variant;
};
// On the executor a large shape has one kind of inputs, on a GPU both; variants have no small
// shapes.
constexpr std::size_t kFewestShapes = TILEGATE_ON_SIMT ? 145 : 168;
constexpr std::size_t kFewestOfVariant = kFewestShapes - 107;
constexpr Suite kSuites[] = {
    {"Ladder/ExactOnIntegers", integer_shape_cases, kFewestShapes, kFewestOfVariant},
    {"Ladder/WithinForwardErrorBound", uniform_shape_cases, kFewestShapes, kFewestOfVariant},
    {"Ladder/MemoryContract", memory_cases, 121, 121},
    {"Ladder/BlasSemantics", semantics_cases, 222, 222},
    {"Ladder/Configurations", configuration_cases, 11, 3},
    {"Ladder/PlanBoundaries", reach_cases, 0, 0},
    {"Ladder/FullSignificands", significand_cases, 12, 12},
    {"Ladder/Summation", summation_cases, TILEGATE_ON_SIMT ? 3 : 4, 2},
    {"Ladder/Repeatable", repeat_cases, 12, 12},
    {"Ladder/RandomSweep", random_cases, 60, 6},
};
// Suites with the same number of tests for every stage.
constexpr std::pair<const char*, std::size_t> kStageSuites[] = {
    {"Ladder/ErrorsAreValues", 20},
    {"Ladder/HugeExtents", 2},
};

// An entry of ctest, from tests/ladder/CMakeLists.txt.
struct Entry {
  std::string stage, suite, filter;
};

std::vector<Entry> entries() {
  std::ifstream file(TILEGATE_LADDER_ENTRIES);
  std::vector<Entry> all;
  for (Entry entry; file >> entry.stage >> entry.suite >> entry.filter;) all.push_back(entry);
  return all;
}

bool matches(std::string_view pattern, const char* text) {
  if (pattern.empty()) return *text == '\0';
  const std::string_view rest = pattern.substr(1);
  if (pattern.front() == '*')
    return matches(rest, text) || (*text != '\0' && matches(pattern, text + 1));
  return pattern.front() == *text && matches(rest, text + 1);
}

bool matches_any(std::string_view patterns, const char* name) {
  while (!patterns.empty()) {
    const std::string_view pattern = patterns.substr(0, patterns.find(':'));
    if (matches(pattern, name)) return true;
    patterns.remove_prefix(std::min(pattern.size() + 1, patterns.size()));
  }
  return false;
}

// GoogleTest's rule: a pattern before the '-' matches, and none after it.
bool selects(std::string_view filter, const std::string& name) {
  const std::size_t dash = filter.find('-');
  return matches_any(filter.substr(0, dash), name.c_str()) &&
         (dash == std::string_view::npos || !matches_any(filter.substr(dash + 1), name.c_str()));
}

// Calls visit(suite, test) for each test of the ladder in this binary.
template <typename Visit>
void for_each_test(Visit visit) {
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *tests.GetTestSuite(i);
    if (!std::string(suite.name()).starts_with("Ladder/")) continue;
    for (int j = 0; j < suite.total_test_count(); ++j) {
      visit(std::string(suite.name()), std::string(suite.GetTestInfo(j)->name()));
    }
  }
}

// The stage or variant of a test `<test>/<name>_<case>` or `<test>/<name>`.
const Stage* stage_of(const std::string& test) {
  const std::string of = test.substr(test.find('/') + 1) + "_";
  const Stage* found = nullptr;
  for (const CatalogueEntry& entry : catalogue()) {
    const auto consider = [&](const Stage* stage) {
      const bool fits = of.starts_with(test_name(*stage) + "_");
      if (fits && (found == nullptr || found->name.size() < stage->name.size())) found = stage;
    };
    consider(entry.stage);
    for (const Stage* variant : entry.variants) consider(variant);
  }
  return found;
}

TEST(Wiring, EveryTestIsInOneEntry) {
  const std::vector<Entry> all = entries();
  for_each_test([&](const std::string& suite, const std::string& test) {
    const std::string name = suite + "." + test;
    int found = 0;
    for (const Entry& entry : all) found += selects(entry.filter, name) ? 1 : 0;
    ASSERT_EQ(found, 1) << name;
  });
}

TEST(Wiring, EveryStageHasEverySuite) {
  std::map<std::string, std::set<std::string>> suites;
  std::set<std::string> every_suite;
  for (const Entry& entry : entries()) {
    suites[entry.stage].insert(entry.suite);
    every_suite.insert(entry.suite);
  }
  EXPECT_GE(every_suite.size(), 11U);
  EXPECT_EQ(suites.size(), catalogue().size());
  for (const CatalogueEntry& entry : catalogue()) {
    EXPECT_EQ(suites[std::string(entry.stage->name)], every_suite) << entry.stage->name;
  }
}

TEST(Wiring, EveryStageHasEveryCase) {
  std::map<std::pair<std::string, const Stage*>, std::size_t> registered;
  for_each_test([&](const std::string& suite, const std::string& test) {
    ++registered[{suite, stage_of(test)}];
  });
  std::size_t expected = 0;
  const auto expect = [&](const std::string& suite, const Stage* stage, std::size_t cases) {
    EXPECT_EQ((registered[{suite, stage}]), cases) << suite << " of " << stage->name;
    ++expected;
  };
  for (const CatalogueEntry& entry : catalogue()) {
    std::vector<const Stage*> stages = {entry.stage};
    stages.insert(stages.end(), entry.variants.begin(), entry.variants.end());
    for (const Stage* stage : stages) {
      for (const Suite& suite : kSuites) {
        const std::size_t cases = cases_of(*stage, suite.table).size();
        EXPECT_GE(cases, is_variant(*stage) ? suite.least_of_variant : suite.least)
            << suite.name << " of " << stage->name;
        expect(suite.name, stage, cases);
      }
      for (const auto& [suite, least] : kStageSuites) {
        const std::size_t of_first = registered[{suite, catalogue().front().stage}];
        EXPECT_GE(of_first, least) << suite;
        if (is_variant(*stage) && !registered.contains({suite, stage})) continue;
        expect(suite, stage, of_first);
      }
    }
  }
  EXPECT_EQ(registered.size(), expected) << "unknown suites or stages";
}

// Both orders of the executor are used: each has at least a third of the cases of a long table.
TEST(Wiring, EachOrderRunsAThirdOfTheCases) {
  for (const Suite& suite : kSuites) {
    if (suite.least < 60) continue;
    std::map<verifier::Order, std::size_t> turns;
    for (const Case& test_case : suite.table(*catalogue().front().stage)) {
      for (const verifier::Order order : orders_of(test_case)) ++turns[order];
    }
    for (const verifier::Order order : verifier::kBothOrders) {
      EXPECT_GE(3 * turns[order], suite.least) << suite.name;
    }
  }
}

TEST(Wiring, EveryFolderIsInTheCatalogue) {
  std::set<std::string> catalogued;
  for (const CatalogueEntry& entry : catalogue()) {
    catalogued.emplace(entry.folder);
    const bool has_variants = entry.sources.find("variants.cu") != std::string_view::npos;
    EXPECT_EQ(!entry.variants.empty(), has_variants) << entry.stage->name;
  }
  const std::filesystem::path root(TILEGATE_SOURCE_DIR);
  for (const auto& item : std::filesystem::directory_iterator(root / "kernels")) {
    const std::string name = item.path().filename().string();
    if (std::isdigit(static_cast<unsigned char>(name.front())) == 0) continue;
    EXPECT_TRUE(catalogued.contains("kernels/" + name)) << "no rung is made of kernels/" << name;
  }
}

}  // namespace
}  // namespace tilegate::ladder
