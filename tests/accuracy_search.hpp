// A search for operands on which a rung that splits them is less accurate than cuBLAS in FP32: a
// family of operands, whose parameters an optimiser changes as long as that makes the error larger.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "split_call.hpp"
#include "thorough.hpp"

namespace tilegate::search {

// What an operand is like; each in [0, 1].
enum Parameter {
  kGrade,      // the exponent changes along k, in opposite directions in A and in B
  kSpread,     // standard deviation of exponents
  kRows,       // range of the exponents of rows
  kZeros,      // share of zeros
  kSign,       // 0: either sign, 1: one
  kEqual,      // above 0.5: the magnitudes of a row are almost equal
  kOutliers,   // share of outliers
  kLarger,     // exponent of outliers
  kRounded,    // share of elements that halves round down
  kAlternate,  // above 0.5: every other k is larger in A, and smaller in B
  kShort,      // above 0.3: significands have few bits, the fewer the smaller it is
  kNoise,      // and a rounding error of so many units
  kLevels,     // above 0.3: the magnitudes of a row have few values
  kParameters
};
using Genes = std::array<std::array<double, kParameters>, 2>;  // of A and of B

struct Family {
  std::int64_t rows, cols, products;  // M, N, K
  std::int64_t chain;                 // products that cuBLAS adds one after another
  double octaves_of_rows = 40.0;      // between the exponents of rows, at most
  std::vector<Parameter> unused = {};
};

// C of the path that is searched, or nothing where another is taken.
using Multiply = std::function<std::optional<std::vector<float>>(const Operation&)>;

// Rows along k. `direction`: 1 for A, -1 for B.
inline std::vector<float> make_operand(const Family& family,
                                       const std::array<double, kParameters>& of, std::int64_t rows,
                                       double direction, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform;
  std::normal_distribution<double> normal;
  std::vector<float> values;
  std::vector<double> largest(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    const double of_row = family.octaves_of_rows * of[kRows] * (uniform(random) - 0.5);
    for (std::int64_t k = 0; k < family.products; ++k) {
      const double along = static_cast<double>(k) / static_cast<double>(family.products) - 0.5;
      double exponent = of_row + direction * 40.0 * of[kGrade] * along +
                        10.0 * of[kSpread] * of[kSpread] * normal(random);
      if (of[kAlternate] > 0.5 && k % 2 == 1) {
        exponent += direction * 30.0 * (of[kAlternate] - 0.5);
      }
      double magnitude = std::fabs(normal(random));
      if (of[kEqual] > 0.5) {
        magnitude = 1.0 + std::exp2(-40.0 * (of[kEqual] - 0.5)) * uniform(random);
      }
      if (uniform(random) < std::pow(of[kOutliers], 4.0)) exponent += 24.0 * of[kLarger];
      if (uniform(random) < of[kZeros] - 0.2) magnitude = 0.0;
      auto value = static_cast<float>(magnitude * std::exp2(exponent));
      if (value != 0.0F && uniform(random) < of[kRounded] - 0.5) {  // 3001: above 2^11, 1 modulo 4
        value = std::exp2(std::floor(std::log2(value))) * (1.0F + 3001.0F * 0x1p-23F);
      }
      values.push_back(uniform(random) > 0.5 + of[kSign] / 2 ? -value : value);
      double& of_all = largest[static_cast<std::size_t>(row)];
      of_all = std::fmax(of_all, value);
    }
  }
  const double levels = std::exp2(std::round(8.0 * (of[kLevels] - 0.3) / 0.7));
  const double bits = std::round(10.0 * (of[kShort] - 0.3) / 0.7);
  for (std::size_t i = 0; i < values.size(); ++i) {
    float& value = values[i];
    double magnitude = std::fabs(value);
    const double most = largest[i / static_cast<std::size_t>(family.products)];
    if (of[kLevels] > 0.3) magnitude = std::ceil(magnitude / most * levels) / levels * most;
    if (of[kShort] > 0.3 && magnitude != 0.0) {
      const double unit = std::exp2(std::floor(std::log2(magnitude)) - bits);
      magnitude = std::round(magnitude / unit) * unit;
      const double noise = of[kNoise] < 0.1 ? 0.0 : std::exp2(3.0 * of[kNoise] - 23.0);
      magnitude *= 1.0 + noise * (std::floor(3.0 * uniform(random)) - 1.0);
    }
    value = std::copysign(static_cast<float>(magnitude), value);
  }
  return values;
}

// Squares of relative errors (Frobenius norm), and largest errors relative to (|A||B|)ij.
struct Errors {
  double squares = 0.0, weighted = 0.0;
};

// Adds those of the rung and of cuBLAS on operands of a seed; false if another path was taken.
inline bool add_errors(const Family& family, const Multiply& multiply, const Genes& genes,
                       unsigned seed, double share, Errors& ours, Errors& of_cublas) {
  std::mt19937 random(seed);
  const std::int64_t all_k = family.products;
  Operation operation(Problem::dense({family.rows, family.cols, all_k}, Op::kN, Op::kT));
  operation.a = make_operand(family, genes[0], family.rows, 1.0, random);
  operation.b = make_operand(family, genes[1], family.cols, -1.0, random);
  const std::optional<std::vector<float>> c = multiply(operation);
  if (!c) return false;
  const models::Rows rows_of_a = operation.rows(Operand::kA, 0),
                     rows_of_b = operation.rows(Operand::kB, 0);
  double squares = 0.0, own_squares = 0.0, cublas_squares = 0.0, own_worst = 0.0, worst = 0.0;
  for (std::int64_t row = 0; row < family.rows; ++row) {
    for (std::int64_t col = 0; col < family.cols; ++col) {
      const float* a = operation.a.data() + row * all_k;
      const float* b = operation.b.data() + col * all_k;
      const Exact exact(rows_of_a, row, rows_of_b, col);
      float total = 0.0F;
      for (std::int64_t first = 0; first < all_k; first += family.chain) {
        float sum = 0.0F;
        for (std::int64_t k = first; k < std::min(first + family.chain, all_k); ++k) {
          sum = std::fma(a[k], b[k], sum);
        }
        total += sum;
      }
      const double own = (*c)[static_cast<std::size_t>(row * family.cols + col)] - exact.sum,
                   other = total - exact.sum;
      squares += exact.sum * exact.sum;
      own_squares += own * own;
      cublas_squares += other * other;
      if (exact.magnitude == 0.0) continue;
      own_worst = std::fmax(own_worst, std::fabs(own) / exact.magnitude);
      worst = std::fmax(worst, std::fabs(other) / exact.magnitude);
    }
  }
  if (!(squares > 1e-60 && squares < 1e60)) return false;  // C is 0, or out of range
  ours.squares += own_squares / squares * share;
  ours.weighted += own_worst * share;
  of_cublas.squares += cublas_squares / squares * share;
  of_cublas.weighted += worst * share;
  return true;
}

// Mean error of the path over the larger of cuBLAS's and 2^-24, in the measure where that is
// larger. A single C may be one in which cuBLAS has hardly an error by chance.
inline double excess(const Family& family, const Multiply& multiply, const Genes& genes) {
  constexpr int kSeeds = 5;
  Errors ours, of_cublas;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    if (!add_errors(family, multiply, genes, seed, 1.0 / kSeeds, ours, of_cublas)) return 0.0;
  }
  return std::fmax(std::sqrt(ours.squares) / std::fmax(std::sqrt(of_cublas.squares), 0x1p-24),
                   ours.weighted / std::fmax(of_cublas.weighted, 0x1p-24));
}

