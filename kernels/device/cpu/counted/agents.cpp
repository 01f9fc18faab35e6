#include "agents.hpp"

#include <algorithm>

namespace tilegate::simt::counted {

void join(AgentClock& clock, const AgentClock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  std::transform(other.begin(), other.end(), clock.begin(), clock.begin(),
                 [](Stamp a, Stamp b) { return std::max(a, b); });
}

void raise(AgentClock& clock, unsigned agent, Stamp stamp) {
  if (clock.size() <= agent) clock.resize(agent + 1);
  clock[agent] = std::max(clock[agent], stamp);
}

void Agents::forget_threads(AgentClock& clock) const {
  std::fill_n(clock.begin(), std::min<std::size_t>(clock.size(), threads_), Stamp{0});
}

void Agents::block_barrier() {
  AgentClock all;
  for (const AgentClock& clock : clocks_) join(all, clock);
  forget_threads(all);
  for (AgentClock& clock : clocks_) clock = all;
}

}  // namespace tilegate::simt::counted
