// The executor: launches (launch.cpp), fibers and their order (executor.cpp), barriers
// (barriers.cpp), faults (faults.cpp), and the functions of the portability layer (interface.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/context/fiber.hpp>

#include <tilegate/device/cpu/device.hpp>
#include <tilegate/device/cpu/executor.hpp>

#include "bulk_stores.hpp"
#include "fault_sources.hpp"
#include "mbarriers.hpp"
#include "multiplications.hpp"
#include "observer.hpp"
#include "warpgroup.hpp"

namespace tilegate::simt {

namespace ctx = boost::context;

constexpr unsigned kWarpSize = 32;
constexpr std::size_t kSharedAlignment = 1024;  // the period of the widest swizzle

std::string to_string(const Index3& i);
std::string to_string(const Site& site);

// A __shared__ variable of a kernel. The variables of a launch follow its dynamic shared memory in
// the order in which threads reach their declarations. Gaps between them detect an index out of
// range. A gap is a multiple of the alignment, so each variable keeps the banks that it would have
// without gaps.
struct SharedVariable {
  const void* key;  // identifies the declaration
  std::size_t offset, bytes;
};
constexpr std::size_t kMaxSharedVariables = 32, kSharedGap = 1024;
constexpr std::size_t kMaxStaticShared = 48 * 1024;  // bytes per block, as in CUDA

// Leaves the kernel; the fault is already recorded.
struct ThreadFault {};

struct AsyncCopy {
  float* smem;
  const float* gmem;  // nullptr: zeros
  std::size_t bytes;
  int group;
};

enum class State {
  kReady,
  kAtBlockBarrier,
  kAtWarpBarrier,
  kAtShuffle,
  kAtNamedBarrier,
  kAtClusterBarrier,
  kAtMbarrier,
  kAtMultiplication,  // until all threads of the warpgroup have started it
  kLate,              // until no other thread can run
  kDone
};

constexpr unsigned kNamedBarriers = 16;  // per block; __syncthreads uses the first

// A barrier of some of the block's threads.
struct NamedBarrier {
  unsigned threads = 0;  // how many it waits for
  std::vector<unsigned> waiting;
  bool any = false;  // whether a waiting thread has passed true
};

struct Thread {
  ctx::fiber fiber;
  ctx::stack_context stack;
  Index3 index;
  unsigned number = 0;  // x + y·blockDim.x, continued over the blocks of a cluster
  State state = State::kReady;
  Site site;               // where it waits
  unsigned warp_mask = 0;  // lanes that it waits for at a warp barrier or a shuffle
  unsigned shuffle_source = 0;
  std::uint64_t shuffle_bits = 0, shuffle_result = 0;  // offered and received
  std::vector<AsyncCopy> copies;
  int open_group = 0;
  Multiplications multiplications;
  BulkStores stores;
  unsigned named_barrier = 0;  // where it waits
  bool barrier_or = false;     // the result of the last one
  bool has_arrived_at_cluster = false;
  bool abandoned = false;  // stopped where it cannot be unwound
};

class Executor {
 public:
  ~Executor() { unwind_fibers(); }

  void begin_call(Stream stream);
  void end_call() { in_call_ = false; }
  Status run(const device::LaunchConfig& config, Stream stream,
             const std::function<void()>& thread_body);

  void set_schedule(Schedule schedule) { schedule_ = schedule; }
  Coverage coverage() const { return coverage_; }
  bool is_running() const { return current_ != nullptr; }
  Thread& current() { return *current_; }

