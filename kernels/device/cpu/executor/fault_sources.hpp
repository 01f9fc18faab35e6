// Where faults of a kernel come from besides the executor's own checks: the CPU's memory protection
// and, in builds with sanitizers, their reports. Also what a sanitizer must know about fibers.
#pragma once

#include <csignal>
#include <cstddef>
#include <string>

namespace tilegate::simt {

// Defined by the executor.
bool kernel_is_running();
void report_kernel_fault(const std::string& what);
[[noreturn]] void abandon_kernel_thread();

// While it lives, a fault inside a kernel is reported to the executor.
class FaultSources {
 public:
  FaultSources();
  ~FaultSources();
  FaultSources(const FaultSources&) = delete;
  FaultSources& operator=(const FaultSources&) = delete;

 private:
  struct sigaction previous_segv_{};
  struct sigaction previous_bus_{};
};

struct StackBounds {
  const void* bottom = nullptr;
  std::size_t size = 0;  // bytes
};

// Around each switch between fibers: `start` before it, `finish` after it with what `start` gave.
void* start_switch(const StackBounds& target);
void finish_switch(void* fake_stack);
// The first switch into a fiber, which learns where it came from, and the last one out of it.
void finish_first_switch(StackBounds& from);
void start_last_switch(const StackBounds& target);

}  // namespace tilegate::simt
