#include "models/int8x3.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "models/float32.hpp"

namespace tilegate::models::int8x3 {
namespace {

constexpr std::int64_t kLargestInteger = 127 * 65536 + 127 * 256 + 127;

// The largest that a row's largest element becomes, with room for its rounding.
constexpr float kLargestScaled = 8355700.0F;

struct Scale {
  float factor = 0.0F, step = 0.0F;
};

// A float near the square root: the bits of the exponent and the significand halved, and an offset
// that halves the bias of the exponent and spreads the error of what lies between powers of two.
float near_root(float magnitude) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) / 2 + 532'369'198);
}

bool has_short_significand(float value) { return exact(value).magnitude % 4096 == 0; }

// The next float of 12 significant bits, or the float itself.
float rounded_up_to_12_bits(float value) {
  const Exact x = exact(value);
  const std::uint64_t short_magnitude = (x.magnitude + 4095) / 4096;
  return std::ldexp(static_cast<float>(short_magnitude), x.exponent + 12);
}

// Rows of short significands only are scaled by a power of two, which rounds nothing.
Scale scale_of(float largest, bool is_short) {
  if (!is_short) {
    const float step = rounded_up_to_12_bits(multiply(largest, divide(65536.0F, kLargestScaled)));
    return {divide(65536.0F, step), step};
  }
  int bits = 22;  // before the point
  int exponent = std::ilogb(largest);
  if (nearest_multiple(largest, exponent - bits) > kLargestInteger) --bits;
  exponent -= bits;
  return {std::ldexp(1.0F, -exponent), std::ldexp(65536.0F, exponent)};
}

std::int64_t floor_of_256th(std::int64_t value) {
  const std::int64_t quotient = value / 256;
  return value % 256 < 0 ? quotient - 1 : quotient;
}
// What rounding left over of value · factor, in units of 1/256. Exact but for its own rounding, of
// which an FMA makes the first.
std::int32_t tail(float value, float factor, std::int64_t integer) {
  const double left = static_cast<double>(value) * factor - static_cast<double>(integer);
  const std::int64_t rounded = nearest_integer(multiply(static_cast<float>(left), 256.0F));
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(rounded, -127, 127));
}

// To the nearest integer, upwards from a half.
std::int64_t rounded_256th(std::int64_t value) { return floor_of_256th(value + 128); }

// The digits of all elements, the highest first, the tails last.
using Digits = std::array<std::vector<std::int64_t>, 4>;

Digits digits_of(const Row& row) {
  Digits all;
  for (const std::int32_t x : row.integers) {
    const std::array<int, 3> of_one = digits(x);
    for (std::size_t i = 0; i < 3; ++i) all[i].push_back(of_one[i]);
  }
  all[3].assign(row.tails.begin(), row.tails.end());
  return all;
}

struct Line {
  float step;
  double exact_step;
  Digits digits;
};

std::vector<Line> lines_of(const Rows& rows) {
  std::vector<Line> lines;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    const Row row = quantized(rows, i);
    lines.push_back({row.step, row.exact_step, digits_of(row)});
  }
  return lines;
}

float sum(const Line& a, const Line& b, int products, std::size_t begin, std::size_t end) {
  std::vector<std::int64_t> levels(products == 6 ? 3 : 4);
  const std::size_t most = products == 10 ? 4 : 3;  // digits
  for (std::size_t i = 0; i < most; ++i) {
    for (std::size_t j = 0; j < most && i + j < levels.size(); ++j) {
      std::int64_t level = 0;
      for (std::size_t k = begin; k < end; ++k) level += a.digits[i][k] * b.digits[j][k];
      levels[i + j] += level;
    }
  }
  if (products == 10) return scaled_folded_ten(levels, a.exact_step, b.exact_step);
  return multiply(folded(levels), multiply(a.step, b.step));
}

}  // namespace

