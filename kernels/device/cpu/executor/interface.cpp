// Implements the portability layer inside a kernel.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "executor_impl.hpp"
#include "observer.hpp"

namespace tilegate::simt {

bool kernel_is_running() { return this_executor().is_running(); }

void report_kernel_fault(const std::string& what) { this_executor().record_fault(what); }

void abandon_kernel_thread() { this_executor().abandon_current_thread(); }

namespace executor {

void set_schedule(Schedule schedule) { this_executor().set_schedule(schedule); }

Coverage coverage() { return this_executor().coverage(); }

void begin_call(const Problem& problem, const Operands& operands, Stream stream) {
  this_executor().begin_call(stream);
  observer::begin_call(problem, operands);
}

Status end_call() {
  this_executor().end_call();
  const std::optional<std::string> missing = observer::end_call();
  const bool ran_whole = coverage().run == coverage().blocks;
  return missing && ran_whole ? Status::device_error(*missing) : Status();
}

Status run(const device::LaunchConfig& config, Stream stream,
           const std::function<void()>& thread_body) {
  return this_executor().run(config, stream, thread_body);
}

void block_barrier(const Site& site) { this_executor().block_barrier(site); }

void warp_barrier(unsigned mask, const Site& site) { this_executor().warp_barrier(mask, site); }

std::uint64_t shuffle(unsigned mask, std::uint64_t bits, unsigned source_lane, const Site& site) {
  return this_executor().shuffle(mask, bits, source_lane, site);
}

void mma_f64(double* acc, const double* a, const double* b, const Site& site) {
  this_executor().mma_f64({acc, a, b}, site);
}

unsigned lane() { return this_executor().current().number % kWarpSize; }

std::byte* shared_memory(std::size_t bytes) { return this_executor().shared_memory(bytes); }

std::byte* shared_variable(const void* key, const char* name, std::size_t bytes,
                           std::size_t alignment) {
  return this_executor().shared_variable(key, name, bytes, alignment);
}

void atomic_load(const void* data, void* value, std::size_t bytes, const Site& site) {
  check_alignment(data, bytes, "atomic operation");
  observer::access_atomically(data, bytes, site);
  std::memcpy(value, data, bytes);
}

void thread_fence() { observer::thread_fence(); }

void atomic_store(void* data, const void* value, std::size_t bytes) {
  std::memcpy(data, value, bytes);
}

bool kernel_is_running() { return this_executor().is_running(); }

void wait_for_previous_kernel() { observer::wait_for_previous_launch(); }

void raise_flag(unsigned* flag, const Site& site) {
  observer::raise_flag(flag, site);
  if (*flag != 0) fail("raise_flag at " + to_string(site) + ": no earlier kernel has cleared it");
  *flag = 1;
}

void wait_for_flag(const unsigned* flag, const Site& site) {
  observer::wait_for_flag(flag, site);
  if (*flag == 0) fail("wait_for_flag at " + to_string(site) + ": no earlier block has raised it");
}

void copy_async(float* smem, const float* gmem, std::size_t bytes) {
  Thread& thread = this_executor().current();
  thread.copies.push_back({smem, gmem, bytes, thread.open_group});
}

void copy_async_commit() { ++this_executor().current().open_group; }

void copy_async_wait(int pending_groups) {
  Thread& thread = this_executor().current();
  const int first_pending = thread.open_group - pending_groups;
  const auto begin = thread.copies.begin();
  const auto pending = std::find_if(begin, thread.copies.end(), [&](const AsyncCopy& copy) {
    return copy.group >= first_pending;
  });
  std::for_each(begin, pending, [](const AsyncCopy& copy) {
    observer::complete_copy(copy.smem, copy.bytes);
    if (copy.gmem == nullptr) {
      std::memset(copy.smem, 0, copy.bytes);
    } else {
      std::memcpy(copy.smem, copy.gmem, copy.bytes);
    }
  });
  thread.copies.erase(begin, pending);
}

void fail(const std::string& what) { this_executor().fail(what); }

void report(unsigned thread, const std::string& what) { this_executor().report(thread, what); }

[[noreturn]] void fail_assertion(const char* condition, const char* file, int line) {
  const std::string what =
      std::string("assertion failed: ") + condition + ", at " + file + ":" + std::to_string(line);
  if (kernel_is_running()) fail(what);
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

[[noreturn]] void fail_copy(std::size_t bytes) {
  fail("asynchronous copy of " + std::to_string(bytes) +
       " bytes: the executor copies 4, 8 or 16, all of them or none");
}

void fail_misaligned(const void* address, std::size_t bytes, const char* access) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", address);
  fail("misaligned " + std::to_string(bytes * 8) + "-bit " + access + " at " + text);
}

}  // namespace executor
}  // namespace tilegate::simt
