#include "reach/table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include <tilegate/catalogue.hpp>

#include "counters/path_cases.hpp"
#include "ladder/cases.hpp"
#include "ladder/stage_test.hpp"

namespace tilegate::reach {
namespace {

constexpr int kFp32 = 32, kFp64 = 64;  // of Choice::decides_on_device
constexpr char kReasons[] = TILEGATE_SOURCE_DIR "/tests/reach/unreachable.txt";
// Of starting a case.
constexpr double kCaseCost = 4e6;

// '*' stands for any text.
bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    return matches(pattern.substr(1), text) || (!text.empty() && matches(pattern, text.substr(1)));
  }
  return !text.empty() && pattern.front() == text.front() &&
         matches(pattern.substr(1), text.substr(1));
}

bool selects(std::string_view filter, std::string_view name) {
  while (!filter.empty()) {
    const std::size_t end = std::min(filter.find(':'), filter.size());
    if (matches(filter.substr(0, end), name)) return true;
    filter.remove_prefix(std::min(end + 1, filter.size()));
  }
  return false;
}

// The filter of the stage's entry `watched.<name>`.
std::string watched_filter(const Stage& stage) {
  std::ifstream file(TILEGATE_WATCHED_ENTRIES);
  for (std::string name, filter; file >> name >> filter;) {
    if (name == stage.name) return filter;
  }
  return "";
}

// What the device comes to, as far as the case says.
int decision_of(const Stage& stage, const Case& test_case, const Choice& choice) {
  if (test_case.decision != 0) return test_case.decision;
  const bool has_no_parts = std::ranges::any_of(test_case.plants, [](const verifier::Plant& plant) {
    return plant.operand != Operand::kC && !std::isfinite(plant.value);
  });
  // Each tile of Bf16x6 decides by a sample, which may miss the element.
  if (!has_no_parts || stage.name == "Bf16x6") return 0;
  return std::ranges::count(decisions_of(choice), kFp64) > 0 ? kFp64 : kFp32;
}

// Visits each boundary that a case of the suites reaches.
template <typename VisitBoundary>
void visit_reached(const Stage& stage, const Case& test_case, bool all, VisitBoundary visit) {
  for_each_choice(stage, test_case, all,
                  [&](const Case&, const Problem& problem, const Choice& choice) {
                    const bool borrowed = ladder::is_borrowed(choice.configuration);
                    for (const Boundary& boundary :
                         reached(stage, problem, choice, decision_of(stage, test_case, choice))) {
                      if (!borrowed || boundary.kernel.empty()) visit(boundary);
                    }
                  });
}

void add_possible(const Stage& stage, const Case& test_case, bool all, Boundaries& known) {
  for_each_choice(stage, test_case, all,
                  [&](const Case&, const Problem& problem, const Choice& choice) {
                    if (ladder::is_borrowed(choice.configuration)) return;
                    for (const int decision : decisions_of(choice)) {
                      for (const Boundary& boundary : possible(stage, problem, choice, decision)) {
                        known[boundary];
                      }
                    }
                  });
}

// Calls visit(suite, name, case) for the cases of the suites that are run each time, but for those
// of the search.
template <typename VisitCase>
void for_each_case(const Stage& stage, VisitCase visit) {
  std::vector<ladder::SuiteTable> tables = ladder::suite_tables();
  tables.push_back({"Paths", ladder::path_cases});
  for (const auto& [suite, table] : tables) {
    if (suite == "PlanBoundaries" || suite == "RandomSweep" || suite == "Summation") continue;
    for (const ladder::StageCase& stage_case : ladder::cases_of(stage, table)) {
      if (ladder::is_long(stage_case.test_case)) continue;
      const std::string name = "Ladder/" + suite + "./" + ladder::name_case({stage_case, 0});
      visit(suite, name, stage_case.test_case);
    }
  }
}

