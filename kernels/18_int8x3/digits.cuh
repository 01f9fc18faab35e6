// The Ozaki scheme in INT8 (citations: README.md): a float as three signed 8-bit digits, the fold
// of digit products, and the decision how many products a call needs. For host and device.
//
// Each row of op(A) and column of op(B) is scaled and rounded to integers x = hi·2^16 + mid·2^8 +
// lo with digits in [-128, 127]. So |x| <= 0x7F7F7F: above it the top digit would be 128. Where the
// device decides for ten products, a fourth digit, the tail, holds what rounding left over.
#pragma once

#include <cmath>
#include <cstdint>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate::int8x3 {

constexpr int kPlanes = 3;                   // hi, mid, lo; the tail has a plane of its own
constexpr std::int32_t kLargest = 0x7F7F7F;  // largest integer of three digits
constexpr float kFull = 8355700.0F;  // scaled largest element, less than kLargest after rounding
constexpr std::uint32_t kShortBits = 0xFFF;  // low bits that are 0 in a short significand

// Rounds to the nearest integer, ties to even.
__host__ __device__ inline std::int32_t round_to_int(float value) {
#if defined(__CUDA_ARCH__)
  return __float2int_rn(value);
#else
  return static_cast<std::int32_t>(std::lrint(value));
#endif
}

// Error bound of a product of two elements, relative to the row's largest element times the
// column's: each operand is rounded to an integer, by 2^-23 of its largest, and its step, too; the
// digit products that are left out sum to 2^23 + 2^14 of 2^44 at most.
constexpr double kOperandError = 2 * 0x1p-22 + 0x1.01p-21;

// Half of the exponent and of the significand: within 4 % of the square root.
__host__ __device__ inline float near_root(float magnitude) {
  return float_of((bits_of(magnitude) >> 1) + 0x1FBB4F2EU);
}

// Statistics of a row, from which its scale and the decision are computed.
struct RowStats {
  float largest = 0.0F, sum = 0.0F;  // of magnitudes; the sum is NaN or Inf where an element is
  float roots = 0.0F;                // sum of the square roots of every kRootsK-th magnitude
  std::uint32_t bits = 0;            // bitwise or of all elements

  __host__ __device__ void add(float value) {
    const float magnitude = std::fabs(value);
    largest = std::fmax(largest, magnitude);
    sum += magnitude;
    bits |= bits_of(value);
  }
  __host__ __device__ void add_root(float value) { roots += near_root(std::fabs(value)); }
  __host__ __device__ void add(const RowStats& other) {
    largest = std::fmax(largest, other.largest);
    sum += other.sum;
    roots += other.roots;
    bits |= other.bits;
  }
};
constexpr int kRootsK = 4;

__device__ inline float4 vector_of(const RowStats& stats) {
  return make_float4(stats.largest, stats.sum, stats.roots, float_of(stats.bits));
}
__device__ inline RowStats stats_of(const float4& v) { return {v.x, v.y, v.z, bits_of(v.w)}; }

// Quantization of a row: the factor from elements to integers, and the dequantization step, in
// units of the top digit.
struct Scale {
  float to_integer = 0.0F, step = 0.0F;
};

// Rows with short significands, such as integers below 4096, are scaled by a power of two: nothing
// is rounded. Other rows are scaled to the full range of the digits. A power of two could leave one
// bit unused, and the products left out would then weigh more. The step is rounded up to 12 bits,
// so that the product of a row's and a column's step is exact.
__host__ __device__ inline Scale scale_of(const RowStats& stats) {
  if (stats.largest == 0.0F || !is_scalable(stats)) return {};
  Scale scale;
  if ((stats.bits & kShortBits) != 0) {
    const std::uint32_t step = bits_of(stats.largest * (65536.0F / kFull));
    scale.step = float_of((step + kShortBits) & ~kShortBits);
    scale.to_integer = 65536.0F / scale.step;
  } else {
    // The largest element takes 22 bits before the point, or 21 where the top digit would be 128.
    const std::uint32_t exponent = bits_of(stats.largest) >> 23;
    scale.to_integer = float_of((127U + 127U + 22U - exponent) << 23);
    if (round_to_int(stats.largest * scale.to_integer) > kLargest) scale.to_integer *= 0.5F;
    scale.step = 65536.0F / scale.to_integer;
  }
  return scale;
}

