// What every test binary's main promises: tests/main.cpp.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "rerun.hpp"
#include "skips.hpp"

namespace tilegate {
namespace {

TEST(Main, CrashNamesItsTest) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const std::string line =
      "FAILED Main.CrashNamesItsTest: crashed; repeat: .*verifier_test "
      "--gtest_filter='Main.CrashNamesItsTest'";
  EXPECT_DEATH(std::abort(), line);
  EXPECT_DEATH(std::raise(SIGSEGV), line);
}

TEST(Main, WarnsWhereTheProgramIsOlderThanAKernel) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "tilegate-older";
  fs::create_directories(folder / "21_mine");
  const fs::path program = folder / "program", kernel = folder / "21_mine" / "mine.cu";
  for (const fs::path& file : {program, kernel}) std::ofstream(file) << "text";
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(program, now);
  fs::last_write_time(kernel, now - std::chrono::seconds(1));
  EXPECT_EQ(kernel_newer_than(program, folder), "");
  fs::last_write_time(kernel, now + std::chrono::seconds(1));
  EXPECT_EQ(kernel_newer_than(program, folder), kernel);
  fs::remove_all(folder);
}

// With the allocation of CMakeLists.txt.
TEST(Gpu, DISABLED_IsTheAllocatedOne) { EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "12"); }

// Run as it is told in CMakeLists.txt, to be seen red there.
TEST(Failures, DISABLED_AreMany) {
  for (int i = 1; i <= 40; ++i) ADD_FAILURE() << "X " << i << ": wrong by #" << i << "e-9\n  why";
}

TEST(Failures, DISABLED_AreOfManyKinds) {
  for (char kind = 'a'; kind <= 'z'; ++kind) ADD_FAILURE() << "X 1: #" << kind;
}

TEST(Failures, DISABLED_IsAnExpectation) { EXPECT_EQ(1 + 1, 3) << "says why"; }

// Each alone in its run; see CMakeLists.txt.
TEST(Skip, DISABLED_Unexplained) { GTEST_SKIP() << "for no reason that main knows"; }

TEST(Skip, DISABLED_Explained) {
  testing::Test::RecordProperty(kNotOnThisDevice, "planted, to be seen here");
  GTEST_SKIP() << "planted, to be seen here";
}

}  // namespace
}  // namespace tilegate
