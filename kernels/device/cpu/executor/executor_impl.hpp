// The executor itself: launches (launch.cpp), fibers and their turns (executor.cpp), their barriers
// (barriers.cpp), their faults (faults.cpp) and what the portability layer calls (seam.cpp).
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
#include <vector>

#include <boost/context/fiber.hpp>

#include <tilegate/device/cpu/executor.hpp>

#include "bulk_stores.hpp"
#include "fault_sources.hpp"
#include "mbarriers.hpp"
#include "multiplications.hpp"
#include "warpgroup.hpp"

namespace tilegate::simt {

namespace ctx = boost::context;

constexpr unsigned kWarpSize = 32;
constexpr std::size_t kSharedAlignment = 1024;  // the pattern of the widest swizzle repeats so

std::string to_string(const Index3& i);
std::string to_string(const Site& site);

// A __shared__ variable of a kernel. Those of a launch lie behind its dynamic shared memory, in the
// order in which threads come to them, in the banks that they would have one after another, but
// with gaps between them that belong to none: an index out of range is not another variable's.
struct SharedVariable {
  const void* key;  // of its declaration
  std::size_t offset, bytes;
};
constexpr std::size_t kMaxSharedVariables = 32, kSharedGap = 1024;  // of the alignment, too
constexpr std::size_t kMaxStaticShared = 48 * 1024;                 // bytes of a block, as in CUDA

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
  kAtMultiplication,  // that other threads of the warpgroup have not started
  kLate,              // goes on when no other thread can
  kDone
};

constexpr unsigned kNamedBarriers = 16;  // of a block; the first is that of __syncthreads

// One that some of the block's threads meet at.
struct NamedBarrier {
  unsigned threads = 0;  // that it waits for
  std::vector<unsigned> waiting;
};

struct Thread {
  ctx::fiber fiber;
  ctx::stack_context stack;
  Index3 index;
  unsigned number = 0;  // x + y·blockDim.x, counted on over the blocks of a cluster
  State state = State::kReady;
  Site site;               // of the barrier that it waits at
  unsigned warp_mask = 0;  // lanes that it waits for at a warp barrier or a shuffle
  unsigned shuffle_source = 0;
  std::uint64_t shuffle_bits = 0, shuffle_result = 0;  // that it offers and gets
  std::vector<AsyncCopy> copies;
  int open_group = 0;
  Multiplications multiplications;
  BulkStores stores;
  unsigned named_barrier = 0;  // that it waits at
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
  void named_barrier(unsigned id, unsigned threads, const Site& site);
  std::byte* shared_memory(std::size_t bytes);
  std::byte* shared_variable(const void* key, const char* name, std::size_t bytes,
                             std::size_t alignment);
  std::size_t shared_bytes() const {
    return config_.shared_bytes + (config_.has_shared_variables
                                       ? kMaxStaticShared + (kMaxSharedVariables + 2) * kSharedGap
                                       : 0);
  }
  // Shared memory of all blocks of a cluster, and where in it the current block's begins.
  std::byte* cluster_memory() { return shared_.get(); }
  std::size_t shared_base() const { return current_ == nullptr ? 0 : base_of(rank_of(*current_)); }
  // Where in it `bytes` bytes of the current block are; `use` needs them there.
  std::size_t shared_offset(const void* data, std::size_t bytes, const char* use, const Site& site);
  // The same place in the block of rank `peer`, which must not have ended.
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

  // When asynchronous work is done, as far as its ordering allows. Forward: data arrive as late as
  // they may, and are read as early; in reverse the other way round. A missing wait for data shows
  // in the first, a missing wait before their memory is used again in the second.
  bool copies_are_late();
  bool reads_are_late();
  // Those of the current thread.
  Multiplications& multiplications();
  BulkStores& stores();
  // That of the current thread.
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
  // For a thread that cannot return: never comes back.
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
  Thread* lane_of_current_warp(unsigned lane);
  // The current thread waits for the lanes of `mask` in `state`; the last of them wakes the others.
  bool is_last_lane(unsigned mask, State state, const Site& site);
  bool do_lanes_wait(unsigned mask, State state);
  void exchange(unsigned mask);
  std::span<std::unique_ptr<Thread>> all_threads() { return {threads_.data(), num_threads_}; }
  std::span<std::unique_ptr<Thread>> threads_of(unsigned rank) {
    return all_threads().subspan(std::size_t{rank} * block_threads_, block_threads_);
  }
  // Of a block in its cluster.
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
  unsigned num_threads_ = 0;       // of a cluster
  unsigned block_threads_ = 0;     // of a block
  std::int64_t first_block_ = 0;   // of the cluster
  std::size_t shared_stride_ = 0;  // between the shared memories of its blocks
  unsigned num_waiting_ = 0;       // at a block barrier
  unsigned num_done_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<unsigned> order_;  // thread numbers, in the order of their turns
  std::size_t turn_ = 0;         // how many of them had theirs in this round
  std::unique_ptr<std::byte, void (*)(std::byte*)> shared_{
      nullptr, [](std::byte* p) { ::operator delete(p, std::align_val_t{kSharedAlignment}); }};
  std::vector<SharedVariable> shared_variables_;
  std::vector<unsigned> waiting_lanes_;  // of each warp, at a warp barrier or a shuffle
  std::vector<NamedBarrier> named_barriers_;
  std::deque<Warpgroup> warpgroups_;  // whose threads wait in them while others are added
  Mbarriers mbarriers_{*this};
  bool reads_late_ = false;  // some thread of the block has multiplications or stores
  std::mt19937_64 random_;
  bool unwinding_ = false;
  Thread* current_ = nullptr;
  ctx::fiber scheduler_;
  ctx::fiber* left_ = nullptr;  // where the fiber belongs that was left last
  StackBounds scheduler_stack_;
  std::optional<std::string> fault_;
};

// Of this CPU thread.
Executor& this_executor();

}  // namespace tilegate::simt