// The digits of value, each plus 128, in the three low bytes of a word: then no carries propagate.
// The sum with 2^23, or with 2^24 if value is negative, has a unit of 1. So the FMA rounds the
// scaled value to an integer, once.
__host__ __device__ inline std::uint32_t biased_digits(float value, const Scale& scale) {
  const float added = value < 0.0F ? 0x1p24F : 0x1p23F;
  const std::uint32_t sum = bits_of(std::fma(value, scale.to_integer, added));
  return sum + bits_of(added) + (0x808080U - 2 * 0x4B000000U);  // 2^23 is 0x4B000000
}

// The scale of a row that has been split with this step.
__host__ __device__ inline Scale scale_of_step(float step) {
  return {step == 0.0F ? 0.0F : 65536.0F / step, step};
}

// The integer that value is rounded to.
__host__ __device__ inline std::int32_t integer_of(float value, const Scale& scale) {
  return static_cast<std::int32_t>(biased_digits(value, scale) & 0xFFFFFFU) - 0x808080;
}

// The tail of value: what rounding to an integer left over, in units of 1/256; 128 becomes 127.
__host__ __device__ inline std::int32_t tail_of(float value, const Scale& scale) {
  const auto rounded = static_cast<float>(integer_of(value, scale));
  const std::int32_t tail = round_to_int(std::fma(value, scale.to_integer, -rounded) * 256.0F);
  return tail < -127 ? -127 : tail > 127 ? 127 : tail;
}

// The tails of four values, as bytes.
__host__ __device__ inline std::uint32_t tails_of(const float* values, const Scale& scale) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    word |= (static_cast<std::uint32_t>(tail_of(values[i], scale)) & 0xFFU) << 8 * i;
  }
  return word;
}

// PTX prmt: four of the eight bytes of `low` and `high`, selected by the selector's hex digits.
__host__ __device__ inline std::uint32_t select_bytes(std::uint32_t low, std::uint32_t high,
                                                      std::uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(low, high, selector);
#else
  const std::uint64_t all = std::uint64_t{high} << 32 | low;
  std::uint32_t selected = 0;
  for (int i = 0; i < 32; i += 8) {
    selected |= static_cast<std::uint32_t>(all >> (selector >> i / 2 & 7) * 8 & 0xFFU) << i;
  }
  return selected;
#endif
}

// Selectors for prmt, for a pair of integers: of their upper two digits, and of their lowest.
struct PairSelectors {
  std::uint32_t upper = 0x6251, lowest = 0x0040;
};
// The same if the second integer of the pair comes first.
constexpr PairSelectors kExchangedPairs{.upper = 0x2615, .lowest = 0x0004};

// Digit `plane` of four integers as four int8, the first in the low byte.
__host__ __device__ inline std::uint32_t pack_digits(const std::uint32_t (&biased)[4], int plane,
                                                     const PairSelectors& selectors = {}) {
  const std::uint32_t of_two = plane == kPlanes - 1 ? selectors.lowest : selectors.upper;
  return select_bytes(select_bytes(biased[0], biased[1], of_two),
                      select_bytes(biased[2], biased[3], of_two), plane == 0 ? 0x7632 : 0x5410) ^
         0x80808080U;
}

// sum += a·b, each of four int8. PTX dp4a.
__host__ __device__ inline void add_dot(std::uint32_t a, std::uint32_t b, int& sum) {
#if defined(__CUDA_ARCH__)
  sum = __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
#else
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<std::int8_t>(a >> i & 0xFFU) * static_cast<std::int8_t>(b >> i & 0xFFU);
  }
#endif
}

// Levels: Σ hi·hi, Σ (hi·mid + mid·hi), Σ (hi·lo + mid·mid + lo·hi), and, with eight products,
// Σ (mid·lo + lo·mid). Exact in int32 for K up to kMaxExactK, the fold included. Ten products add
// hi·tail and tail·hi to the last level: exact for K up to kMaxExactTenK.
constexpr std::int64_t kMaxExactK = (std::int64_t{1} << 31) / (3 * 128 * 128 + 128 + 1) / 32 * 32;
constexpr std::int64_t kMaxExactTenK = (std::int64_t{1} << 31) / (4 * 128 * 128 + 1) / 32 * 32;
constexpr std::int64_t max_exact_k(bool allows_ten) {
  return allows_ten ? kMaxExactTenK : kMaxExactK;
}

