// Operands whose products lose accuracy in low precision, and error measures of results.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tilegate/stage.hpp>

namespace tilegate::bench {

enum class Input {
  kNormal,       // mean 0, variance 1
  kUniform,      // [0, 1)
  kSigned,       // [-1, 1)
  kHalf,         // (U - 1/2)·e^(N/2), U uniform, N normal
  kWide,         // (U - 1/2)·e^N
  kWider,        // (U - 1/2)·e^(2N)
  kExponents8,   // significands of either sign, exponents from -8 to 8
  kExponents40,  // exponents from -40 to 40
  kRows,         // normal; rows of A times a power of two from 2^-30 to 2^30
  kOutliers,     // normal; one element in 2^11 times 10^6
  kSoftmax,      // e^N / 50257, but -1 for one element in 2^12: the gradient of a cross entropy
  kFlat,         // 1 + 10^-7·N
};
constexpr std::array<std::string_view, 12> kInputNames = {"normal",
                                                          "uniform [0, 1)",
                                                          "uniform [-1, 1)",
                                                          "(U-1/2)e^(N/2)",
                                                          "(U-1/2)e^N",
                                                          "(U-1/2)e^2N",
                                                          "exponents ±8",
                                                          "exponents ±40",
                                                          "rows of A times 2^±30",
                                                          "one in 2048 times 10⁶",
                                                          "softmax minus one-hot",
                                                          "1 + 10⁻⁷·N"};

// Enqueues filling a dense matrix; `seed` differs between operands.
Status fill(float* to, std::int64_t rows, std::int64_t cols, Input input, bool scales_rows,
            std::uint64_t seed, Stream stream);

struct Errors {
  double frobenius = 0.0;  // Frobenius norm of the error divided by that of the product
  double weighted = 0.0;   // the largest |error| / (|A|·|B|) of an element
  double median = 0.0;     // of |error / product|, over a sample of the elements
  double largest = 0.0;    // of |error / product|, over all elements
};

// Errors of one dense product, op N and N, against float64, in every `row_step`th row.
std::vector<Errors> errors_of(const Shape& shape, const float* a, const float* b,
                              std::span<const float* const> results, std::int64_t row_step,
                              Stream stream);

}  // namespace tilegate::bench
