// A number that is opaque to the compiler.
#pragma once

#include <tilegate/device/device.cuh>

namespace tilegate {

// The same number: forces recomputation of what depends on it. Otherwise it would stay in
// registers, which the accumulators need.
__device__ inline unsigned opaque(unsigned number) {
  device::ordered::add(number, 0);
  return number;
}

}  // namespace tilegate
