// Reads and writes rows of an operand four elements at a time: by one 128-bit access where the
// operands allow it, by four 32-bit accesses where they do not. Kernels are compiled for both; the
// plan chooses.
#pragma once

#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// For kernels compiled twice: all three operands or none.
inline bool allows_vectors(const Problem& problem) {
  return allows_vectors(problem, Operand::kA) && allows_vectors(problem, Operand::kB) &&
         allows_vectors(problem, Operand::kC);
}

// Columns col … col + 3 of the row that starts at `row`, zeros from column `cols` on; col % 4 == 0.
template <bool kVector>
__device__ float4 load4(const float* row, std::int64_t col, std::int64_t cols) {
  float4 v = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  if constexpr (kVector) {
    if (col < cols) v = device::load_vector<float4>(row + col);
  } else {
    if (col + 0 < cols) v.x = row[col + 0];
    if (col + 1 < cols) v.y = row[col + 1];
    if (col + 2 < cols) v.z = row[col + 2];
    if (col + 3 < cols) v.w = row[col + 3];
  }
  return v;
}

}  // namespace tilegate
