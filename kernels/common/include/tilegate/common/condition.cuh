// Kernels that do nothing unless a condition holds. Such a kernel has a last parameter pack `When`:
// empty, or one Condition. It begins with
//
//   if (!holds(when...)) return;
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

__device__ inline bool holds() { return true; }

// An earlier kernel stores the word. Waits for it, so that launches may set `overlaps_previous`.
__device__ inline bool holds(const Condition& condition) {
  device::wait_for_previous_kernel();
  return *condition.word == condition.value;
}

// Holds once the earlier kernels have ended.
struct Always {};
__device__ inline bool holds(Always /*always*/) {
  device::wait_for_previous_kernel();
  return true;
}

// Seconds of such a kernel where the condition does not hold, on an NVIDIA H200.
constexpr double idle_seconds(std::int64_t blocks) {
  return 1.9e-6 + 0.5e-9 * static_cast<double>(blocks);
}

}  // namespace tilegate
