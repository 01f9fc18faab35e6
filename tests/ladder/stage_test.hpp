// What the suites of the ladder share: one test is one stage with one case, or one stage.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/stage.hpp>

#include "verifier/case.hpp"

namespace tilegate::ladder {

// As test names hold it: "Rung.word" becomes "Rung_word", which the rung's filter finds too.
std::string test_name(const Stage& stage);

// Why the stage cannot run on this device, as its descriptor has it; empty: it can.
std::string cannot_run(const Stage& stage);

// The same, recorded as the reason why the running test is skipped; see skips.hpp.
std::string record_cannot_run(const Stage& stage);

struct StageCase {
  const Stage* stage;
  verifier::Case test_case;
  std::string instead_of = {};  // the shape of a case that the stage does not take; see cases_of
};
void PrintTo(const StageCase& stage_case, std::ostream* out);
// For INSTANTIATE_TEST_SUITE_P.
std::string name_case(const testing::TestParamInfo<StageCase>& info);
std::string name_stage(const testing::TestParamInfo<const Stage*>& info);

// The cases of a table for a stage. Those that it does not take are skipped, and followed by the
// next larger that it takes, `<stage>_<shape>_as_<case>`: extents rounded up, no padding, no
// offsets.
using Table = std::vector<verifier::Case> (*)(const Stage&);
std::vector<StageCase> cases_of(const Stage& stage, Table table);

// Skips the running test if the stage does not take the problem, and records why.
std::string record_not_applicable(const Status& taken);

// The tables of this binary, by suite.
struct SuiteTable {
  std::string suite;
  Table table;
};
const std::vector<SuiteTable>& suite_tables();

// `cases_of` for every stage and variant of this build whose tests in this suite the filter may
// select: making all cases takes longer than running many a suite of one stage.
std::vector<StageCase> for_every_stage(const std::string& suite, Table table);

// The orders in which the executor runs a case: one of both, in turn. What depends on the order is
// a race, which Repeatable and the tests labelled `watched` look for; TILEGATE_THOROUGH=1 runs
// each case in both, and so does a GPU, which keeps its own.
std::span<const verifier::Order> orders_of(const verifier::Case& test_case);

class StageCaseTest : public testing::TestWithParam<StageCase> {
 protected:
  void SetUp() override;

  const Stage& stage() const { return *GetParam().stage; }
  const verifier::Case& test_case() const { return GetParam().test_case; }

  // Fails the test unless `verify` finds the stage right.
  void expect_right(const verifier::Case& test_case, std::span<const verifier::Order> orders) const;
  void expect_right(std::span<const verifier::Order> orders) const {
    expect_right(test_case(), orders);
  }
  void expect_right() const { expect_right(orders_of(test_case())); }
};

}  // namespace tilegate::ladder
