// What orders the accesses of a launch: barriers alone, whichever schedule runs. Nothing orders the
// blocks of a launch. Launches run one after another, but one that overlaps the launch before it is
// ordered after it only by wait_for_previous_kernel().
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tilegate/device/launch_config.hpp>

#include "warp_access.hpp"

namespace tilegate::simt::counted {

// Epochs count block barriers over all launches, blocks one after another, so that an epoch tells
// its block and its launch too. Within an epoch, a stamp counts the warp barriers of a lane.
using Epoch = std::uint32_t;
using Stamp = std::uint16_t;

class Order {
 public:
  void begin_launch(const device::LaunchConfig& config);
  void begin_block(unsigned block);
  void block_barrier();
  void warp_barrier(unsigned warp, unsigned mask);
  void wait_for_previous_launch(unsigned thread) { has_waited_[thread] = true; }

  Epoch now() const { return epoch_; }
  // The first epochs of the running block and of the running launch.
  Epoch block_began() const { return block_began_; }
  Epoch launch_began() const { return launch_began_; }
  unsigned block() const { return block_; }
  Stamp stamp_of(unsigned thread) const { return clocks_[thread].seen[thread % kWarpSize]; }

  // Does a barrier stand between what `earlier`, a thread of this block, did at its time `stamp` of
  // this epoch, and what `thread` does now?
  bool is_ordered(unsigned earlier, Stamp stamp, unsigned thread) const;

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
  unsigned threads_x_ = 1;
  bool overlaps_previous_ = false;
  std::vector<bool> has_waited_;  // each thread of a block
  bool clocks_moved_ = false;
  std::vector<Clock> clocks_;  // of each thread of a block
};

}  // namespace tilegate::simt::counted
