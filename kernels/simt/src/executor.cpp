#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <tilegate/simt/host/executor.hpp>
#include <tilegate/simt/host/seam.hpp>

#include "fault_sources.hpp"
#include "observer.hpp"

constinit thread_local tilegate::simt::Index3 threadIdx;
constinit thread_local tilegate::simt::Index3 blockIdx;
constinit thread_local tilegate::simt::Index3 blockDim;
constinit thread_local tilegate::simt::Index3 gridDim;

namespace tilegate::simt {
namespace {

namespace ctx = boost::context;

constexpr unsigned kWarpSize = 32;
constexpr unsigned kMaxThreads = 1024;           // of a block, as in CUDA
constexpr std::size_t kMaxShared = 227 * 1024;   // bytes of a block, as on compute capability 9.0
constexpr std::size_t kStackBytes = 128 * 1024;  // of a fiber; pages that stay unused cost nothing

std::string to_string(const Index3& i) {
  return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

std::string to_string(const Site& site) {
  return std::string(site.file_name()) + ":" + std::to_string(site.line());
}

// Stacks grow down: Boost's `sp` is the top.
StackBounds stack_of(const ctx::stack_context& stack) {
  return {static_cast<std::byte*>(stack.sp) - stack.size, stack.size};
}

bool same(const Site& a, const Site& b) {
  return a.line() == b.line() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

// Leaves the kernel; the fault is already recorded.
struct ThreadFault {};

struct AsyncCopy {
  float* smem;
  const float* gmem;
  std::size_t bytes;
  int group;
};

enum class State { kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };

struct Thread {
  ctx::fiber fiber;
  ctx::stack_context stack;
  Index3 index;
  unsigned number = 0;  // x + y·blockDim.x
  State state = State::kReady;
  Site site;               // of the barrier that it waits at
  unsigned warp_mask = 0;  // lanes that it waits for at a warp barrier
  std::uint64_t shuffle_bits = 0;
  std::vector<AsyncCopy> copies;
  int open_group = 0;
  bool abandoned = false;  // stopped where it cannot be unwound
};

}  // namespace

class Executor {
 public:
  ~Executor() { unwind_fibers(); }

  Status run(const LaunchConfig& config, const std::function<void()>& thread_body);

  void set_schedule(Schedule schedule) { schedule_ = schedule; }
  bool is_running() const { return current_ != nullptr; }
  Thread& current() { return *current_; }

  void block_barrier(const Site& site);
  void warp_barrier(unsigned mask, const Site& site, bool orders_memory);
  std::uint64_t shuffle(unsigned mask, std::uint64_t bits, unsigned lane, const Site& site);
  std::byte* shared_memory(std::size_t bytes);

  // Records the first fault of the launch, which ends when the current thread yields.
  void record_fault(const std::string& what);
  [[noreturn]] void fail(const std::string& what);
  // As a fault of thread `number` of the block; from outside any thread.
  void report(unsigned number, const std::string& what);
  // For a thread that cannot return: never comes back.
  [[noreturn]] void abandon_current_thread();

 private:
  void make_fibers(unsigned count);
  void unwind_fibers();
  void run_block(std::int64_t block);
  void resume(Thread& thread);
  void switch_to_scheduler();
  void yield();
  void run_thread_body();
  void release_block_barrier();
  void report_stuck_threads();
  Thread* lane_of_current_warp(unsigned lane);
  std::span<std::unique_ptr<Thread>> block_threads() { return {threads_.data(), num_threads_}; }

  Schedule schedule_ = Schedule::forward();
  const std::function<void()>* body_ = nullptr;
  LaunchConfig config_{};
  unsigned num_threads_ = 0;
  unsigned num_waiting_ = 0;  // at the block barrier
  unsigned num_done_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<unsigned> order_;  // thread numbers, in the order of their turns
  std::unique_ptr<std::byte, void (*)(std::byte*)> shared_{
      nullptr, [](std::byte* p) { ::operator delete (p, std::align_val_t{128}); }};
  bool unwinding_ = false;
  Thread* current_ = nullptr;
  ctx::fiber scheduler_;
  StackBounds scheduler_stack_;
  std::optional<std::string> fault_;
};

namespace {

Executor& this_executor() {
  static thread_local Executor executor;
  return executor;
}

}  // namespace

void Executor::make_fibers(unsigned count) {
  ctx::protected_fixedsize_stack allocator(kStackBytes);
  while (threads_.size() < count) {
    auto owned = std::make_unique<Thread>();
    Thread& thread = *owned;
    thread.number = static_cast<unsigned>(threads_.size());
    thread.stack = allocator.allocate();
    thread.fiber = ctx::fiber(std::allocator_arg,
                              ctx::preallocated(thread.stack.sp, thread.stack.size, thread.stack),
                              allocator, [this, &thread](ctx::fiber&& scheduler) -> ctx::fiber {
                                finish_first_switch(scheduler_stack_);
                                scheduler_ = std::move(scheduler);
                                while (!unwinding_) {  // one CUDA thread after another
                                  run_thread_body();
                                  thread.state = State::kDone;
                                  ++num_done_;
                                  if (!unwinding_) switch_to_scheduler();
                                }
                                start_last_switch(scheduler_stack_);
                                return std::move(scheduler_);
                              });
    threads_.push_back(std::move(owned));
  }
}

void Executor::run_thread_body() {
  try {
    (*body_)();
  } catch (const ThreadFault&) {
  } catch (const std::exception& error) {
    record_fault(std::string("exception: ") + error.what());
  }
}

// Ends every fiber, wherever it waits, and lets its frames clean up.
void Executor::unwind_fibers() {
  unwinding_ = true;
  for (auto& thread : threads_) {
    if (thread->abandoned) {
      // Its frames cannot be unwound: the fiber must never be destroyed.
      static auto& graveyard = *new std::vector<ctx::fiber>;
      graveyard.push_back(std::move(thread->fiber));
    } else {
      resume(*thread);
    }
  }
  threads_.clear();
  unwinding_ = false;
}

Status Executor::run(const LaunchConfig& config, const std::function<void()>& thread_body) {
  const unsigned threads = config.threads_x * config.threads_y;
  const std::string kernel = config.kernel;
  if (is_running()) return Status::device_error(kernel + ": launched from inside a kernel");
  if (config.blocks < 1 || config.blocks >= std::int64_t{1} << 31 || threads < 1 ||
      threads > kMaxThreads || config.shared_bytes > kMaxShared) {
    return Status::device_error(kernel + ": invalid launch of " + std::to_string(config.blocks) +
                                " blocks of " + std::to_string(threads) + " threads with " +
                                std::to_string(config.shared_bytes) + " bytes of shared memory");
  }

  config_ = config;
  body_ = &thread_body;
  num_threads_ = threads;
  fault_.reset();
  make_fibers(threads);
  for (auto& thread : block_threads()) {
    thread->index = {thread->number % config.threads_x, thread->number / config.threads_x, 0};
  }
  shared_.reset(static_cast<std::byte*>(
      ::operator new (std::max<std::size_t>(config.shared_bytes, 1), std::align_val_t{128})));
  order_.resize(threads);
  std::iota(order_.begin(), order_.end(), 0U);
  if (schedule_.kind_ == Schedule::Kind::kReverse) std::reverse(order_.begin(), order_.end());
  std::mt19937_64 random(schedule_.seed_);
  blockDim = {config.threads_x, config.threads_y, 1};
  gridDim = {static_cast<unsigned>(config.blocks), 1, 1};

  observer::begin_launch(config_, shared_.get());
  const FaultSources sources;
  for (std::int64_t i = 0; i < config.blocks && !fault_; ++i) {
    std::int64_t block = i;
    if (schedule_.kind_ == Schedule::Kind::kReverse) block = config.blocks - 1 - i;
    if (schedule_.kind_ == Schedule::Kind::kShuffled) {
      block = (i + static_cast<std::int64_t>(schedule_.seed_ % (1U << 31))) % config.blocks;
      std::shuffle(order_.begin(), order_.end(), random);
    }
    run_block(block);
  }
  observer::end_launch();
  if (!fault_) return {};
  unwind_fibers();  // some wait inside the kernel
  return Status::device_error(*fault_);
}

void Executor::run_block(std::int64_t block) {
  blockIdx = {static_cast<unsigned>(block), 0, 0};
  // NaN in every word: a read of what nobody wrote shows in the result.
  std::memset(shared_.get(), 0xFF, config_.shared_bytes);
  num_waiting_ = num_done_ = 0;
  observer::begin_block();
  for (auto& thread : block_threads()) {
    thread->state = State::kReady;
    thread->copies.clear();
    thread->open_group = 0;
  }
  while (num_done_ < num_threads_) {
    bool progress = false;
    for (const unsigned number : order_) {
      Thread& thread = *threads_[number];
      if (thread.state != State::kReady) continue;
      progress = true;
      resume(thread);
      if (fault_) return;
      if (thread.state != State::kAtWarpBarrier) observer::stop_thread(number);
      if (fault_) return;
    }
    if (num_waiting_ == num_threads_) {
      release_block_barrier();
      if (fault_) return;
    } else if (!progress) {
      report_stuck_threads();
      return;
    }
  }
  observer::end_block();
}

void Executor::resume(Thread& thread) {
  current_ = &thread;
  threadIdx = thread.index;
  observer::resume_thread(thread.number, stack_of(thread.stack));
  void* fake_stack = start_switch(stack_of(thread.stack));
  thread.fiber = std::move(thread.fiber).resume();
  finish_switch(fake_stack);
  current_ = nullptr;
}

void Executor::switch_to_scheduler() {
  void* fake_stack = start_switch(scheduler_stack_);
  scheduler_ = std::move(scheduler_).resume();
  finish_switch(fake_stack);
}

void Executor::yield() {
  switch_to_scheduler();
  if (unwinding_) throw ThreadFault{};
}

// Every thread of the block is at a block barrier.
void Executor::release_block_barrier() {
  const Thread& first = *threads_.front();
  for (auto& thread : block_threads()) {
    if (!same(thread->site, first.site)) {
      report(thread->number, "divergent barrier: this thread waits at " + to_string(thread->site) +
                                 ", thread (0,0,0) at " + to_string(first.site));
      return;
    }
    thread->state = State::kReady;
  }
  num_waiting_ = 0;
  observer::release_block_barrier();
}

void Executor::report_stuck_threads() {
  const auto waits = [](const auto& thread) { return thread->state != State::kDone; };
  const auto threads = block_threads();
  Thread& waiting = **std::find_if(threads.begin(), threads.end(), waits);
  const bool block_wide = waiting.state == State::kAtBlockBarrier;
  const auto absent = std::find_if(threads.begin(), threads.end(), [&](const auto& thread) {
    if (!block_wide && (thread->number / kWarpSize != waiting.number / kWarpSize ||
                        (waiting.warp_mask >> thread->number % kWarpSize & 1) == 0)) {
      return false;
    }
    return thread->state != waiting.state;
  });
  std::string missing = "its mask names lanes that do not exist";
  if (absent != threads.end()) {
    missing = "thread " + to_string((*absent)->index) +
              ((*absent)->state == State::kDone ? " left the kernel without reaching it"
                                                : " waits at " + to_string((*absent)->site));
  }
  report(waiting.number, std::string(block_wide ? "divergent barrier" : "divergent warp barrier") +
                             ": this thread waits at " + to_string(waiting.site) + ", " + missing);
}

void Executor::block_barrier(const Site& site) {
  current_->site = site;
  current_->state = State::kAtBlockBarrier;
  ++num_waiting_;
  yield();
}

Thread* Executor::lane_of_current_warp(unsigned lane) {
  const unsigned number = current_->number / kWarpSize * kWarpSize + lane;
  return number < num_threads_ ? threads_[number].get() : nullptr;
}

void Executor::warp_barrier(unsigned mask, const Site& site, bool orders_memory) {
  if ((mask >> current_->number % kWarpSize & 1) == 0) {
    fail("warp barrier at " + to_string(site) + " whose mask leaves out the calling lane");
  }
  const unsigned lanes = num_threads_ - current_->number / kWarpSize * kWarpSize;
  if (lanes < kWarpSize) mask &= (1U << lanes) - 1;  // the block's last warp is partial
  current_->site = site;
  current_->warp_mask = mask;
  current_->state = State::kAtWarpBarrier;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const Thread* other = lane_of_current_warp(lane);
    if (other == nullptr || other->state != State::kAtWarpBarrier || other->warp_mask != mask) {
      yield();
      return;
    }
  }
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) != 0) lane_of_current_warp(lane)->state = State::kReady;
  }
  if (orders_memory) observer::release_warp_barrier(current_->number / kWarpSize, mask);
}

