#include "order.hpp"

#include <algorithm>

namespace tilegate::simt::counted {

void Order::begin_launch(const device::LaunchConfig& config) {
  const std::size_t threads = std::size_t{config.threads_x} * config.threads_y;
  threads_x_ = config.threads_x;
  overlaps_previous_ = config.overlaps_previous;
  launch_began_ = ++epoch_;
  has_waited_.assign(threads, !overlaps_previous_);
  clocks_.assign(threads, Clock{});
  clocks_moved_ = true;
}

void Order::begin_block(unsigned block) {
  block_barrier();
  if (overlaps_previous_) has_waited_.assign(has_waited_.size(), false);
  block_ = block;
  block_began_ = epoch_;
}

void Order::block_barrier() {
  ++epoch_;
  if (overlaps_previous_ &&
      std::find(has_waited_.begin(), has_waited_.end(), true) != has_waited_.end()) {
    has_waited_.assign(has_waited_.size(), true);
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
  each_lane([&](unsigned lane, unsigned thread) {
    clocks_[thread] = joined;
    ++clocks_[thread].seen[lane];
    has_waited_[thread] = one_has_waited;
  });
}

bool Order::is_ordered(unsigned earlier, Stamp stamp, unsigned thread) const {
  if (earlier == thread) return true;
  if (earlier / kWarpSize != thread / kWarpSize) return false;
  return clocks_[thread].seen[earlier % kWarpSize] >= stamp;
}

std::string Order::name_of(unsigned thread) const {
  return "(" + std::to_string(thread % threads_x_) + "," + std::to_string(thread / threads_x_) +
         ",0)";
}

}  // namespace tilegate::simt::counted
