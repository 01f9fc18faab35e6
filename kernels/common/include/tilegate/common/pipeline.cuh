// Stages in shared memory that a producer fills and consumers empty, in turn.
#pragma once

#include <tilegate/device/device.cuh>

namespace tilegate {

// Goes round the ring: which stage is next, and in which phase its barriers are.
template <int kStages>
struct Ring {
  int stage = 0;
  unsigned phase = 0;

  __device__ void advance() {
    if (++stage < kStages) return;
    stage = 0;
    phase ^= 1;
  }
};

}  // namespace tilegate
