#include "order.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include <tilegate/device/cpu/executor.hpp>

namespace tilegate::simt::counted {

void Order::begin_launch(const device::LaunchConfig& config) {
  threads_x_ = config.threads_x;
  threads_y_ = config.threads_y;
  block_threads_ = config.block_threads();
  has_clusters_ = config.cluster > 1;
  const std::size_t threads = std::size_t{block_threads_} * config.cluster;
  overlaps_previous_ = config.overlaps_previous;
  launch_began_ = ++epoch_;
  has_waited_.assign(threads, !overlaps_previous_);
  clocks_.assign(threads, Clock{});
  clocks_moved_ = true;
  agents_.begin_launch(static_cast<unsigned>(threads));
  raises_.clear();
}

void Order::begin_block(unsigned block) {
  block_barrier();
  if (overlaps_previous_) has_waited_.assign(has_waited_.size(), false);
  block_ = block;
  block_began_ = epoch_;
  if (agents_.in_use()) use_agents();
}

void Order::block_barrier() {
  ++epoch_;
  if (overlaps_previous_ &&
      std::find(has_waited_.begin(), has_waited_.end(), true) != has_waited_.end()) {
    has_waited_.assign(has_waited_.size(), true);
  }
  if (agents_.in_use()) {
    agents_.block_barrier();
    for (Mbarrier& barrier : mbarriers_) {
      agents_.forget_threads(barrier.arrived);
      agents_.forget_threads(barrier.complete);
    }
  }
  if (!clocks_moved_) return;
  for (unsigned thread = 0; thread < clocks_.size(); ++thread) {
    clocks_[thread] = Clock{};
    clocks_[thread].seen[thread % kWarpSize] = 1;
  }
  clocks_moved_ = false;
}

void Order::warp_barrier(unsigned warp, unsigned mask) {
  clocks_moved_ = true;
  Clock joined;
  bool one_has_waited = false;
  const auto each_lane = [&](auto&& visit) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const unsigned thread = warp * kWarpSize + lane;
      if ((mask >> lane & 1) != 0 && thread < clocks_.size()) visit(lane, thread);
    }
  };
  each_lane([&](unsigned, unsigned thread) {
    for (unsigned i = 0; i < kWarpSize; ++i) {
      joined.seen[i] = std::max(joined.seen[i], clocks_[thread].seen[i]);
    }
    one_has_waited = one_has_waited || has_waited_[thread];
  });
  if (agents_.in_use()) {
    AgentClock all;
    each_lane([&](unsigned, unsigned thread) { join(all, agents_.clock(thread)); });
    each_lane([&](unsigned, unsigned thread) { agents_.learn(thread, all); });
  }
  each_lane([&](unsigned lane, unsigned thread) {
    clocks_[thread] = joined;
    ++clocks_[thread].seen[lane];
    has_waited_[thread] = one_has_waited;
  });
}

bool Order::is_ordered(unsigned earlier, Stamp stamp, unsigned thread) const {
  if (earlier == thread) return true;
  if (earlier / kWarpSize != thread / kWarpSize) return agents_.knows(thread, earlier, stamp);
  return clocks_[thread].seen[earlier % kWarpSize] >= stamp;
}

// Starts vector clocks: at the beginning of a block, or at the first event that needs them.
void Order::use_agents() {
  agents_.begin_block();
  mbarriers_.clear();
  fences_.assign(clocks_.size(), {});
  thread_fences_.assign(clocks_.size(), {});
}

// The thread's clock: all events that happened before now.
AgentClock Order::clock_of(unsigned thread) const {
  AgentClock clock = agents_.clock(thread);
  const unsigned first = thread / kWarpSize * kWarpSize;
  for (unsigned lane = 0; lane < kWarpSize && first + lane < clocks_.size(); ++lane) {
    raise(clock, first + lane, clocks_[thread].seen[lane]);
  }
  raise(clock, agents_.previous_launch(), has_waited_[thread] ? 1 : 0);
  return clock;
}

