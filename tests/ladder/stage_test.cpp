#include "ladder/stage_test.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <ostream>
#include <set>
#include <string_view>
#include <utility>

#include <tilegate/catalogue.hpp>
#include <tilegate/device.hpp>

#include "skips.hpp"
#include "thorough.hpp"

namespace tilegate::ladder {
namespace {

constexpr std::int64_t kMostRounded = 1 << 20;  // elements of C; more take seconds on the executor

// Whether the pattern up to its first wildcard is a prefix of the name, or the name a prefix of it.
bool may_match(std::string_view pattern, std::string_view name) {
  const std::string_view literal = pattern.substr(0, pattern.find_first_of("*?"));
  return literal.starts_with(name) || name.starts_with(literal);
}

// Whether one of the filter's patterns may select a test of the stage in this suite. Names of tests
// are `Ladder/<suite>.<test>/<name of the stage>_<case>`.
bool may_be_selected(const std::string& suite, const Stage& stage) {
  const std::string filter = GTEST_FLAG_GET(filter);
  const std::string begin = "Ladder/" + suite + ".";
  const std::string name = test_name(stage) + "_";
  std::string_view patterns = std::string_view(filter).substr(0, filter.find('-'));
  if (patterns.empty()) return true;
  while (!patterns.empty()) {
    const std::size_t end = std::min(patterns.find(':'), patterns.size());
    const std::string_view pattern = patterns.substr(0, end);
    patterns.remove_prefix(std::min(end + 1, patterns.size()));
    const std::size_t slash = pattern.rfind('/');  // the one after the test
    if (slash == std::string_view::npos || slash < pattern.find('.')) return true;
    if (may_match(pattern, begin) && may_match(pattern.substr(slash + 1), name)) return true;
  }
  return false;
}

}  // namespace

std::string test_name(const Stage& stage) {
  std::string name(stage.name);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

std::string cannot_run(const Stage& stage) {
  return check_device(stage.requirements, device::current()).message();
}

std::string record_cannot_run(const Stage& stage) {
  const std::string why = cannot_run(stage);
  if (!why.empty()) testing::Test::RecordProperty(kNotOnThisDevice, why);
  return why;
}

void PrintTo(const StageCase& stage_case, std::ostream* out) {
  *out << stage_case.stage->name << " " << name_of(stage_case.test_case);
}

std::string name_case(const testing::TestParamInfo<StageCase>& info) {
  const std::string& instead_of = info.param.instead_of;
  return test_name(*info.param.stage) + "_" + (instead_of.empty() ? "" : instead_of + "_as_") +
         name_of(info.param.test_case);
}

std::string name_stage(const testing::TestParamInfo<const Stage*>& info) {
  return test_name(*info.param);
}

std::string record_not_applicable(const Status& taken) {
  if (!taken.ok()) testing::Test::RecordProperty(kNotApplicable, taken.message());
  return taken.message();
}

std::vector<StageCase> cases_of(const Stage& stage, Table table) {
  const Restrictions& restrictions = stage.restrictions;
  const auto up = [](std::int64_t size, std::int64_t unit) {
    return (size + unit - 1) / unit * unit;
  };
  std::vector<StageCase> cases;
  std::set<std::string> rounded_names;
  for (verifier::Case& test_case : table(stage)) {
    const Problem given = test_case.problem;
    cases.push_back({&stage, test_case});
    if (given.is_empty() || restrictions.check(given).ok()) continue;
    const auto& [m, n, k] = given.shape;
    const auto& [whole_m, whole_n, whole_k] = restrictions.multiple_of;
    Problem& problem = test_case.problem;
    problem = Problem::dense({up(m, whole_m), up(n, whole_n), up(k, whole_k)}, given.op_a,
                             given.op_b, given.batch);
    problem.alpha = given.alpha;
    problem.beta = given.beta;
    const bool slow = TILEGATE_ON_SIMT && problem.shape.m * problem.shape.n > kMostRounded;
    const std::string instead_of = to_string(Problem::dense(given.shape));
    if (slow || !restrictions.check(problem).ok() ||
        !rounded_names.insert(instead_of + name_of(test_case)).second) {
      continue;
    }
    cases.push_back({&stage, std::move(test_case), instead_of});
  }
  return cases;
}

std::vector<SuiteTable>& mutable_suite_tables() {
  static std::vector<SuiteTable> tables;
  return tables;
}

const std::vector<SuiteTable>& suite_tables() { return mutable_suite_tables(); }

std::vector<StageCase> for_every_stage(const std::string& suite, Table table) {
  mutable_suite_tables().push_back({suite, table});
  std::vector<StageCase> all;
  for (const Stage* stage : catalogue_stages()) {
    if (!may_be_selected(suite, *stage)) continue;
    std::vector<StageCase> cases = cases_of(*stage, table);
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  return all;
}

std::span<const verifier::Order> orders_of(const verifier::Case& test_case) {
  const std::span<const verifier::Order> both = verifier::kBothOrders;
  if (!TILEGATE_ON_SIMT || is_thorough()) return both;
  const std::string name = name_of(test_case);
  const unsigned turn = std::accumulate(name.begin(), name.end(), 0U);
  return both.subspan(turn % both.size(), 1);
}

void StageCaseTest::SetUp() {
  if (const std::string why = record_cannot_run(stage()); !why.empty()) GTEST_SKIP() << why;
  const Problem& problem = test_case().problem;
  const Status taken = problem.is_empty() ? Status() : stage().restrictions.check(problem);
  if (!taken.ok()) {
    EXPECT_EQ(stage().plan(problem).status().code(), Status::Code::kUnsupported);
    GTEST_SKIP() << record_not_applicable(taken);
  }
}

void StageCaseTest::expect_right(const verifier::Case& test_case,
                                 std::span<const verifier::Order> orders) const {
  const verifier::Verdict verdict = verify(stage(), test_case, orders);
  if (!verdict.ok) ADD_FAILURE() << verdict.report;
}

}  // namespace tilegate::ladder
