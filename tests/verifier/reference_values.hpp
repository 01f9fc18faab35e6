// What each element of C must be, by the oracle.
#pragma once

#include <cstdint>
#include <vector>

#include <tilegate/stage.hpp>

#include "verifier/guarded_matrix.hpp"

namespace tilegate::verifier {

// The operands as the host holds them.
struct Images {
  const GuardedMatrix &a, &b, &c;
};

// In float64; product by product, each dense and row-major.
struct ReferenceValues {
  std::vector<double> value, scale;  // of oracle.hpp
  // The products of the largest elements of its row and its column; empty until found.
  std::vector<double> largest;

  // From the operands as they are before the run: the host's, or a GPU's where the host would take
  // too long.
  Status find(const Problem& problem, const Images& images, const Operands& operands);
  void find_largest(const Problem& problem, const Images& images);
};

}  // namespace tilegate::verifier
