// That the cases of the suites reach every boundary of every plan, by value and under the race
// detector, and that the committed cases and the table are those of the code.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ladder/stage_test.hpp"
#include "reach/table.hpp"

namespace tilegate::reach {
namespace {

constexpr char kCases[] = TILEGATE_SOURCE_DIR "/tests/reach/cases.txt";
constexpr char kPage[] = TILEGATE_SOURCE_DIR "/tests/reach/README.md";
constexpr char kEnd[] = "<!-- reach:end -->";
constexpr int kFewDraws = 20, kDraws = 20000;
constexpr int kMostShown = 12;

bool updates() { return std::getenv("TILEGATE_UPDATE_GOLDEN") != nullptr; }

std::vector<std::string> lines_of(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Replaces the rung's lines; new ones come before the first line that is `before`, or last.
void replace_lines(const char* path, const std::vector<std::string>& added, const char* before,
                   bool (*is_of)(const std::string& line, const Stage& stage), const Stage& stage) {
  std::vector<std::string> lines = lines_of(path), kept;
  std::size_t at = std::string::npos;
  for (const std::string& line : lines) {
    if (is_of(line, stage)) {
      if (at == std::string::npos) at = kept.size();
    } else {
      kept.push_back(line);
    }
  }
  if (at == std::string::npos) {
    at = static_cast<std::size_t>(std::find(kept.begin(), kept.end(), before) - kept.begin());
  }
  kept.insert(kept.begin() + static_cast<std::ptrdiff_t>(at), added.begin(), added.end());
  std::ofstream out(path);
  for (const std::string& line : kept) out << line << '\n';
}

// "<marks> <Rung>@<configuration>/<problem> …"
bool is_case_of(const std::string& line, const Stage& stage) {
  const std::size_t begin = line.find(' ') + 1;
  return line.front() != '#' &&
         line.substr(begin, line.find_first_of("@/", begin) - begin) == stage.name;
}

bool is_row_of(const std::string& line, const Stage& stage) {
  return line.starts_with("| " + std::string(stage.name) + " |");
}

std::string to_string(const Boundary& boundary) {
  const std::string kernel = boundary.kernel.empty() ? "" : "kernel '" + boundary.kernel + "', ";
  return kernel + boundary.parameter + ": " + boundary.value;
}

// What is wrong with the boundary, and what to do; empty: nothing.
std::string fault_of(const Known& known) {
  const bool is_reached = known.by_value && known.watched;
  const bool is_reachable = known.found || known.by_value || known.watched;
  if (!known.reason.empty()) {
    if (!known.found && !is_reached) return "";
    return "tests/reach/unreachable.txt says '" + known.reason +
           "', and there is a problem that reaches it: take the line away or make it narrower";
  }
  if (is_reached) return "";
  if (!is_reachable) {
    return "neither a case nor the search reaches it; say why in tests/reach/unreachable.txt, or "
           "let the search draw such problems";
  }
  return std::string("no case reaches it") + (known.by_value ? " under the race detector" : "");
}

class RungTest : public testing::TestWithParam<const Stage*> {
 protected:
  const Stage& stage() const { return *GetParam(); }
  std::string update_command() const {
    return "TILEGATE_UPDATE_GOLDEN=1 build/cpu/tests/reach_test --gtest_filter='*/" +
           std::string(stage().name) + "'";
  }
};

// A plan with a workspace or a choice of kernels depends on more than the tile sizes.
TEST_P(RungTest, PlansStateTheirKernels) {
  search(stage(), kFewDraws, [&](const Case& call, const Problem&, const Choice& choice) {
    const bool is_simple = choice.configuration.empty() && choice.workspace_bytes == 0;
    if (is_simple || choice.kernels || HasFailure()) return;
    ADD_FAILURE()
        << stage().name << " has configurations or a workspace, and its plan for "
        << tilegate::to_string(call.problem)
        << " states no kernels: set Choice::kernels (kernels/include/tilegate/"
           "parameter.hpp) where the plan is made; tests/reach/README.md says what to list";
  });
}

TEST_P(RungTest, BoundariesAreReached) {
  Boundaries known = boundaries_of(stage(), kFewDraws);
  const auto is_open = [](const auto& pair) { return !fault_of(pair.second).empty(); };
  if (updates() && std::ranges::any_of(known, is_open)) {
    replace_lines(kCases, find_cases(stage(), kDraws), "", is_case_of, stage());
    known = boundaries_of(stage(), kDraws);
  }
  int faults = 0;
  std::string text;
  for (const auto& [boundary, of] : known) {
    const std::string fault = fault_of(of);
    if (fault.empty() || ++faults > kMostShown) continue;
    text += "\n  " + to_string(boundary) + ": " + fault;
  }
  EXPECT_EQ(faults, 0) << "open boundaries of " << stage().name << ":" << text
                       << "\n  To search for cases: " << update_command()
                       << "; then build and test again, and commit tests/reach";

  const std::vector<std::string> rows = rows_of(stage(), known);
  if (updates()) replace_lines(kPage, rows, kEnd, is_row_of, stage());
  std::vector<std::string> committed;
  for (const std::string& line : lines_of(kPage)) {
    if (is_row_of(line, stage())) committed.push_back(line);
  }
  EXPECT_EQ(rows, committed) << "the table in tests/reach/README.md is not that of " << stage().name
                             << "; to write it: " << update_command();
}

INSTANTIATE_TEST_SUITE_P(Reach, RungTest, testing::ValuesIn(rungs()), ladder::name_stage);

}  // namespace
}  // namespace tilegate::reach
