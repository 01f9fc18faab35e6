// Barriers of a block and of a warp, and the shuffles that build on them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "executor_impl.hpp"
#include "observer.hpp"

namespace tilegate::simt {
namespace {

bool same(const Site& a, const Site& b) {
  return a.line() == b.line() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

}  // namespace

// Releases the barrier of each block whose threads have all reached it.
bool Executor::release_block_barriers() {
  bool is_one_released = false;
  for (unsigned rank = 0; rank < config_.cluster; ++rank) {
    is_one_released = release_block_barrier(rank) || is_one_released;
  }
  return is_one_released;
}

bool Executor::release_block_barrier(unsigned rank) {
  const auto threads = threads_of(rank);
  const auto waits = [](const auto& thread) { return thread->state == State::kAtBlockBarrier; };
  if (config_.cluster > 1 && !std::all_of(threads.begin(), threads.end(), waits)) return false;
  const Thread& first = *threads.front();
  for (auto& thread : threads) {
    if (!same(thread->site, first.site)) {
      report(thread->number, "divergent barrier: this thread waits at " + to_string(thread->site) +
                                 ", thread (0,0,0) at " + to_string(first.site));
      return true;
    }
    thread->state = State::kReady;
  }
  num_waiting_ -= block_threads_;
  observer::release_block_barrier(rank);
  return true;
}

void Executor::report_stuck_threads() {
  if (report_deadlock()) return;
  const auto waits = [](const auto& thread) { return thread->state != State::kDone; };
  Thread& waiting = **std::find_if(threads_.begin(), threads_.end(), waits);
  const auto threads = threads_of(rank_of(waiting));
  const bool block_wide = waiting.state == State::kAtBlockBarrier;
  const auto is_absent = [&](const auto& thread) {
    if (block_wide) return thread->state != waiting.state;
    const bool is_named = thread->number / kWarpSize == waiting.number / kWarpSize &&
                          (waiting.warp_mask >> thread->number % kWarpSize & 1) != 0;
    return is_named && (thread->state != waiting.state || thread->warp_mask != waiting.warp_mask);
  };
  const Thread& absent = **std::find_if(threads.begin(), threads.end(), is_absent);
  std::string where = " left the kernel without reaching it";
  if (absent.state != State::kDone) where = " waits at " + to_string(absent.site);
  if (absent.state == waiting.state) where += " for other lanes";
  report(waiting.number, std::string(block_wide ? "divergent barrier" : "divergent warp barrier") +
                             ": this thread waits at " + to_string(waiting.site) + ", thread " +
                             to_string(absent.index) + where);
}

void Executor::block_barrier(const Site& site) {
  current_->site = site;
  current_->state = State::kAtBlockBarrier;
  ++num_waiting_;
  yield();
}

// Calls `visit` for each lane of `mask`.
template <typename Visit>
void Executor::for_each_lane(unsigned mask, Visit visit) {
  const auto* const lanes = &threads_[current_->number / kWarpSize * kWarpSize];
  for (; mask != 0; mask &= mask - 1) visit(*lanes[std::countr_zero(mask)]);
}

[[gnu::always_inline]] inline bool Executor::is_last_lane(unsigned mask, State state,
                                                          const Site& site) {
  const unsigned own = current_->number % kWarpSize;
  if ((mask >> own & 1) == 0) {
    fail("warp barrier at " + to_string(site) + " whose mask leaves out the calling lane");
  }
  const unsigned lanes = num_threads_ - current_->number / kWarpSize * kWarpSize;
  if (lanes < kWarpSize) mask &= (1U << lanes) - 1;  // the block's last warp is partial
  current_->site = site;
  current_->warp_mask = mask;
  current_->state = state;
  unsigned& waiting = waiting_lanes_[current_->number / kWarpSize];
  waiting |= 1U << own;
  if ((waiting & mask) != mask || !do_lanes_wait(mask, state)) {
    yield();
    return false;
  }
  for_each_lane(mask, [](Thread& lane) { lane.state = State::kReady; });
  waiting &= ~mask;
  return true;
}

// Whether all lanes of `mask` wait in `state` for the same mask.
bool Executor::do_lanes_wait(unsigned mask, State state) {
  bool all_wait = true;
  for_each_lane(mask, [&](const Thread& lane) {
    all_wait = all_wait && lane.state == state && lane.warp_mask == mask;
  });
  return all_wait;
}

void Executor::warp_barrier(unsigned mask, const Site& site) {
  if (is_last_lane(mask, State::kAtWarpBarrier, site)) {
    observer::release_warp_barrier(current_->number / kWarpSize, current_->warp_mask);
  }
}

std::uint64_t Executor::shuffle(unsigned mask, std::uint64_t bits, unsigned source_lane,
                                const Site& site) {
  current_->shuffle_bits = bits;
  current_->shuffle_source = source_lane;
  if (is_last_lane(mask, State::kAtShuffle, site)) exchange(current_->warp_mask);
  return current_->shuffle_result;
}

// The last lane computes for all, as all registers are there.
void Executor::mma_f64(const MmaF64& registers, const Site& site) {
  std::array<const MmaF64*, kWarpSize> of_lanes{};
  current_->shuffle_bits = reinterpret_cast<std::uintptr_t>(&registers);
  if (!is_last_lane(~0U, State::kAtShuffle, site)) return;
  const auto* const lanes = &threads_[current_->number / kWarpSize * kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    of_lanes[lane] = reinterpret_cast<const MmaF64*>(lanes[lane]->shuffle_bits);
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4, row_8 = i / 2, col = lane % 4 * 2 + i % 2;
      double& sum = of_lanes[lane]->acc[i];
      for (unsigned k = 0; k < 16; ++k) {
        sum = std::fma(of_lanes[row * 4 + k % 4]->a[k / 4 * 2 + row_8],
                       of_lanes[col * 4 + k % 4]->b[k / 4], sum);
      }
    }
  }
}

// All lanes exchange at once, because the first lane that goes on may offer its next value.
void Executor::exchange(unsigned mask) {
  const auto* const lanes = &threads_[current_->number / kWarpSize * kWarpSize];
  for_each_lane(mask, [&](Thread& lane) {
    const bool takes_part = (mask >> lane.shuffle_source & 1) != 0;
    lane.shuffle_result = takes_part ? lanes[lane.shuffle_source]->shuffle_bits : ~std::uint64_t{0};
  });
}

}  // namespace tilegate::simt
