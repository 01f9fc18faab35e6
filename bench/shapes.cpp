#include "shapes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>

#include "errors.hpp"

namespace tilegate::bench {
namespace {

constexpr std::string_view kHeader = "set,m,n,k,lda,ldb,ldc,pointer_offset_bytes";
constexpr std::size_t kColumns = 8;

// So that no number of bytes overflows: a matrix has at most 10^18 elements.
constexpr std::int64_t kMaxExtent = 1'000'000'000;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 0 || number > kMaxExtent) return std::nullopt;
  return number;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// `where` leads the message.
void validate(const Problem& problem, const std::string& where) {
  if (Status s = problem.check(); !s.ok()) throw UsageError(where + ": " + s.message());
  if (problem.is_empty() || problem.shape.k == 0) {
    throw UsageError(where + ": M, N, K and the batch must be at least 1");
  }
  const auto& [m, n, k] = problem.shape;
  for (const std::int64_t size : {m, n, k, problem.lda, problem.ldb, problem.ldc, problem.batch}) {
    if (size > kMaxExtent) throw UsageError(where + ": a size is above 10^9");
  }
}

Problem parse_one(std::string_view text) {
  Problem problem;
  if (Status s = parse_problem(text, &problem); !s.ok()) {
    throw UsageError("--shapes: " + s.message());
  }
  validate(problem, "--shapes: " + quoted(text));
  return problem;
}

struct Row {
  std::string set;
  Problem problem;
};

Row parse_row(std::string_view line, const std::string& where) {
  const auto cells = split(line, ',');
  if (cells.size() != kColumns) {
    throw UsageError(where + ": " + std::to_string(cells.size()) + " columns, not " +
                     std::to_string(kColumns));
  }
  std::array<std::int64_t, kColumns - 1> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = parse_number(cells[i + 1]);
    if (!number) throw UsageError(where + ": " + quoted(cells[i + 1]) + " is not a size");
    numbers[i] = *number;
  }
  const auto& [m, n, k, lda, ldb, ldc, offset] = numbers;
  Problem problem = Problem::dense({m, n, k});
  problem.lda = lda;
  problem.ldb = ldb;
  problem.ldc = ldc;
  problem.offset_bytes = {offset, offset, offset};
  validate(problem, where);
  return {std::string(cells.front()), problem};
}

std::vector<Row> read_table(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError("--shapes: cannot read " + path);
  std::vector<Row> rows;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    const std::string where = path + ":" + std::to_string(number);
    if (number == 1) {
      if (line != kHeader)
        throw UsageError(where + ": the columns must be " + std::string(kHeader));
    } else if (!line.empty()) {
      rows.push_back(parse_row(line, where));
    }
  }
  if (rows.empty()) throw UsageError("--shapes: no shape in " + path);
  return rows;
}

void append_once(std::vector<Problem>& problems, const Problem& problem) {
  if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(problem);
}

// `text` is "file.csv" or "file.csv:set,set".
std::vector<Problem> parse_table(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::string path(text.substr(0, colon));
  std::vector<std::string_view> sets;
  if (colon != std::string_view::npos) sets = split(text.substr(colon + 1), ',');

  const std::vector<Row> rows = read_table(path);
  for (const std::string_view set : sets) {
    if (std::ranges::find(rows, set, &Row::set) == rows.end()) {
      throw UsageError("--shapes: no set " + quoted(set) + " in " + path);
    }
  }
  std::vector<Problem> problems;
  for (const Row& row : rows) {
    if (sets.empty() || std::ranges::find(sets, row.set) != sets.end()) {
      append_once(problems, row.problem);
    }
  }
  return problems;
}

}  // namespace

std::string benchmark_name(const NamedProblem& named, bool cold) {
  return to_string(named) + (cold ? "/cold" : "");
}

std::vector<Problem> parse_shapes(std::string_view text) {
  if (text.starts_with('@')) return parse_table(text.substr(1));
  std::vector<Problem> problems;
  for (const std::string_view part : split(text, ',')) append_once(problems, parse_one(part));
  return problems;
}

}  // namespace tilegate::bench
