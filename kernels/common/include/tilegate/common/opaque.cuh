// A number that is opaque to the compiler.
#pragma once

#include <tilegate/device/device.cuh>

namespace tilegate {

// Returns `number`. What depends on it is computed again, not kept in registers, which the
// accumulators need.
__device__ inline unsigned opaque(unsigned number) {
  device::ordered::add(number, 0);
  return number;
}

}  // namespace tilegate
