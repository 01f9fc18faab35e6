#include "shapes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <span>

#include "errors.hpp"

namespace tilegate::bench {
namespace {

constexpr std::string_view kForm = "MxNxK[/ld<lda>x<ldb>x<ldc>][/off<bytes>]";
constexpr std::string_view kHeader = "set,m,n,k,lda,ldb,ldc,pointer_offset_bytes";
constexpr std::size_t kColumns = 8;

// So that no number of bytes overflows: a matrix has at most 10^18 elements.
constexpr std::int64_t kMaxExtent = 1'000'000'000;

using Triple = std::array<std::int64_t, 3>;

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

std::optional<Triple> parse_triple(std::string_view text) {
  const auto parts = split(text, 'x');
  Triple triple{};
  if (parts.size() != triple.size()) return std::nullopt;
  for (std::size_t i = 0; i < triple.size(); ++i) {
    const auto number = parse_number(parts[i]);
    if (!number) return std::nullopt;
    triple[i] = *number;
  }
  return triple;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// `where` leads the message.
void validate(const Problem& problem, const std::string& where) {
  const auto& [shape, lda, ldb, ldc, offset_bytes] = problem;
  const auto require = [&](bool holds, std::string_view rule) {
    if (!holds) throw UsageError(where + ": " + std::string(rule));
  };
  require(shape.m > 0 && shape.n > 0 && shape.k > 0, "M, N and K must be at least 1");
  require(lda >= shape.k, "lda must be at least K");
  require(ldb >= shape.n, "ldb must be at least N");
  require(ldc >= shape.n, "ldc must be at least N");
  require(offset_bytes % 4 == 0, "the pointer offset must be a multiple of 4 bytes");
}

Problem parse_problem(std::string_view text) {
  const std::string where = "--shapes: " + quoted(text);
  const auto malformed = [&] { return UsageError(where + " is not " + std::string(kForm)); };
  const auto parts = split(text, '/');
  const auto extents = parse_triple(parts.front());
  if (!extents) throw malformed();
  Problem problem = Problem::dense({(*extents)[0], (*extents)[1], (*extents)[2]});

  std::span<const std::string_view> options(parts.begin() + 1, parts.end());
  if (!options.empty() && options.front().starts_with("ld")) {
    const auto ld = parse_triple(options.front().substr(2));
    if (!ld) throw malformed();
    problem.lda = (*ld)[0];
    problem.ldb = (*ld)[1];
    problem.ldc = (*ld)[2];
    options = options.subspan(1);
  }
  if (!options.empty() && options.front().starts_with("off")) {
    const auto offset = parse_number(options.front().substr(3));
    if (!offset) throw malformed();
    problem.offset_bytes = *offset;
    options = options.subspan(1);
  }
  if (!options.empty()) throw malformed();
  validate(problem, where);
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
  const auto& [m, n, k, lda, ldb, ldc, offset_bytes] = numbers;
  const Problem problem{{m, n, k}, lda, ldb, ldc, offset_bytes};
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

std::string to_string(const Problem& problem) {
  const auto triple = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return std::to_string(a) + "x" + std::to_string(b) + "x" + std::to_string(c);
  };
  const auto& [shape, lda, ldb, ldc, offset_bytes] = problem;
  std::string text = triple(shape.m, shape.n, shape.k);
  if (lda != shape.k || ldb != shape.n || ldc != shape.n) text += "/ld" + triple(lda, ldb, ldc);
  if (offset_bytes != 0) text += "/off" + std::to_string(offset_bytes);
  return text;
}

std::string benchmark_name(std::string_view rung, const Problem& problem, bool cold) {
  return std::string(rung) + "/" + to_string(problem) + (cold ? "/cold" : "");
}

std::vector<Problem> parse_shapes(std::string_view text) {
  if (text.starts_with('@')) return parse_table(text.substr(1));
  std::vector<Problem> problems;
  for (const std::string_view part : split(text, ',')) append_once(problems, parse_problem(part));
  return problems;
}

}  // namespace tilegate::bench
