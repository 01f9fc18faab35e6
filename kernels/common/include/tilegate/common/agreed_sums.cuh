// How all blocks of a kernel come to the same decision: each adds the same numbers in the same
// order.
#pragma once

#include <tilegate/device/device.cuh>

namespace tilegate {

struct AgreedSums {
  float a, b;
};

// Of `count_a` numbers of op(A), and the `count_b` of op(B) that follow, by kThreads threads, who
// `meet` once.
template <int kThreads, typename Meet>
__device__ AgreedSums agreed_sums(const float* numbers, unsigned count_a, unsigned count_b,
                                  float (&sums)[kThreads / 32][2], Meet meet) {
  const unsigned thread = threadIdx.x;
  float sum_a = 0.0F, sum_b = 0.0F;
  for (unsigned i = thread; i < count_a; i += kThreads) sum_a += numbers[i];
  for (unsigned i = thread; i < count_b; i += kThreads) sum_b += numbers[count_a + i];
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    sum_a += __shfl_xor_sync(~0U, sum_a, lanes);
    sum_b += __shfl_xor_sync(~0U, sum_b, lanes);
  }
  if (thread % 32 == 0) {
    sums[thread / 32][0] = sum_a;
    sums[thread / 32][1] = sum_b;
  }
  meet();  // all warps have added theirs
  sum_a = sum_b = 0.0F;
  for (int warp = 0; warp < kThreads / 32; ++warp) {
    sum_a += sums[warp][0];
    sum_b += sums[warp][1];
  }
  return {sum_a, sum_b};
}

}  // namespace tilegate
