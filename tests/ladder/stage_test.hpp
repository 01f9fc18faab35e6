// Shared by the suites of the ladder. A test is a stage with a case, or a stage.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/stage.hpp>

#include "verifier/case.hpp"

namespace tilegate::ladder {

// The stage's name in test names: "Rung.word" becomes "Rung_word", which the rung's filter matches.
std::string test_name(const Stage& stage);

// Why the stage cannot run on this device, by its descriptor; empty: it can.
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

// The cases of a table for a stage. A case that the stage does not take is skipped, and followed by
// the next larger one that it takes, `<stage>_<shape>_as_<case>`: with extents rounded up, without
// padding and offsets.
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

// `cases_of` for every stage and variant whose tests in this suite the filter may select. Making
// the cases of all stages can take longer than running a suite of one stage.
std::vector<StageCase> for_every_stage(const std::string& suite, Table table);

// The orders in which the executor runs a case: one of the two, selected by the case's name. With
// TILEGATE_THOROUGH=1 both, as on a GPU, which repeats the run in its own order. A result that
// depends on the order is a race; Repeatable and the tests labelled `watched` look for races.
std::span<const verifier::Order> orders_of(const verifier::Case& test_case);

class StageCaseTest : public testing::TestWithParam<StageCase> {
 protected:
  void SetUp() override;

  const Stage& stage() const { return *GetParam().stage; }
  const verifier::Case& test_case() const { return GetParam().test_case; }

  // Fails the test unless `verify` accepts the results.
  void expect_right(const verifier::Case& test_case, std::span<const verifier::Order> orders) const;
  void expect_right(std::span<const verifier::Order> orders) const {
    expect_right(test_case(), orders);
  }
  void expect_right() const { expect_right(orders_of(test_case())); }
};

}  // namespace tilegate::ladder
