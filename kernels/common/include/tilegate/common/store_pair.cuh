// C ← alpha·sum + beta·C, for kernels whose threads have pairs of neighbours.
#pragma once

#include <tilegate/device/device.cuh>
#include <tilegate/device/once.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

__device__ inline void store(const KernelArgs& args, float* c, float sum) {
  *c = args.beta == 0.0F ? args.alpha * sum : args.alpha * sum + args.beta * *c;
}

// An element and the next, which are an aligned vector; kOnce: that need not stay in L2.
template <bool kOnce = false>
__device__ void store_pair(const KernelArgs& args, float* c, float first, float second) {
  float2 v = make_float2(args.alpha * first, args.alpha * second);
  if (args.beta != 0.0F) {
    const auto old = device::load_vector<float2>(c);
    v = make_float2(v.x + args.beta * old.x, v.y + args.beta * old.y);
  }
  if constexpr (kOnce) {
    device::store_once(c, v);
  } else {
    device::store_vector(c, v);
  }
}

}  // namespace tilegate