std::uint64_t Executor::shuffle(unsigned mask, std::uint64_t bits, unsigned source_lane,
                                const Site& site) {
  current_->shuffle_bits = bits;
  warp_barrier(mask, site, false);
  const Thread* source = lane_of_current_warp(source_lane);
  const bool takes_part = source != nullptr && (mask >> source_lane & 1) != 0;
  const std::uint64_t received = takes_part ? source->shuffle_bits : ~std::uint64_t{0};
  warp_barrier(mask, site, false);  // nobody offers the next value before all have read this one
  return received;
}

std::byte* Executor::shared_memory(std::size_t bytes) {
  if (bytes > config_.shared_bytes) {
    fail("needs " + std::to_string(bytes) + " bytes of shared memory, launched with " +
         std::to_string(config_.shared_bytes));
  }
  return shared_.get();
}

void Executor::record_fault(const std::string& what) {
  if (fault_) return;
  fault_ = std::string(config_.kernel) + ": block " + std::to_string(blockIdx.x) + ", thread " +
           to_string(current_->index) + ": " + what;
}

void Executor::fail(const std::string& what) {
  record_fault(what);
  throw ThreadFault{};
}

void Executor::report(unsigned number, const std::string& what) {
  current_ = threads_[number].get();
  record_fault(what);
  current_ = nullptr;
}