inline std::string to_string(const Genes& genes) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  for (const auto& of : genes) {
    for (const double gene : of) text << ' ' << gene;
    text << ';';
  }
  return text.str();
}

// `zeros`: share of parameters that begin with 0.
inline void expect_at_most(double most, const Family& family, const Multiply& multiply,
                           double zeros, unsigned seed) {
  const int restarts = is_thorough() ? 60 : 4, steps = is_thorough() ? 40 : 8;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform;
  std::normal_distribution<double> normal;
  const auto is_used = [&](std::size_t parameter) {
    return std::ranges::find(family.unused, parameter) == family.unused.end();
  };
  for (int restart = 0; restart < restarts; ++restart) {
    Genes best{};
    double worst = 0.0;
    while (worst == 0.0) {
      for (auto& of : best) {
        for (std::size_t i = 0; i < kParameters; ++i) {
          const bool is_zero = uniform(random) < zeros || !is_used(i);
          of[i] = is_zero ? 0.0 : uniform(random);
        }
      }
      worst = excess(family, multiply, best);
      if (testing::Test::HasFailure()) return;  // the rung does not run
    }
    for (int step = 0; step < steps; ++step) {
      Genes next = best;
      for (auto& of : next) {
        for (std::size_t i = 0; i < kParameters; ++i) {
          if (uniform(random) > 0.2 || !is_used(i)) continue;
          of[i] = std::clamp(of[i] + 0.2 * normal(random), 0.0, 1.0);
        }
      }
      const double found = excess(family, multiply, next);
      if (found <= worst) continue;
      worst = found;
      best = next;
    }
    EXPECT_LE(worst, most) << to_string(best);
  }
}

}  // namespace tilegate::search