// What the suites reach; `with_found`: with the cases of the search.
void add_suites(const Stage& stage, bool with_found, Boundaries& known) {
  const std::string filter = watched_filter(stage);
  for_each_case(stage,
                [&](const std::string& suite, const std::string& name, const Case& test_case) {
                  const bool all = suite == "Configurations", is_path = suite == "Paths";
                  const bool watched = is_path || selects(filter, name);
                  add_possible(stage, test_case, all, known);
                  visit_reached(stage, test_case, all, [&](const Boundary& boundary) {
                    Known& of = known[boundary];
                    of.by_value = of.by_value || !is_path;
                    of.watched = of.watched || watched;
                  });
                });
  if (!with_found) return;
  for (const bool watched : {false, true}) {
    for (const Case& test_case : ladder::marked_reach_cases(stage, watched ? 'w' : 'v')) {
      add_possible(stage, test_case, false, known);
      visit_reached(stage, test_case, false, [&](const Boundary& boundary) {
        Known& of = known[boundary];
        (watched ? of.watched : of.by_value) = true;
      });
    }
  }
}

std::string line_of(const Stage& stage, const Case& call) {
  std::string line = to_string(NamedProblem{.stage = std::string(stage.name),
                                            .configuration = call.configuration,
                                            .problem = call.problem});
  line += " sm" + std::to_string(call.multiprocessors);
  line += " cc" + std::to_string(call.compute_capability);
  if (call.decision != 0) line += " decides" + std::to_string(call.decision);
  return line;
}

// A call that the search has found.
struct Candidate {
  std::string line;
  double cost;
  std::vector<Boundary> boundaries;
};

// The cheapest calls for each boundary, among which the cases are chosen.
class Pool {
 public:
  void add(const Candidate& candidate) {
    std::shared_ptr<Candidate> kept;
    const double price =
        (candidate.cost + kCaseCost) / static_cast<double>(candidate.boundaries.size());
    for (const Boundary& boundary : candidate.boundaries) {
      auto& cheapest = of_[boundary];
      if (cheapest.size() >= kKept && cheapest.rbegin()->first <= price) continue;
      if (!kept) kept = std::make_shared<Candidate>(candidate);
      cheapest.emplace(price, kept);
      if (cheapest.size() > kKept) cheapest.erase(std::prev(cheapest.end()));
    }
  }

  // Greedily those with most of what is open for their cost.
  std::vector<std::shared_ptr<Candidate>> choose(std::set<Boundary> open) const {
    std::set<std::shared_ptr<Candidate>> all;
    for (const Boundary& boundary : open) {
      const auto at = of_.find(boundary);
      if (at == of_.end()) continue;
      for (const auto& [price, candidate] : at->second) all.insert(candidate);
    }
    std::vector<std::shared_ptr<Candidate>> chosen, left(all.begin(), all.end());
    std::ranges::sort(left, {}, [](const auto& c) { return std::pair(c->cost, c->line); });
    while (!open.empty()) {
      const auto worth = [&](const std::shared_ptr<Candidate>& candidate) {
        const auto count = std::ranges::count_if(
            candidate->boundaries,
            [&](const Boundary& boundary) { return open.contains(boundary); });
        return static_cast<double>(count) / (candidate->cost + kCaseCost);
      };
      const auto best = std::ranges::max_element(left, {}, worth);
      if (best == left.end() || worth(*best) == 0.0) break;
      for (const Boundary& boundary : (*best)->boundaries) open.erase(boundary);
      chosen.push_back(*best);
      left.erase(best);
    }
    return chosen;
  }

 private:
  static constexpr std::size_t kKept = 12;
  std::map<Boundary, std::multimap<double, std::shared_ptr<Candidate>>> of_;
};

}  // namespace

std::vector<const Stage*> rungs() {
  std::vector<const Stage*> stages;
  for (const CatalogueEntry& entry : catalogue()) {
    if (!entry.yardstick && !entry.external) stages.push_back(entry.stage);
  }
  return stages;
}

Boundaries boundaries_of(const Stage& stage, int draws) {
  Boundaries known;
  add_suites(stage, true, known);
  search(stage, draws, [&](const Case& call, const Problem& problem, const Choice& choice) {
    for (const Boundary& boundary : possible(stage, problem, choice, call.decision)) {
      known[boundary];
    }
    for (const Boundary& boundary : reached(stage, problem, choice, call.decision)) {
      known[boundary].found = true;
    }
  });
  for (auto& [boundary, of] : known) of.reason = reason_of(stage, boundary);
  return known;
}

