// The oracle on the host, in the simplest code. Tests compare the kernels with it.
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"
#include "verifier/oracle_math.cuh"

namespace tilegate::verifier {

Product product_of(const Problem& problem, const Operands& operands, std::int64_t index) {
  const auto at = [&](const float* data, Operand operand) {
    return data == nullptr ? nullptr : data + index * problem.stride(operand);
  };
  Product product{.shape = problem.shape,
                  .alpha = problem.alpha,
                  .a = at(operands.a, Operand::kA),
                  .a_row = problem.lda,
                  .b = at(operands.b, Operand::kB),
                  .b_row = problem.ldb,
                  .beta = problem.beta,
                  .c = at(operands.c, Operand::kC),
                  .c_row = problem.ldc};
  if (problem.op_a == Op::kT) std::swap(product.a_row, product.a_col);
  if (problem.op_b == Op::kT) std::swap(product.b_row, product.b_col);
  return product;
}

Product every_nth_row(Product product, std::int64_t n) {
  if (product.shape.m > 0) product.shape.m = (product.shape.m - 1) / n + 1;
  product.a_row *= n;
  product.c_row *= n;
  return product;
}

void reference_on_host(const Product& product, double* value, double* scale) {
  const auto [m, n, depth] = product.shape;
  const std::int64_t k_end = reads_a_and_b(product) ? depth : 0;
  std::vector<double> all_b;  // op(B) by rows, converted once
  all_b.reserve(static_cast<std::size_t>(k_end * n));
  for (std::int64_t k = 0; k < k_end; ++k) {
    const float* from = product.b + k * product.b_row;
    for (std::int64_t col = 0; col < n; ++col) all_b.push_back(from[col * product.b_col]);
  }
  for (std::int64_t row = 0; row < m; ++row) {
    double* sum = value + row * n;
    double* abs_sum = scale + row * n;
    for (std::int64_t col = 0; col < n; ++col) sum[col] = abs_sum[col] = 0.0;
    for (std::int64_t k = 0; k < k_end; ++k) {
      const double a = product.a[row * product.a_row + k * product.a_col];
      const double* b = all_b.data() + k * n;
      for (std::int64_t col = 0; col < n; ++col) {
        sum[col] += a * b[col];
        abs_sum[col] += std::fabs(a) * std::fabs(b[col]);
      }
    }
    for (std::int64_t col = 0; col < n; ++col) {
      const Expected e =
          expected_element(product, sum[col], abs_sum[col], product.c + row * product.c_row + col);
      sum[col] = e.value;
      abs_sum[col] = e.scale;
    }
  }
}

void largest_on_host(const Product& product, double* largest) {
  for (std::int64_t line = 0; line < product.shape.m + product.shape.n; ++line) {
    largest[line] = largest_of(product, line);
  }
}

Tolerance forward_error(std::int64_t rounding_chain, const Problem& problem, double operand_error) {
  constexpr double kUnitRoundoff = 0x1p-24;
  constexpr double kSmallest =
      0x1p-149;  // smallest float; underflow of a product errs by half of it
  const double lu = static_cast<double>(rounding_chain) * kUnitRoundoff;
  // One underflow for each product of the sum, scaled by alpha, and one each for the products with
  // alpha and beta. Each counts kSmallest, not half of it, because later roundings may enlarge it.
  double products = 1.0, scaled = 0.0;
  if (problem.reads_a_and_b()) {
    scaled = static_cast<double>(problem.shape.k) * std::fabs(double{problem.alpha});
    products += scaled + 1.0;
  }
  return {.gamma = lu / (1.0 - lu),
          .underflow = products * kSmallest,
          .operands = operand_error * scaled};
}

bool within(float got, double value, double scale, const Tolerance& tolerance, double largest) {
  return is_within(got, value, scale, tolerance, largest);
}

}  // namespace tilegate::verifier
