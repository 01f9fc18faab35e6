// What Int8x3 computes, said plainly, in 64-bit integers: its result is held to it bit for bit.
#pragma once

#include <vector>

#include <tilegate/stage.hpp>

namespace tilegate::int8x3 {

// The elements of C, row by row, product by product, with so many products of digits (6 or 8).
// Operands are dense in memory but for the problem's strides; beta is 0.
std::vector<float> model(const Problem& problem, const std::vector<float>& a,
                         const std::vector<float>& b, int products);

}  // namespace tilegate::int8x3
