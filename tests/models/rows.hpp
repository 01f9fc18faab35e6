// An operand of one product as rungs that split operands see it: the rows of op(A), or the columns
// of op(B), which are called rows, too.
#pragma once

#include <cstdint>
#include <vector>

namespace tilegate::models {

struct Rows {
  const float* data = nullptr;
  std::int64_t count = 0, k = 0;
  std::int64_t next_row = 0, next_k = 0;  // elements

  float at(std::int64_t row, std::int64_t of_k) const {
    return data[row * next_row + of_k * next_k];
  }
};

// C ← alpha·sum + beta·C, with a rounding after each multiplication and addition; `c`: row by row,
// read unless beta is 0.
struct Epilogue {
  float alpha = 1.0F, beta = 0.0F;
  std::vector<float> c = {};
};

}  // namespace tilegate::models
