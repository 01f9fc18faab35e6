// The main of every test binary: a run that tests nothing does not pass, nor does one that skips
// everything without the device being why; a failure, or a crash, first says in one line what is
// wrong, and the command that repeats it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include <tilegate/device.hpp>

#include "failure_printer.hpp"
#include "rerun.hpp"
#include "skips.hpp"

namespace {

constexpr int kFailed = 1;
constexpr int kSkipped = 77;  // CTest's SKIP_RETURN_CODE, set in tests/CMakeLists.txt

int fail(const char* message) {
  std::fprintf(stderr, "%s\n", message);
  return kFailed;
}

// A crash prints the name of the test that ran; the previous handler takes over then.
class CrashReport : public testing::EmptyTestEventListener {
 public:
  CrashReport() {
    struct sigaction action{};
    action.sa_handler = on_crash;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], &action, &before_[i]);
    }
  }

  void OnTestStart(const testing::TestInfo& test) override {
    std::snprintf(text_, sizeof(text_), "FAILED %s: crashed; repeat: %s\n",
                  tilegate::subject_of(&test).c_str(), tilegate::rerun_command(&test).c_str());
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

  static inline char text_[1024] = "FAILED: crashed before the first test\n";
  static inline struct sigaction before_[std::size(kSignals)]{};
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

// Takes the GPU that ctest --resource-spec-file has allocated to this process.
void take_allocated_gpu() {
  const char* resource = std::getenv("CTEST_RESOURCE_GROUP_0_GPUS");  // "id:3,slots:1"
  if (resource == nullptr) return;
  const std::string id(resource + std::strlen("id:"), std::strchr(resource, ','));
  setenv("CUDA_VISIBLE_DEVICES", id.c_str(), 1);
}

// Most often because the program is older than a new rung.
std::string why_none(const std::filesystem::path& program) {
  const std::filesystem::path sources(TILEGATE_SOURCE_DIR);
  const std::filesystem::path newer = tilegate::kernel_newer_than(program, sources / "kernels");
  if (newer.empty()) return {};
  const std::string name = program.filename().string();
  return ": " + name + " is older than " + newer.lexically_relative(sources).string() +
         "; build it: cmake --build " +
         program.parent_path().parent_path().lexically_proximate(sources).string() + " --target " +
         name;
}

}  // namespace

int main(int argc, char** argv) {
  take_allocated_gpu();
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) return fail("An argument is not a flag of GoogleTest; see --help.");
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  listeners.Append(
      new tilegate::FailurePrinter(listeners.Release(listeners.default_result_printer())));
  listeners.Append(new CrashReport);
  const bool only_lists = GTEST_FLAG_GET(list_tests);  // touches no device
  if (!only_lists) {
    const tilegate::Status device = tilegate::device::available();
    if (!device.ok()) return fail(device.message().c_str());
  }
  if (RUN_ALL_TESTS() != 0) return kFailed;
  if (only_lists) return 0;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const int selected = tests.test_to_run_count();
  if (selected == 0) return fail(("The filter matches no test" + why_none(argv[0])).c_str());
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
  // What tests/summary.cmake adds up.
  std::printf("Skipped %d of %d tests%s\n", skipped, selected, why.c_str());
  if (skipped < selected) return 0;
  return kSkipped;
}
