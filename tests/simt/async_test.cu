// Mbarriers, bulk copies and named barriers between the warps of a block. On both devices.
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/async.cuh>

#include "simt/async_test.hpp"
#include "simt/device_array.hpp"

namespace tilegate::async_test {

constexpr int kTiles = 7;
constexpr int kStages = 3;
constexpr unsigned kConsumers = 128;
constexpr unsigned kThreads = kConsumers + 32;
constexpr unsigned kTileFloats = 2 * kConsumers;

struct SharedStorage {
  alignas(128) float stages[kStages][kTileFloats];
  device::Barrier full[kStages], empty[kStages];
};

// The last warp copies tiles into stages; the other warps add words of them. Each consumer thread
// releases a stage, or one lane for its warp.
template <bool kEachArrives>
__global__ void add_tiles(const float* tiles, float* out) {
#if TILEGATE_TEST_ASYNC
  auto& shared = device::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      device::barrier_init(shared.full[stage], 1);
      device::barrier_init(shared.empty[stage], kEachArrives ? kConsumers : kConsumers / 32);
    }
    device::barrier_init_fence();
  }
  __syncthreads();  // the barriers are made
  if (threadIdx.x >= kConsumers) {
    device::reg_dealloc<24>();
    if (threadIdx.x != kConsumers) return;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int stage = tile % kStages;
      device::barrier_wait(shared.empty[stage], (tile / kStages & 1) ^ 1);
      device::barrier_arrive_expect(shared.full[stage], sizeof(shared.stages[0]));
      for (unsigned half = 0; half < 2; ++half) {
        device::copy_bulk(&shared.stages[stage][half * kConsumers],
                          tiles + tile * kTileFloats + half * kConsumers,
                          kConsumers * sizeof(float), shared.full[stage]);
      }
    }
  } else {
    device::reg_alloc<240>();
    float sum = 0.0F;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int stage = tile % kStages;
      device::barrier_wait(shared.full[stage], tile / kStages & 1);
      sum +=
          shared.stages[stage][threadIdx.x] + shared.stages[stage][kTileFloats - 1 - threadIdx.x];
      __syncwarp();  // all lanes have read
      if (kEachArrives || threadIdx.x % 32 == 0) device::barrier_arrive(shared.empty[stage]);
    }
    out[threadIdx.x] = sum;
  }
#endif
}

template <bool kEachArrives>
void expect_tiles_added() {
  const DeviceArray<float> tiles = iota(kTiles * kTileFloats);
  const device::LaunchConfig config{.kernel = "add_tiles",
                                    .blocks = 2,
                                    .threads_x = kThreads,
                                    .shared_bytes = sizeof(SharedStorage)};
  for_each_schedule([&] {
    const DeviceArray<float> out(kConsumers);
    ASSERT_TRUE(is_ok(device::launch(config, nullptr, add_tiles<kEachArrives>,
                                     static_cast<const float*>(tiles.data()), out.data())));
    float expected = 0.0F;
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      expected += static_cast<float>((2 * tile + 1) * kTileFloats - 1);
    }
    EXPECT_EQ(out.to_host(), std::vector<float>(kConsumers, expected));
  });
}

TEST_F(Async, ProducerAndConsumers) { expect_tiles_added<true>(); }
TEST_F(Async, ProducerAndConsumerWarps) { expect_tiles_added<false>(); }

// Two groups of two warps each exchange words, three times, independently of each other.
__global__ void exchange_in_pairs(unsigned* out) {
  auto& words = device::shared_storage<unsigned[128]>();
  const unsigned thread = threadIdx.x;
  unsigned value = thread;
  for (int round = 0; round < 3; ++round) {
    words[thread] = value;
    if (thread < 64) {
      device::named_barrier<1>(64);
    } else {
      device::named_barrier<2>(64);
    }
    value = words[thread ^ 32U] + 1;
    if (thread < 64) {
      device::named_barrier<1>(64);
    } else {
      device::named_barrier<2>(64);
    }
  }
  out[thread] = value;
}

TEST_F(Async, NamedBarriersSynchronizeASubset) {
  for_each_schedule([&] {
    const DeviceArray<unsigned> out(128);
    const device::LaunchConfig config{.kernel = "exchange_in_pairs",
                                      .blocks = 1,
                                      .threads_x = 128,
                                      .shared_bytes = 128 * sizeof(unsigned)};
    ASSERT_TRUE(is_ok(device::launch(config, nullptr, exchange_in_pairs, out.data())));
    const std::vector<unsigned> found = out.to_host();
    for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(found[i], (i ^ 32U) + 3);
  });
}

// Each group of two warps asks three times whether one of its threads is thread `round · 40`.
__global__ void ask_in_pairs(unsigned* out) {
  const unsigned thread = threadIdx.x;
  unsigned found = 0;
  for (unsigned round = 0; round < 3; ++round) {
    const bool is_it = thread == round * 40;
    const bool any = thread < 64 ? device::named_barrier_or<1>(64, is_it)
                                 : device::named_barrier_or<2>(64, is_it);
    found |= any ? 1U << round : 0U;
  }
  out[thread] = found;
}

TEST_F(Async, NamedBarriersKnowWhetherAValueIsTrueInOneOfTheirThreads) {
  for_each_schedule([&] {
    const DeviceArray<unsigned> out(128);
    const device::LaunchConfig config{.kernel = "ask_in_pairs", .blocks = 1, .threads_x = 128};
    ASSERT_TRUE(is_ok(device::launch(config, nullptr, ask_in_pairs, out.data())));
    const std::vector<unsigned> found = out.to_host();
    for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(found[i], i < 64 ? 0b011U : 0b100U);
  });
}

}  // namespace tilegate::async_test
