// The plain statement of the oracle: what the kernels beside it are tested against.
#include <cmath>
#include <cstdint>

#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"
#include "verifier/oracle_math.cuh"

namespace tilegate::verifier {

KernelArgs kernel_args(const Problem& problem, const Operands& operands) {
  return {.shape = problem.shape,
          .alpha = problem.alpha,
          .a = operands.a,
          .lda = problem.lda,
          .b = operands.b,
          .ldb = problem.ldb,
          .beta = problem.beta,
          .c = operands.c,
          .ldc = problem.ldc,
          .workspace = operands.workspace};
}

void reference_on_host(const KernelArgs& args, double* value, double* scale) {
  const auto [m, n, k_end] = args.shape;
  for (std::int64_t row = 0; row < m; ++row) {
    double* sum = value + row * n;
    double* abs_sum = scale + row * n;
    for (std::int64_t col = 0; col < n; ++col) sum[col] = abs_sum[col] = 0.0;
    for (std::int64_t k = 0; reads_a_and_b(args) && k < k_end; ++k) {
      const double a = args.a[row * args.lda + k];
      const float* b_row = args.b + k * args.ldb;
      for (std::int64_t col = 0; col < n; ++col) {
        const double b = b_row[col];
        sum[col] += a * b;
        abs_sum[col] += std::fabs(a) * std::fabs(b);
      }
    }
    for (std::int64_t col = 0; col < n; ++col) {
      const Expected e =
          expected_element(args, sum[col], abs_sum[col], args.c + row * args.ldc + col);
      sum[col] = e.value;
      abs_sum[col] = e.scale;
    }
  }
}

Tolerance forward_error(std::int64_t rounding_chain, const Problem& problem) {
  constexpr double kUnitRoundoff = 0x1p-24;
  constexpr double kSmallest = 0x1p-149;  // of float; a product that underflows errs by half of it
  const double lu = static_cast<double>(rounding_chain) * kUnitRoundoff;
  // One underflow for each product of the sum, scaled by alpha, and for the products with alpha and
  // beta. Twice the half of `kSmallest`, because the roundings that follow may enlarge each.
  double products = 1.0;
  if (problem.reads_a_and_b()) {
    products += static_cast<double>(problem.shape.k) * std::fabs(double{problem.alpha}) + 1.0;
  }
  return {.gamma = lu / (1.0 - lu), .underflow = products * kSmallest};
}

bool within(float got, double value, double scale, const Tolerance& tolerance) {
  return is_within(got, value, scale, tolerance);
}

}  // namespace tilegate::verifier
