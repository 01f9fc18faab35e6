#include "rerun.hpp"

#include <filesystem>
#include <system_error>

#include <gtest/gtest.h>

namespace tilegate {
namespace {

// Relative to the sources if the binary lies inside them, as with the presets.
std::filesystem::path this_binary() {
  std::error_code error;
  const std::filesystem::path binary = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return "ladder_test";
  const std::filesystem::path relative = binary.lexically_relative(TILEGATE_SOURCE_DIR);
  return relative.empty() || *relative.begin() == ".." ? binary : relative;
}

}  // namespace

std::string rerun_command(const std::string& environment) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  return environment + this_binary().string() + " --gtest_filter='" + test.test_suite_name() + "." +
         test.name() + "'";
}

}  // namespace tilegate