// The sum of the levels, in units of hi·hi. The lower levels are added as integers first, rounded
// to the unit of level 1: an error of 2^-9 units, once.
template <int kLevels>
__host__ __device__ inline float fold(const std::int32_t (&level)[kLevels]) {
  std::int32_t low = level[2];
  if constexpr (kLevels == 4) low += (level[3] + 128) >> 8;
  low = level[1] + ((low + 128) >> 8);
  return static_cast<float>(level[0]) + static_cast<float>(low) * 0x1p-8F;
}

// Of ten products nothing but the result is rounded: where all elements of C are almost equal, all
// are rounded to the same side, and so are the factors of all rows. With three roundings 1 + 1e-7·N
// had an error of 2.3 · 2^-24, with that of the factors alone 1.8 · 2^-24.

// The step that a row's factor, 65536 / step rounded, belongs to; 0 for a row of zeros.
__host__ __device__ inline double exact_step(float step) {
  return 65536.0 / static_cast<double>(65536.0F / step);
}

// `step`: the product of a row's and a column's exact step.
__host__ __device__ inline float scaled_fold_ten(const std::int32_t (&level)[4], double step) {
  double sum = level[3];
  for (int i = 2; i >= 0; --i) sum = level[i] + sum * 0x1p-8;
  return static_cast<float>(sum * step);
}

// The decision: the device chooses the products of a call from the statistics of the split
// pass. It takes the fewest products for which two predicted errors are not above those of FP32
// (DECISION.md has the reasons).
//
// 1. The relative error in the Frobenius norm. The width of a row is W = (largest / root mean
//    square)². The root mean square is estimated from the mean magnitude, as that of normal
//    elements; the width is K at most. Where the mean widths of the operands are W_A and W_B, the
//    squared error is about
//
//      left_out·W_A·W_B + rounded·W_A + rounded·W_B + last
//
//    for the digit products that are left out, for rounding A and B to digits, and for the last
//    steps: kFolded in FP32, or half of that and kLowLevels·W_A·W_B / K in the fold. The squared
//    error of a serial sum of K products in FP32 is kCublasError²·K.
//
// 2. The largest error of an element of C, relative to (|A|·|B|)ij. An element of |A|·|B| may be
//    the sum of products of typical magnitudes alone. The typical magnitude of a row is the square
//    of the mean square root, and at most the mean without the largest element. The spread of a row
//    is S = W·(mean magnitude / typical magnitude)² / kTypical, and at least W. So the squared
//    error grows by S_A / W_A for typical elements of A, and by S_B / W_B for those of B:
//
//      left_out·S_A·S_B + rounded·S_A·(S_B / W_B) + rounded·S_B·(S_A / W_A) + kFolded
//
//    That is, each operand has S for W, and its rounding term is multiplied by S / W of the other
//    operand. This is computed twice: with the largest spread of A's rows and the mean of B's, and
//    the other way round. S / W is the quotient of means. Where both operands are wide, few
//    products make up an element: then left_out counts √(S / kBothWide) times, with the smaller
//    mean spread. Both results may be kWidest times the squared error of FP32.
//
// Both grow where sampled rows and columns match badly along k (match.cuh), the first by the match
// of squares, the second by that of roots. The squared error of FP32 is less where its additions
// hardly round, and where large products come last.
//
// left_out and rounded are for uniformly distributed digits. Where the digits of a sample are not,
// both grow (DigitSquares).
//
// Both predictions expect independent roundings. Rows of almost equal elements round them all to
// the same side: where both operands consist of such, six or eight products may have an error of
// 2^-23, and are not taken. Their width is kNormal, and up to 1.001 times that because the step is
// rounded up.

// Roundings of an element of C: fold, scaling and epilogue, with a margin.
constexpr std::int64_t kDigitsRoundingChain = 16;

