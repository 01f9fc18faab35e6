// What orders the accesses of a launch: barriers alone, whichever schedule runs. Only flags, or
// fences and atomic operations, order the blocks of a launch. Launches run one after another, but
// one that overlaps the launch before it is ordered after it only by wait_for_previous_kernel().
// What orders warps without __syncthreads, and asynchronous work, is in agents.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tilegate/device/launch_config.hpp>

#include "agents.hpp"
#include "warp_access.hpp"

namespace tilegate::simt::counted {

// Epochs count block barriers over all launches, blocks one after another, so that an epoch tells
// its block and its launch too. Within an epoch, a stamp counts the warp barriers of a lane.
using Epoch = std::uint32_t;

class Order {
 public:
  void begin_launch(const device::LaunchConfig& config);
  void begin_block(unsigned block);
  void block_barrier();
  void warp_barrier(unsigned warp, unsigned mask);
  void wait_for_previous_launch(unsigned thread) { has_waited_[thread] = true; }

  // Mbarriers are numbered in each block, their phases from 1 on. A phase whose bytes come from
  // copies completes these too.
  void make_mbarrier();
  void arrive(unsigned thread, unsigned barrier);
  void complete_phase(unsigned barrier, Stamp phase, bool completes_copies);
  void pass(unsigned thread, unsigned barrier);  // its last complete phase
  void meet(const std::vector<unsigned>& threads);
  void meet(unsigned first, unsigned count);
  // The thread has waited for what the agent did up to `stamp`.
  void finish(unsigned thread, unsigned agent, Stamp stamp);
  void fence_proxy(unsigned thread);
  // `flag`: its address, in this launch. What a block learns by one it does not pass on by another.
  void raise_flag(unsigned thread, const void* flag);
  void wait_for_flag(unsigned thread, const void* flag);
  // A fence, and an atomic operation in global memory after it, raise a flag there; an atomic
  // operation on the same word, and a fence after it, wait for all that were raised.
  void thread_fence(unsigned thread);
  void use_atomic(unsigned thread, const void* data);

  const Agents& agents() const { return agents_; }
  // Does what the thread does now come after what an agent of asynchronous work did up to `stamp`?
  bool is_after(unsigned thread, unsigned agent, Stamp stamp) const {
    return agents_.knows(thread, agent, stamp);
  }
  std::string name_of_agent(unsigned agent) const;
  // Has `writer` called fence_async_proxy() after what it did then, and before what `thread` does
  // now?
  bool is_fenced(unsigned writer, Epoch epoch, Stamp stamp, unsigned thread) const;
  // Does more than __syncthreads order the warps of this launch?
  bool orders_warps() const { return agents_.in_use(); }

  Epoch now() const { return epoch_; }
  // The first epochs of the running block and of the running launch.
  Epoch block_began() const { return block_began_; }
  Epoch launch_began() const { return launch_began_; }
  unsigned block() const { return block_; }
  Stamp stamp_of(unsigned thread) const { return clocks_[thread].seen[thread % kWarpSize]; }

  // Does a barrier stand between what `earlier`, a thread of this block, did at its time `stamp` of
  // this epoch, and what `thread` does now?
  bool is_ordered(unsigned earlier, Stamp stamp, unsigned thread) const;

  // The same of a thread of an earlier block: by a flag.
  bool is_flagged(unsigned block, Epoch epoch, unsigned earlier, Stamp stamp,
                  unsigned thread) const;

  // Has the launch before ended? The thread has waited for that, or a barrier stands between it and
  // a thread of the block that has.
  bool is_after_previous_launch(unsigned thread) const { return has_waited_[thread]; }

  // "(3,1,0)"
  std::string name_of(unsigned thread) const;

 private:
  struct Clock {
    std::array<Stamp, kWarpSize> seen{};  // of each lane of the warp; its own is its clock
  };

  Epoch epoch_ = 1;  // 0: never
  Epoch block_began_ = 1, launch_began_ = 1;
  unsigned block_ = 0;
  unsigned threads_x_ = 1, threads_y_ = 1, block_threads_ = 1;
  bool has_clusters_ = false;
  bool overlaps_previous_ = false;
  std::vector<bool> has_waited_;  // each thread of a block
  bool clocks_moved_ = false;
  std::vector<Clock> clocks_;  // of each thread of a block

  struct Fence {
    Epoch epoch;
    Stamp stamp;
  };
  struct Mbarrier {
    AgentClock arrived, complete;  // what happened before its open and its last complete phase
  };
  struct Raise {
    const void* flag;
    unsigned block;
    Epoch epoch;
    AgentClock clock;  // what came before it in this epoch
  };
  AgentClock clock_of(unsigned thread) const;
  void learn(unsigned thread, const AgentClock& what);
  void tick(unsigned thread);
  void use_agents();

  Agents agents_;
  std::vector<Mbarrier> mbarriers_;
  std::vector<Raise> raises_;               // in this launch
  std::vector<std::vector<Fence>> fences_;  // of each thread, in this block
  struct ThreadFence {
    Epoch epoch = 0;                // 0: none in this block
    AgentClock clock;               // what came before it
    std::vector<unsigned> to_wait;  // numbers of the flags that atomic operations since have seen
  };
  std::vector<ThreadFence> thread_fences_;  // the last of each thread
};

}  // namespace tilegate::simt::counted
