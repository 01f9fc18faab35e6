// Arithmetic of the tensor cores of compute capability 9.0: computes one element of the result from
// a row of each operand. An accumulator is passed as its bits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "matrix_tile.hpp"

namespace tilegate::simt {

struct Int8 {
  using Row = std::array<std::int16_t, kBytesOfK>;  // wider than stored, as the CPU multiplies

  static Row row(const RowBytes& bytes) {
    Row row;
    for (unsigned k = 0; k < kBytesOfK; ++k) {
      const int byte = std::to_integer<int>(bytes[k]);
      row[k] = static_cast<std::int16_t>(byte < 128 ? byte : byte - 256);
    }
    return row;
  }

  static std::uint32_t add(std::uint32_t acc, const Row& a, const Row& b) {
    std::int32_t sum = 0;
    for (unsigned k = 0; k < kBytesOfK; ++k) sum += a[k] * b[k];
    return acc + static_cast<std::uint32_t>(sum);
  }
};

// Products are exact. Products and accumulator are aligned to the largest of their exponents and
// truncated (towards zero) kKeptBits binary places below it. They are added exactly, and the sum is
// truncated to a float. The exponent of a product is the sum of its operands' exponents, so a
// product may be up to 4 times 2^exponent. A zero has the exponent kOfZero.
//
// A zero result is positive, and a NaN is 0x7FFFFFFF. Subnormal numbers are not flushed.
constexpr int kKeptBits = 25;
constexpr int kOfZero = -133;

// A format of kBits bits: the topmost bits of an element's kBytes bytes; the others are ignored.
template <unsigned kBytes, unsigned kBits, unsigned kMantissaBits>
struct Float {
  static constexpr unsigned kK = kBytesOfK / kBytes;
  static constexpr unsigned kExponentBits = kBits - 1 - kMantissaBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kSpecial = 1 << kExponentBits;  // the exponent of Inf and NaN

  // The value is significand · 2^(exponent − kMantissaBits). Inf has the significand ±1, NaN 0.
  struct Row {
    std::array<std::int32_t, kK> significand;
    std::array<std::int32_t, kK> exponent;
    bool is_finite = true, is_zero = true;
  };

  static Row row(const RowBytes& bytes) {
    Row row;
    for (unsigned k = 0; k < kK; ++k) {
      std::uint32_t bits = 0;
      for (unsigned i = 0; i < kBytes; ++i) {
        bits |= std::to_integer<std::uint32_t>(bytes[k * kBytes + i]) << (8 * i);
      }
      decode(bits >> (8 * kBytes - kBits), row.significand[k], row.exponent[k]);
      if (row.exponent[k] == kSpecial) row.is_finite = false;
      if (row.significand[k] != 0) row.is_zero = false;
    }
    return row;
  }

  static std::uint32_t add(std::uint32_t acc, const Row& a, const Row& b) {
    if (!a.is_finite || !b.is_finite || !std::isfinite(std::bit_cast<float>(acc))) {
      return add_special(std::bit_cast<float>(acc), a, b);
    }
    // A shortcut for rows outside an operand: most rows of small operands.
    if (a.is_zero || b.is_zero) return std::bit_cast<float>(acc) == 0.0F ? 0 : acc;
    using OfFloat = Float<4, 32, 23>;
    std::int32_t acc_significand = 0, acc_exponent = 0;
    OfFloat::decode(acc, acc_significand, acc_exponent);
    if (acc_significand == 0) acc_exponent = kOfZero;
    int largest = acc_exponent;
    std::array<std::int32_t, kK> product;
    for (unsigned k = 0; k < kK; ++k) {
      product[k] = a.significand[k] * b.significand[k];
      if (product[k] != 0) largest = std::max(largest, a.exponent[k] + b.exponent[k]);
    }
    std::int64_t sum =
        cut(std::int64_t{acc_significand} << (kKeptBits - 23), largest - acc_exponent);
    for (unsigned k = 0; k < kK; ++k) {
      sum += cut(std::int64_t{product[k]} << (kKeptBits - 2 * kMantissaBits),
                 largest - a.exponent[k] - b.exponent[k]);
    }
    return to_float(sum, largest - kKeptBits);
  }

  static void decode(std::uint32_t bits, std::int32_t& significand, std::int32_t& exponent) {
    const std::uint32_t mantissa = bits & ((1U << kMantissaBits) - 1);
    const auto field =
        static_cast<std::int32_t>(bits >> kMantissaBits & ((1U << kExponentBits) - 1));
    const bool is_special = field == kSpecial - 1;
    exponent = is_special ? kSpecial : std::max(field, 1) - kBias;
    significand = static_cast<std::int32_t>(field > 0 ? mantissa | 1U << kMantissaBits : mantissa);
    if (is_special) significand = mantissa == 0 ? 1 : 0;
    if ((bits >> (kBits - 1) & 1) != 0) significand = -significand;
  }

 private:
  static double value(const Row& row, unsigned k) {
    if (row.exponent[k] != kSpecial) return row.significand[k];  // only its sign matters
    if (row.significand[k] == 0) return std::numeric_limits<double>::quiet_NaN();
    return row.significand[k] * std::numeric_limits<double>::infinity();
  }

  static std::uint32_t add_special(double acc, const Row& a, const Row& b) {
    for (unsigned k = 0; k < kK; ++k) acc += value(a, k) * value(b, k);
    return std::isnan(acc) ? 0x7FFF'FFFF : std::bit_cast<std::uint32_t>(static_cast<float>(acc));
  }

  static std::int64_t cut(std::int64_t value, int places) {
    // Only a zero can have an exponent above the largest, and so a negative number of places.
    const unsigned shift = std::min(static_cast<unsigned>(places), 63U);
    return value < 0 ? -(-value >> shift) : value >> shift;
  }

  // sum · 2^exponent, truncated to 24 bits, or to fewer if it is subnormal.
  static std::uint32_t to_float(std::int64_t sum, int exponent) {
    const std::uint64_t magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
    const int width = static_cast<int>(std::bit_width(magnitude));
    const int dropped = std::clamp(std::max(width - 24, -149 - exponent), 0, 63);
    const auto kept = static_cast<float>(magnitude >> dropped);
    if (kept == 0.0F) return 0;
    const float result = std::ldexp(kept, exponent + dropped);
    return std::bit_cast<std::uint32_t>(sum < 0 ? -result : result);
  }
};

using Float16 = Float<2, 16, 10>;
using BFloat16 = Float<2, 16, 7>;
using TFloat32 = Float<4, 19, 10>;

}  // namespace tilegate::simt
