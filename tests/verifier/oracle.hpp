// The oracle: seeded inputs, a float64 reference with its error scale, and the comparison of a
// result with them. All three are kernels on the device; tests compare the first two with simple
// versions on the host.
#pragma once

#include <cstdint>

#include <tilegate/stage.hpp>

namespace tilegate::verifier {

enum class Inputs {
  kIntegers,  // -3 … 3: sums stay below 2^24, so every order of summation gives the same bits
  kUniform,   // [-1, 1)
  // Elements of A and C, or of B and C, have 24 significant bits. The other operand picks one
  // element for each element of C, or none: then either one product is not zero, or C is scaled,
  // and both are exact. So a kernel that rounds an operand or a sum to fewer bits fails.
  kPicksFromA,
  kPicksFromB,
};

// Element `index` of the stream `seed`; the same on host and device.
float input_value(Inputs inputs, std::uint64_t seed, std::uint64_t index);

// Enqueues data[i] = input_value(inputs, seed, i) for i < count; data is device memory.
Status fill(float* data, std::int64_t count, Inputs inputs, std::uint64_t seed, Stream stream);

// One matrix product of a problem. Element (i, j) of op(A) is a[i * a_row + j * a_col], of op(B)
// b[i * b_row + j * b_col], of C c[i * c_row + j].
struct Product {
  Shape shape;
  float alpha = 1.0F;
  const float* a = nullptr;
  std::int64_t a_row = 0, a_col = 1;
  const float* b = nullptr;
  std::int64_t b_row = 0, b_col = 1;
  float beta = 0.0F;
  const float* c = nullptr;
  std::int64_t c_row = 0;
};

// The product at `index` of the problem's batch.
Product product_of(const Problem& problem, const Operands& operands, std::int64_t index);

// The product that computes only rows 0, n, 2n … of C.
Product every_nth_row(Product product, std::int64_t n);

// For each element of C, in float64 and dense row-major (m, n):
//   value = alpha·(A·B) + beta·C        scale = |alpha|·(|A|·|B|) + |beta|·|C|
// with BLAS semantics: C is not read if beta == 0, nor A and B if alpha == 0.
void reference_on_host(const Product& product, double* value, double* scale);
Status reference_on_device(const Product& product, double* value, double* scale, Stream stream);
// The same values for integer operands (Inputs::kIntegers), faster and without scale.
Status integer_reference_on_device(const Product& product, double* value, Stream stream);

// max|op(A)(i, :)| for each row i, then max|op(B)(:, j)| for each column j: m + n numbers.
void largest_on_host(const Product& product, double* largest);

// A result is accepted if |c - value| <= gamma·scale + underflow + operands·(largest of its row of
// op(A))·(largest of its column of op(B)). If all three are zero, it must be equal (+0 equals -0),
// and no scale is read. Non-finite references are compared by class.
struct Tolerance {
  double gamma = 0.0;
  double underflow = 0.0;
  double operands = 0.0;
};

// γ(L) = L·u / (1 - L·u), u = 2^-24, for a rounding chain of length L (Higham, Accuracy and
// Stability of Numerical Algorithms, 2002, §3.1), the standard model's underflow term, and the
// plan's error of operands (Choice::operand_error).
Tolerance forward_error(std::int64_t rounding_chain, const Problem& problem,
                        double operand_error = 0.0);

// `largest`: the factor of tolerance.operands, the product of the two largest elements.
bool within(float got, double value, double scale, const Tolerance& tolerance,
            double largest = 0.0);

// Counts the elements of C outside the tolerance and finds the first of them, row by row.
struct Comparison {
  std::int64_t mismatches = 0;
  std::int64_t first_row = -1, first_col = -1;
};
Status compare_on_device(const Product& product, const double* value, const double* scale,
                         const Tolerance& tolerance, Comparison* result);

}  // namespace tilegate::verifier