Row quantized(const Rows& rows, std::int64_t row) {
  float largest = 0.0F;
  double sum = 0.0, roots = 0.0, squares = 0.0, filled = 0.0;
  bool is_short = true, is_finite = true;
  for (std::int64_t k = 0; k < rows.k; ++k) {
    const float magnitude = std::fabs(rows.at(row, k));
    is_finite = is_finite && std::isfinite(magnitude);
    largest = std::max(largest, magnitude);
    sum += magnitude;
    squares += static_cast<double>(magnitude) * magnitude;
    if (magnitude != 0.0F) ++filled;
    if (k % 4 == 0) roots += near_root(magnitude);
    is_short = is_short && has_short_significand(magnitude);
  }
  Row result;
  result.integers.resize(static_cast<std::size_t>(rows.k));
  result.tails.resize(static_cast<std::size_t>(rows.k));
  if (is_finite && largest == 0.0F) return result;
  if (!is_finite || largest < 0x1p-56F || largest > 0x1p60F) {
    result.width = result.spread = std::numeric_limits<double>::infinity();
    result.kept_width = result.kept_spread = result.width;
    return result;
  }
  const Scale scale = scale_of(largest, is_short);
  result.step = scale.step;
  result.exact_step = 65536.0 / static_cast<double>(scale.factor);
  for (std::int64_t k = 0; k < rows.k; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const double scaled = static_cast<double>(rows.at(row, k)) * scale.factor;  // exact
    const auto integer = static_cast<std::int64_t>(std::nearbyint(scaled));
    result.integers[at] = static_cast<std::int32_t>(integer);
    result.tails[at] = tail(rows.at(row, k), scale.factor, integer);
  }
  const double full = static_cast<double>(scale.step) * kLargestScaled / 65536.0;
  const auto k = static_cast<double>(rows.k);
  // Of normal numbers the square of the mean magnitude is 0.6366 of the mean square.
  const double mean = sum / k;
  result.width = std::min(0.6366 * (full / mean) * (full / mean), k);
  if (is_short) result.width = std::max(result.width, 1.0);  // not flat: nothing is rounded
  // The typical magnitude: of a sample, and at most the mean without the largest.
  const double root = roots / std::ceil(k / 4.0);
  const double ratio = mean / std::min(root * root, (sum - static_cast<double>(largest)) / k);
  result.spread = result.width * std::max(1.0, ratio * ratio / 2.5);
  // The same of the elements other than zero.
  result.zeros = 1.0 - filled / k;
  const double over_mean = full * filled / sum, typical = root * root * (k / filled) * (k / filled);
  const double kept_ratio = sum / filled / std::min(typical, (sum - largest) / filled);
  const double kept_spread = std::max(1.0, kept_ratio * kept_ratio / 2.5);
  const double of_mean = 0.6366 * over_mean * over_mean;
  result.kept_width = of_mean < 0.6366 * 1.003 ? std::min(of_mean, 0.6366)
                                               : std::max(full * full * filled / squares, 0.6366);
  result.kept_spread = result.kept_width * kept_spread;
  return result;
}

namespace {

Widths widths(const std::vector<Rows>& products, double Row::* width, double Row::* spread,
              bool are_kept) {
  Widths all;
  double count = 0.0;
  for (const Rows& rows : products) {
    for (std::int64_t i = 0; i < rows.count; ++i) {
      const Row row = quantized(rows, i);
      all.width += row.*width;
      all.spread += row.*spread;
      all.most = std::max(all.most, row.*spread);
      if (are_kept) all.zeros = std::max(all.zeros, row.zeros);
    }
    count += static_cast<double>(rows.count);
  }
  all.width /= count;
  all.spread /= count;
  return all;
}

}  // namespace

Widths widths(const std::vector<Rows>& products) {
  return widths(products, &Row::width, &Row::spread, false);
}

Widths kept_widths(const std::vector<Rows>& products) {
  return widths(products, &Row::kept_width, &Row::kept_spread, true);
}

std::array<int, 3> digits(std::int32_t x) {
  const std::int64_t above_lo = rounded_256th(x), hi = rounded_256th(above_lo);
  return {static_cast<int>(hi), static_cast<int>(above_lo - 256 * hi),
          static_cast<int>(x - 256 * above_lo)};
}

float folded(const std::vector<std::int64_t>& levels) {
  std::int64_t low = levels[2];
  if (levels.size() == 4) low += rounded_256th(levels[3]);
  low = levels[1] + rounded_256th(low);
  return add(of_integer(levels[0]), multiply(of_integer(low), 0x1p-8F));
}

