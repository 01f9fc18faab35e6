// What a right answer is: seeded inputs, a float64 reference with its error scale, and the
// comparison of a result with them. All three run on the device as kernels; the host versions of
// the first two are the plain statement that the device's are tested against.
#pragma once

#include <cstdint>

#include <tilegate/stage.hpp>

namespace tilegate::verifier {

enum class Inputs {
  kIntegers,  // -3 … 3: sums stay below 2^24, so every order of summation gives the same bits
  kUniform,   // [-1, 1)
  // 24 significant bits in A and C, or in B and C. The other operand picks one of them for each
  // element of C, or none: there is one product that is not zero, or C is scaled, and both are
  // exact. So a kernel that rounds an operand, or a sum, to fewer bits fails.
  kPicksFromA,
  kPicksFromB,
};

// Element `index` of the stream `seed`; the same on host and device.
float input_value(Inputs inputs, std::uint64_t seed, std::uint64_t index);

// Enqueues data[i] = input_value(inputs, seed, i) for i < count; data is device memory.
Status fill(float* data, std::int64_t count, Inputs inputs, std::uint64_t seed, Stream stream);

// One product of a problem as its definition has it: element (i, j) of op(A) is at
// a[i * a_row + j * a_col], of op(B) alike, of C at c[i * c_row + j].
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

// Product number `index` of the problem's batch.
Product product_of(const Problem& problem, const Operands& operands, std::int64_t index);

// Rows 0, n, 2n … of C as a product of their own.
Product every_nth_row(Product product, std::int64_t n);

// For each element of C, in float64 and dense row-major (m, n):
//   value = alpha·(A·B) + beta·C        scale = |alpha|·(|A|·|B|) + |beta|·|C|
// with BLAS semantics: C is not read when beta == 0, nor A and B when alpha == 0.
void reference_on_host(const Product& product, double* value, double* scale);
Status reference_on_device(const Product& product, double* value, double* scale, Stream stream);
// Of operands that hold integers (Inputs::kIntegers), which need no scale: the same values, sooner.
Status integer_reference_on_device(const Product& product, double* value, Stream stream);

// max|op(A)(i, :)| for each row i, and then max|op(B)(:, j)| for each column j: m + n numbers.
void largest_on_host(const Product& product, double* largest);

// How far a result may be from its reference: |c - value| <= gamma·scale + underflow +
// operands·(largest of its row of op(A))·(largest of its column of op(B)). All zero means equal (a
// zero of either sign is zero), and then no scale is read. Non-finite references are compared by
// class.
struct Tolerance {
  double gamma = 0.0;
  double underflow = 0.0;
  double operands = 0.0;
};

// γ(L) = L·u / (1 - L·u), u = 2^-24, for a rounding chain of length L (Higham, Accuracy and
// Stability of Numerical Algorithms, 2002, §3.1), the standard model's underflow term, and what a
// plan says of its operands (Choice::operand_error).
Tolerance forward_error(std::int64_t rounding_chain, const Problem& problem,
                        double operand_error = 0.0);

// `largest`: the product of the two that tolerance.operands is multiplied by.
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
