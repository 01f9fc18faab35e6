// Kernels whose blocks misuse each other's shared memory.
#include <cstdint>

#include <tilegate/device/async.cuh>

#include "planted.hpp"

namespace tilegate::planted {
namespace {

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

device::LaunchConfig config_of_cluster() {
  return {.kernel = "planted",
          .blocks = kCluster,
          .threads_x = kThreads,
          .shared_bytes = sizeof(Storage),
          .cluster = kCluster};
}

template <auto kKernel>
Status launch(float* memory) {
  return device::launch(config_of_cluster(), nullptr, kKernel, memory);
}

template <Fault kFault>
Status launch_box(float* memory) {
  const device::TensorLayout layout{.data = memory,
                                    .dimensions = 3,
                                    .size = {32, 3, 2},
                                    .stride_bytes = {0, 128, 512},
                                    .box = {32, 4, 1}};
  device::TensorMap map;
  if (Status s = device::make_tensor_map(layout, &map); !s.ok()) return s;
  return device::launch(config_of_cluster(), nullptr, share_box<kFault>, memory, map);
}

#define PLANT(kernel, fault, shows, message) \
  { &(#fault)[1], launch<kernel<Fault::fault>>, launch<kernel<Fault::kNone>>, message, shows }
#define PLANT_BOX(fault, shows, message) \
  { &(#fault)[1], launch_box<Fault::fault>, launch_box<Fault::kNone>, message, shows }

constexpr Plant kPlants[] = {
    PLANT(read_peer, kReadsPeerTooEarly, Shows::kWrongForward,
          "race at byte \\d+ of shared memory: this thread (reads|writes) at .*planted_cluster.*; "
          "thread \\(\\d+,0,0\\) of block \\d (wrote|read) at .*; no (barrier|__syncthreads) "
          "between"),
    PLANT(
        read_peer, kEndsWhilePeerReads, Shows::kStops,
        "(accesses the shared memory of block \\d of its cluster at .*planted_cluster\\.cu:\\d+.*, "
        "which may have ended|reaches into block \\d of the cluster, which has ended)"),
    PLANT(read_peer, kReachesBeyondCluster, Shows::kStops,
          "block 1, .*cluster_peer at .* names block 2 of a cluster of 2"),
    PLANT(
        read_peer, kThreadSkipsClusterBarrier, Shows::kStops,
        "deadlock: thread \\(0,0,0\\) of block 0 \\(and 126 more\\) waits at .* for cluster_sync; "
        "thread \\(5,0,0\\) of block 1 waits at .* for __syncthreads"),
    PLANT(
        share_tiles, kOverwritesPeersTile, Shows::kWrongForward,
        "race at byte \\d+ of shared memory: this thread writes at .*; thread .* of block \\d read "
        "at|before the barrier_wait for the bulk copy that thread \\(0,0,0\\) of block"),
    PLANT(
        share_tiles, kEndsWhilePeersArrive, Shows::kStops,
        "(accesses the shared memory of block \\d of its cluster at .*planted_cluster\\.cu:\\d+.*, "
        "which may have ended|reaches into block \\d of the cluster, which has ended)"),
    // The block is still there when it is reached into, and nothing says that it will be.
    PLANT(read_peer, kEndsUnawareOfReader, Shows::kWrongForward,
          "accesses the shared memory of block 1 of its cluster at .*planted_cluster\\.cu:\\d+.*, "
          "which may have ended"),
    PLANT(arrive_at_peer, kWaitsWithoutArriving, Shows::kStops,
          "cluster_wait at .*planted_cluster\\.cu:\\d+.* without cluster_arrive\\(\\) before it"),
    PLANT(arrive_at_peer, kEndsUnawareOfArrival, Shows::kNowhere,
          "accesses the shared memory of block 1 of its cluster at .*planted_cluster\\.cu:\\d+.*, "
          "which may have ended"),
    PLANT_BOX(kCopiesToUnaware, Shows::kStops,
              "block 1, .*the block ends in phase 0 of the barrier at byte \\d+ of shared memory, "
              "made at "
              ".*planted_cluster\\.cu:\\d+, which expects 0 bytes; copies of 512 were started"),
    PLANT_BOX(
        kReadsCopyOfPeerTooEarly, Shows::kWrongForward,
        "block 1, .*read of byte \\d+ of shared memory at .*planted_cluster\\.cu:\\d+ before the "
        "barrier_wait for the bulk copy that thread \\(0,0,0\\) of block 0 started at|race at|no "
        "thread of the block"),
    PLANT_BOX(kEndsBeforeCopyOfPeer, Shows::kStops,
              "block 1, .*the block ends in phase 0 of the barrier .*, which expects 512 bytes; "
              "copies of "
              "512 were started|copy to shared memory at .* reaches into block 1 of the cluster, "
              "which has ended|copy at .* reaches into block 1 of the cluster, which has ended"),
    PLANT_BOX(kCopiesBeyondCluster, Shows::kStops,
              "block 0, .*copy at .*planted_cluster\\.cu:\\d+ names block 2 of a cluster of 2"),
};

}  // namespace

std::span<const Plant> cluster_plants() { return kPlants; }

}  // namespace tilegate::planted