void Order::learn(unsigned thread, const AgentClock& what) {
  agents_.learn(thread, what);
  const unsigned first = thread / kWarpSize * kWarpSize;
  for (unsigned lane = 0; lane < kWarpSize && first + lane < what.size(); ++lane) {
    Stamp& seen = clocks_[thread].seen[lane];
    if (first + lane < clocks_.size()) seen = std::max(seen, what[first + lane]);
  }
  if (agents_.knows(thread, agents_.previous_launch(), 1)) has_waited_[thread] = true;
}

// Advances the thread's stamp: other threads do not know of its later events.
void Order::tick(unsigned thread) {
  Stamp& stamp = clocks_[thread].seen[thread % kWarpSize];
  if (stamp == std::numeric_limits<Stamp>::max()) {
    executor::fail("too many barriers without __syncthreads: " + std::to_string(stamp) +
                   " of a thread are counted at most");
  }
  ++stamp;
  clocks_moved_ = true;
}

void Order::make_mbarrier() {
  if (!agents_.in_use()) use_agents();
  mbarriers_.emplace_back();
}

void Order::arrive(unsigned thread, unsigned barrier) {
  join(mbarriers_[barrier].arrived, clock_of(thread));
  tick(thread);
}

void Order::complete_phase(unsigned barrier, Stamp phase, bool completes_copies) {
  Mbarrier& completed = mbarriers_[barrier];
  if (completes_copies) raise(completed.arrived, agents_.copies_of(barrier), phase);
  completed.complete = completed.arrived;
}

void Order::pass(unsigned thread, unsigned barrier) { learn(thread, mbarriers_[barrier].complete); }

void Order::meet(const std::vector<unsigned>& threads) {
  if (!agents_.in_use()) use_agents();
  AgentClock all;
  for (const unsigned thread : threads) join(all, clock_of(thread));
  for (const unsigned thread : threads) {
    learn(thread, all);
    tick(thread);
  }
}

void Order::meet(unsigned first, unsigned count) {
  std::vector<unsigned> threads(count);
  std::iota(threads.begin(), threads.end(), first);
  meet(threads);
}

void Order::finish(unsigned thread, unsigned agent, Stamp stamp) {
  if (!agents_.in_use()) use_agents();
  agents_.learn(thread, agent, stamp);
}

void Order::fence_proxy(unsigned thread) {
  if (!agents_.in_use()) use_agents();
  fences_[thread].push_back({epoch_, stamp_of(thread)});
  tick(thread);
}

bool Order::is_fenced(unsigned writer, Epoch epoch, Stamp stamp, unsigned thread) const {
  if (!agents_.in_use()) return false;
  const auto is_before = [](const Fence& fence, const Fence& time) {
    return fence.epoch != time.epoch ? fence.epoch < time.epoch : fence.stamp < time.stamp;
  };
  const auto& fences = fences_[writer];
  const auto next = std::lower_bound(fences.begin(), fences.end(), Fence{epoch, stamp}, is_before);
  if (next == fences.end()) return false;
  return next->epoch < epoch_ || is_ordered(writer, next->stamp, thread);
}

std::string Order::name_of_agent(unsigned agent) const {
  if (agent < agents_.stores_of(0)) {
    return "the warpgroup_mma of warpgroup " +
           std::to_string(agent - agents_.multiplications_of(0));
  }
  return "the store of thread " + name_of(agent - agents_.stores_of(0));
}

std::string Order::name_of(unsigned thread) const {
  const unsigned number = thread % block_threads_, row = number / threads_x_;
  std::string index = "(" + std::to_string(number % threads_x_) + "," +
                      std::to_string(row % threads_y_) + "," + std::to_string(row / threads_y_) +
                      ")";
  if (!has_clusters_) return index;
  return index + " of block " + std::to_string(block_ + thread / block_threads_);
}

}  // namespace tilegate::simt::counted