// kFp64: without digits. multiply_warps multiplies in FP32 then, and says so.
enum class Path : std::int32_t { kSix = 6, kEight = 8, kTen = 10, kFp32 = 32, kFp64 = 64 };

// The constants are for uniformly distributed digits, of standard deviation 73.9, and for rounding
// errors of standard deviation √(1/12).
constexpr float kLeftOut = 7.9e-16F;   // six: 2·(73.9 / 2^15 · 73.9 / 2^23)²
constexpr float kLowest = 1.2e-20F;    // eight: (73.9 / 2^23 · 73.9 / 2^23)², with margin
constexpr float kLeftOutTen = 5e-20F;  // ten: three products of level 4, with margin
constexpr float kFewLeftOutTen = 4.0F * kLeftOutTen;  // of few values, whose digits may be large
constexpr float kRounded = 1.2e-15F;                  // (√(1/12) / 2^23)², with margin
constexpr float kRoundedTen = kRounded / 65536.0F;
constexpr float kLowLevels = 4.8e-15F;  // ten: none. ±2^-9 of a sum in units of 127.5², squared
constexpr float kFolded = 3.6e-15F;     // (1 / 2^24)²
constexpr float kLeastAllowed = 1.5F * kFolded;  // of the squared error, but without outliers
constexpr float kNormal = 0.6366F;  // (mean magnitude / root mean square)² of normal elements
constexpr float kTypical = 2.5F;    // (mean / typical magnitude)² of elements that are not spread
constexpr float kFlat = 1.003F * kNormal;  // the largest width of rows of almost equal elements
constexpr float kExactWidth = 1.0F;  // the least width of rows that are not rounded: they never are
constexpr float kBothWide = 16.0F;   // a spread
constexpr float kWidest = 2.0F;      // the largest spread may have so much of the allowed error²
constexpr float kMatchMargin = 1.01F;  // of the centre, for the few pairs that are sampled
constexpr float kRootsMargin = 1.15F;  // of the least match of roots
constexpr float kRoundingMargin = 1.03F;

struct alignas(16) Width {
  float width = 0.0F, spread = 0.0F;
  float is_long = 0.0F;  // 1: not all significands are short
};

// S / W of a row. `filled`: the share of elements that count for the means.
__host__ __device__ inline float spread_over_width(const RowStats& stats, float k,
                                                   float filled = 1.0F) {
  // Sums of as many elements, as of the mean: of the typical magnitude, and of all but the largest.
  const float roots = std::ceil(k * (1.0F / kRootsK));
  const float typical = stats.roots * stats.roots * (k / (roots * roots)) / filled;
  const float ratio = stats.sum / std::fmin(typical, std::fmax(stats.sum - stats.largest, 0.0F));
  return std::fmax(ratio * ratio * (1.0F / kTypical), 1.0F);
}

// Width and spread of a row; infinite if it cannot be scaled.
__host__ __device__ inline Width width_of(const RowStats& stats, const Scale& scale, float k) {
  if (!is_scalable(stats)) return {INFINITY, INFINITY};
  if (stats.largest == 0.0F) return {};
  const float largest = scale.step * (kFull / 65536.0F) * (k / stats.sum);  // over the mean
  const bool is_exact = (stats.bits & kShortBits) == 0;
  const float width =
      std::fmax(std::fmin(kNormal * (largest * largest), k), is_exact ? kExactWidth : 0.0F);
  return {width, width * spread_over_width(stats, k), is_exact ? 0.0F : 1.0F};
}

// Which elements of a row are outliers. Elements are grouped in octaves by their exponent. Octaves
// are taken out from the largest down. The next one goes if it is kFar octaves above the typical
// magnitude and at most kFewOutliers elements are then out, or kVeryFar above and at most
// kMaxOutliers are out. Each outlier costs one FMA per element of its row or column of C.
constexpr int kFar = 4, kVeryFar = 9;  // octaves
constexpr int kFewOutliers = 4, kMaxOutliers = 16;

// The most outliers of a sample: twice its share of those of a row, and one more.
__host__ __device__ inline int outliers_of_sample(int most, std::int64_t sampled,
                                                  std::int64_t all) {
  return sampled < all ? 1 + static_cast<int>(2 * most * sampled / all) : most;
}

