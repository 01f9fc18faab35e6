// What Int8x3 computes, in exact integers. Every rounding is stated; nothing is approximate.
//
// Each row is scaled and rounded to integers of three signed digits of 8 bits; a fourth digit, the
// tail, is what rounding left over. Products of digits are summed exactly, level by level: level
// i + j has the products of digit i and digit j, the highest digits being number 0. The sums become
// one float, which is scaled back.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/rows.hpp"

namespace tilegate::models::int8x3 {

struct Row {
  float step = 0.0F;        // what the integers are worth, in units of 2^16
  double exact_step = 0.0;  // of the factor by which they were computed: 2^16 over it
  std::vector<std::int32_t> integers;
  std::vector<std::int32_t> tails;  // in units of 1/256
  // (largest / root mean square)², the largest as large as the scale lets it be, and K at most; and
  // the same times (mean magnitude / typical magnitude)², where this is above 2.5, over 2.5. Inf
  // where the row cannot be scaled.
  double width = 0.0, spread = 0.0;
  // The same of a row without its outliers, by its own root mean square and for any K, of the
  // elements other than zero; and the share of zeros, 0 of a row that has nothing else.
  double kept_width = 0.0, kept_spread = 0.0, zeros = 0.0;
};
Row quantized(const Rows& rows, std::int64_t row);

// Of the rows of all products: means, the largest spread, and the largest share of zeros if they
// are left out.
struct Widths {
  double width = 0.0, spread = 0.0, most = 0.0, zeros = 0.0;
};
Widths widths(const std::vector<Rows>& products);
Widths kept_widths(const std::vector<Rows>& products);

// How rows and columns match along k, of a sample of 32 pairs: the mean of a²·b² over the mean of
// a² times that of b², and its mean over the pairs; the same of square roots, the least; the mean
// place of products along k, from 0 to 1; the squared error of adding a product to a sum in FP32,
// in units of that of random bits, its mean; the mean share of elements that are equal to another
// one, 32 sampled k before it. `kept`: without outliers.
struct Match {
  double squares = 1.0, roots = 1.0, centre = 0.5, rounding = 1.0, equal = 0.0;
};
Match match(const std::vector<Rows>& a, const std::vector<Rows>& b, bool kept = false);

// What six and eight products leave out, at least 1, and what each operand loses by rounding,
// squared, in units of that of evenly distributed digits: of a sample, 64 k of a row of each of 32
// pairs. `one_sign`: the squared mean of the elements over their mean square, of both operands.
// None of that is sampled unless significands are short, or 0.1 % of the elements are equal.
// `are_short`: both operands have short significands only; `are_exact`: and all sampled lo are 0
// and mid multiples of 16.
struct DigitSquares {
  double six = 1.0, eight = 1.0, rounded_a = 1.0, rounded_b = 1.0, one_sign = 0.0;
  bool are_short = false, are_exact = false;
};
DigitSquares digit_squares(const std::vector<Rows>& a, const std::vector<Rows>& b,
                           const Match& match, bool kept = false);

// hi, mid and lo, each from -128 to 127: x = hi·2^16 + mid·2^8 + lo.
std::array<int, 3> digits(std::int32_t x);

// The sums of 3 or 4 levels as one float, in units of level 0.
float folded(const std::vector<std::int64_t>& levels);
// The sums of the 4 levels of ten products, times the exact step of a row and of a column, with one
// rounding to float.
float scaled_folded_ten(const std::vector<std::int64_t>& levels, double step_a, double step_b);

// So many products are summed exactly; a longer K is computed in parts, each added to C. With ten
// products a level has more of them: where they are allowed, kMostExactTenK is the limit of all.
inline constexpr std::int64_t kMostExactK = 43552, kMostExactTenK = 32736;

// C, row by row, from 6, 8 or 10 products of digits. `most`: K of a part.
std::vector<float> product(const Rows& a, const Rows& b, int products,
                           const Epilogue& epilogue = {}, std::int64_t most = kMostExactK);

// What decides: the widths of both operands, how they match, and their digits. `kept`: both without
// outliers; then the product of both operands' typical elements alone is no element.
struct Statistics {
  Widths a, b;
  Match match = {};
  bool kept = false;
  DigitSquares digits = {};
  double k = 1e30;
};
Statistics statistics(const std::vector<Rows>& a, const std::vector<Rows>& b);

// The errors squared that are expected of 6, 8 and 10 products of digits, in units of what is
// allowed: that of a sum in FP32 that adds `summed` products one after another, or of a rounding:
// the relative error in the Frobenius norm, or, if it is larger, half of that of an element in the
// row, or column, of the largest spread.
double expected_error(int products, const Statistics& of, double summed);
// The fewest products that are no less accurate than FP32, or 64: none are.
int decision(const Statistics& of, double summed, bool allows_ten,
             double in_fp32 = 0.0);  // the length of the sums of FP32, which ten products replace

}  // namespace tilegate::models::int8x3
