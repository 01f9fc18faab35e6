// A device to plan for that no machine has, and problems that allow splitting.
#pragma once

#include <cstddef>

#include <tilegate/device.hpp>
#include <tilegate/problem.hpp>

namespace tilegate {

// With as many multiprocessors as an NVIDIA H200.
inline Device gpu(int compute_capability) {
  return {.ordinal = 0,
          .is_cuda = true,
          .name = "made up",
          .compute_capability = compute_capability,
          .multiprocessors = 132,
          .total_memory = std::size_t{80} << 30};
}

inline Problem split(Problem problem) {
  problem.math = Math::fp32_split;
  return problem;
}

}  // namespace tilegate