float scaled_folded_ten(const std::vector<std::int64_t>& levels, double step_a, double step_b) {
  auto sum = static_cast<double>(levels[3]);
  for (const std::size_t level : {2, 1, 0}) {
    sum = static_cast<double>(levels[level]) + sum / 256.0;
  }
  return static_cast<float>(sum * (step_a * step_b));
}

std::vector<float> product(const Rows& a, const Rows& b, int products, const Epilogue& epilogue,
                           std::int64_t most) {
  if (products == 10) most = std::min(most, kMostExactTenK);
  const std::vector<Line> rows = lines_of(a), cols = lines_of(b);
  std::vector<float> c;
  for (const Line& row : rows) {
    for (const Line& col : cols) {
      float element = epilogue.beta == 0.0F ? 0.0F : epilogue.c[c.size()];
      float beta = epilogue.beta;
      for (std::int64_t first = 0; first < a.k; first += most) {
        const std::int64_t end = std::min(a.k, first + most);
        const float scaled =
            multiply(epilogue.alpha, sum(row, col, products, static_cast<std::size_t>(first),
                                         static_cast<std::size_t>(end)));
        element = beta == 0.0F ? scaled : add(scaled, multiply(beta, element));
        beta = 1.0F;
      }
      c.push_back(element);
    }
  }
  return c;
}

namespace {

constexpr std::int64_t kPairs = 32, kChunk = 32, kMostChunks = 8, kSampledChunks = 2,
                       kSampledK = kSampledChunks * kChunk;

// At random from 0 to count - 1.
std::int64_t random_of(std::int64_t pair, std::int64_t count) {
  return static_cast<std::int64_t>(static_cast<std::uint32_t>(pair + 1) * 0x9E3779B1U) * count >>
         32;
}

// In the part of kPairs with this index.
std::int64_t random_of_part(std::int64_t pair, std::int64_t part, std::int64_t count) {
  return (part % kPairs * count + random_of(pair, count)) / kPairs;
}

// Elements of a row at some k; outliers are 0 if they are not kept.
std::vector<float> sampled(const Rows& rows, std::int64_t row, const std::vector<std::int64_t>& ks,
                           bool kept) {
  std::vector<float> values;
  double roots = 0.0;
  for (const std::int64_t k : ks) {
    values.push_back(rows.at(row, k));
    roots += near_root(std::fabs(values.back()));
  }
  const auto count = static_cast<std::int64_t>(ks.size());
  const double typical = std::pow(roots / static_cast<double>(count), 2);
  if (!kept) return values;
  const auto removes_from = [&](double bound, std::int64_t most) {
    const auto is_above = [&](float value) { return std::fabs(value) >= bound * typical; };
    const std::int64_t allowed = count < rows.k ? 1 + 2 * most * count / rows.k : most;
    if (std::ranges::count_if(values, is_above) > allowed) return false;
    std::ranges::replace_if(values, is_above, 0.0F);
    return true;
  };
  if (!removes_from(16.0, 4)) removes_from(512.0, 16);
  return values;
}

// The squared errors by which products are rounded to the unit of a sum, over that of random bits.
double rounding(const std::vector<float>& of_a, const std::vector<float>& of_b, double total) {
  const double unit = std::exp2(std::ilogb(total) - 23);
  double squares = 0.0;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    const double in_units = static_cast<double>(of_a[i]) * of_b[i] / unit;
    squares += 12.0 * std::pow(in_units - std::nearbyint(in_units), 2);
  }
  return squares;
}

