#include "models/fp16x3.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "models/float32.hpp"

namespace tilegate::models::fp16x3 {
namespace {

constexpr std::int64_t kChunk = 32, kSlice = 16, kRunsOfSum = 16;
constexpr double kInf = std::numeric_limits<double>::infinity();

// significand · 2^(exponent - 10); subnormal halves have the exponent of the least normal ones.
struct ExactFp16 {
  std::int64_t significand;
  int exponent;
};

ExactFp16 exact_fp16(std::uint16_t bits) {
  const int field = bits >> 10 & 31, fraction = bits & 1023;
  const std::int64_t magnitude = field == 0 ? fraction : fraction + 1024;
  return {bits >> 15 != 0 ? -magnitude : magnitude, std::max(field, 1) - 15};
}

// value · 2^places, cut off towards zero.
std::int64_t cut(std::int64_t value, int places) {
  if (places >= 0) return value * (std::int64_t{1} << places);
  return places < -62 ? 0 : value / (std::int64_t{1} << -places);
}

// sum · 2^exponent, cut off towards zero to 24 bits.
float cut_to_float(std::int64_t sum, int exponent) {
  while (std::llabs(sum) >= 1 << 24) {
    sum /= 2;
    ++exponent;
  }
  return std::ldexp(static_cast<float>(sum), exponent);
}

// Both halves of one slice: small products first.
float sum_of_run(const Row& a, const Row& b, std::size_t begin, std::size_t end) {
  float acc = 0.0F;
  for (std::size_t chunk = begin; chunk < end; chunk += kChunk) {
    for (std::size_t k = chunk; k < chunk + kChunk; k += kSlice) {
      acc = multiply_16(acc, &a.hi[k], &b.lo[k]);
      acc = multiply_16(acc, &a.lo[k], &b.hi[k]);
    }
    for (std::size_t k = chunk; k < chunk + kChunk; k += kSlice) {
      acc = multiply_16(acc, &a.hi[k], &b.hi[k]);
    }
  }
  return acc;
}

float sum(const Row& a, const Row& b, int run) {
  const std::size_t end = a.hi.size(), of_run = static_cast<std::size_t>(run * kChunk),
                    of_sum = of_run * kRunsOfSum;
  float total = 0.0F;
  for (std::size_t first = 0; first < end; first += of_sum) {
    float sums = 0.0F;
    for (std::size_t k = first; k < std::min(end, first + of_sum); k += of_run) {
      sums = add(sums, sum_of_run(a, b, k, std::min(end, k + of_run)));
    }
    total = add(total, sums);
  }
  return multiply(multiply(total, a.step), b.step);
}

std::vector<Row> all(const Rows& rows) {
  std::vector<Row> list;
  for (std::int64_t i = 0; i < rows.count; ++i) {
    list.push_back(split(rows, i));
    const std::size_t chunks = (list.back().hi.size() + kChunk - 1) / kChunk;
    list.back().hi.resize(chunks * kChunk);
    list.back().lo.resize(chunks * kChunk);
  }
  return list;
}

}  // namespace

std::uint16_t to_fp16(float value) {
  const Exact x = exact(value);
  if (x.magnitude == 0) return x.negative ? 0x8000 : 0;
  const int unit = std::max(std::ilogb(value) - 10, -24);
  const std::int64_t magnitude = std::llabs(nearest_multiple(value, unit));
  // The leading bit of a normal number adds 1 to the exponent's field, which begins at 2^-14.
  return static_cast<std::uint16_t>((x.negative ? 0x8000 : 0) + (unit + 24) * 1024 + magnitude);
}

float value_of(std::uint16_t bits) {
  const ExactFp16 x = exact_fp16(bits);
  const float magnitude =
      std::ldexp(static_cast<float>(std::llabs(x.significand)), x.exponent - 10);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

Row split(const Rows& rows, std::int64_t row) {
  float largest = 0.0F;
  double magnitudes = 0.0, signed_sum = 0.0, squares = 0.0;
  for (std::int64_t k = 0; k < rows.k; ++k) {
    const float value = rows.at(row, k);
    largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : INFINITY;
    if (largest == INFINITY) break;
    magnitudes += std::fabs(value);
    signed_sum += value;
    squares += static_cast<double>(value) * value;
  }
  Row result;
  result.squares = squares;
  result.largest_squared = static_cast<double>(largest) * largest;
  result.one_sign = magnitudes > 0.0 ? std::fabs(signed_sum) / magnitudes : 0.0;
  const auto count = static_cast<std::size_t>(rows.k);
  if (largest != 0.0F && (largest < 0x1p-56F || largest > 0x1p60F)) {
    result.step = INFINITY;
    result.counted = kInf;
    return result;
  }
  float factor = 0.0F;
  if (largest != 0.0F) {  // into [2^14, 2^15)
    result.step = std::ldexp(1.0F, std::ilogb(largest) - 14);
    factor = std::ldexp(1.0F, 14 - std::ilogb(largest));
  }
  result.hi.resize(count);
  result.lo.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    const float scaled = multiply(rows.at(row, static_cast<std::int64_t>(k)), factor);
    result.hi[k] = to_fp16(scaled);
    result.lo[k] = to_fp16(add(scaled, -value_of(result.hi[k])));
    if (std::fabs(scaled) >= 0x1p-2F) result.counted += 1.0;
  }
  if (largest != 0.0F && result.counted < static_cast<double>(rows.k) / 8.0) result.counted = kInf;
  return result;
}

Statistics statistics(const std::vector<Rows>& products) {
  Statistics sum;
  double count = 0.0;
  for (const Rows& rows : products) {
    for (std::int64_t i = 0; i < rows.count; ++i) {
      const Row row = split(rows, i);
      sum.counted += row.counted;
      sum.one_sign += row.one_sign;
      sum.squares += row.squares;
      sum.largest_squares += row.largest_squared;
    }
    count += static_cast<double>(rows.count);
  }
  return {sum.counted / count, sum.one_sign / count, sum.squares, sum.largest_squares};
}

// All products and acc are cut off 25 binary places below the largest exponent of them, and added;
// the exponent of a product is the sum of those of its factors.
float multiply_16(float acc, const std::uint16_t* a, const std::uint16_t* b) {
  constexpr int kKept = 25;
  const Exact start = exact(acc);
  int largest = start.magnitude == 0 ? -133 : start.exponent + 23;
  for (std::size_t k = 0; k < kSlice; ++k) {
    const ExactFp16 x = exact_fp16(a[k]), y = exact_fp16(b[k]);
    if (x.significand * y.significand != 0) {
      largest = std::max(largest, x.exponent + y.exponent);
    }
  }
  const int unit = largest - kKept;
  const auto magnitude = static_cast<std::int64_t>(start.magnitude);
  std::int64_t sum = cut(start.negative ? -magnitude : magnitude, start.exponent - unit);
  for (std::size_t k = 0; k < kSlice; ++k) {
    const ExactFp16 x = exact_fp16(a[k]), y = exact_fp16(b[k]);
    const std::int64_t product = x.significand * y.significand;
    if (product != 0) sum += cut(product, x.exponent + y.exponent - 20 - unit);
  }
  return sum == 0 ? 0.0F : cut_to_float(sum, unit);
}

std::vector<float> product(const Rows& a, const Rows& b, int run, const Epilogue& epilogue) {
  const std::vector<Row> rows = all(a), cols = all(b);
  std::vector<float> c;
  for (const Row& row : rows) {
    for (const Row& col : cols) {
      const float scaled = multiply(epilogue.alpha, sum(row, col, run));
      c.push_back(epilogue.beta == 0.0F
                      ? scaled
                      : add(scaled, multiply(epilogue.beta, epilogue.c[c.size()])));
    }
  }
  return c;
}

double few(const Statistics& of) { return of.squares / of.largest_squares; }

double expected_error(int run, const Statistics& a, const Statistics& b, const Summed& summed) {
  // Of a run, on operands of either sign, and of one; cuBLAS's, per product that it adds up.
  const double of_run = run == 2 ? 2.35e-7 : 1.06e-7, of_biased_run = run == 2 ? 2.5e-7 : 0.86e-7;
  constexpr double kCublas = 1.7e-8;
  const double share = a.counted / summed.k * (b.counted / summed.k);
  const double one_sign = a.one_sign * b.one_sign;
  const double grown = one_sign * one_sign * summed.k / 2.0;
  const double runs = summed.k / static_cast<double>(kChunk * run);
  const double additions = std::min<double>(runs, kRunsOfSum) + runs / kRunsOfSum;
  const double added = kCublas * kCublas * additions;
  const double error =
      of_run * of_run + added + grown * (of_biased_run * of_biased_run + added * 2.0 / 3.0);
  const double of_fp32 = kCublas * kCublas * share * (summed.either_sign + grown * summed.one_sign);
  const double of_few = 1.0 + 6.0 / std::min(few(a), few(b));
  return run * error * of_few / of_fp32;
}

int decision(const Statistics& a, const Statistics& b, const Summed& summed) {
  if (!(a.counted * b.counted < kInf)) return 0;  // Inf · 0 is NaN
  constexpr double kMost = std::numeric_limits<float>::max();
  if (!(a.squares <= kMost && b.squares <= kMost)) return 0;  // unknown in FP32
  const bool almost_equal = std::min(few(a), few(b)) >= 0.997 * summed.k;
  if (almost_equal && a.one_sign * b.one_sign >= 0.5) return 0;
  for (const int run : {2, 1}) {
    if (run == 2 && summed.k < 1024) continue;
    if (expected_error(run, a, b, summed) <= 1.0) return run;
  }
  return 0;
}

}  // namespace tilegate::models::fp16x3
