// A ring of stages in shared memory that a producer fills and consumers empty, as in CUTLASS. Each
// stage has two mbarriers: `full` completes when its copies have arrived, `empty` when all
// consumers have released it.
#pragma once

#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

template <int kStages>
struct PipelineBarriers {
  device::Barrier full[kStages], empty[kStages];

  // By one thread. `consumers`: arrivals that release a stage.
  __device__ void init(unsigned consumers) {
    for (int stage = 0; stage < kStages; ++stage) {
      device::barrier_init(full[stage], 1);
      device::barrier_init(empty[stage], consumers);
    }
  }
};

// Where a producer or a consumer is in the ring. It may have fewer stages than there are barriers.
template <int kStages>
struct Pipeline {
  int stage = 0;
  unsigned phase = 0;  // of the stage's barriers

  // Waits until the stage is empty; copies of `bytes` are to arrive at the barrier that it returns.
  template <int kBarriers>
  __device__ device::Barrier& producer_acquire(PipelineBarriers<kBarriers>& barriers,
                                               unsigned bytes) const {
    device::barrier_wait(barriers.empty[stage], phase ^ 1);
    device::Barrier& full = barriers.full[stage];
    device::barrier_arrive_expect(full, bytes);
    return full;
  }
  // Waits until the stage's copies have arrived.
  template <int kBarriers>
  __device__ void consumer_wait(PipelineBarriers<kBarriers>& barriers) const {
    device::barrier_wait(barriers.full[stage], phase);
  }

  __device__ void advance() {
    if (++stage < kStages) return;
    stage = 0;
    phase ^= 1;
  }
};

}  // namespace tilegate
