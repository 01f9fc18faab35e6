// The main of every test binary: a run that tests nothing does not pass.
#include <cstdio>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

namespace {

constexpr int kFailed = 1;
constexpr int kSkipped = 77;  // CTest's SKIP_RETURN_CODE, set in tests/CMakeLists.txt

int fail(const char* message) {
  std::fprintf(stderr, "%s\n", message);
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) return fail("An argument is not a flag of GoogleTest; see --help.");
  const bool only_lists = GTEST_FLAG_GET(list_tests);  // touches no device
  if (!only_lists) {
    const tilegate::Status device = tilegate::device::available();
    if (!device.ok()) return fail(device.message().c_str());
  }
  if (RUN_ALL_TESTS() != 0) return kFailed;
  if (only_lists) return 0;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  if (tests.test_to_run_count() == 0) return fail("The filter matches no test.");
  if (tests.skipped_test_count() < tests.test_to_run_count()) return 0;
  std::fprintf(stderr, "Every selected test was skipped; the reasons are above.\n");
  return kSkipped;
}
