// Asynchronous work of the running block: when it is performed, named barriers, and deadlocks.
#include <algorithm>

#include "executor_impl.hpp"
#include "observer.hpp"

namespace tilegate::simt {

bool Executor::copies_are_late() {
  if (schedule_.kind_ == Schedule::Kind::kShuffled) return (random_() & 1) != 0;
  return schedule_.kind_ != Schedule::Kind::kReverse;
}

bool Executor::reads_are_late() {
  if (schedule_.kind_ == Schedule::Kind::kShuffled) return (random_() & 1) != 0;
  return schedule_.kind_ == Schedule::Kind::kReverse;
}

Multiplications& Executor::multiplications() {
  reads_late_ = true;
  return current_->multiplications;
}

BulkStores& Executor::stores() {
  reads_late_ = true;
  return current_->stores;
}

unsigned Executor::warpgroup_number() const {
  const unsigned of_block = (block_threads_ + kWarpgroupSize - 1) / kWarpgroupSize;
  return rank() * of_block + number_in_block(*current_) / kWarpgroupSize;
}

Warpgroup& Executor::warpgroup() {
  const unsigned number = warpgroup_number();
  if (number >= warpgroups_.size()) warpgroups_.resize(number + 1);
  return warpgroups_[number];
}

Thread& Executor::warpgroup_thread(unsigned number) {
  return *threads_[current_->number - number_in_block(*current_) % kWarpgroupSize + number];
}

void Executor::wait_as(State state, const Site& site) {
  current_->site = site;
  current_->state = state;
  yield();
}

void Executor::begin_async() {
  named_barriers_.clear();
  mbarriers_.begin_block();
  if (!reads_late_) return;
  for (auto& thread : threads_) {  // also fibers that this launch does not use
    thread->multiplications = {};
    thread->stores = {};
  }
  warpgroups_.clear();
  reads_late_ = false;
}

// Called when every thread waits: performs late work that some thread waits for.
bool Executor::advance_async() {
  const bool copies_first = schedule_.kind_ == Schedule::Kind::kShuffled && (random_() & 1) != 0;
  if (copies_first && mbarriers_.complete_a_copy()) return true;
  bool is_one_ready = false;
  for (auto& thread : all_threads()) {
    if (thread->state != State::kLate) continue;
    thread->state = State::kReady;
    is_one_ready = true;
  }
  return is_one_ready || (!copies_first && mbarriers_.complete_a_copy());
}

void Executor::end_async() {
  mbarriers_.end_block();
  if (!reads_late_) return;
  for (const auto& thread : all_threads()) {
    const Multiplications& mine = thread->multiplications;
    if (const auto running = mine.running_at()) {
      report(thread->number, "leaves the kernel before the warpgroup_wait of the multiplication " +
                                 ("at " + to_string(*running)));
      return;
    }
    if (const auto running = thread->stores.running_at()) {
      report(thread->number,
             "leaves the kernel before the store_wait of the store at " + to_string(*running));
      return;
    }
    const unsigned first_number = thread->number - number_in_block(*thread) % kWarpgroupSize;
    const Thread& first = *threads_[first_number];
    if (mine.history() != first.multiplications.history()) {
      report(thread->number, "has not started the same multiplications as thread " +
                                 to_string(first.index) + ": all threads of a warpgroup must");
      return;
    }
  }
}

std::size_t Executor::shared_offset(const void* data, std::size_t bytes, const char* use,
                                    const Site& site) {
  const std::size_t offset =
      reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(shared_memory(0));
  if (offset >= shared_bytes() || bytes > shared_bytes() - offset) {
    fail(std::string(use) + " at " + to_string(site) + " of " + std::to_string(bytes) +
         " bytes that are not in the " + std::to_string(shared_bytes()) +
         " bytes of the block's shared memory");
  }
  return shared_base() + offset;
}

bool Executor::named_barrier_or(unsigned id, unsigned threads, bool value, const Site& site) {
  const auto here = [&] {
    return "named_barrier<" + std::to_string(id) + "> at " + to_string(site);
  };
  if (threads == 0 || threads % kWarpSize != 0 || threads > block_threads_) {
    fail(here() + " of " + std::to_string(threads) + " threads: it needs whole warps of the block");
  }
  const unsigned number = rank() * kNamedBarriers + id;
  if (number >= named_barriers_.size()) named_barriers_.resize(number + 1);
  NamedBarrier& barrier = named_barriers_[number];
  if (!barrier.waiting.empty() && barrier.threads != threads) {
    fail(here() + " is of " + std::to_string(threads) + " threads, and of " +
         std::to_string(barrier.threads) + " at " +
         to_string(threads_[barrier.waiting.front()]->site));
  }
  barrier.threads = threads;
  barrier.any |= value;
  barrier.waiting.push_back(current_->number);
  current_->named_barrier = number;
  current_->site = site;
  current_->state = State::kAtNamedBarrier;
  if (barrier.waiting.size() == threads) {
    observer::release_named_barrier(barrier.waiting);
    for (const unsigned waiting : barrier.waiting) {
      threads_[waiting]->barrier_or = barrier.any;
      wake(waiting);
    }
    barrier.waiting.clear();
    barrier.any = false;
  } else {  // the last thread does not wait
    yield();
  }
  return current_->barrier_or;
}

std::string Executor::describe_wait(const Thread& thread) const {
  const std::string here = " at " + to_string(thread.site);
  switch (thread.state) {
    case State::kAtMbarrier:
      return "waits" + here + " " + mbarriers_.describe_wait(thread.number);
    case State::kAtNamedBarrier: {
      const NamedBarrier& barrier = named_barriers_[thread.named_barrier];
      return "waits" + here + " for named barrier " +
             std::to_string(thread.named_barrier % kNamedBarriers) + ", which has " +
             std::to_string(barrier.waiting.size()) + " of " + std::to_string(barrier.threads) +
             " threads";
    }
    case State::kAtBlockBarrier:
      return "waits" + here + " for __syncthreads";
    case State::kAtClusterBarrier:
      return "waits" + here + " for cluster_sync";
    case State::kAtMultiplication:
      return "waits" + here + " for all threads of its warpgroup to start the same multiplications";
    case State::kAtWarpBarrier:
    case State::kAtShuffle:
      return "waits" + here + " for lanes of its warp";
    default:
      return "has left the kernel";
  }
}

// Reports a deadlock if some thread waits for an action of other threads. A barrier of the block or
// warp that not all reach is reported as divergent instead.
bool Executor::report_deadlock() {
  struct Waiters {
    std::string what;
    unsigned first, count;
  };
  std::vector<Waiters> all;
  bool is_deadlock = false;
  unsigned culprit = 0;
  for (const auto& thread : all_threads()) {
    const bool waits_for_some =
        thread->state == State::kAtMbarrier || thread->state == State::kAtNamedBarrier ||
        thread->state == State::kAtMultiplication || thread->state == State::kAtClusterBarrier;
    if (waits_for_some && !std::exchange(is_deadlock, true)) culprit = thread->number;
    const std::string what = describe_wait(*thread);
    const auto same = std::find_if(all.begin(), all.end(),
                                   [&](const Waiters& waiters) { return waiters.what == what; });
    if (same == all.end()) {
      all.push_back({what, thread->number, 1});
    } else {
      ++same->count;
    }
  }
  if (!is_deadlock) return false;
  std::string text = "deadlock";
  const char* separator = ": ";
  for (const Waiters& waiters : all) {
    const Thread& first = *threads_[waiters.first];
    text += separator + ("thread " + to_string(first.index));
    if (config_.cluster > 1) text += " of block " + std::to_string(block_of(first));
    if (waiters.count > 1) text += " (and " + std::to_string(waiters.count - 1) + " more)";
    text += " " + waiters.what;
    separator = "; ";
  }
  report(culprit, text);
  return true;
}

}  // namespace tilegate::simt
