// The confusion matrix of the hazard detector: every kernel under three schedules, compared with
// the tables of README.md. TILEGATE_UPDATE_GOLDEN=1 rewrites them.
#include "races.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <ostream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>
#include <tilegate/device/cpu/executor.hpp>

namespace tilegate::races {

static void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.name; }

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
     "deadlock: |divergent |wait on the wrong phase|is one more than the \\d+ arrivals|expects "
     "\\d+ bytes|"
     "named_barrier.* needs"},
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

// What is reported under the schedules.
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

std::string line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

// What is reported of all kernels, by class, by kernel, and why some of it is wrong.
struct Tables {
  std::string matrix, wrong, kernels;
};

Tables tables() {
  struct Counts {
    int found = 0, missed = 0, silent = 0, alarms = 0;
    std::vector<std::string> cells(const std::string& name) const {
      return {name, std::to_string(found), std::to_string(missed), std::to_string(silent),
              std::to_string(alarms)};
    }
  };
  std::vector<std::pair<std::string, Counts>> groups;
  Counts all;
  Tables tables;
  std::set<Status (*)(float*)> seen;
  for (const Pair& pair : all_pairs()) {
    if (groups.empty() || groups.back().first != pair.group) groups.push_back({pair.group, {}});
    const auto add = [&](Status (*kernel)(float*), bool is_racy) {
      const Report report = run(kernel);
      const bool is_reported = is_racy ? report.schedules == kSchedules : report.schedules > 0;
      int Counts::* const count = is_racy ? (is_reported ? &Counts::found : &Counts::missed)
                                          : (is_reported ? &Counts::alarms : &Counts::silent);
      ++(groups.back().second.*count), ++(all.*count);
      std::string found;
      for (const Hazard hazard : report.hazards) {
        found += (found.empty() ? "" : ", ") + std::string(name_of(hazard));
      }
      if (report.schedules == 0) found = "nothing";
      const std::string name = pair.name;
      const std::string shown = is_racy ? name : name.substr(0, name.find('/'));
      tables.kernels += line({"`" + shown + "`", pair.group, is_racy ? "racy" : "clean",
                              is_racy ? name_of(pair.hazard) : "nothing", found});
    };
    add(pair.racy, true);
    if (seen.insert(pair.clean).second) add(pair.clean, false);
    if (pair.wrong != nullptr)
      tables.wrong += line({"`" + std::string(pair.name) + "`", pair.wrong});
  }
  for (const auto& [name, counts] : groups) tables.matrix += line(counts.cells(name));
  tables.matrix += line(all.cells("all"));
  return tables;
}

class Races : public testing::TestWithParam<Pair> {};

TEST_P(Races, AreReportedAndCleanTwinsAreNot) {
  const Pair& pair = GetParam();
  const Report racy = run(pair.racy), clean = run(pair.clean);
  const bool is_right = racy.schedules == kSchedules && clean.schedules == 0;
  EXPECT_EQ(is_right, pair.wrong == nullptr) << "racy:\n"
                                             << racy.messages << "clean:\n"
                                             << clean.messages;
  if (racy.schedules > 0) EXPECT_TRUE(racy.hazards.contains(pair.hazard)) << racy.messages;
}

INSTANTIATE_TEST_SUITE_P(Detector, Races, testing::ValuesIn(all_pairs()), [](const auto& tested) {
  return std::regex_replace(std::string(tested.param.name), std::regex("/"), "_");
});

// `page` with `text` between the lines <!-- name:begin --> and <!-- name:end -->.
std::string replaced(const std::string& page, const std::string& name, const std::string& text) {
  const std::string begin = "<!-- " + name + ":begin -->\n", end = "<!-- " + name + ":end -->";
  const std::size_t from = page.find(begin), to = page.find(end);
  if (from == std::string::npos || to == std::string::npos) {
    ADD_FAILURE() << "the page has no lines " << begin << " and " << end;
    return page;
  }
  return page.substr(0, from + begin.size()) + text + page.substr(to);
}

TEST(ConfusionMatrix, IsTheCommittedOne) {
  const std::string path = TILEGATE_RACES_PAGE;
  std::ifstream file(path);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const auto [matrix, wrong, kernels] = tables();
  std::string expected = replaced(page, "matrix",
                                  "| class | racy: reported | racy: missed | clean: silent | "
                                  "clean: false alarm |\n|---|---:|---:|---:|---:|\n" +
                                      matrix);
  expected = replaced(expected, "wrong", "| kernel | why |\n|---|---|\n" + wrong);
  expected = replaced(
      expected, "kernels",
      "| kernel | class | label | expected | reported |\n|---|---|---|---|---|\n" + kernels);
  if (std::getenv("TILEGATE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << expected;
  } else {
    EXPECT_EQ(page, expected) << "TILEGATE_UPDATE_GOLDEN=1 rewrites " << path;
  }
}

}  // namespace
}  // namespace tilegate::races