// The same of a row without its outliers (refine.cuh). Few elements no longer dominate its mean
// square. So W is (largest² / mean square), with the true mean square and without the limit K.
// Zeros do not count: no product of them is rounded. `filled`: the share of elements other than
// zero, above 0 unless the row is zero; `mean_square`: of all elements times `factor`.
__host__ __device__ inline Width width_without_outliers(const RowStats& stats, const Scale& scale,
                                                        float k, float filled, float mean_square,
                                                        float factor) {
  constexpr float kLeastSquare = 0x1p-100F;  // below it the squares have lost bits
  if (!is_scalable(stats) || stats.largest == 0.0F) return width_of(stats, scale, k);
  const float largest = scale.step * (kFull / 65536.0F);
  const float over_mean = largest * (k * filled / stats.sum), over_root = largest * factor;
  float width = kNormal * (over_mean * over_mean);
  if (width < kFlat) {
    width = std::fmin(width, kNormal);
  } else if (mean_square > kLeastSquare) {
    width = std::fmax(over_root * over_root * filled / mean_square, kNormal);
  }
  return {width, width * spread_over_width(stats, k, filled)};
}

// Of the rows of an operand.
struct Widths {
  float width = 0.0F, spread = 0.0F;  // means
  float most = 0.0F;                  // the largest spread
  // 0 if all rows have short significands. Without outliers: the largest share of zeros of a row.
  float last = 0.0F;
};

// How rows of op(A) and columns of op(B) match, along k: of sampled pairs of both (match.cuh). For
// unrelated rows all are what they are here.
struct Match {
  float squares = 1.0F;  // mean of a²·b², over the mean of a² times that of b²; mean over the pairs
  float roots = 1.0F;    // the same of √|a| and √|b|; the least of the pairs
  float centre = 0.5F;   // of the products along k, from 0 to 1, weighted by √|a·b|; mean
  // Squared rounding error of adding a product to a sum in FP32, over that of random bits; mean. It
  // is small where products are 0, or have few bits.
  float rounding = 1.0F;
  // Share of elements that are equal to another one; mean. Above kFewValues digits may be far from
  // uniform.
  float equal = 0.0F;
};
constexpr float kFewValues = 0.001F;

// Sums over sampled elements of a row.
struct RowDigits {
  int hi = 0, mid = 0, lo = 0, tail = 0;  // digits
  int hi_squares = 0, mid_squares = 0, lo_squares = 0, tail_squares = 0;
  int rest = 0;  // 0: lo is 0 and mid a multiple of 16, so that nothing is left out, nor rounded

  // Four elements.
  __host__ __device__ void add(std::uint32_t his, std::uint32_t mids, std::uint32_t los,
                               std::uint32_t tails) {
    constexpr std::uint32_t kOnes = 0x01010101U;
    add_dot(his, kOnes, hi);
    add_dot(his, his, hi_squares);
    add_dot(mids, kOnes, mid);
    add_dot(mids, mids, mid_squares);
    add_dot(los, kOnes, lo);
    add_dot(los, los, lo_squares);
    add_dot(tails, kOnes, tail);
    add_dot(tails, tails, tail_squares);
    add_dot((mids & 0x0F0F0F0FU) | (los >> 4 & 0x0F0F0F0FU) | (los & 0x0F0F0F0FU), kOnes, rest);
  }
};

// The squared errors of six and of eight products by what they leave out, and by rounding each
// operand to digits, over those of uniformly distributed digits; at least 1.
struct DigitSquares {
  float six = 1.0F, eight = 1.0F, rounded_a = 1.0F, rounded_b = 1.0F;
  float rest = 0.0F;  // of both samples; 0: products are exact
};

// Sums over rows of an operand.
struct DigitSums {
  int hi_squares = 0, mid_squares = 0, lo_squares = 0, tail_squares = 0, rest = 0;  // of RowDigits
  // Of two digits of a row, not of the same one.
  int hi_products = 0, mid_products = 0, lo_products = 0, tail_products = 0;
};

