// Barriers of some warps, misused.
#pragma once

#include <tilegate/device/async.cuh>

#include "planted_pipeline.cuh"

namespace tilegate::planted::async {

// Two warps exchange words; the others go their own way.
template <bool kRace, bool kDeadlock, bool kOtherCount>
__global__ void exchange(float* memory) {
  auto& words = *reinterpret_cast<float (*)[64]>(&device::shared_storage<Storage>());
  if (threadIdx.x >= 64) return;
  words[threadIdx.x] = memory[threadIdx.x];
  if (kDeadlock && threadIdx.x >= 32) {
    device::named_barrier<2>(64);
  } else if (kOtherCount && threadIdx.x >= 32) {
    device::named_barrier<1>(96);
  } else if (!kRace) {
    device::named_barrier<1>(64);
  }
  if (blockIdx.x == 0) memory[kResults + threadIdx.x] = words[63 - threadIdx.x];
}

// Two warps wait for each other before one of them overwrites what all four have read.
template <bool kFaulty>
__global__ void write_what_others_read(float* memory) {
  auto& word = reinterpret_cast<float*>(&device::shared_storage<Storage>())[1];
  if (threadIdx.x == 0) word = 1.0F;
  device::named_barrier<1>(kConsumers);
  memory[kResults + threadIdx.x] = word;
  if (threadIdx.x >= 64) device::named_barrier<2>(64);
  if (!kFaulty) device::named_barrier<1>(kConsumers);
  if (threadIdx.x == kConsumers - 1) word = 2.0F;
}

template <bool kFaulty>
constexpr auto kRacingExchange = exchange<kFaulty, false, false>;
template <bool kFaulty>
constexpr auto kStuckExchange = exchange<false, kFaulty, false>;
template <bool kFaulty>
constexpr auto kUnequalExchange = exchange<false, false, kFaulty>;

// What a thread does is counted in 16 bits between two block barriers.
template <bool kFaulty>
__global__ void fence_often(float* memory) {
  for (int i = 0; i < (kFaulty ? 65535 : 65534); ++i) {
    if (threadIdx.x == 0) device::fence_async_proxy();
  }
  memory[kResults + threadIdx.x] = 1.0F;
}

}  // namespace tilegate::planted::async
