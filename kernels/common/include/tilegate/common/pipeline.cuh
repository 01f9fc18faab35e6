// Producer-consumer pipeline over a ring of stages in shared memory (CUTLASS: PipelineTmaAsync).
// Each stage has two mbarriers: `full` completes when its copies have arrived, `empty` when all
// consumers have released it.
#pragma once

#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// One thread initialises the barriers. `consumers`: number of arrivals that release a stage.
template <int kBarriers>
__device__ void init_pipeline(device::Barrier (&full)[kBarriers],
                              device::Barrier (&empty)[kBarriers], unsigned consumers) {
  for (int stage = 0; stage < kBarriers; ++stage) {
    device::barrier_init(full[stage], 1);
    device::barrier_init(empty[stage], consumers);
  }
}

// State of a producer or a consumer: its stage in the ring. There may be more barriers than stages.
template <int kStages>
struct Pipeline {
  int stage = 0;
  unsigned phase = 0;  // of the stage's barriers

  // Waits until the consumers have released the stage.
  template <int kBarriers>
  __device__ void producer_acquire(device::Barrier (&empty)[kBarriers]) const {
    device::barrier_wait(empty[stage], phase ^ 1);
  }
  // Announces copies of `bytes` bytes; returns the barrier at which they must arrive.
  template <int kBarriers>
  __device__ device::Barrier& producer_expect(device::Barrier (&full)[kBarriers],
                                              unsigned bytes) const {
    device::barrier_arrive_expect(full[stage], bytes);
    return full[stage];
  }
  // Waits until the stage's copies have arrived.
  template <int kBarriers>
  __device__ void consumer_wait(device::Barrier (&full)[kBarriers]) const {
    device::barrier_wait(full[stage], phase);
  }

  __device__ void advance() {
    if (++stage < kStages) return;
    stage = 0;
    phase ^= 1;
  }
  // Advances by `count` stages.
  __device__ void skip(unsigned count) {
    const unsigned position = static_cast<unsigned>(stage) + count, laps = position / kStages;
    stage = static_cast<int>(position - laps * kStages);
    phase ^= laps & 1;
  }
};

}  // namespace tilegate