// Adds how a pair matches, of `all_k` products; `at`: from 0 to 1.
void add_pair(const std::vector<float>& of_a, const std::vector<float>& of_b,
              const std::vector<double>& at, double all_k, Match& all) {
  double squares_a = 0.0, squares_b = 0.0, squares = 0.0, roots_a = 0.0, roots_b = 0.0, roots = 0.0,
         moment = 0.0, filled = 0.0, sum = 0.0, equal = 0.0;
  const auto root = [](float value) { return value > 0.0F ? near_root(value) : 0.0F; };
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double a = of_a[i], b = of_b[i],
                 product = root(std::fabs(of_a[i])) * root(std::fabs(of_b[i]));
    sum += a * b;
    squares_a += a * a;
    squares_b += b * b;
    squares += a * a * b * b;
    roots_a += root(std::fabs(of_a[i]));
    roots_b += root(std::fabs(of_b[i]));
    roots += product;
    moment += product * at[i];
    if (a != 0.0 && b != 0.0) ++filled;
    if (i < kChunk) continue;
    if (a != 0.0 && std::fabs(of_a[i - kChunk]) == std::fabs(a)) ++equal;
    if (b != 0.0 && std::fabs(of_b[i - kChunk]) == std::fabs(b)) ++equal;
  }
  const auto count = static_cast<double>(at.size());
  all.equal += equal / (2.0 * count) / kPairs;
  const bool is_zero = roots_a == 0.0 || roots_b == 0.0, has_products = filled > 0.0;
  if (has_products) {
    // Of all K products, of one sign or of either.
    const double total =
        std::max(std::fabs(sum) * (all_k / count), std::sqrt(squares * (all_k / count)));
    all.rounding += rounding(of_a, of_b, total) / count / kPairs;
  } else if (is_zero) {
    all.rounding += 1.0 / kPairs;
  }
  all.squares += (has_products ? count * squares / (squares_a * squares_b) : 1.0) / kPairs;
  all.centre += (has_products ? moment / roots : 0.5) / kPairs;
  if (has_products) all.roots = std::min(all.roots, count * roots / (roots_a * roots_b));
}

}  // namespace

Match match(const std::vector<Rows>& a, const std::vector<Rows>& b, bool kept) {
  Match all{0.0, std::numeric_limits<double>::infinity(), 0.0, 0.0};
  const auto matrices = static_cast<std::int64_t>(std::max(a.size(), b.size()));
  const std::int64_t all_k = a[0].k, chunks = (all_k + kChunk - 1) / kChunk;
  for (std::int64_t pair = 0; pair < kPairs; ++pair) {
    std::vector<std::int64_t> ks;
    std::vector<double> at;
    for (std::int64_t i = 0; i < std::min(chunks, kMostChunks); ++i) {
      const std::int64_t chunk =
          chunks < kMostChunks ? i : (i * chunks + random_of(pair, chunks)) / kMostChunks;
      for (std::int64_t k = chunk * kChunk; k < std::min((chunk + 1) * kChunk, all_k); ++k) {
        ks.push_back(k);
        at.push_back((static_cast<double>(k) + 0.5) / static_cast<double>(all_k));
      }
    }
    const auto matrix = static_cast<std::size_t>(random_of_part(pair, 29 * pair, matrices));
    const auto values = [&](const std::vector<Rows>& of, std::int64_t part) {
      const Rows& rows = of[of.size() > 1 ? matrix : 0];
      return sampled(rows, random_of_part(pair, part, rows.count), ks, kept);
    };
    add_pair(values(a, pair), values(b, 37 * pair + 11), at, static_cast<double>(all_k), all);
  }
  all.roots = std::min(all.roots, 1e30);  // of no products
  return all;
}

namespace {

// The k of a pair's sampled digits, of which the last chunk has none.
std::vector<std::int64_t> sampled_digits(std::int64_t pair, std::int64_t k) {
  const std::int64_t whole = std::max<std::int64_t>((k + kChunk - 1) / kChunk - 1, 1);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < kSampledChunks; ++i) {
    const std::int64_t first =
        (random_of(pair, whole) + i * whole / kSampledChunks) % whole * kChunk;
    for (std::int64_t at = first; at < std::min(first + kChunk, k); ++at) all.push_back(at);
  }
  return all;
}

// Of sampled elements of an operand, the means of their digits, the tail last.
struct SampledDigits {
  std::array<double, 4> squares{};
  std::array<double, 4> products{};  // of two digits of a row, not of the same one
  bool are_exact = true;

