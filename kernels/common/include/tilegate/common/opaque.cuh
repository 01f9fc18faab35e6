// A number or an address that is opaque to the compiler.
#pragma once

#include <tilegate/device/device.cuh>

namespace tilegate {

// Returns `number`. What depends on it is computed again, not kept in registers, which the
// accumulators need.
__device__ inline unsigned opaque(unsigned number) {
  device::ordered::add(number, 0);
  return number;
}

// Returns `address`. Addresses that differ from it by constants take no registers of their own.
__device__ inline const float* opaque(const float* address) {
#if defined(__CUDA_ARCH__)
  asm("" : "+l"(address));
#endif
  return address;
}

}  // namespace tilegate
