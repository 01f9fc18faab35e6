// Mbarriers, named barriers and cluster barriers on the executor: the misuse that it refuses, and
// the times at which copies complete.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/async.cuh>

#include "simt/small_kernel.hpp"

namespace tilegate::barrier_test {

using simt::Schedule;

using small_kernel::Kernel;
using small_kernel::kThreads;
using small_kernel::Outcome;

constexpr unsigned kBytes = 16;

struct SharedStorage {
  alignas(16) float words[2][kThreads];
  device::Barrier full[2];
};

Outcome run(Kernel kernel, Schedule schedule = Schedule::forward(), unsigned cluster = 1) {
  return small_kernel::launch(kernel, sizeof(SharedStorage), schedule, static_cast<int>(cluster),
                              cluster);
}

void expect_fault(Kernel kernel, const char* words, Schedule schedule = Schedule::forward()) {
  const Status status = run(kernel, schedule).status;
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

__device__ SharedStorage& make_barriers(unsigned arrivals) {
  auto& shared = device::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    for (device::Barrier& barrier : shared.full) device::barrier_init(barrier, arrivals);
    device::barrier_init_fence();
  }
  __syncthreads();  // the barriers are made
  return shared;
}

// Two threads each copy a vector, and each expects its bytes.
__global__ void expect_twice(const float* in, float* out) {
  SharedStorage& shared = make_barriers(2);
  if (threadIdx.x < 2) {
    device::barrier_arrive_expect(shared.full[0], kBytes);
    device::copy_bulk(&shared.words[0][4 * threadIdx.x], in + 4 * threadIdx.x, kBytes,
                      shared.full[0]);
  }
  device::barrier_wait(shared.full[0], 0);
  out[threadIdx.x] = shared.words[0][threadIdx.x % 8];
}

TEST(Barrier, ExpectsTheBytesOfAllArrivals) {
  for (const unsigned cluster : {1U, 2U}) {  // each block of a cluster copies to itself
    const Outcome outcome = run(expect_twice, Schedule::forward(), cluster);
    ASSERT_TRUE(is_ok(outcome.status));
    for (int i = 0; i < kThreads; ++i)
      EXPECT_EQ(outcome.out[static_cast<std::size_t>(i)], static_cast<float>(i % 8));
  }
}

// Waits for the second copy, and reads the first.
__global__ void read_before_its_wait(const float* in, float* out) {
  SharedStorage& shared = make_barriers(1);
  if (threadIdx.x == 0) {
    for (unsigned i = 0; i < 2; ++i) {
      device::barrier_arrive_expect(shared.full[i], kBytes);
      device::copy_bulk(shared.words[i], in, kBytes, shared.full[i]);
    }
  }
  device::barrier_wait(shared.full[1], 0);
  out[threadIdx.x] = shared.words[0][0];
  device::barrier_wait(shared.full[0], 0);
}

TEST(Barrier, CopyIsInvisibleBeforeItsWait) {
  EXPECT_TRUE(std::isnan(run(read_before_its_wait).out[0]));
}

__global__ void read_and_overwrite_early(const float* in, float* out) {
  SharedStorage& shared = make_barriers(1);
  if (threadIdx.x != 0) return;
  device::barrier_arrive_expect(shared.full[0], kBytes);
  device::copy_bulk(shared.words[0], in + 4, kBytes, shared.full[0]);
  out[8] = shared.words[0][0];
  device::barrier_wait(shared.full[0], 0);
  device::fence_async_proxy();
  device::store_bulk(out, shared.words[0], kBytes);
  device::store_commit();
  shared.words[0][0] = 99.0F;
  device::store_wait<0>();
}

TEST(Barrier, ShuffledScheduleCompletesCopiesEarlyOrLate) {
  unsigned early_copies = 0, late_reads = 0;
  for (unsigned seed = 0; seed < 16; ++seed) {
    const std::vector<float> out = run(read_and_overwrite_early, Schedule::shuffled(seed)).out;
    early_copies += out[8] == 4.0F ? 1 : 0;
    late_reads += out[0] == 99.0F ? 1 : 0;
  }
  for (const unsigned count : {early_copies, late_reads}) {
    EXPECT_GT(count, 0U);
    EXPECT_LT(count, 16U);
  }
}

// Copies in two phases of a barrier, and waits only for the first.
__global__ void wait_for_first_phase_only(const float* in, float*) {
  SharedStorage& shared = make_barriers(1);
  for (unsigned phase = 0; phase < 2; ++phase) {
    if (threadIdx.x == 0) {
      device::barrier_arrive_expect(shared.full[0], kBytes);
      device::copy_bulk(shared.words[0], in, kBytes, shared.full[0]);
    }
    if (phase == 0) device::barrier_wait(shared.full[0], 0);
  }
}

__global__ void expect_one_of_two(const float* in, float*) {
  SharedStorage& shared = make_barriers(1);
  if (threadIdx.x == 0) {
    device::barrier_arrive_expect(shared.full[0], kBytes);
    device::copy_bulk(shared.words[0], in, kBytes, shared.full[0]);
    device::copy_bulk(shared.words[1], in, kBytes, shared.full[0]);
  }
  device::barrier_wait(shared.full[0], 0);
}

__global__ void fence_for_others(const float*, float*) {
  auto& shared = device::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) device::barrier_init(shared.full[0], kThreads);
  __syncthreads();
  if (threadIdx.x == 1) device::barrier_init_fence();
  __syncthreads();
  device::barrier_arrive(shared.full[0]);
}

