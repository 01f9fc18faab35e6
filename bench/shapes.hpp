// What is benchmarked: problems, how they are written and what a benchmark of one is called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tilegate/sgemm.hpp>

namespace tilegate::bench {

// A product and how its operands lie in memory; leading dimensions count elements.
struct Problem {
  Shape shape;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t offset_bytes = 0;  // of all three operands from a 256-byte boundary

  // Dense and aligned.
  static Problem dense(const Shape& shape) {
    return {.shape = shape, .lda = shape.k, .ldb = shape.n, .ldc = shape.n};
  }

  friend bool operator==(const Problem&, const Problem&) = default;
};

// "<M>x<N>x<K>[/ld<lda>x<ldb>x<ldc>][/off<bytes>]", the optional parts only when not the default.
std::string to_string(const Problem& problem);

// The canonical name: "<Rung>/<problem>[/cold]".
std::string benchmark_name(std::string_view rung, const Problem& problem, bool cold);

// The value of --shapes: problems as to_string writes them, separated by commas, or a table of
// them, "@file.csv" or "@file.csv:set,set". Each problem is returned once. Throws UsageError.
std::vector<Problem> parse_shapes(std::string_view text);

}  // namespace tilegate::bench
