// What every test binary's main promises: tests/main.cpp.
#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include "skips.hpp"

namespace tilegate {
namespace {

TEST(Main, ACrashNamesItsTest) {
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_DEATH(std::abort(), "Crashed in Main.ACrashNamesItsTest");
  EXPECT_DEATH(std::raise(SIGSEGV), "Crashed in Main.ACrashNamesItsTest");
}

// Run as it is told in CMakeLists.txt, to be seen red there.
TEST(Failures, DISABLED_AreMany) {
  for (int i = 1; i <= 40; ++i) ADD_FAILURE() << "#failure " << i;
}

// Each alone in its run; see CMakeLists.txt.
TEST(Skip, Unexplained) { GTEST_SKIP() << "for no reason that main knows"; }

TEST(Skip, Explained) {
  testing::Test::RecordProperty(kNotOnThisDevice, "planted, to be seen here");
  GTEST_SKIP() << "planted, to be seen here";
}

}  // namespace
}  // namespace tilegate