__global__ void too_many_arrivals(const float*, float*) { make_barriers(1U << 20); }

template <unsigned kCount>
__global__ void named_barrier_of(const float*, float*) {
  device::named_barrier<1>(kCount);
}

TEST(Barrier, RejectsMisuse) {
  expect_fault(wait_for_first_phase_only, "no thread has waited for phase 1", Schedule::reverse());
  expect_fault(expect_one_of_two, "expects 16 bytes, and copies of 32 were started");
  expect_fault(fence_for_others, "before barrier_init_fence() by the thread that made it");
  expect_fault(too_many_arrivals, "from 1 to 1048575 are possible");
  expect_fault(named_barrier_of<0>, "it needs whole warps of the block");
  expect_fault(named_barrier_of<48>, "it needs whole warps of the block");
  expect_fault(named_barrier_of<96>, "it needs whole warps of the block");
}

__global__ void reverse_block(const float* in, float* out) {
  auto& words = device::shared_storage<SharedStorage>().words[0];
  words[threadIdx.x] = in[threadIdx.x];
  device::named_barrier<1>(kThreads);
  out[blockIdx.x * kThreads + threadIdx.x] = words[kThreads - 1 - threadIdx.x];
}

TEST(Barrier, NamedBarrierBelongsToOneBlockOfACluster) {
  for (unsigned seed = 0; seed < 8; ++seed) {  // the last thread to arrive reads at once
    const Outcome outcome = run(reverse_block, Schedule::shuffled(seed), /*cluster=*/2);
    ASSERT_TRUE(is_ok(outcome.status));
    for (int i = 0; i < 2 * kThreads; ++i) {
      EXPECT_EQ(outcome.out[static_cast<std::size_t>(i)],
                static_cast<float>(kThreads - 1 - i % kThreads));
    }
  }
}

// Thread 5 of each block leaves at once. A block ends when its last thread has left.
__global__ void read_peer_without_thread_5(const float* in, float* out) {
  auto& words = device::shared_storage<SharedStorage>().words[0];
  if (threadIdx.x == 5) return;
  words[threadIdx.x] = in[threadIdx.x] + static_cast<float>(blockIdx.x);
  device::cluster_sync();
  const float* of_peer = device::cluster_peer(&words[0], 1 - device::cluster_rank());
  out[blockIdx.x * kThreads + threadIdx.x] = of_peer[threadIdx.x];
  device::cluster_sync();
}

TEST(Barrier, ClusterBarrierMissesAThread) {
  const Outcome outcome = run(read_peer_without_thread_5, Schedule::forward(), /*cluster=*/2);
  ASSERT_TRUE(is_ok(outcome.status));
  EXPECT_EQ(outcome.out[7], 8.0F);
  EXPECT_EQ(outcome.out[kThreads + 7], 7.0F);
}

}  // namespace tilegate::barrier_test
