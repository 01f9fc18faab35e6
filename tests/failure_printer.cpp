#include "failure_printer.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "rerun.hpp"

namespace tilegate {
namespace {

constexpr int kShownOfAKind = 3, kShown = 10;
constexpr std::size_t kLongest = 400;  // of a line

struct Failure {
  std::string line;     // without the command
  std::string details;  // further lines
};

// "tests/api/problem_test.cpp:42: "
std::string place_of(const testing::TestPartResult& part) {
  if (part.file_name() == nullptr) return {};
  const std::filesystem::path file(part.file_name());
  return file.lexically_relative(TILEGATE_SOURCE_DIR).string() + ":" +
         std::to_string(part.line_number()) + ": ";
}

// All lines as one, without the space around them.
std::string joined(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!is_space || (!line.empty() && line.back() != ' ')) line += is_space ? ' ' : c;
  }
  return line;
}

Failure failure_of(const testing::TestPartResult& part, const testing::TestInfo* test) {
  constexpr std::string_view kOwnText = "Failed\n";  // before what an ADD_FAILURE says
  std::string_view text = part.message();
  if (!text.starts_with(kOwnText)) {
    const std::string what = joined(text);
    const bool is_whole = what.size() < kLongest;
    return {subject_of(test) + ": " + place_of(part) + what.substr(0, kLongest),
            std::string(is_whole ? "" : text)};
  }
  text.remove_prefix(kOwnText.size());
  const std::size_t end = std::min(text.find('\n'), text.size());
  return {std::string(text.substr(0, end)),
          std::string(text.substr(std::min(end + 1, text.size())))};
}

// Equal for failures of one suite and one rung that differ in words with digits alone.
std::string kind_of(const Failure& failure, const testing::TestInfo* test) {
  const std::string subject = subject_of(test);
  std::string kind = test == nullptr ? "" : test->test_suite_name();
  kind += " " + subject.substr(0, subject.find('_'));
  std::istringstream what(
      failure.line.substr(std::min(failure.line.find(": "), failure.line.size())));
  for (std::string word; what >> word;) {
    if (word.find_first_of("0123456789") == std::string::npos) kind += " " + word;
  }
  return kind;
}

}  // namespace

void FailurePrinter::OnTestPartResult(const testing::TestPartResult& part) {
  const bool is_reason_known = test_ != nullptr && test_->result()->test_property_count() > 0;
  if (part.skipped() && is_reason_known) return;  // main prints each once
  if (!part.failed()) return others_->OnTestPartResult(part);
  const Failure failure = failure_of(part, test_);
  const int seen = ++kinds_[kind_of(failure, test_)];
  ++failures_;
  if (seen > kShownOfAKind || shown_ == kShown) return;
  ++shown_;
  std::printf("FAILED %s; repeat: %s\n", failure.line.c_str(), rerun_command(test_).c_str());
  if (seen == 1 && !failure.details.empty()) std::printf("%s\n", failure.details.c_str());
  std::fflush(stdout);
}

void FailurePrinter::OnTestIterationEnd(const testing::UnitTest& tests, int iteration) {
  if (failures_ == 0) return others_->OnTestIterationEnd(tests, iteration);
  if (failures_ > shown_) std::printf("... and %d more failures: ", failures_ - shown_);
  std::printf("%d of %d tests failed\n", tests.failed_test_count(), tests.test_to_run_count());
}

}  // namespace tilegate
