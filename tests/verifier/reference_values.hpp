// Reference values of all elements of C, from the oracle.
#pragma once

#include <cstdint>
#include <vector>

#include <tilegate/stage.hpp>

#include "verifier/guarded_matrix.hpp"

namespace tilegate::verifier {

// The host images of the operands.
struct Images {
  const GuardedMatrix &a, &b, &c;
};

// Float64; matrix by matrix of the batch, each dense and row-major.
struct ReferenceValues {
  std::vector<double> value, scale;  // see oracle.hpp
  // For each element, the product of the largest elements of its row and column; empty until found.
  std::vector<double> largest;

  // Computed from the operands before the run: on the host, or on a GPU if the host would take too
  // long.
  Status find(const Problem& problem, const Images& images, const Operands& operands);
  void find_largest(const Problem& problem, const Images& images);
};

}  // namespace tilegate::verifier