  void block_barrier(const Site& site);
  void warp_barrier(unsigned mask, const Site& site);
  std::uint64_t shuffle(unsigned mask, std::uint64_t bits, unsigned lane, const Site& site);
  // A lane's registers.
  struct MmaF64 {
    double* acc;
    const double *a, *b;
  };
  void mma_f64(const MmaF64& registers, const Site& site);
  bool named_barrier_or(unsigned id, unsigned threads, bool value, const Site& site);
  std::byte* shared_memory(std::size_t bytes);
  std::byte* shared_variable(const void* key, const char* name, std::size_t bytes,
                             std::size_t alignment);
  std::size_t shared_bytes() const {
    return config_.shared_bytes + (config_.has_shared_variables
                                       ? kMaxStaticShared + (kMaxSharedVariables + 2) * kSharedGap
                                       : 0);
  }
  // Shared memory of all blocks of a cluster, and the offset of the current block's in it.
  std::byte* cluster_memory() { return shared_.get(); }
  std::size_t shared_base() const { return current_ == nullptr ? 0 : base_of(rank_of(*current_)); }
  // Offset of `data` in cluster_memory(). Fails if the `bytes` bytes that `use` accesses are not in
  // the current block's shared memory.
  std::size_t shared_offset(const void* data, std::size_t bytes, const char* use, const Site& site);
  // The corresponding offset in the block of rank `peer`, which must not have ended.
  std::size_t peer_offset(std::size_t offset, unsigned peer, const char* use, const Site& site);
  unsigned rank() const { return rank_of(*current_); }
  unsigned cluster_size() const { return config_.cluster; }
  unsigned block_threads() const { return block_threads_; }
  unsigned number_in_block(const Thread& thread) const {
    return thread.number - rank_of(thread) * block_threads_;
  }
  unsigned num_threads() const { return num_threads_; }
  void cluster_arrive();
  void cluster_wait(const Site& site);

  // When the next asynchronous operation is performed. Forward: data arrive as late as possible and
  // are read as early as possible, so a missing wait for data shows. Reverse: the other way round,
  // so a missing wait before the memory is reused shows.
  bool copies_are_late();
  bool reads_are_late();
  // State of the current thread and of its warpgroup.
  Multiplications& multiplications();
  BulkStores& stores();
  unsigned warpgroup_number() const;
  Warpgroup& warpgroup();
  Thread& warpgroup_thread(unsigned number);
  Mbarriers& mbarriers() { return mbarriers_; }
  // The current thread waits until `wake`.
  void wait_as(State state, const Site& site);
  void wake(unsigned thread) { threads_[thread]->state = State::kReady; }

  // Records the first fault of the launch, which ends when the current thread yields.
  void record_fault(const std::string& what);
  [[noreturn]] void fail(const std::string& what);
  // As a fault of thread `number` of the block.
  void report(unsigned number, const std::string& what);
  // For a thread that cannot return to its caller.
  [[noreturn]] void abandon_current_thread();

 private:
  void make_fibers(unsigned count);
  void unwind_fibers();
  void run_cluster(std::int64_t first_block);
  void fill_shared_memory();
  Thread* take_turn();
  void resume(Thread& thread);
  void switch_to(Thread& thread, ctx::fiber& from);
  void switch_to_scheduler();
  void switch_fibers(ctx::fiber& from, ctx::fiber& to, const StackBounds& stack);
  void end_turn();
  void yield();
  void run_thread_body();
  bool release_block_barriers();
  bool release_block_barrier(unsigned rank);
  bool release_cluster_barrier();
  void report_stuck_threads();
  bool report_deadlock();
  std::string describe_wait(const Thread& thread) const;
  void begin_async();
  bool advance_async();
  void end_async();
  template <typename Visit>
  void for_each_lane(unsigned mask, Visit visit);
  // The current thread waits for the lanes of `mask` in `state`; the last of them wakes the others.
  bool is_last_lane(unsigned mask, State state, const Site& site);
  bool do_lanes_wait(unsigned mask, State state);
  void exchange(unsigned mask);
  std::span<std::unique_ptr<Thread>> all_threads() { return {threads_.data(), num_threads_}; }
  std::span<std::unique_ptr<Thread>> threads_of(unsigned rank) {
    return all_threads().subspan(std::size_t{rank} * block_threads_, block_threads_);
  }
  // Rank of the thread's block in its cluster.
  unsigned rank_of(const Thread& thread) const {
    return config_.cluster == 1 ? 0 : thread.number / block_threads_;
  }
  std::size_t base_of(unsigned rank) const { return rank * shared_stride_; }
  std::int64_t block_of(const Thread& thread) const { return first_block_ + rank_of(thread); }
  std::size_t cluster_bytes() const { return base_of(config_.cluster - 1) + shared_bytes(); }

