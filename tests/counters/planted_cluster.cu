// Kernels that misuse the shared memory of a cluster, and what must be said of each.
#include "planted_cluster.cuh"

namespace tilegate::planted {
namespace cluster {
namespace {

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
  {&(#fault)[1], launch<kernel<Fault::fault>>, launch<kernel<Fault::kNone>>, message, shows}
#define PLANT_BOX(fault, shows, message) \
  {&(#fault)[1], launch_box<Fault::fault>, launch_box<Fault::kNone>, message, shows}

constexpr Plant kPlants[] = {
    PLANT(read_peer, kReadsPeerTooEarly, Shows::kWrongForward,
          "race at byte \\d+ of shared memory: this thread (reads|writes) at .*planted_cluster.*; "
          "thread \\(\\d+,0,0\\) of block \\d (wrote|read) at .*; no (barrier|__syncthreads) "
          "between"),
    PLANT(read_peer, kEndsWhilePeerReads, Shows::kStops,
          "(accesses the shared memory of block \\d of its cluster at "
          ".*planted_cluster\\.cuh:\\d+.*, "
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
    PLANT(share_tiles, kEndsWhilePeersArrive, Shows::kStops,
          "(accesses the shared memory of block \\d of its cluster at "
          ".*planted_cluster\\.cuh:\\d+.*, "
          "which may have ended|reaches into block \\d of the cluster, which has ended)"),
    // The block is still there when it is reached into, and nothing says that it will be.
    PLANT(read_peer, kEndsUnawareOfReader, Shows::kWrongForward,
          "accesses the shared memory of block 1 of its cluster at .*planted_cluster\\.cuh:\\d+.*, "
          "which may have ended"),
    PLANT(arrive_at_peer, kWaitsWithoutArriving, Shows::kStops,
          "cluster_wait at .*planted_cluster\\.cuh:\\d+.* without cluster_arrive\\(\\) before it"),
    PLANT(arrive_at_peer, kEndsUnawareOfArrival, Shows::kNowhere,
          "accesses the shared memory of block 1 of its cluster at .*planted_cluster\\.cuh:\\d+.*, "
          "which may have ended"),
    PLANT_BOX(kCopiesToUnaware, Shows::kStops,
              "block 1, .*the block ends in phase 0 of the barrier at byte \\d+ of shared memory, "
              "made at "
              ".*planted_cluster\\.cuh:\\d+, which expects 0 bytes; copies of 512 were started"),
    PLANT_BOX(
        kReadsCopyOfPeerTooEarly, Shows::kWrongForward,
        "block 1, .*read of byte \\d+ of shared memory at .*planted_cluster\\.cuh:\\d+ before the "
        "barrier_wait for the bulk copy that thread \\(0,0,0\\) of block 0 started at|race at|no "
        "thread of the block"),
    PLANT_BOX(kEndsBeforeCopyOfPeer, Shows::kStops,
              "block 1, .*the block ends in phase 0 of the barrier .*, which expects 512 bytes; "
              "copies of "
              "512 were started|copy to shared memory at .* reaches into block 1 of the cluster, "
              "which has ended|copy at .* reaches into block 1 of the cluster, which has ended"),
    PLANT_BOX(kCopiesBeyondCluster, Shows::kStops,
              "block 0, .*copy at .*planted_cluster\\.cuh:\\d+ names block 2 of a cluster of 2"),
};

}  // namespace
}  // namespace cluster

std::span<const Plant> cluster_plants() { return cluster::kPlants; }

}  // namespace tilegate::planted
