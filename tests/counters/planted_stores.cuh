// Copies from shared to global memory that misuse it.
#pragma once

#include <cstdint>

#include <tilegate/device/async.cuh>

#include "planted_pipeline.cuh"

namespace tilegate::planted::async {

enum class StoreFault {
  kNone,
  kUnfenced,
  kOverwritesWhileStoring,
  kLeavesStore,
  kStoresMisaligned,
  kCopiesMisalignedBox,
  kBeginsBetweenPieces,
  kNamesTooFewCoordinates,
  kStoresBeforeTensor,
  kStoresPastEnd,
};

constexpr unsigned kStorer = 5;  // a thread

// A box comes from memory by a tensor copy, and goes to the results by a store.
template <StoreFault kFault>
__global__ void pass_through(float* memory, const __grid_constant__ device::TensorMap map) {
  auto& smem = device::shared_storage<Storage>();
  auto* const words = reinterpret_cast<float*>(smem.a[0]);
  if (threadIdx.x == 0) {
    device::barrier_init(smem.full[0], 1);
    device::barrier_init_fence();
    device::barrier_arrive_expect(smem.full[0], 512);
    float* const to = words + (kFault == StoreFault::kCopiesMisalignedBox ? 4 : 0);
    if (kFault == StoreFault::kNamesTooFewCoordinates) {
      device::copy_tensor(to, map, 0, 0, smem.full[0]);
    } else {
      device::copy_tensor(to, map, kFault == StoreFault::kBeginsBetweenPieces ? 2 : 0, 0, 0,
                          smem.full[0]);
    }
  }
  __syncthreads();  // the barrier is made
  device::barrier_wait(smem.full[0], 0);
  words[threadIdx.x] += 1.0F;
  if (kFault != StoreFault::kUnfenced) device::fence_async_proxy();
  __syncthreads();  // all have stored
  if (threadIdx.x == kStorer) {
    float* to = memory + kResults + (kFault == StoreFault::kStoresMisaligned ? 1 : 0);
    if (kFault == StoreFault::kStoresPastEnd) to = memory + kWords - 124;
    device::store_bulk(to, words, 512);
    // Two of four rows are past the end of the tensor: nothing is stored there.
    device::store_tensor(map, 0, kFault == StoreFault::kStoresBeforeTensor ? -4 : 2, 0, words);
    device::store_commit();
    if (kFault == StoreFault::kOverwritesWhileStoring) {
      device::store_wait<1>();  // for all but this one
    } else if (kFault != StoreFault::kLeavesStore) {
      device::store_wait<0>();
    }
  }
  if (kFault != StoreFault::kLeavesStore) {
    __syncthreads();  // the store has read
    words[threadIdx.x] = 0.0F;
  }
  if (kFault == StoreFault::kOverwritesWhileStoring && threadIdx.x == kStorer)
    device::store_wait<0>();
}

// The last thread, which runs first in the reverse order, has a store read what the others write.
template <bool kFaulty>
__global__ void store_of_others(float* memory) {
  auto& words = *reinterpret_cast<float (*)[kConsumers]>(&device::shared_storage<Storage>());
  words[threadIdx.x] = memory[threadIdx.x];
  device::fence_async_proxy();
  __syncthreads();  // all have written
  if (threadIdx.x == kConsumers - 1) {
    device::store_bulk(memory + kResults, words + 4, 256);
    device::store_commit();
    device::store_wait<0>();
  }
  if (!kFaulty) __syncthreads();  // the store has read
  words[threadIdx.x] = 0.0F;
}

// A store reads what a thread's own copy brings.
template <bool kFaulty>
__global__ void store_of_copy(float* memory) {
  auto& words = *reinterpret_cast<float (*)[kConsumers]>(&device::shared_storage<Storage>());
  if (threadIdx.x != 0) return;
  device::copy_async<16>(words + 4, memory);
  device::copy_async_commit();
  if (!kFaulty) device::copy_async_wait<0>();
  device::fence_async_proxy();
  device::store_bulk(memory + kResults, words + 4, 16);
  device::store_commit();
  device::store_wait<0>();
  if (kFaulty) device::copy_async_wait<0>();
}

template <bool kFaulty>
__global__ void store_of_bulk_copy(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  if (threadIdx.x != 0) return;
  device::barrier_init(smem.full[0], 1);
  device::barrier_init_fence();
  device::barrier_arrive_expect(smem.full[0], 16);
  device::copy_bulk(smem.a[0] + 16, memory, 16, smem.full[0]);
  if (!kFaulty) device::barrier_wait(smem.full[0], 0);
  device::store_bulk(memory + kResults, smem.a[0] + 16, 16);
  device::store_commit();
  device::store_wait<0>();
  if (kFaulty) device::barrier_wait(smem.full[0], 0);
}

template <StoreFault kFault>
Status launch_store(float* memory) {
  device::TensorMap map;
  const device::TensorLayout layout{.data = memory,
                                    .dimensions = 3,
                                    .size = {32, 4, 2},
                                    .stride_bytes = {0, 128, 512},
                                    .box = {32, 4, 1}};
  if (Status s = device::make_tensor_map(layout, &map); !s.ok()) return s;
  const device::LaunchConfig config{
      .kernel = "planted", .blocks = 1, .threads_x = kConsumers, .shared_bytes = sizeof(Storage)};
  return device::launch(config, nullptr, pass_through<kFault>, memory, map);
}

}  // namespace tilegate::planted::async
