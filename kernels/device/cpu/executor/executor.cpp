#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>
#include <random>
#include <utility>

#include <boost/context/protected_fixedsize_stack.hpp>

#include <tilegate/device/cpu/seam.hpp>

#include "executor_impl.hpp"
#include "observer.hpp"

constinit thread_local tilegate::simt::Index3 threadIdx;
constinit thread_local tilegate::simt::Index3 blockIdx;
constinit thread_local tilegate::simt::Index3 blockDim;
constinit thread_local tilegate::simt::Index3 gridDim;

namespace tilegate::simt {
namespace {

constexpr unsigned kMaxCluster = 8;              // blocks, as is portable
constexpr unsigned kMaxThreads = 1024;           // of a block, as in CUDA
constexpr std::size_t kMaxShared = 227 * 1024;   // bytes of a block, as on compute capability 9.0
constexpr std::size_t kStackBytes = 128 * 1024;  // of a fiber; pages that stay unused cost nothing

constexpr std::size_t kPoisonedBytes = 1024;  // of a stack, more than the frames of a kernel take

// NaN in every word of the stack below the caller's frame: a variable that nobody has set is
// neither zero, as on a new stack, nor what the thread before left there.
[[gnu::noinline]] void poison_stack() {
  std::byte frame[kPoisonedBytes];
  std::memset(frame, 0xFF, sizeof(frame));
  asm volatile("" : : "r"(frame) : "memory");  // or the compiler would leave it out
}

// Stacks grow down: Boost's `sp` is the top.
StackBounds stack_of(const ctx::stack_context& stack) {
  return {static_cast<std::byte*>(stack.sp) - stack.size, stack.size};
}

}  // namespace

std::string to_string(const Index3& i) {
  return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

std::string to_string(const Site& site) {
  return std::string(site.file_name()) + ":" + std::to_string(site.line());
}

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
    thread.fiber = ctx::fiber(std::allocator_arg,
                              ctx::preallocated(thread.stack.sp, thread.stack.size, thread.stack),
                              allocator, [this, &thread](ctx::fiber&& scheduler) -> ctx::fiber {
                                finish_first_switch(scheduler_stack_);
                                scheduler_ = std::move(scheduler);
                                while (!unwinding_) {  // one CUDA thread after another
                                  poison_stack();
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

void Executor::begin_call(Stream stream) {
  in_call_ = true;
  call_stream_ = stream;
}

Status Executor::run(const device::LaunchConfig& config, Stream stream,
                     const std::function<void()>& thread_body) {
  const unsigned threads = config.threads_x * config.threads_y;
  const unsigned cluster = config.cluster;
  const std::string kernel = config.kernel;
  if (is_running()) return Status::device_error(kernel + ": launched from inside a kernel");
  if (config.blocks < 1 || config.blocks >= std::int64_t{1} << 31 || threads < 1 ||
      threads > kMaxThreads || config.shared_bytes > kMaxShared) {
    return Status::device_error(kernel + ": invalid launch of " + std::to_string(config.blocks) +
                                " blocks of " + std::to_string(threads) + " threads with " +
                                std::to_string(config.shared_bytes) + " bytes of shared memory");
  }
  if (cluster < 1 || cluster > kMaxCluster || config.blocks % cluster != 0 ||
      (cluster > 1 && threads % kWarpSize != 0)) {
    return Status::device_error(kernel + ": invalid clusters of " + std::to_string(cluster) +
                                " blocks: they are 1 to 8, of whole warps, and divide the " +
                                std::to_string(config.blocks) + " of the launch");
  }
  if (in_call_ && stream != call_stream_) {
    return Status::device_error(kernel + ": launched on another stream than its call, which " +
                                "nothing orders with the call's other kernels");
  }
  coverage_ = {config.blocks, 0};
  if (config.blocks < schedule_.least_) {
    return Status::device_error(kernel + ": " + std::to_string(config.blocks) +
                                " blocks are too few to run a sample of them");
  }

  config_ = config;
  body_ = &thread_body;
  block_threads_ = threads;
  num_threads_ = threads * cluster;
  fault_.reset();
  make_fibers(num_threads_);
  for (auto& thread : all_threads()) {
    const unsigned number = thread->number % threads;
    thread->index = {number % config.threads_x, number / config.threads_x, 0};
  }
  shared_stride_ =
      (config.shared_bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  shared_.reset(static_cast<std::byte*>(::operator new (std::max<std::size_t>(cluster_bytes(), 1),
                                                        std::align_val_t{kSharedAlignment})));
  order_.resize(num_threads_);
  std::iota(order_.begin(), order_.end(), 0U);
  if (schedule_.kind_ == Schedule::Kind::kReverse) std::reverse(order_.begin(), order_.end());
  random_.seed(schedule_.seed_);
  blockDim = {config.threads_x, config.threads_y, 1};
  gridDim = {static_cast<unsigned>(config.blocks), 1, 1};

  observer::begin_launch(config_, shared_.get(), cluster_bytes());
  const FaultSources sources;
  const std::int64_t clusters = config.blocks / cluster;
  for (std::int64_t i = 0; i < clusters && !fault_; i = schedule_.next(i, clusters)) {
    coverage_.run += cluster;
    std::int64_t number = i;
    if (schedule_.kind_ == Schedule::Kind::kReverse) number = clusters - 1 - i;
    if (schedule_.kind_ == Schedule::Kind::kShuffled) {
      number = (i + static_cast<std::int64_t>(schedule_.seed_ % (1U << 31))) % clusters;
      std::shuffle(order_.begin(), order_.end(), random_);
    }
    run_cluster(number * cluster);
  }
  observer::end_launch();
  if (!fault_) return {};
  unwind_fibers();  // some wait inside the kernel
  return Status::device_error(*fault_);
}

void Executor::run_cluster(std::int64_t first_block) {
  first_block_ = first_block;
  blockIdx = {static_cast<unsigned>(first_block), 0, 0};
  // NaN in every word: a read of what nobody wrote shows in the result.
  std::memset(shared_.get(), 0xFF, cluster_bytes());
  num_waiting_ = num_done_ = 0;
  begin_async();
  observer::begin_block(blockIdx.x);
  for (auto& thread : all_threads()) {
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
      if (thread.state == State::kAtBlockBarrier || thread.state == State::kDone) {
        observer::stop_thread(number);
      }
      if (fault_) return;
    }
    const bool released = num_waiting_ >= block_threads_ && release_block_barriers();
    if (!progress && !released && !release_cluster_barrier() && !advance_async()) {
      report_stuck_threads();
    }
    if (fault_) return;
  }
  end_async();
  if (fault_) return;
  observer::end_block();
}

void Executor::resume(Thread& thread) {
  current_ = &thread;
  threadIdx = thread.index;
  if (config_.cluster > 1) blockIdx.x = static_cast<unsigned>(block_of(thread));
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

std::byte* Executor::shared_memory(std::size_t bytes) {
  if (bytes > config_.shared_bytes) {
    fail("needs " + std::to_string(bytes) + " bytes of shared memory, launched with " +
         std::to_string(config_.shared_bytes));
  }
  return shared_.get() + shared_base();
}

void Executor::record_fault(const std::string& what) {
  if (fault_) return;
  fault_ = std::string(config_.kernel) + ": block " + std::to_string(block_of(*current_)) +
           ", thread " + to_string(current_->index) + ": " + what;
}

void Executor::fail(const std::string& what) {
  record_fault(what);
  throw ThreadFault{};
}

void Executor::report(unsigned number, const std::string& what) {
  Thread* const running = std::exchange(current_, threads_[number].get());
  record_fault(what);
  current_ = running;
}

void Executor::abandon_current_thread() {
  current_->abandoned = true;
  switch_to_scheduler();
  std::abort();  // abandoned fibers are not resumed
}

}  // namespace tilegate::simt
