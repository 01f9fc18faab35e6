// The main of every test binary: a run that tests nothing does not pass, nor does one that skips
// everything without the device being why; a crash names its test; of many failures the first are
// shown.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <tilegate/device.hpp>

#include "skips.hpp"

namespace {

constexpr int kFailed = 1;
constexpr int kSkipped = 77;  // CTest's SKIP_RETURN_CODE, set in tests/CMakeLists.txt

int fail(const char* message) {
  std::fprintf(stderr, "%s\n", message);
  return kFailed;
}

// A crash prints the name of the test that ran; whoever handled the signal before takes over then.
class CrashReport : public testing::EmptyTestEventListener {
 public:
  CrashReport() {
    struct sigaction action {};
    action.sa_handler = on_crash;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], &action, &before_[i]);
    }
  }

  void OnTestStart(const testing::TestInfo& test) override {
    std::snprintf(text_, sizeof(text_), "Crashed in %s.%s\n", test.test_suite_name(), test.name());
  }

 private:
  static constexpr int kSignals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

  static void on_crash(int signal) {
    static_cast<void>(!write(STDERR_FILENO, text_, std::strlen(text_)));
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      if (kSignals[i] == signal) sigaction(signal, &before_[i], nullptr);
    }
    static_cast<void>(std::raise(signal));  // comes when this returns
  }

  static inline char text_[512] = "Crashed before the first test\n";
  static inline struct sigaction before_[std::size(kSignals)]{};
};

// The first failures are printed, the rest counted: one wrong index fails thousands of cases. What
// follows goes nowhere until the end, as GoogleTest's printer has no limit of its own.
class FirstFailures : public testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (part.failed() && ++failures_ == kShown) redirect(open("/dev/null", O_WRONLY), &stdout_);
  }

  void OnTestProgramEnd(const testing::UnitTest& tests) override {
    if (stdout_ < 0) return;
    redirect(stdout_, nullptr);
    std::printf("... and %d more failures: %d of %d tests failed; --gtest_filter selects others\n",
                failures_ - kShown, tests.failed_test_count(), tests.test_to_run_count());
  }

 private:
  static constexpr int kShown = 10;

  // Takes `to` over; `before` gets what stdout was.
  static void redirect(int to, int* before) {
    std::fflush(stdout);
    if (before != nullptr) *before = dup(STDOUT_FILENO);
    dup2(to, STDOUT_FILENO);
    close(to);
  }

  int failures_ = 0;
  int stdout_ = -1;
};

// Calls `visit` for each test that was selected and then skipped.
template <typename Visit>
void for_each_skipped(Visit visit) {
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *tests.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (test.result()->Skipped()) visit(test);
    }
  }
}

// Why neither this device nor the stage can run what the skipped test tests; empty: neither is why.
std::string reason_of(const testing::TestInfo& test) {
  for (int i = 0; i < test.result()->test_property_count(); ++i) {
    const testing::TestProperty& property = test.result()->GetTestProperty(i);
    for (const char* key : {tilegate::kNotOnThisDevice, tilegate::kNotApplicable}) {
      if (std::strcmp(property.key(), key) == 0) return property.value();
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) return fail("An argument is not a flag of GoogleTest; see --help.");
  testing::UnitTest::GetInstance()->listeners().Append(new CrashReport);
  testing::UnitTest::GetInstance()->listeners().Append(new FirstFailures);
  const bool only_lists = GTEST_FLAG_GET(list_tests);  // touches no device
  if (!only_lists) {
    const tilegate::Status device = tilegate::device::available();
    if (!device.ok()) return fail(device.message().c_str());
  }
  if (RUN_ALL_TESTS() != 0) return kFailed;
  if (only_lists) return 0;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const int selected = tests.test_to_run_count();
  if (selected == 0) return fail("The filter matches no test.");
  int skipped = 0, with_reason = 0;
  std::set<std::string> reasons;
  for_each_skipped([&](const testing::TestInfo& test) {
    const std::string reason = reason_of(test);
    ++skipped;
    if (!reason.empty()) ++with_reason;
    reasons.insert(reason.empty() ? "single cases, which say why" : reason);
  });
  if (skipped == selected && with_reason < selected) {
    return fail("Every selected test was skipped, and this device is not why.");
  }
  std::string why;
  for (const std::string& reason : reasons) why += (why.empty() ? ": " : ", ") + reason;
  // What tests/skipped.cmake adds up.
  std::printf("Skipped %d of %d tests%s\n", skipped, selected, why.c_str());
  if (skipped < selected) return 0;
  return kSkipped;
}
