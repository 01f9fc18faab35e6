// The confusion matrix of the hazard detector: every kernel under three schedules, compared with the
// tables of README.md. TILEGATE_UPDATE_GOLDEN=1 rewrites them.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>
#include <tilegate/device/cpu/executor.hpp>

#include "races.hpp"

namespace tilegate::races {
namespace {

using simt::Schedule;

struct Wording {
  Hazard hazard;
  const char* name;
  const char* message;  // ECMAScript
};

// The first that matches.
constexpr Wording kWordings[] = {
    {Hazard::kRace, "race", "race at "},
    {Hazard::kUnwritten, "unwritten word",
     "no thread of the block has written|nothing in the block has written"},
    {Hazard::kPendingCopy, "pending cp.async", "before the wait of the async copy"},
    {Hazard::kPendingBulk, "pending bulk copy", "before the barrier_wait for the bulk copy"},
    {Hazard::kPendingRead, "pending read", "still reads: its wait does not come before"},
    {Hazard::kUnfenced, "missing fence", "did not fence_async_proxy"},
    {Hazard::kAccumulators, "accumulators", "of acc\\[\\d+\\] at .* before the warpgroup_wait"},
    {Hazard::kEndedPeer, "ended block", "which (may have|has) ended"},
    {Hazard::kSynchronizing, "barrier misused",
     "deadlock: |divergent |wait on the wrong phase|is one more than the \\d+ arrivals|expects \\d+ bytes|"
     "named_barrier.* is of"},
    {Hazard::kBounds, "out of bounds", "outside every "},
};

const char* name_of(Hazard hazard) {
  return std::find_if(std::begin(kWordings), std::end(kWordings),
                      [&](const Wording& wording) { return wording.hazard == hazard; })
      ->name;
}

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs(thread_pairs().begin(), thread_pairs().end());
  pairs.insert(pairs.end(), async_pairs().begin(), async_pairs().end());
  return pairs;
}

// What is reported, under each schedule; an empty set if nothing is under at least one of them.
struct Report {
  std::set<Hazard> hazards;
  int schedules = 0;  // in which something is reported
  std::string messages;
};

constexpr int kSchedules = 3;

Report run(Status (*kernel)(float* memory)) {
  Report report;
  for (const Schedule schedule :
       {Schedule::forward(), Schedule::reverse(), Schedule::shuffled(7)}) {
    const device::Buffer memory(kWords * sizeof(float));
    auto* const words = reinterpret_cast<float*>(memory.data());
    for (std::size_t i = 0; i < kWords; ++i) words[i] = static_cast<float>(i);
    simt::executor::set_schedule(schedule);
    const Status status = kernel(words);
    simt::executor::set_schedule(Schedule::forward());
    if (status.ok()) continue;
    ++report.schedules;
    report.messages += status.message() + '\n';
    for (const Wording& wording : kWordings) {
      if (!std::regex_search(status.message(), std::regex(wording.message))) continue;
      report.hazards.insert(wording.hazard);
      break;
    }
  }
  return report;
}

struct Tables {
  std::string matrix, kernels;
};

Tables tables() {
  struct Counts {
    int found = 0, missed = 0, silent = 0, false_alarms = 0;
  };
  std::map<std::string, Counts> groups;
  std::vector<std::string> order;
  Tables tables;
  Counts all;
  for (const Pair& pair : all_pairs()) {
    if (!groups.contains(pair.group)) order.push_back(pair.group);
    Counts& counts = groups[pair.group];
    const auto count = [&](int Counts::* what) { ++(counts.*what), ++(all.*what); };
    const auto row = [&](const char* label, const char* hazard, const Report& report) {
      std::string kinds;
      for (const Hazard found : report.hazards) {
        kinds += std::string(kinds.empty() ? "" : ", ") + name_of(found);
      }
      if (kinds.empty()) kinds = report.schedules == 0 ? "nothing" : "another error";
      if (report.schedules != 0 && report.schedules != kSchedules) {
        kinds += " (" + std::to_string(report.schedules) + " of 3 schedules)";
      }
      tables.kernels += "| `" + std::string(pair.name) + "` | " + pair.group + " | " + label +
                        " | " + hazard + " | " + kinds + " |\n";
    };
    const Report racy = run(pair.racy);
    count(racy.schedules == kSchedules ? &Counts::found : &Counts::missed);
    row("racy", name_of(pair.hazard), racy);
    if (pair.clean == nullptr) continue;
    const Report clean = run(pair.clean);
    count(clean.schedules == 0 ? &Counts::silent : &Counts::false_alarms);
    row("clean", "nothing", clean);
  }
  const auto line = [](const std::string& name, const Counts& c) {
    return "| " + name + " | " + std::to_string(c.found) + " | " + std::to_string(c.missed) + " | " +
           std::to_string(c.silent) + " | " + std::to_string(c.false_alarms) + " |\n";
  };
  for (const std::string& group : order) tables.matrix += line(group, groups[group]);
  tables.matrix += line("all", all);
  return tables;
}

class Races : public testing::TestWithParam<Pair> {};

TEST_P(Races, AreReportedUnderEverySchedule) {
  const Pair& pair = GetParam();
  const Report report = run(pair.racy);
  if (pair.missed != nullptr) {
    EXPECT_LT(report.schedules, kSchedules) << "the reason is out of date: " << pair.missed;
    return;
  }
  EXPECT_EQ(report.schedules, kSchedules) << report.messages;
  EXPECT_TRUE(report.hazards.contains(pair.hazard)) << report.messages;
}

TEST_P(Races, AreNotReportedInTheCleanTwin) {
  if (GetParam().clean == nullptr) return;
  const Report report = run(GetParam().clean);
  EXPECT_EQ(report.schedules, 0) << report.messages;
}

INSTANTIATE_TEST_SUITE_P(Detector, Races, testing::ValuesIn(all_pairs()), [](const auto& tested) {
  return std::regex_replace(std::string(tested.param.name), std::regex("/"), "_");
});

// `page` with `text` between the lines <!-- name:begin --> and <!-- name:end -->.
std::string replaced(const std::string& page, const std::string& name, const std::string& text) {
  const std::string begin = "<!-- " + name + ":begin -->\n", end = "<!-- " + name + ":end -->";
  const std::size_t from = page.find(begin), to = page.find(end);
  if (from == std::string::npos || to == std::string::npos) return page;
  return page.substr(0, from + begin.size()) + text + page.substr(to);
}

TEST(ConfusionMatrix, IsTheCommittedOne) {
  const std::string path = TILEGATE_RACES_PAGE;
  std::ifstream file(path);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const Tables now = tables();
  std::string missed;
  for (const Pair& pair : all_pairs()) {
    if (pair.missed != nullptr) missed += "| `" + std::string(pair.name) + "` | " + pair.missed + " |\n";
  }
  std::string expected = replaced(
      page, "matrix",
      "| class | racy: reported | racy: missed | clean: silent | clean: false alarm |\n"
      "|---|---:|---:|---:|---:|\n" + now.matrix);
  expected = replaced(expected, "missed", "| kernel | why its race is not reported |\n|---|---|\n" + missed);
  expected = replaced(expected, "kernels",
                      "| kernel | class | twin | expected | reported |\n|---|---|---|---|---|\n" +
                          now.kernels);
  if (std::getenv("TILEGATE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << expected;
  } else {
    EXPECT_EQ(page, expected) << "TILEGATE_UPDATE_GOLDEN=1 rewrites " << path;
  }
}

}  // namespace
}  // namespace tilegate::races