  Schedule schedule_ = Schedule::forward();
  Coverage coverage_;
  bool in_call_ = false;
  Stream call_stream_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  device::LaunchConfig config_{};
  unsigned num_threads_ = 0;       // per cluster
  unsigned block_threads_ = 0;     // per block
  std::int64_t first_block_ = 0;   // of the cluster
  std::size_t shared_stride_ = 0;  // between the shared memories of its blocks
  unsigned num_waiting_ = 0;       // at a block barrier
  unsigned num_done_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<unsigned> order_;  // thread numbers, in the order in which they run
  std::size_t turn_ = 0;         // index of the next thread in order_
  std::unique_ptr<std::byte, void (*)(std::byte*)> shared_{
      nullptr, [](std::byte* p) { ::operator delete(p, std::align_val_t{kSharedAlignment}); }};
  std::vector<SharedVariable> shared_variables_;
  std::vector<unsigned> waiting_lanes_;  // of each warp, at a warp barrier or a shuffle
  std::vector<NamedBarrier> named_barriers_;
  std::deque<Warpgroup> warpgroups_;  // a deque, because references to elements must stay valid
  Mbarriers mbarriers_{*this};
  bool reads_late_ = false;  // whether a thread of the block has used multiplications or stores
  std::mt19937_64 random_;
  bool unwinding_ = false;
  Thread* current_ = nullptr;
  ctx::fiber scheduler_;
  ctx::fiber* left_ = nullptr;  // where to store the fiber that has just been left
  StackBounds scheduler_stack_;
  std::optional<std::string> fault_;
};

// The executor of this CPU thread.
Executor& this_executor();

// Stacks grow down: Boost's `sp` is the top.
inline StackBounds stack_of(const ctx::stack_context& stack) {
  return {static_cast<std::byte*>(stack.sp) - stack.size, stack.size};
}

// Inline: the CPU predicts returns by a stack of its own, which a switch of fibers breaks, so that
// each return after a switch is mispredicted. As calls, the tests of Int8x3 took 1.5 times as long.

// Switches from `from`, which runs, to `to`; returns when another fiber has switched back.
[[gnu::always_inline]] inline void Executor::switch_fibers(ctx::fiber& from, ctx::fiber& to,
                                                           const StackBounds& stack) {
  left_ = &from;
  void* fake_stack = start_switch(stack);
  ctx::fiber before = std::move(to).resume();
  finish_switch(fake_stack);
  *left_ = std::move(before);
}

[[gnu::always_inline]] inline void Executor::switch_to(Thread& thread, ctx::fiber& from) {
  current_ = &thread;
  threadIdx = thread.index;
  if (config_.cluster > 1) {
    blockIdx.x = static_cast<unsigned>(block_of(thread));
    executor::shared_of_block = shared_.get() + base_of(rank_of(thread));
  }
  const StackBounds stack = stack_of(thread.stack);
  observer::resume_thread(thread.number, stack);
  switch_fibers(from, thread.fiber, stack);
}

[[gnu::always_inline]] inline void Executor::switch_to_scheduler() {
  switch_fibers(current_->fiber, scheduler_, scheduler_stack_);
}

// The next ready thread; nullptr: every thread had its turn, or the launch has failed.
[[gnu::always_inline]] inline Thread* Executor::take_turn() {
  while (!fault_ && turn_ < num_threads_) {
    Thread& thread = *threads_[order_[turn_++]];
    if (thread.state == State::kReady) return &thread;
  }
  return nullptr;
}

// The current thread waits, or has left the kernel. It switches directly to the next one: by way of
// the scheduler there would be twice as many switches, which take most of a small kernel's time.
[[gnu::always_inline]] inline void Executor::end_turn() {
  Thread& thread = *current_;
  if (!fault_ && (thread.state == State::kAtBlockBarrier || thread.state == State::kDone)) {
    observer::stop_thread(thread.number);
  }
  if (Thread* const next = take_turn()) {
    switch_to(*next, thread.fiber);
  } else {
    switch_to_scheduler();
  }
}

[[gnu::always_inline]] inline void Executor::yield() {
  end_turn();
  if (unwinding_) throw ThreadFault{};
}

}  // namespace tilegate::simt