// Of so many rows of each operand, `sampled` elements each. Digits of a row whose mean is not 0,
// such as many of -128, add up in all K products: squared, K times as fast. So do roundings of few
// values, beside elements of one sign. If those of both operands have one sign, sums in FP32 of
// `summed` products each are larger, and so are their roundings.
__host__ __device__ inline DigitSquares squares_of(const DigitSums& a, const DigitSums& b, int rows,
                                                   int sampled, float k, float summed) {
  constexpr float kUniform = 5461.25F;  // mean square of a uniform digit: (256² − 1) / 12
  constexpr float kMargin = 1.1F;       // the sample's
  constexpr float kNoise = 45.0F;       // of a mean product: twice what 32 rows of 64 digits have
  const float of_squares = 1.0F / (static_cast<float>(rows * sampled) * kUniform),
              of_products = 1.0F / static_cast<float>(rows * sampled * (sampled - 1));
  const auto square = [=](int sum) { return static_cast<float>(sum) * of_squares; };
  const auto mean = [=](int sum) { return static_cast<float>(sum) * of_products / kUniform; };
  // Beside a mean that is clearly not 0, the other may not be 0, either.
  const auto product = [=](int sum_a, int sum_b) {
    const float most = std::fmax(mean(sum_a), mean(sum_b)),
                least = std::fmin(mean(sum_a), mean(sum_b));
    return std::fmax(most - kNoise / kUniform, 0.0F) * std::fmax(least, 0.0F);
  };
  const float six = square(a.mid_squares) * square(b.lo_squares) +
                    square(a.lo_squares) * square(b.mid_squares) +
                    2.0F * k *  // (x + y)² is at most 2·(x² + y²)
                        (product(a.mid_products, b.lo_products) +
                         product(a.lo_products, b.mid_products)),
              eight = square(a.lo_squares) * square(b.lo_squares) +
                      k * product(a.lo_products, b.lo_products);
  // The squared mean of an operand's elements over their mean square.
  const auto one_sign = [=](const DigitSums& of) {
    const float share = static_cast<float>(of.hi_products) /
                        (static_cast<float>(of.hi_squares) * static_cast<float>(sampled - 1));
    return of.hi_squares > 0 ? std::fmax(share, 0.0F) : 0.0F;
  };
  const float sign_a = one_sign(a), sign_b = one_sign(b),
              in_fp32 = 1.0F + summed * (2.0F / 3.0F) * (sign_a * sign_b);
  const auto rounded = [=](const DigitSums& of, float sign_of_other) {
    const float of_one_side = k * std::fmax(mean(of.tail_products), 0.0F) * sign_of_other;
    return std::fmax((square(of.tail_squares) + of_one_side) / (kMargin * in_fp32), 1.0F);
  };
  return {std::fmax(six / (2.0F * kMargin), 1.0F), std::fmax(eight / kMargin, 1.0F),
          rounded(a, sign_b), rounded(b, sign_a), static_cast<float>(a.rest + b.rest)};
}

// The squared error of a sum of so many products in FP32, one after another.
__host__ __device__ constexpr float squared_error_of(float summed) {
  return kCublasError * kCublasError * summed;
}

