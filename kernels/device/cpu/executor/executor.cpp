#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include <boost/context/protected_fixedsize_stack.hpp>

#include <tilegate/device/cpu/device.hpp>

#include "executor_impl.hpp"
#include "observer.hpp"

constinit thread_local tilegate::simt::Index3 threadIdx;
constinit thread_local tilegate::simt::Index3 blockIdx;
constinit thread_local tilegate::simt::Index3 blockDim;
constinit thread_local tilegate::simt::Index3 gridDim;

constinit thread_local std::byte* tilegate::simt::executor::shared_of_block = nullptr;
constinit thread_local bool tilegate::simt::executor::in_order = false;

namespace tilegate::simt {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;  // per fiber; unused pages cost nothing

// Page-aligned stacks would compete for the same sets of the CPU's caches. So each stack begins a
// few cache lines lower in its page than the one before.
constexpr std::size_t kPage = 4096, kStackStep = 5 * 64;

constexpr std::size_t kPoisonedBytes = 1024;  // of a stack: more than the frames of a kernel take

// Writes NaN to every word of the stack below the caller's frame, so that an uninitialized variable
// is neither zero, as on a new stack, nor a value that another thread left there.
[[gnu::noinline]] void poison_stack() {
  std::byte frame[kPoisonedBytes];
  std::memset(frame, 0xFF, sizeof(frame));
  asm volatile("" : : "r"(frame) : "memory");  // keeps the compiler from removing the memset
}

}  // namespace

Executor& this_executor() {
  static thread_local Executor executor;
  return executor;
}

void Executor::make_fibers(unsigned count) {
  ctx::protected_fixedsize_stack allocator(kStackBytes);
  while (threads_.size() < count) {
    auto owned = std::make_unique<Thread>();
    Thread& thread = *owned;
    thread.number = static_cast<unsigned>(threads_.size());
    thread.stack = allocator.allocate();
    const std::size_t unused = thread.number * kStackStep % kPage;
    void* const top = static_cast<std::byte*>(thread.stack.sp) - unused;
    thread.fiber = ctx::fiber(std::allocator_arg,
                              ctx::preallocated(top, thread.stack.size - unused, thread.stack),
                              allocator, [this, &thread](ctx::fiber&& before) -> ctx::fiber {
                                StackBounds stack_before;
                                finish_first_switch(stack_before);
                                if (left_ == &scheduler_) scheduler_stack_ = stack_before;
                                *left_ = std::move(before);
                                while (!unwinding_) {  // a fiber runs many CUDA threads in turn
                                  poison_stack();
                                  run_thread_body();
                                  thread.state = State::kDone;
                                  ++num_done_;
                                  if (!unwinding_) end_turn();
                                }
                                start_last_switch(scheduler_stack_);
                                left_ = &thread.fiber;
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

// Ends every fiber and unwinds its frames, wherever it waits.
void Executor::unwind_fibers() {
  unwinding_ = true;
  for (auto& thread : threads_) {
    if (thread->abandoned) {
      // Its frames cannot be unwound: the fiber must never be destroyed.
      static auto& graveyard = *new std::vector<ctx::fiber>;
      graveyard.push_back(std::move(thread->fiber));
    } else {
      resume(*thread);
      // Otherwise the address sanitizer would keep poisoned frames in memory that is used again.
      device::set_accessible(stack_of(thread->stack).bottom, thread->stack.size, true);
    }
  }
  threads_.clear();
  unwinding_ = false;
}

void Executor::run_cluster(std::int64_t first_block) {
  first_block_ = first_block;
  const auto row = static_cast<unsigned>(first_block / config_.blocks);
  blockIdx = {static_cast<unsigned>(first_block % config_.blocks), row % config_.blocks_y,
              row / config_.blocks_y};
  fill_shared_memory();
  num_waiting_ = num_done_ = 0;
  waiting_lanes_.assign((num_threads_ + kWarpSize - 1) / kWarpSize, 0);
  begin_async();
  observer::begin_block(blockIdx.x);
  for (auto& thread : all_threads()) {
    thread->state = State::kReady;
    thread->copies.clear();
    thread->open_group = 0;
  }
  while (num_done_ < num_threads_) {
    turn_ = 0;
    Thread* const first = take_turn();
    if (first != nullptr) resume(*first);
    if (fault_) return;
    const bool released = num_waiting_ >= block_threads_ && release_block_barriers();
    if (first == nullptr && !released && !release_cluster_barrier() && !advance_async()) {
      report_stuck_threads();
    }
    if (fault_) return;
  }
  end_async();
  if (fault_) return;
  observer::end_block();
}

// Called by the scheduler; returns when a thread has switched back to it.
void Executor::resume(Thread& thread) {
  switch_to(thread, scheduler_);
  current_ = nullptr;
}

// Fills shared memory with NaN, so that a read of an unwritten word shows in the result.
void Executor::fill_shared_memory() {
  std::memset(shared_.get(), 0xFF, base_of(config_.cluster - 1) + config_.shared_bytes);
  for (const SharedVariable& variable : shared_variables_) {
    std::memset(shared_.get() + variable.offset, 0xFF, variable.bytes);
  }
}

std::byte* Executor::shared_memory(std::size_t bytes) {
  if (bytes > config_.shared_bytes) {
    fail("needs " + std::to_string(bytes) + " bytes of shared memory, launched with " +
         std::to_string(config_.shared_bytes));
  }
  return executor::shared_of_block;
}

// The first thread that reaches the declaration allocates the variable.
std::byte* Executor::shared_variable(const void* key, const char* name, std::size_t bytes,
                                     std::size_t alignment) {
  for (const SharedVariable& variable : shared_variables_) {
    if (variable.key == key) return shared_.get() + variable.offset;
  }
  const auto up = [](std::size_t size, std::size_t unit) {
    return (size + unit - 1) / unit * unit;
  };
  const std::size_t number = shared_variables_.size();
  const std::size_t gaps = up(config_.shared_bytes, kSharedAlignment) + (number + 1) * kSharedGap;
  std::size_t end = 0;  // as if there were no gaps
  if (number > 0) {
    const SharedVariable& last = shared_variables_.back();
    end = last.offset + last.bytes - (gaps - kSharedGap);
  }
  const std::size_t begin = up(end, alignment);
  if (number == kMaxSharedVariables || begin + bytes > kMaxStaticShared) {
    fail("the __shared__ variable " + std::string(name) + " is number " +
         std::to_string(number + 1) + " and ends at byte " + std::to_string(begin + bytes) +
         ": a block has at most " + std::to_string(kMaxStaticShared) +
         " bytes besides its dynamic shared memory, here in at most " +
         std::to_string(kMaxSharedVariables) + " variables");
  }
  shared_variables_.push_back({key, begin + gaps, bytes});
  std::byte* const variable = shared_.get() + begin + gaps;
  device::set_accessible(variable, bytes, true);
  std::memset(variable, 0xFF, bytes);
  observer::add_shared_variable(begin + gaps, bytes, name);
  return variable;
}

void Executor::abandon_current_thread() {
  current_->abandoned = true;
  switch_to_scheduler();
  std::abort();  // abandoned fibers are not resumed
}

}  // namespace tilegate::simt
