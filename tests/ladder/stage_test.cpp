#include "ladder/stage_test.hpp"

#include <algorithm>
#include <ostream>

#include <tilegate/catalogue.hpp>
#include <tilegate/device.hpp>

#include "rerun.hpp"

namespace tilegate::ladder {

std::string test_name(const Stage& stage) {
  std::string name(stage.name);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

std::string cannot_run(const Stage& stage) {
  return check_device(stage.requirements, device::current()).message();
}

void PrintTo(const StageCase& stage_case, std::ostream* out) {
  *out << stage_case.stage->name << " " << name_of(stage_case.test_case);
}

std::string name_case(const testing::TestParamInfo<StageCase>& info) {
  return test_name(*info.param.stage) + "_" + name_of(info.param.test_case);
}

std::string name_stage(const testing::TestParamInfo<const Stage*>& info) {
  return test_name(*info.param);
}

std::vector<StageCase> for_every_stage(std::vector<verifier::Case> (*table)(const Stage&)) {
  std::vector<StageCase> all;
  for (const Stage* stage : catalogue_stages()) {
    for (verifier::Case& test_case : table(*stage)) all.push_back({stage, std::move(test_case)});
  }
  return all;
}

void StageCaseTest::SetUp() {
  if (const std::string why = cannot_run(stage()); !why.empty()) GTEST_SKIP() << why;
}

void StageCaseTest::expect_right(std::span<const verifier::Order> orders,
                                 const std::string& environment) const {
  const verifier::Verdict verdict = verify(stage(), test_case(), orders);
  if (verdict.ok) return;
  ADD_FAILURE() << verdict.report << "\n  run it again: " << rerun_command(environment);
}

}  // namespace tilegate::ladder