  SampledDigits(const std::vector<Rows>& of, std::int64_t matrices, std::int64_t times,
                std::int64_t plus) {
    constexpr double kShare = 1.0 / (kPairs * kSampledK);
    for (std::int64_t pair = 0; pair < kPairs; ++pair) {
      const auto matrix = static_cast<std::size_t>(random_of_part(pair, 29 * pair, matrices));
      const Rows& rows = of[of.size() > 1 ? matrix : 0];
      const Row row = quantized(rows, random_of_part(pair, times * pair + plus, rows.count));
      std::array<double, 4> sums{}, squares_of_row{};
      for (const std::int64_t k : sampled_digits(pair, rows.k)) {
        const auto [hi, mid, lo] = digits(row.integers[static_cast<std::size_t>(k)]);
        const std::array<int, 4> all{hi, mid, lo, row.tails[static_cast<std::size_t>(k)]};
        for (std::size_t i = 0; i < all.size(); ++i) {
          sums[i] += all[i];
          squares_of_row[i] += all[i] * all[i];
        }
        are_exact = are_exact && mid % 16 == 0 && lo == 0;
      }
      for (std::size_t i = 0; i < sums.size(); ++i) {
        squares[i] += squares_of_row[i] * kShare;
        products[i] += (sums[i] * sums[i] - squares_of_row[i]) * kShare / (kSampledK - 1);
      }
    }
  }
};

bool have_short_significands(const std::vector<Rows>& of) {
  for (const Rows& rows : of) {
    for (std::int64_t row = 0; row < rows.count; ++row) {
      for (std::int64_t k = 0; k < rows.k; ++k) {
        if (!has_short_significand(rows.at(row, k))) return false;
      }
    }
  }
  return true;
}

}  // namespace

DigitSquares digit_squares(const std::vector<Rows>& a, const std::vector<Rows>& b,
                           const Match& match, bool kept) {
  DigitSquares squares;
  squares.are_short = !kept && have_short_significands(a) && have_short_significands(b);
  if (!squares.are_short && match.equal <= 0.001) return squares;
  const auto matrices = static_cast<std::int64_t>(std::max(a.size(), b.size()));
  const SampledDigits of_a(a, matrices, 1, 0), of_b(b, matrices, 37, 11);
  constexpr double kUniform = (256.0 * 256.0 - 1.0) / 12.0;
  const auto chunks_k = static_cast<double>((a[0].k + kChunk - 1) / kChunk * kChunk);
  // Of rows whose digits have a mean other than 0, products add up. One mean must be above twice
  // what a sample of uniform digits shows by chance.
  const auto product = [](double mean, double other) {
    return std::max(std::max(mean, other) - 45.0, 0.0) * std::max(std::min(mean, other), 0.0);
  };
  const double six = of_a.squares[1] * of_b.squares[2] + of_a.squares[2] * of_b.squares[1] +
                     2.0 * chunks_k *
                         (product(of_a.products[1], of_b.products[2]) +
                          product(of_a.products[2], of_b.products[1])),
               eight = of_a.squares[2] * of_b.squares[2] +
                       chunks_k * product(of_a.products[2], of_b.products[2]);
  squares.six = std::max(six / (2.2 * kUniform * kUniform), 1.0);
  squares.eight = std::max(eight / (1.1 * kUniform * kUniform), 1.0);
  squares.are_exact = squares.are_short && of_a.are_exact && of_b.are_exact;
  if (squares.are_short || kept) return squares;
  // The mean rounding of few values is not 0. It adds up where the other operand has one sign.
  const auto one_sign = [](const SampledDigits& of) {
    return of.squares[0] > 0.0 ? std::max(of.products[0] / of.squares[0], 0.0) : 0.0;
  };
  const auto rounded = [&](const SampledDigits& of, const SampledDigits& other) {
    const double of_one_side = chunks_k * std::max(of.products[3], 0.0) * one_sign(other);
    return (of.squares[3] + of_one_side) / (1.1 * kUniform);
  };
  squares.one_sign = one_sign(of_a) * one_sign(of_b);
  squares.rounded_a = rounded(of_a, of_b);
  squares.rounded_b = rounded(of_b, of_a);
  return squares;
}

Statistics statistics(const std::vector<Rows>& a, const std::vector<Rows>& b) {
  const Match of_pairs = match(a, b);
  return {widths(a),
          widths(b),
          of_pairs,
          false,
          digit_squares(a, b, of_pairs),
          static_cast<double>((a[0].k + kChunk - 1) / kChunk * kChunk)};
}

