// Who does something in a block, besides its threads: the multiplications of each warpgroup, the
// stores from shared memory of each thread, the copies that complete on each mbarrier, and the
// blocks that raise flags. Each thread has a clock of what all of them did before.
#pragma once

#include <cstdint>
#include <vector>

#include "warp_access.hpp"

namespace tilegate::simt::counted {

using Stamp = std::uint16_t;
// One stamp for each agent: its doings up to then came before.
using AgentClock = std::vector<Stamp>;

void join(AgentClock& clock, const AgentClock& other);
void raise(AgentClock& clock, unsigned agent, Stamp stamp);

class Agents {
 public:
  void begin_launch(unsigned threads) {
    threads_ = threads;
    clocks_.clear();
  }
  // Only launches that have such work pay for it.
  bool in_use() const { return !clocks_.empty(); }
  void begin_block() { clocks_.assign(threads_, AgentClock()); }
  // All threads have met: what they did comes before all that follows, so it needs no stamps. Work
  // that is still under way does.
  void block_barrier();
  void forget_threads(AgentClock& clock) const;

  // Agents are the threads by their numbers, then these.
  // The launch before: 1 once the thread has waited for its end.
  unsigned previous_launch() const { return threads_; }
  unsigned multiplications_of(unsigned warpgroup) const { return threads_ + 1 + warpgroup; }
  unsigned stores_of(unsigned thread) const {
    return multiplications_of((threads_ + kWarpSize - 1) / kWarpSize) + thread;
  }
  unsigned copies_of(unsigned barrier) const { return stores_of(threads_) + 2 * barrier; }
  // Of a flag, in its launch: 1 once the thread has waited for it.
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
