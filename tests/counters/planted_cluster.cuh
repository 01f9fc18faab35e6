// Kernels whose blocks misuse each other's shared memory; each fault is one thing done wrong.
#pragma once

#include <cstdint>

#include <tilegate/device/async.cuh>

#include "planted.hpp"

namespace tilegate::planted::cluster {

enum class Fault {
  kNone,
  kReadsPeerTooEarly,
  kEndsWhilePeerReads,
  kReachesBeyondCluster,
  kThreadSkipsClusterBarrier,
  kOverwritesPeersTile,
  kEndsWhilePeersArrive,
  kEndsUnawareOfReader,
  kWaitsWithoutArriving,
  kEndsUnawareOfArrival,
  kCopiesToUnaware,
  kReadsCopyOfPeerTooEarly,
  kEndsBeforeCopyOfPeer,
  kCopiesBeyondCluster,
};

constexpr unsigned kThreads = 64;
constexpr unsigned kCluster = 2;
constexpr unsigned kTiles = 3;

struct Storage {
  alignas(128) float tile[kCluster][kThreads];
  device::Barrier full, empty;
};

// Each thread reads what the same thread of the next block has stored.
template <Fault kFault>
__global__ void read_peer(float* memory) {
  auto& words = device::shared_storage<Storage>().tile[0];
  const unsigned rank = device::cluster_rank();
  constexpr bool kOnlyFirstReads = kFault == Fault::kEndsUnawareOfReader;
  const unsigned next = kFault == Fault::kReachesBeyondCluster ? rank + 1 : (rank + 1) % kCluster;
  const unsigned peer = kOnlyFirstReads && rank != 0 ? rank : next;
  const float* of_peer = kOnlyFirstReads ? device::cluster_peer(&words[0], peer) : nullptr;
  words[threadIdx.x] = memory[rank * kThreads + threadIdx.x];
  if (kFault == Fault::kThreadSkipsClusterBarrier && rank == 1 && threadIdx.x == 5) {
    __syncthreads();
  } else if (kFault != Fault::kReadsPeerTooEarly) {
    device::cluster_sync();
  }
  if (!kOnlyFirstReads) of_peer = device::cluster_peer(&words[0], peer);
  memory[kResults + blockIdx.x * kThreads + threadIdx.x] = of_peer[threadIdx.x];
  if (kFault != Fault::kEndsWhilePeerReads && !kOnlyFirstReads) device::cluster_sync();
}

// The first block arrives at a barrier of the second.
template <Fault kFault>
__global__ void arrive_at_peer(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  if (threadIdx.x == 0) {
    device::barrier_init(smem.full, 1);
    device::barrier_init_fence();
  }
  if (kFault != Fault::kWaitsWithoutArriving) device::cluster_arrive();
  device::cluster_wait();  // all barriers are made
  if (device::cluster_rank() == 0 && threadIdx.x == 0) device::barrier_arrive_remote(smem.full, 1);
  memory[kResults + blockIdx.x * kThreads + threadIdx.x] = 1.0F;
  if (kFault != Fault::kEndsUnawareOfArrival) device::cluster_sync();
}

// Each block copies its part of a tile to all blocks, when all have read the tile before.
template <Fault kFault>
__global__ void share_tiles(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  const unsigned rank = device::cluster_rank();
  constexpr bool kAsksOnlyItself = kFault == Fault::kOverwritesPeersTile;
  if (threadIdx.x == 0) {
    device::barrier_init(smem.full, 1);
    device::barrier_init(smem.empty, kAsksOnlyItself ? 1 : kCluster);
    device::barrier_init_fence();
  }
  device::cluster_sync();  // all barriers are made
  float sum = 0.0F;
  for (unsigned tile = 0; tile < kTiles; ++tile) {
    if (threadIdx.x == 0) {
      device::barrier_arrive_expect(smem.full, sizeof(smem.tile));
      device::barrier_wait(smem.empty, (tile & 1) ^ 1);
      device::copy_bulk_multicast(smem.tile[rank], memory + 4 * tile + rank * kThreads,
                                  sizeof(smem.tile[0]), smem.full, (1U << kCluster) - 1);
    }
    device::barrier_wait(smem.full, tile & 1);
    for (unsigned i = 0; i < kCluster; ++i) sum = 2 * sum + smem.tile[i][threadIdx.x];
    __syncthreads();  // the block has read
    if (kAsksOnlyItself) {
      if (threadIdx.x == 0) device::barrier_arrive(smem.empty);
    } else if (threadIdx.x < kCluster) {
      device::barrier_arrive_remote(smem.empty, threadIdx.x);
    }
  }
  memory[kResults + blockIdx.x * kThreads + threadIdx.x] = sum;
  if (kFault != Fault::kEndsWhilePeersArrive) device::cluster_sync();
}

// The first block copies a box to both; a row of it lies outside the tensor.
template <Fault kFault>
__global__ void share_box(float* memory, const __grid_constant__ device::TensorMap map) {
  auto& smem = device::shared_storage<Storage>();
  const unsigned rank = device::cluster_rank();
  const bool is_unaware = kFault == Fault::kCopiesToUnaware && rank == 1;
  const bool is_early = kFault == Fault::kReadsCopyOfPeerTooEarly && rank == 1;
  if (threadIdx.x == 0) {
    device::barrier_init(smem.full, 1);
    device::barrier_init_fence();
    if (!is_unaware) device::barrier_arrive_expect(smem.full, sizeof(smem.tile));
  }
  device::cluster_sync();  // all barriers are made
  if (kFault == Fault::kEndsBeforeCopyOfPeer && rank == 1) return;
  if (rank == 0 && threadIdx.x == 0) {
    const unsigned blocks = kFault == Fault::kCopiesBeyondCluster ? kCluster + 1 : kCluster;
    device::copy_tensor_multicast(smem.tile, map, 0, 1, 0, smem.full, (1U << blocks) - 1);
  }
  float sum = 0.0F;
  if (is_early) sum = smem.tile[0][threadIdx.x];
  if (!is_unaware) {
    device::barrier_wait(smem.full, 0);
    sum += smem.tile[0][threadIdx.x];
  }
  memory[kResults + blockIdx.x * kThreads + threadIdx.x] = sum;
  device::cluster_sync();  // no block ends while it is copied to
}

}  // namespace tilegate::planted::cluster
