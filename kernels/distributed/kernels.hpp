// Small kernels: pack own rows, add partial sums.
#pragma once

#include <cstdint>

#include <tilegate/device.hpp>
#include <tilegate/problem.hpp>
#include <tilegate/status.hpp>

namespace tilegate::distributed {

// packed ← op(A), rows × k, dense.
struct PackArgs {
  const float* a = nullptr;
  Op op = Op::kN;
  std::int64_t lda = 0, rows = 0, k = 0;
  float* packed = nullptr;
};
Status enqueue_pack(const PackArgs& args, Stream stream);

// C ← alpha·(sum of the ranks' partial sums) + beta·C, rows × n. Partial sums are added in the
// order of the ranks. They are dense; those of the other ranks are contiguous.
struct SumArgs {
  const float* own = nullptr;
  const float* others = nullptr;
  int rank = 0, size = 1;
  std::int64_t rows = 0, n = 0;
  float alpha = 1.0F, beta = 0.0F;
  float* c = nullptr;
  std::int64_t ldc = 0;
  bool c_is_aligned = false;  // to 16 bytes
};
Status enqueue_sum(const SumArgs& args, Stream stream);

}  // namespace tilegate::distributed
