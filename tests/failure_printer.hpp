// How every test program prints its failures: first what is wrong, in one line, and the command
// that repeats it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace tilegate {

// Takes the place of GoogleTest's printer, which it asks to print all but failures. One begins with
//
//   FAILED <subject>: <what is wrong>; repeat: <command>
//
// which tests/summary.cmake collects. The line is the first of the message of an ADD_FAILURE, else
// it names the test, the place and the expectation. Details follow the first failure of a kind: of
// one suite, of one rung, and alike but for words with digits. Of each kind three are printed, of
// all kinds ten; the others are counted.
class FailurePrinter : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(testing::TestEventListener* others) : others_(others) {}

  void OnTestProgramStart(const testing::UnitTest& tests) override {
    others_->OnTestProgramStart(tests);
  }
  void OnTestIterationStart(const testing::UnitTest& tests, int iteration) override {
    others_->OnTestIterationStart(tests, iteration);
  }
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = &test;
    others_->OnTestStart(test);
  }
  void OnTestPartResult(const testing::TestPartResult& part) override;
  void OnTestEnd(const testing::TestInfo& test) override {
    test_ = nullptr;
    if (!test.result()->Failed()) others_->OnTestEnd(test);
  }
  void OnTestIterationEnd(const testing::UnitTest& tests, int iteration) override;

 private:
  std::unique_ptr<testing::TestEventListener> others_;
  const testing::TestInfo* test_ =
      nullptr;                        // that runs; GoogleTest tells it to no OnTestPartResult
  std::map<std::string, int> kinds_;  // how often each has been seen
  int failures_ = 0, shown_ = 0;
};

}  // namespace tilegate
