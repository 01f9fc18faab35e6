#include <cstddef>
#include <cstdint>
#include <vector>

#include "18_int8x3/digits.cuh"
#include "int8x3/model.hpp"

namespace tilegate::int8x3 {
namespace {

// The digits of a row of op(A), or of a column of op(B), and what its integers are worth.
struct Line {
  std::vector<std::int64_t> digit[kPlanes];
  float step = 0.0F;
};

Line line_of(const float* from, std::int64_t next, std::int64_t k) {
  RowStats seen;
  for (std::int64_t i = 0; i < k; ++i) seen.add(from[i * next]);
  const Scale scale = scale_of(seen);
  Line line;
  line.step = scale.step;
  for (std::int64_t i = 0; i < k; ++i) {
    std::int64_t x = integer_of(from[i * next], scale);
    for (int plane = kPlanes - 1; plane >= 0; --plane) {
      const std::int64_t digit = ((x + 128) % 256 + 256) % 256 - 128;
      line.digit[plane].push_back(digit);
      x = (x - digit) / 256;
    }
  }
  return line;
}

float element(const Line& a, const Line& b, int products) {
  std::int64_t level[5] = {};
  for (int i = 0; i < kPlanes; ++i) {
    for (int j = 0; j < kPlanes; ++j) {
      for (std::size_t k = 0; k < a.digit[i].size(); ++k) {
        level[i + j] += a.digit[i][k] * b.digit[j][k];
      }
    }
  }
  std::int32_t exact[4];
  for (int i = 0; i < 4; ++i) exact[i] = static_cast<std::int32_t>(level[i]);
  const std::int32_t three[3] = {exact[0], exact[1], exact[2]};
  return (products == 8 ? fold(exact) : fold(three)) * (a.step * b.step);
}

}  // namespace

std::vector<float> model(const Problem& problem, const std::vector<float>& a,
                         const std::vector<float>& b, int products) {
  const auto [m, n, k] = problem.shape;
  const bool a_along_k = problem.op_a == Op::kN, b_along_k = problem.op_b == Op::kT;
  std::vector<float> c;
  for (std::int64_t index = 0; index < problem.batch; ++index) {
    std::vector<Line> rows, cols;
    for (std::int64_t i = 0; i < m; ++i) {
      rows.push_back(
          line_of(a.data() + index * problem.stride_a + i * (a_along_k ? problem.lda : 1),
                  a_along_k ? 1 : problem.lda, k));
    }
    for (std::int64_t j = 0; j < n; ++j) {
      cols.push_back(
          line_of(b.data() + index * problem.stride_b + j * (b_along_k ? problem.ldb : 1),
                  b_along_k ? 1 : problem.ldb, k));
    }
    for (const Line& row : rows) {
      for (const Line& col : cols) c.push_back(problem.alpha * element(row, col, products));
    }
  }
  return c;
}

}  // namespace tilegate::int8x3