std::string reason_of(const Stage& stage, const Boundary& boundary) {
  static const std::vector<std::array<std::string, 5>> kAll = [] {
    std::vector<std::array<std::string, 5>> all;
    std::ifstream file(kReasons);
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line.front() == '#') continue;
      std::array<std::string, 5> fields;
      std::istringstream in(line);
      for (std::string& field : fields) {
        std::getline(in >> std::ws, field, '|');
        field.erase(field.find_last_not_of(' ') + 1);
      }
      all.push_back(fields);
    }
    return all;
  }();
  for (const auto& [rung, kernel, parameter, value, reason] : kAll) {
    if (matches(rung, stage.name) && matches(kernel, boundary.kernel) &&
        matches(parameter, boundary.parameter) && matches(value, boundary.value)) {
      return reason;
    }
  }
  return "";
}

std::vector<std::string> find_cases(const Stage& stage, int draws) {
  Boundaries known;
  add_suites(stage, false, known);
  Pool pool;
  std::set<Boundary> found;
  const Visit consider = [&](const Case& call, const Problem& problem, const Choice& choice) {
    std::vector<Boundary> open;
    for (Boundary& boundary : reached(stage, problem, choice, call.decision)) {
      const auto at = known.find(boundary);
      if (at != known.end() && at->second.by_value && at->second.watched) continue;
      found.insert(boundary);
      open.push_back(std::move(boundary));
    }
    if (!open.empty()) {
      pool.add({line_of(stage, call), cost_of(problem, choice), std::move(open)});
    }
  };
  search(stage, draws, consider);
  // Cases of today, which the search may not find again.
  for (const char mark : {'v', 'w'}) {
    for (const Case& test_case : ladder::marked_reach_cases(stage, mark)) {
      visit_decided(stage,
                    {.problem = test_case.problem,
                     .multiprocessors = device_of(test_case).multiprocessors,
                     .compute_capability = device_of(test_case).compute_capability},
                    consider);
    }
  }
  // What one of the suites has, the other may need.
  for_each_case(stage, [&](const std::string&, const std::string&, const Case& test_case) {
    if (!std::isfinite(test_case.problem.alpha) || !std::isfinite(test_case.problem.beta)) return;
    visit_decided(stage,
                  {.problem = test_case.problem,
                   .multiprocessors = device_of(test_case).multiprocessors,
                   .compute_capability = 90},
                  consider);
  });
  std::map<std::string, std::string> marks;  // of lines
  for (const bool watched : {false, true}) {
    std::set<Boundary> open;
    for (const Boundary& boundary : found) {
      const Known& of = known[boundary];
      if (!(watched ? of.watched : of.by_value)) open.insert(boundary);
    }
    for (const auto& candidate : pool.choose(std::move(open))) {
      marks[candidate->line] += watched ? 'w' : 'v';
    }
  }
  std::vector<std::string> lines;
  for (const auto& [line, mark] : marks) lines.push_back(mark + " " + line);
  return lines;
}

std::vector<std::string> rows_of(const Stage& stage, const Boundaries& known) {
  struct Row {
    std::vector<std::string> values;
    int all = 0, by_value = 0, watched = 0;
    std::map<std::string, int> reasons;
  };
  std::map<std::string, Row> rows;
  for (const auto& [boundary, of] : known) {
    Row& row = rows[boundary.parameter];
    if (std::ranges::find(row.values, boundary.value) == row.values.end()) {
      row.values.push_back(boundary.value);
    }
    ++row.all;
    row.by_value += of.by_value ? 1 : 0;
    row.watched += of.watched ? 1 : 0;
    if (!of.reason.empty()) ++row.reasons[of.reason];
  }
  std::vector<std::string> lines;
  for (auto& [parameter, row] : rows) {
    std::ranges::sort(row.values);
    std::string values, reasons;
    for (const std::string& value : row.values) values += (values.empty() ? "" : ", ") + value;
    for (const auto& [reason, count] : row.reasons) {
      reasons += (reasons.empty() ? "" : "; ") + std::to_string(count) + ": " + reason;
    }
    lines.push_back("| " + std::string(stage.name) + " | " + parameter + " | " + values + " | " +
                    std::to_string(row.all) + " | " + std::to_string(row.by_value) + " | " +
                    std::to_string(row.watched) + " | " + reasons + " |");
  }
  return lines;
}

}  // namespace tilegate::reach
