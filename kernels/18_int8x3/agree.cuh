// How all blocks of the second kernel come to the same decision.
#pragma once

#include <tilegate/common/agreed_sums.cuh>
#include <tilegate/device/device.cuh>

#include "decision.cuh"
#include "multiply_args.cuh"

namespace tilegate::int8x3 {

// By kThreads threads, who `meet` once.
template <int kThreads, typename Meet>
__device__ Path agree(const MultiplyArgs& more, float (&sums)[kThreads / 32][2], Meet meet) {
  const auto widths =
      agreed_sums<kThreads, 1>(more.widths, more.widths_a, more.widths_b, sums, meet);
  return decide(widths.a[0] / more.rows_a, widths.b[0] / more.rows_b, more.summed, more.least);
}

}  // namespace tilegate::int8x3
