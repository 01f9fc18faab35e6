// Clusters: their barrier, shared memory of peers, and multicast copies. On both devices.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/async.cuh>

#include "simt/async_test.hpp"
#include "simt/device_array.hpp"

namespace tilegate::cluster_test {

constexpr unsigned kThreads = 64;
constexpr unsigned kCluster = 4;
constexpr unsigned kBlocks = 2 * kCluster;

device::LaunchConfig config_of(const char* kernel, std::size_t shared_bytes) {
  return {.kernel = kernel,
          .blocks = kBlocks,
          .threads_x = kThreads,
          .shared_bytes = shared_bytes,
          .cluster = kCluster};
}

// Each thread stores a word; the block of rank 0 adds to the words of all blocks; then each thread
// reads the word of the same thread of the next block.
__global__ void pass_to_peer(unsigned* out) {
#if TILEGATE_TEST_ASYNC
  auto& words = device::shared_storage<unsigned[kThreads]>();
  const unsigned rank = device::cluster_rank();
  words[threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
  device::cluster_sync();  // all have stored
  if (rank == 0) {
    for (unsigned peer = 0; peer < kCluster; ++peer) {
      device::cluster_peer(&words[0], peer)[threadIdx.x] += 100 * peer;
    }
  }
  device::cluster_sync();  // it has added
  out[blockIdx.x * kThreads + threadIdx.x] =
      device::cluster_peer(&words[0], (rank + 1) % kCluster)[threadIdx.x];
  device::cluster_sync();  // no block ends while its peer reads
#endif
}

TEST_F(Async, ClusterBlocksShareMemory) {
  for_each_schedule([&] {
    const DeviceArray<unsigned> out(kBlocks * kThreads);
    ASSERT_TRUE(is_ok(device::launch(config_of("pass_to_peer", kThreads * sizeof(unsigned)),
                                     nullptr, pass_to_peer, out.data())));
    const std::vector<unsigned> found = out.to_host();
    for (unsigned block = 0; block < kBlocks; ++block) {
      const unsigned peer = (block + 1) % kCluster;
      for (unsigned thread = 0; thread < kThreads; ++thread) {
        EXPECT_EQ(found[block * kThreads + thread],
                  (block / kCluster * kCluster + peer) * 1000 + thread + 100 * peer);
      }
    }
  });
}

struct Told {
  float4 by[kCluster];
  device::Barrier all;
};

// Each block stores its number to all blocks of its cluster, with one thread per block.
__global__ void tell_all(float* out) {
#if TILEGATE_TEST_ASYNC
  auto& told = device::shared_storage<Told>();
  if (threadIdx.x == 0) {
    device::barrier_init(told.all, 1);
    device::barrier_init_fence();
  }
  device::cluster_arrive();
  device::cluster_wait();  // all barriers are made
  // Arrives only now, because racecheck would report it before (../README.md, Racecheck).
  if (threadIdx.x == 0) device::barrier_arrive_expect(told.all, sizeof(told.by));
  if (threadIdx.x < kCluster) {
    const auto number = static_cast<float>(blockIdx.x);
    device::store_remote(told.by[device::cluster_rank()],
                         make_float4(number, 2 * number, 3 * number, 4 * number), told.all,
                         threadIdx.x);
  }
  device::barrier_wait(told.all, 0);
  const float4& v = told.by[threadIdx.x % kCluster];
  out[blockIdx.x * kThreads + threadIdx.x] = v.x + 10 * v.y + 100 * v.z + 1000 * v.w;
#endif
}

TEST_F(Async, RemoteStoresCompleteAtRemoteBarriers) {
  for_each_schedule([&] {
    const DeviceArray<float> out(kBlocks * kThreads);
    ASSERT_TRUE(
        is_ok(device::launch(config_of("tell_all", sizeof(Told)), nullptr, tell_all, out.data())));
    const std::vector<float> found = out.to_host();
    for (unsigned i = 0; i < found.size(); ++i) {
      const unsigned teller = i / kThreads / kCluster * kCluster + i % kThreads % kCluster;
      EXPECT_EQ(found[i], static_cast<float>(4321 * teller));
    }
  });
}

#if !defined(__CUDACC__)
TEST_F(Async, RemoteStoresNeedACluster) {
  const DeviceArray<float> out(kThreads);
  device::LaunchConfig config = config_of("tell_all", sizeof(Told));
  config.blocks = config.cluster = 1;
  const Status status = device::launch(config, nullptr, tell_all, out.data());
  EXPECT_NE(status.message().find("in a launch without clusters"), std::string::npos)
      << status.message();
}
#endif

constexpr int kTiles = 5;

struct SharedStorage {
  alignas(128) unsigned tile[kCluster][kThreads];
  device::Barrier full, empty;
};

// Each block copies its quarter of a tile to all blocks of the cluster, after all have read the
// previous tile. Each thread arrives, or one thread for its block.
template <bool kEachArrives>
__global__ void share_tiles(const unsigned* in, unsigned* out) {
#if TILEGATE_TEST_ASYNC
  auto& shared = device::shared_storage<SharedStorage>();
  const unsigned rank = device::cluster_rank();
  if (threadIdx.x == 0) {
    device::barrier_init(shared.full, 1);
    device::barrier_init(shared.empty, kEachArrives ? kCluster * kThreads : kCluster);
    device::barrier_init_fence();
  }
  device::cluster_sync();  // all barriers are made
  unsigned sum = 0;
  for (unsigned tile = 0; tile < kTiles; ++tile) {
    if (threadIdx.x == 0) {
      device::barrier_arrive_expect(shared.full, sizeof(shared.tile));
      device::barrier_wait(shared.empty, (tile & 1) ^ 1);
      device::copy_bulk_multicast(shared.tile[rank], in + (tile * kCluster + rank) * kThreads,
                                  sizeof(shared.tile[0]), shared.full, (1U << kCluster) - 1);
    }
    device::barrier_wait(shared.full, tile & 1);
    for (unsigned i = 0; i < kCluster; ++i) sum += (i + 1) * shared.tile[i][threadIdx.x];
    __syncthreads();  // the block has read
    for (unsigned peer = 0; peer < kCluster; ++peer) {
      if (kEachArrives || threadIdx.x == peer) device::barrier_arrive_remote(shared.empty, peer);
    }
  }
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
  device::cluster_sync();  // no block ends while others arrive at its barrier
#endif
}

template <bool kEachArrives>
void expect_tiles_shared() {
  std::vector<unsigned> words(kTiles * kCluster * kThreads);
  for (unsigned i = 0; i < words.size(); ++i) words[i] = i * i;
  const DeviceArray<unsigned> in(words);
  for_each_schedule([&] {
    const DeviceArray<unsigned> out(kBlocks * kThreads);
    ASSERT_TRUE(is_ok(device::launch(config_of("share_tiles", sizeof(SharedStorage)), nullptr,
                                     share_tiles<kEachArrives>,
                                     static_cast<const unsigned*>(in.data()), out.data())));
    const std::vector<unsigned> found = out.to_host();
    for (unsigned i = 0; i < found.size(); ++i) {
      unsigned expected = 0;
      for (unsigned j = 0; j < kTiles * kCluster; ++j) {
        expected += (j % kCluster + 1) * words[j * kThreads + i % kThreads];
      }
      EXPECT_EQ(found[i], expected);
    }
  });
}

TEST_F(Async, MulticastReachesEveryBlockOfTheCluster) { expect_tiles_shared<true>(); }
TEST_F(Async, RemoteArrivalsReachEveryBlockOfTheCluster) { expect_tiles_shared<false>(); }

}  // namespace tilegate::cluster_test
