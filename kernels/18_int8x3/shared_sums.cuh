// What blocks have of a tile that they share: each leaves its sums in the workspace and raises its
// flag, and the block that stores the tile gets them through the ring, as chunks come, and adds
// them. They are integers, so that the bits do not depend on how K is shared.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/ring.cuh>
#include <tilegate/common/split_scaling.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/flag.cuh>

#include "multiply_args.cuh"
#include "tile_end.cuh"

namespace tilegate::int8x3 {

// A block's sums, in vectors of four: first one of each thread, then the next of each.
template <typename T>
constexpr int kSumVectors = T::kLevels* T::kBlockN / 2 / 4;  // of a thread
template <typename T>
constexpr int kSumBytes = kSumVectors<T>* kConsumers * 16;

// A stage brings whole vectors of all threads.
template <typename T>
constexpr int kVectorsInStage = T::kStageBytes / (16 * kConsumers);
static_assert(kSumBytes<Tiles<128, 6>> % Tiles<128, 6>::kStageBytes == 0);

// `thread`: of all that multiply.
template <typename T>
__device__ void leave_sums(const MultiplyArgs& more, int thread,
                           const std::int32_t (&acc)[T::kLevels][T::kBlockN / 2],
                           MultiplyStorage& smem) {
  constexpr int kInLevel = T::kBlockN / 2 / 4;  // vectors
  const std::size_t at = std::size_t{blockIdx.x} * kSumBytes<T>;
  float* to = reinterpret_cast<float*>(more.sums + at) + 4 * thread;
#pragma unroll
  for (int i = 0; i < kSumVectors<T>; ++i) {
    const std::int32_t* sum = acc[i / kInLevel] + i % kInLevel * 4;
    const auto word = [&](int j) { return float_of(static_cast<std::uint32_t>(sum[j])); };
    device::store_vector(to + i * 4 * kConsumers, make_float4(word(0), word(1), word(2), word(3)));
  }
  arrive_of_warp(smem.has_sums);
}

// By a thread that has no part in the multiplications, which need not wait for it.
__device__ inline void tell_of_sums(const MultiplyArgs& more, MultiplyStorage& smem) {
  device::barrier_wait(smem.has_sums, 0);
  device::raise_flag(more.flags + blockIdx.x);
}

// By the producer: those of block `block`.
template <typename T>
__device__ void fetch_sums(const MultiplyArgs& more, unsigned block, Ring<T::kStages>& ring,
                           MultiplyStorage& smem) {
  device::wait_for_flag(more.flags + block);
  const std::byte* from = more.sums + std::size_t{block} * kSumBytes<T>;
  for (int i = 0; i < kSumBytes<T>; i += T::kStageBytes) {
    device::barrier_wait(smem.empty[ring.stage], ring.phase ^ 1);
    device::Barrier& full = smem.full[ring.stage];
    device::barrier_arrive_expect(full, T::kStageBytes);
    device::copy_bulk(smem.ring + ring.stage * T::kStageBytes, from + i, T::kStageBytes, full);
    ring.advance();
  }
}

// `release(stage)`: by a warp that has read it.
template <typename T, typename Release>
__device__ void add_sums(int thread, Ring<T::kStages>& ring, MultiplyStorage& smem,
                         std::int32_t (&acc)[T::kLevels][T::kBlockN / 2], Release release) {
  constexpr int kInLevel = T::kBlockN / 2 / 4;
#pragma unroll
  for (int first = 0; first < kSumVectors<T>; first += kVectorsInStage<T>) {
    device::barrier_wait(smem.full[ring.stage], ring.phase);
    const device::SharedAddress from =
        device::shared_address(smem.ring + ring.stage * T::kStageBytes) + 16 * thread;
#pragma unroll
    for (int i = 0; i < kVectorsInStage<T>; ++i) {
      float v[4];
      device::ordered::load_shared(v, from + i * 16 * kConsumers);
      std::int32_t* sum = acc[(first + i) / kInLevel] + (first + i) % kInLevel * 4;
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[j] += static_cast<std::int32_t>(bits_of(v[j]));
    }
    __syncwarp();  // all lanes have read, and one releases the stage for them
    release(ring.stage);
    ring.advance();
  }
}

}  // namespace tilegate::int8x3
