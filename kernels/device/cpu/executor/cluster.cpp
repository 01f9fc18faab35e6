// Clusters: their barrier, and accesses to the shared memory of peers.
#include <algorithm>
#include <utility>

#include "executor_impl.hpp"
#include "observer.hpp"

namespace tilegate::simt {

void Executor::cluster_arrive() { current().has_arrived_at_cluster = true; }

void Executor::cluster_wait(const Site& site) {
  if (!std::exchange(current().has_arrived_at_cluster, false)) {
    fail("cluster_wait at " + to_string(site) + " without cluster_arrive() before it");
  }
  wait_as(State::kAtClusterBarrier, site);
}

// Releases the barrier if every thread that has not left the kernel has reached it.
bool Executor::release_cluster_barrier() {
  const auto threads = all_threads();
  const auto waits = [](const auto& thread) { return thread->state == State::kAtClusterBarrier; };
  if (std::none_of(threads.begin(), threads.end(), waits) ||
      !std::all_of(threads.begin(), threads.end(), [&](const auto& thread) {
        return waits(thread) || thread->state == State::kDone;
      })) {
    return false;
  }
  for (auto& thread : threads) {
    if (waits(thread)) thread->state = State::kReady;
  }
  observer::release_cluster_barrier();
  return true;
}

std::size_t Executor::peer_offset(std::size_t offset, unsigned peer, const char* use,
                                  const Site& site) {
  if (peer == rank()) return offset;
  if (peer >= config_.cluster) {
    fail(std::string(use) + " at " + to_string(site) + " names block " + std::to_string(peer) +
         " of a cluster of " + std::to_string(config_.cluster));
  }
  const auto threads = threads_of(peer);
  if (std::all_of(threads.begin(), threads.end(),
                  [](const auto& thread) { return thread->state == State::kDone; })) {
    fail(std::string(use) + " at " + to_string(site) + " reaches into block " +
         std::to_string(first_block_ + peer) + " of the cluster, which has ended");
  }
  const std::size_t there = offset - shared_base() + base_of(peer);
  observer::reach_into(peer, site);
  return there;
}

namespace executor {

unsigned cluster_rank() { return this_executor().rank(); }

void cluster_arrive() { this_executor().cluster_arrive(); }

void cluster_wait(const Site& site) { this_executor().cluster_wait(site); }

void cluster_sync(const Site& site) {
  cluster_arrive();
  cluster_wait(site);
}

void* cluster_peer(void* smem, unsigned rank, const Site& site) {
  Executor& executor = this_executor();
  const std::size_t offset = executor.shared_offset(smem, 1, "cluster_peer", site);
  return executor.cluster_memory() + executor.peer_offset(offset, rank, "cluster_peer", site);
}

void barrier_arrive_remote(device::Barrier& barrier, unsigned rank, const Site& site) {
  this_executor().mbarriers().arrive_at(rank, barrier, site);
}

void store_remote(void* smem, const void* vector, device::Barrier& barrier, unsigned rank,
                  const Site& site) {
  Executor& executor = this_executor();
  if (executor.cluster_size() == 1) {
    executor.fail("store_remote at " + to_string(site) + " in a launch without clusters");
  }
  const std::size_t offset = executor.shared_offset(smem, kPieceBytes, "store_remote", site);
  executor.mbarriers().store_to(rank, executor.peer_offset(offset, rank, "store_remote", site),
                                vector, barrier, site);
}

}  // namespace executor
}  // namespace tilegate::simt
