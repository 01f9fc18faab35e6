// What Fp16x3 computes, in exact integers. Every rounding is stated; nothing is approximate.
//
// Each row is scaled by a power of two and split into sums of two FP16 numbers, hi and lo. The
// tensor cores multiply 16 k at a time, exactly, and cut off what they sum; after a run of one or
// two chunks of 32 k their sum is added in FP32 to others, and the sum of 16 runs to the total.
#pragma once

#include <cstdint>
#include <vector>

#include "models/rows.hpp"

namespace tilegate::models::fp16x3 {

// The FP16 number nearest to a float below 65520, the even one of two, as its 16 bits.
std::uint16_t to_fp16(float value);
float value_of(std::uint16_t bits);

struct Row {
  float step = 0.0F;  // what a unit of the halves is worth; Inf: the row cannot be scaled
  std::vector<std::uint16_t> hi, lo;
  double counted = 0.0;   // elements that keep all bits; Inf: the row cannot be scaled, or is not
                          // zero and most elements lose bits
  double one_sign = 0.0;  // |sum| / sum of magnitudes
  double squares = 0.0, largest_squared = 0.0;  // of all elements, added; of the largest
};
Row split(const Rows& rows, std::int64_t row);

// Over the rows of all products: averages, and sums.
struct Statistics {
  double counted = 0.0, one_sign = 0.0;
  double squares = 0.0, largest_squares = 0.0;
};
Statistics statistics(const std::vector<Rows>& products);

// One multiplication of the tensor cores: acc + the sum of 16 products of halves.
float multiply_16(float acc, const std::uint16_t* a, const std::uint16_t* b);

// C, row by row, in runs of so many chunks.
std::vector<float> product(const Rows& a, const Rows& b, int run, const Epilogue& epilogue = {});

// How many products' errors a sum of K products in FP32 has, where products have either sign, and
// where all have one.
struct Summed {
  double k = 0.0, either_sign = 0.0, one_sign = 0.0;
};
// How many elements, each as large as its row's largest, would have the norm of the operand's rows.
double few(const Statistics& of);
// The error squared of runs of so many chunks, in units of that which halves may have: that of
// FP32, or less where few products make up an element of C. It must not exceed 1.
double expected_error(int run, const Statistics& a, const Statistics& b, const Summed& summed);
// The chunks of a run, or 0: multiply in FP32.
int decision(const Statistics& a, const Statistics& b, const Summed& summed);

}  // namespace tilegate::models::fp16x3