// `allowed`: the squared error of cuBLAS; `allowed_of_ten`: the same, or for a large C that of one
// FP32 sum of all K. `least`: the fewest products that a variant takes.
// `allows_ten`: the tails can be computed. `without_outliers`: the widths are those without them.
// Then
//
// - an element of |A|·|B| is taken to be no smaller than K products of the mean magnitude of one
//   operand and the typical magnitude of the other: in the first term the operand with the mean
//   over rows has W, not S. The rounding terms stay as they are.
// - products with zeros do not count: sums in FP32 are as accurate as shorter ones. Fewer than some
//   12 other products are always computed in FP64, because of kFolded. One of them alone may
//   consist of elements far below their rows' largest.
//
// Otherwise 2^-24 is always allowed, an error of one rounding: the last steps in FP32 have in fact
// half of the squared error kFolded.
__host__ __device__ inline Path decide(const Widths& a, const Widths& b, const Match& match,
                                       const DigitSquares& digits, bool are_short, float k,
                                       float allowed, float allowed_of_ten, Path least,
                                       bool allows_ten, bool without_outliers = false) {
  // cuBLAS is more accurate where large products come last: then few additions follow them. And
  // where additions hardly round. Digits of short significands hardly round, either.
  const float follow = std::fmin(2.0F * kMatchMargin * (1.0F - match.centre), 1.0F),
              follow4 = (follow * follow) * (follow * follow);
  float rounding = std::fmin(kRoundingMargin * match.rounding, 1.0F);
  if (without_outliers) rounding = std::fmin((1.0F - a.last) * (1.0F - b.last), rounding);
  const auto allowed_with = [&](float squared, bool rounds) {
    const float error = squared * follow4 * (rounds ? rounding : 1.0F);
    return without_outliers ? error : std::fmax(error, kLeastAllowed);
  };
  const float loss = std::fmax(1.0F / match.squares, 1.0F);
  const float roots = std::fmin(kRootsMargin * match.roots, 1.0F),
              roots4 = roots * roots * roots * roots;
  const float most_loss = 1.0F / (roots4 * roots4);
  const float ratio_a = a.width > 0.0F ? a.spread / a.width : 1.0F;
  const float ratio_b = b.width > 0.0F ? b.spread / b.width : 1.0F;
  const float both = std::fmax(std::sqrt(std::fmin(a.spread, b.spread) / kBothWide), 1.0F);
  // Also false where a width, or the product of both, is infinite or NaN.
  const auto is_accurate = [&](float left_out, float of_a, float of_b, float most,
                               float last = kFolded) {
    const auto error = [&](float width_a, float width_b, float rounded_a, float rounded_b) {
      return left_out * (width_a * width_b) + (of_a * rounded_a + of_b * rounded_b);
    };
    return loss * error(a.width, b.width, a.width, b.width) + last <= most &&
           most_loss * error(a.most * both, without_outliers ? b.width : b.spread, a.most * ratio_b,
                             b.spread * ratio_a) +
                   kFolded <=
               kWidest * most &&
           most_loss * error(without_outliers ? a.width : a.spread, b.most * both,
                             a.spread * ratio_b, b.most * ratio_a) +
                   kFolded <=
               kWidest * most;
  };
  const bool are_flat = a.width > 0.0F && a.width < kFlat && b.width > 0.0F && b.width < kFlat;
  const float of_a = kRounded * (are_short ? 1.0F : digits.rounded_a),
              of_b = kRounded * (are_short ? 1.0F : digits.rounded_b);
  // In fact the last steps have half of kFolded, beside the rounding of the lower levels.
  const float last_steps = kFolded / 2.0F + kLowLevels * loss * (a.width * b.width) / k,
              last = std::fmax(kFolded, last_steps);
  const bool are_exact = are_short && digits.rest == 0.0F;
  const float of_short = allowed_with(allowed, !are_short), of_any = allowed_with(allowed, true);
  if (least <= Path::kSix && !are_flat &&
      is_accurate(kLeftOut * digits.six, of_a, of_b, are_exact ? of_short : of_any, last)) {
    return Path::kSix;
  }
  // Digits of short significands are not rounded. Sums in FP32 may be as exact; then only products
  // that are exact, too, or the error of one rounding will do.
  if (least <= Path::kEight && !are_flat &&
      is_accurate(kLowest * digits.eight, of_a, of_b, of_short, last) &&
      (are_exact || !are_short || last_steps * kLeastAllowed <= of_any * kFolded)) {
    return Path::kEight;
  }
  // Also where eight products of uniform digits would do. So digits alone never decide for FP64
  // where `refine` runs: in that case its blocks overwrite them, and others may still sample them.
  if (allows_ten && least <= Path::kTen &&
      (is_accurate(match.equal > kFewValues ? kFewLeftOutTen : kLeftOutTen, kRoundedTen,
                   kRoundedTen, allowed_with(allowed_of_ten, true)) ||
       (!are_flat && is_accurate(kLowest, kRounded, kRounded, of_short)))) {
    return Path::kTen;
  }
  return Path::kFp64;
}

// The largest spread of a row for which decide() can take six or eight products: each row is
// rounded to three digits, whatever the others are. `allowed`: as in decide().
inline float most_spread_of_eight(float allowed) {
  constexpr float kMargin = 1.01F;  // for roundings of FP32
  return kMargin * (kWidest * std::fmax(allowed, kLeastAllowed) - kFolded) / kRounded;
}

}  // namespace tilegate::int8x3
