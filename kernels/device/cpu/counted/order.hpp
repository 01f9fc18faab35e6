// Happens-before order of the accesses of a launch, whatever the schedule. Barriers order the
// threads of a block. Flags, or fences with atomic operations, order blocks. A launch comes after
// the previous one; if it overlaps that one, only after wait_for_previous_kernel(). The vector
// clocks for other barriers than __syncthreads, and for asynchronous work, are in agents.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tilegate/device/launch_config.hpp>

#include "agents.hpp"
#include "warp_access.hpp"

namespace tilegate::simt::counted {

// An epoch counts block barriers, over all blocks and launches in the order in which they run, so
// it identifies its block and launch, too. Within an epoch, a stamp counts the warp barriers of a
// lane.
using Epoch = std::uint32_t;

class Order {
 public:
  void begin_launch(const device::LaunchConfig& config);
  void begin_block(unsigned block);
  void block_barrier();
  void warp_barrier(unsigned warp, unsigned mask);
  void wait_for_previous_launch(unsigned thread) { has_waited_[thread] = true; }

  // Mbarriers are numbered in each cluster, their phases from 1. A phase that expects bytes also
  // completes the copies that bring them.
  void make_mbarrier();
  void arrive(unsigned thread, unsigned barrier);
  void complete_phase(unsigned barrier, Stamp phase, bool completes_copies);
  void pass(unsigned thread, unsigned barrier);  // waits for its last complete phase
  void meet(const std::vector<unsigned>& threads);
  void meet(unsigned first, unsigned count);
  // The thread has waited for the agent's events up to `stamp`.
  void finish(unsigned thread, unsigned agent, Stamp stamp);
  void fence_proxy(unsigned thread);
  // `flag`: its address. Flags are not transitive: a block does not pass on what it learned by one
  // flag when it raises another.
  void raise_flag(unsigned thread, const void* flag);
  void wait_for_flag(unsigned thread, const void* flag);
  // A fence and then an atomic operation in global memory act as raise_flag on that word. An atomic
  // operation on the same word and then a fence act as wait_for_flag.
  void thread_fence(unsigned thread);
  void use_atomic(unsigned thread, const void* data);

  const Agents& agents() const { return agents_; }
  // Whether the agent's events up to `stamp` happened before now in the thread.
  bool is_after(unsigned thread, unsigned agent, Stamp stamp) const {
    return agents_.knows(thread, agent, stamp);
  }
  std::string name_of_agent(unsigned agent) const;
  // Whether `writer` has called fence_async_proxy() after that time, and a barrier orders the fence
  // before now in `thread`.
  bool is_fenced(unsigned writer, Epoch epoch, Stamp stamp, unsigned thread) const;
  // Whether the launch uses other barriers than __syncthreads between warps.
  bool orders_warps() const { return agents_.in_use(); }

  Epoch now() const { return epoch_; }
  // The first epochs of the running block and of the running launch.
  Epoch block_began() const { return block_began_; }
  Epoch launch_began() const { return launch_began_; }
  unsigned block() const { return block_; }
  Stamp stamp_of(unsigned thread) const { return clocks_[thread].seen[thread % kWarpSize]; }

  // Whether a barrier orders the event `stamp` of `earlier`, a thread of this block in this epoch,
  // before now in `thread`.
  bool is_ordered(unsigned earlier, Stamp stamp, unsigned thread) const;

  // The same for a thread of an earlier block, ordered by a flag.
  bool is_flagged(unsigned block, Epoch epoch, unsigned earlier, Stamp stamp,
                  unsigned thread) const;

  // Whether the thread knows that the previous launch has ended: it has waited for that, or a
  // barrier orders it after a thread of the block that has.
  bool is_after_previous_launch(unsigned thread) const { return has_waited_[thread]; }

  // "(3,1,0)"
  std::string name_of(unsigned thread) const;

 private:
  struct Clock {
    std::array<Stamp, kWarpSize> seen{};  // per lane of the warp; the own entry counts barriers
  };

  Epoch epoch_ = 1;  // 0: never
  Epoch block_began_ = 1, launch_began_ = 1;
  unsigned block_ = 0;
  unsigned threads_x_ = 1, threads_y_ = 1, block_threads_ = 1;
  bool has_clusters_ = false;
  bool overlaps_previous_ = false;
  std::vector<bool> has_waited_;  // per thread: for the previous launch
  bool clocks_moved_ = false;
  std::vector<Clock> clocks_;  // per thread

  struct Fence {
    Epoch epoch;
    Stamp stamp;
  };
  struct Mbarrier {
    AgentClock arrived, complete;  // events before its current and its last complete phase
  };
  struct Raise {
    const void* flag;
    unsigned block;
    Epoch epoch;
    AgentClock clock;  // events before it in this epoch
  };
  AgentClock clock_of(unsigned thread) const;
  void learn(unsigned thread, const AgentClock& what);
  void tick(unsigned thread);
  void use_agents();

  Agents agents_;
  std::vector<Mbarrier> mbarriers_;
  std::vector<Raise> raises_;               // in this launch
  std::vector<std::vector<Fence>> fences_;  // per thread, in this block
  struct ThreadFence {
    Epoch epoch = 0;                // 0: none in this block
    AgentClock clock;               // events before it
    std::vector<unsigned> to_wait;  // flags that atomic operations since the fence have seen
  };
  std::vector<ThreadFence> thread_fences_;  // the last one of each thread
};

}  // namespace tilegate::simt::counted