void Executor::abandon_current_thread() {
  current_->abandoned = true;
  switch_to_scheduler();
  std::abort();  // abandoned fibers are not resumed
}

bool kernel_is_running() { return this_executor().is_running(); }

void report_kernel_fault(const std::string& what) { this_executor().record_fault(what); }

void abandon_kernel_thread() { this_executor().abandon_current_thread(); }

namespace executor {

void set_schedule(Schedule schedule) { this_executor().set_schedule(schedule); }

Status run(const LaunchConfig& config, const std::function<void()>& thread_body) {
  return this_executor().run(config, thread_body);
}

void block_barrier(const Site& site) { this_executor().block_barrier(site); }

void warp_barrier(unsigned mask, const Site& site) {
  this_executor().warp_barrier(mask, site, true);
}

std::uint64_t shuffle(unsigned mask, std::uint64_t bits, unsigned source_lane, const Site& site) {
  return this_executor().shuffle(mask, bits, source_lane, site);
}

unsigned lane() { return this_executor().current().number % kWarpSize; }

std::byte* shared_memory(std::size_t bytes) { return this_executor().shared_memory(bytes); }

void copy_async(float* smem, const float* gmem, std::size_t bytes) {
  Thread& thread = this_executor().current();
  thread.copies.push_back({smem, gmem, bytes, thread.open_group});
}

void copy_async_commit() { ++this_executor().current().open_group; }

void copy_async_wait(int pending_groups) {
  Thread& thread = this_executor().current();
  const int first_pending = thread.open_group - pending_groups;
  std::erase_if(thread.copies, [&](const AsyncCopy& copy) {
    if (copy.group >= first_pending) return false;
    observer::complete_copy(copy.smem, copy.bytes);
    std::memcpy(copy.smem, copy.gmem, copy.bytes);
    return true;
  });
}

void fail(const std::string& what) { this_executor().fail(what); }

void report(unsigned thread, const std::string& what) { this_executor().report(thread, what); }

void fail_misaligned(const void* address, std::size_t bytes, const char* access) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", address);
  fail("misaligned " + std::to_string(bytes * 8) + "-bit " + access + " at " + text);
}

}  // namespace executor
}  // namespace tilegate::simt
