#include "rerun.hpp"

#include <cstdlib>
#include <system_error>

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

// What the tests read of the environment, as "NAME=value ".
std::string environment() {
  std::string settings;
  for (const char* name : {"TILEGATE_SWEEP_SEED", "TILEGATE_THOROUGH"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr) settings += std::string(name) + "=" + value + " ";
  }
  return settings;
}

}  // namespace

std::string rerun_command(const testing::TestInfo* test) {
  static const std::string kProgram = environment() + this_binary().string();
  if (test == nullptr) return kProgram;
  return kProgram + " --gtest_filter='" + test->test_suite_name() + "." + test->name() + "'";
}

std::filesystem::path kernel_newer_than(const std::filesystem::path& program,
                                        const std::filesystem::path& folder) {
  std::error_code error;
  const auto built = std::filesystem::last_write_time(program, error);
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (file.path().extension() == ".cu" && file.last_write_time() > built) return file.path();
  }
  return {};
}

std::string subject_of(const testing::TestInfo* test) {
  if (test == nullptr) return "no test";
  const std::string name = test->name();
  const std::size_t slash = name.rfind('/');
  if (slash != std::string::npos) return name.substr(slash + 1);
  return std::string(test->test_suite_name()) + "." + name;
}

}  // namespace tilegate
