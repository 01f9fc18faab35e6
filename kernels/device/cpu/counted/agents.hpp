// Vector clocks. The agents of a block are its threads, the multiplications of each warpgroup, the
// bulk stores of each thread, the bulk copies that complete on each mbarrier, and the flags that
// blocks raise. A thread's clock has, for each agent, the last event that happened before now.
#pragma once

#include <cstdint>
#include <vector>

#include "warp_access.hpp"

namespace tilegate::simt::counted {

using Stamp = std::uint16_t;
// One stamp per agent: its events up to this stamp happened before.
using AgentClock = std::vector<Stamp>;

void join(AgentClock& clock, const AgentClock& other);
void raise(AgentClock& clock, unsigned agent, Stamp stamp);

class Agents {
 public:
  void begin_launch(unsigned threads) {
    threads_ = threads;
    clocks_.clear();
  }
  // Clocks exist only in launches that need them.
  bool in_use() const { return !clocks_.empty(); }
  void begin_block() { clocks_.assign(threads_, AgentClock()); }
  // All earlier events of threads happen before all later ones, so clocks drop their stamps. Stamps
  // of asynchronous work remain.
  void block_barrier();
  void forget_threads(AgentClock& clock) const;

  // Numbers of agents: first the threads, then the agents below.
  // The previous launch. Stamp 1: the thread has waited for its end.
  unsigned previous_launch() const { return threads_; }
  unsigned multiplications_of(unsigned warpgroup) const { return threads_ + 1 + warpgroup; }
  unsigned stores_of(unsigned thread) const {
    return multiplications_of((threads_ + kWarpSize - 1) / kWarpSize) + thread;
  }
  unsigned copies_of(unsigned barrier) const { return stores_of(threads_) + 2 * barrier; }
  // Flag `number` of the launch. Stamp 1: the thread has waited for it.
  unsigned raised(unsigned number) const { return stores_of(threads_) + 2 * number + 1; }

  const AgentClock& clock(unsigned thread) const { return clocks_[thread]; }
  bool knows(unsigned thread, unsigned agent, Stamp stamp) const {
    if (!in_use()) return false;
    const AgentClock& clock = clocks_[thread];
    return agent < clock.size() && clock[agent] >= stamp;
  }
  void learn(unsigned thread, const AgentClock& what) { join(clocks_[thread], what); }
  void learn(unsigned thread, unsigned agent, Stamp stamp) { raise(clocks_[thread], agent, stamp); }

 private:
  unsigned threads_ = 0;
  std::vector<AgentClock> clocks_;
};

}  // namespace tilegate::simt::counted
