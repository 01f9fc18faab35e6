// How all blocks of a kernel come to the same decision: each adds the same numbers in the same
// order.
#pragma once

#include <tilegate/device/device.cuh>

namespace tilegate {

template <int kNumbers>
struct AgreedSums {
  float a[kNumbers], b[kNumbers];
};

// Of kNumbers of each of op(A)'s groups of rows, and of those of op(B), which follow; by kThreads
// threads, who `meet` once.
template <int kThreads, int kNumbers, typename Meet>
__device__ AgreedSums<kNumbers> agreed_sums(const float* numbers, unsigned groups_a,
                                            unsigned groups_b,
                                            float (&sums)[kThreads / 32][2 * kNumbers], Meet meet) {
  const unsigned thread = threadIdx.x;
  AgreedSums<kNumbers> sum{};
#pragma unroll
  for (int n = 0; n < kNumbers; ++n) {
    for (unsigned i = thread; i < groups_a; i += kThreads) sum.a[n] += numbers[i * kNumbers + n];
    for (unsigned i = thread; i < groups_b; i += kThreads) {
      sum.b[n] += numbers[(groups_a + i) * kNumbers + n];
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      sum.a[n] += __shfl_xor_sync(~0U, sum.a[n], lanes);
      sum.b[n] += __shfl_xor_sync(~0U, sum.b[n], lanes);
    }
    if (thread % 32 == 0) {
      sums[thread / 32][2 * n] = sum.a[n];
      sums[thread / 32][2 * n + 1] = sum.b[n];
    }
  }
  meet();  // all warps have added theirs
#pragma unroll
  for (int n = 0; n < kNumbers; ++n) {
    sum.a[n] = sum.b[n] = 0.0F;
    for (int warp = 0; warp < kThreads / 32; ++warp) {
      sum.a[n] += sums[warp][2 * n];
      sum.b[n] += sums[warp][2 * n + 1];
    }
  }
  return sum;
}

}  // namespace tilegate