double expected_error(int products, const Statistics& of, double summed) {
  const Widths &a = of.a, &b = of.b;
  const double left_out = products == 6   ? 7.9e-16 * of.digits.six
                          : products == 8 ? 1.2e-20 * of.digits.eight
                                          : (of.match.equal > 0.001 ? 2e-19 : 5e-20);
  // Sums in FP32 are larger where all elements have one sign, and so are their roundings.
  const double larger = 1.0 + summed * 2.0 / 3.0 * of.digits.one_sign;
  const auto rounded = [&](double times) {
    return products == 10 ? 1.2e-15 / 65536.0 : 1.2e-15 * std::max(times / larger, 1.0);
  };
  const double rounded_a = rounded(of.digits.rounded_a), rounded_b = rounded(of.digits.rounded_b);
  // Where large products come last, few are added to them; and some additions hardly round.
  const double follow = std::pow(std::min(1.0, 2.02 * (1.0 - of.match.centre)), 4);
  const auto in_fp32_of = [&](bool are_rounded) {
    double added = are_rounded ? std::min(1.0, 1.03 * of.match.rounding) : 1.0;
    if (of.kept) added = std::min(added, (1.0 - a.zeros) * (1.0 - b.zeros));
    const double error = 1.7e-8 * 1.7e-8 * summed * added * follow;
    return of.kept ? error : std::max(error, 1.5 * 3.6e-15);
  };
  // Nor do digits of short significands round, or leave anything out.
  const bool does_not_round = products == 6   ? of.digits.are_exact
                              : products == 8 ? of.digits.are_short
                                              : false;
  const double in_fp32 = in_fp32_of(!does_not_round);
  const double loss = std::max(1.0, 1.0 / of.match.squares),
               most_loss = std::pow(std::min(1.0, 1.15 * of.match.roots), -8);
  // Where both operands are wide, few products make up an element.
  const double both = std::max(1.0, std::sqrt(std::min(a.spread, b.spread) / 16.0));
  const double last =
      3.6e-15 / 2.0 + (products == 10 ? 0.0 : 4.8e-15 * loss * a.width * b.width / of.k);
  const double error =
      (loss * (left_out * a.width * b.width + rounded_a * a.width + rounded_b * b.width) +
       std::max(last, 3.6e-15)) /
      in_fp32;
  const double exact_error = products == 8 && of.digits.are_short && !of.digits.are_exact
                                 ? 1.5 * last / in_fp32_of(true)
                                 : 0.0;
  // Of the row of the largest spread and a mean column, or the other way round.
  const auto error_of_most = [&](const Widths& of_most, const Widths& other, double rounded_most,
                                 double rounded_other) {
    return (most_loss * (left_out * both * of_most.most * (of.kept ? other.width : other.spread) +
                         rounded_most * of_most.most + rounded_other * other.spread) +
            3.6e-15) /
           in_fp32 / 2.0;
  };
  const double times_a = a.width == 0.0 ? 1.0 : a.spread / a.width;
  const double times_b = b.width == 0.0 ? 1.0 : b.spread / b.width;
  return std::max({error, exact_error,
                   error_of_most(a, b, rounded_a * times_b, rounded_b * times_a),
                   error_of_most(b, a, rounded_b * times_a, rounded_a * times_b)});
}

int decision(const Statistics& of, double summed, bool allows_ten, double in_fp32) {
  // Almost equal elements are all rounded to the same side.
  const auto is_flat = [](double width) { return width > 0.0 && width < 0.6366 * 1.003; };
  const bool are_flat = is_flat(of.a.width) && is_flat(of.b.width);
  Statistics uniform = of;
  uniform.digits.eight = uniform.digits.rounded_a = uniform.digits.rounded_b = 1.0;
  uniform.digits.are_exact = uniform.digits.are_short;
  uniform.k = 1e30;
  for (const int products : {6, 8, 10}) {
    if (products < 10 ? are_flat : !allows_ten) continue;
    const double allowed = products == 10 ? std::max(summed, in_fp32) : summed;
    if (expected_error(products, of, allowed) <= 1.0) return products;
    // Ten are at least as accurate as eight of evenly distributed digits.
    if (products == 10 && !are_flat && expected_error(8, uniform, summed) <= 1.0) return products;
  }
  return 64;
}

}  // namespace tilegate::models::int8x3
