// Reads the cases that the search has found; tests/reach/README.md describes their format.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"
#include "thorough.hpp"

namespace tilegate::ladder {
namespace {

// Multiply-adds.
constexpr double kMostByDay = 2e5, kMostWatchedByDay = 4e4;

Case case_of(const std::string& line, std::istringstream& fields, const NamedProblem& named) {
  Case found{.problem = named.problem, .configuration = named.configuration};
  for (std::string field; fields >> field;) {
    const std::size_t digits = field.find_first_of("0123456789");
    const std::string key = field.substr(0, digits);
    const int value = std::atoi(field.c_str() + (digits == std::string::npos ? 0 : digits));
    if (key == "sm") {
      found.multiprocessors = value;
    } else if (key == "cc") {
      found.compute_capability = value;
    } else if (key == "decides") {
      found.decision = value;
    } else {
      throw std::runtime_error(TILEGATE_REACH_CASES ": no field '" + field + "': " + line);
    }
  }
  const auto is_whole = [](float factor) { return std::trunc(factor) == factor; };
  const bool exact = is_whole(found.problem.alpha) && is_whole(found.problem.beta);
  found.inputs = exact && found.decision == 0 ? Inputs::kIntegers : Inputs::kUniform;
  found.plants = plants_for(named.stage, found.decision);
  return found;
}

// By day keeps only cases that are fast on the executor. It runs whole tiles, so rows and columns
// beyond a small C count, too.
std::vector<Case> quick(std::vector<Case> cases, double most) {
  constexpr std::int64_t kOthers = 16;
  if (is_thorough()) return cases;
  std::erase_if(cases, [&](const Case& test_case) {
    const auto& [m, n, k] = test_case.problem.shape;
    const std::int64_t outputs = (m + kOthers) * (n + kOthers) * test_case.problem.batch;
    return static_cast<double>(outputs) * static_cast<double>(k) > most;
  });
  return cases;
}

}  // namespace

std::vector<Case> marked_reach_cases(const Stage& stage, char mark) {
  std::ifstream file(TILEGATE_REACH_CASES);
  CaseList list;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream fields(line);
    std::string marks, name;
    fields >> marks >> name;
    NamedProblem named;
    if (const Status status = parse_named_problem(name, &named); !status.ok()) {
      throw std::runtime_error(TILEGATE_REACH_CASES ": " + status.message() + ": " + line);
    }
    if (named.stage != stage.name) continue;
    if (marks.find(mark) == std::string::npos) continue;
    list.add(case_of(line, fields, named));
  }
  return list.take();
}

std::vector<Case> reach_cases(const Stage& stage) {
  return quick(marked_reach_cases(stage, 'v'), kMostByDay);
}

std::vector<Case> watched_reach_cases(const Stage& stage) {
  return quick(marked_reach_cases(stage, 'w'), kMostWatchedByDay);
}

}  // namespace tilegate::ladder
