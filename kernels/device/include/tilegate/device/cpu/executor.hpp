// The SIMT executor runs a grid on one CPU thread: one fiber per CUDA thread, one block (or
// cluster) at a time. It is deterministic: only the schedule decides the order.
//
// These faults end a launch with a kDeviceError that names kernel, block, thread and address or
// line: a barrier that some threads of the block never reach, a misaligned vector access, a fault
// of the CPU's memory protection and, in builds with sanitizers, their reports.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <tilegate/device.hpp>
#include <tilegate/device/launch_config.hpp>
#include <tilegate/stage.hpp>

namespace tilegate::simt {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

// A source line. A substitute for std::source_location, which clang 14 lacks.
class Site {
 public:
  constexpr Site() = default;
  static constexpr Site current(const char* file = __builtin_FILE(),
                                unsigned line = __builtin_LINE()) {
    Site site;
    site.file_ = file;
    site.line_ = line;
    return site;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr unsigned line() const { return line_; }

 private:
  const char* file_ = "";
  unsigned line_ = 0;
};

// The order in which blocks run, and between two barriers the threads of a block.
class Schedule {
 public:
  static Schedule forward() { return Schedule(Kind::kForward); }
  static Schedule reverse() { return Schedule(Kind::kReverse); }
  static Schedule shuffled(std::uint64_t seed) {
    Schedule schedule(Kind::kShuffled);
    schedule.seed_ = seed;
    return schedule;
  }
  // Forward, but only the first and the last `ends` blocks of a grid and every `stride`-th between
  // them (0: none). For grids of too many blocks that are all alike. A grid of fewer than `least`
  // blocks is refused.
  static Schedule sample(std::int64_t ends, std::int64_t stride, std::int64_t least = 1) {
    Schedule schedule(Kind::kSample);
    schedule.ends_ = ends;
    schedule.stride_ = stride;
    schedule.least_ = least;
    return schedule;
  }

 private:
  friend class Executor;
  enum class Kind { kForward, kReverse, kShuffled, kSample };
  explicit Schedule(Kind kind) : kind_(kind) {}

  // The block that runs after `block` of a grid of `blocks`; `blocks`: none.
  std::int64_t next(std::int64_t block, std::int64_t blocks) const {
    ++block;
    if (kind_ != Kind::kSample || block < ends_ || block >= blocks - ends_) return block;
    const std::int64_t last = blocks - ends_;
    if (stride_ == 0) return last;
    return std::min((block + stride_ - 1) / stride_ * stride_, last);
  }

  Kind kind_;
  std::uint64_t seed_ = 0;
  std::int64_t ends_ = 0, stride_ = 0, least_ = 1;
};

// How much of a grid ran.
struct Coverage {
  std::int64_t blocks = 0, run = 0;
};

namespace executor {

// Sets the schedule of later launches on this CPU thread; forward by default.
void set_schedule(Schedule schedule);

// Coverage of the latest launch on this CPU thread.
Coverage coverage();

// The launches between these two are one call of a stage, enqueued on `stream`. A launch on another
// stream is refused, because nothing orders it with the others. Instrumented builds check every
// access against the contract of the call; `end_call` reports an element of C that was not stored.
void begin_call(const Problem& problem, const Operands& operands, Stream stream);
Status end_call();

// Runs `thread_body` once per CUDA thread of the grid.
Status run(const device::LaunchConfig& config, Stream stream,
           const std::function<void()>& thread_body);

// While it is set, blocks run forward under every schedule.
extern constinit thread_local bool in_order;

// The functions below implement the portability layer inside a kernel.
void block_barrier(const Site& site);
void warp_barrier(unsigned mask, const Site& site);
std::uint64_t shuffle(unsigned mask, std::uint64_t bits, unsigned source_lane, const Site& site);
// The warp's acc ← acc + a·b in order of k, as in device::mma_f64.
void mma_f64(double* acc, const double* a, const double* b, const Site& site);
unsigned lane();
std::byte* shared_memory(std::size_t bytes);
extern constinit thread_local std::byte* shared_of_block;
#if defined(TILEGATE_COUNTED)
inline std::byte* shared_begin() { return shared_memory(0); }  // a load in the kernel would count
#else
inline std::byte* shared_begin() { return shared_of_block; }
#endif
// Address of the __shared__ variable whose declaration `key` identifies.
std::byte* shared_variable(const void* key, const char* name, std::size_t bytes,
                           std::size_t alignment);
// An atomic operation on `data` is a load and a store; no other thread runs between the two.
void atomic_load(const void* data, void* value, std::size_t bytes, const Site& site);
void atomic_store(void* data, const void* value, std::size_t bytes);
// __threadfence(): orders blocks, together with atomic operations before or after it.
void thread_fence();
bool kernel_is_running();
void wait_for_previous_kernel();
void raise_flag(unsigned* flag, const Site& site);
void wait_for_flag(const unsigned* flag, const Site& site);
// Copies zeros if gmem is null.
void copy_async(float* smem, const float* gmem, std::size_t bytes);
void copy_async_commit();
void copy_async_wait(int pending_groups);

// Ends the launch with the fault `what` of the current thread.
[[noreturn]] void fail(const std::string& what);
// The same for thread `thread` of the block, while no thread runs.
void report(unsigned thread, const std::string& what);
[[noreturn]] void fail_misaligned(const void* address, std::size_t bytes, const char* access);

inline void check_alignment(const void* address, std::size_t bytes, const char* access) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) [[unlikely]] {
    fail_misaligned(address, bytes, access);
  }
}

}  // namespace executor
}  // namespace tilegate::simt
