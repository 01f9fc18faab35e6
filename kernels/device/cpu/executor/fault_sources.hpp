// Faults of a kernel that the executor's checks do not find: signals of the CPU's memory protection
// and reports of sanitizers. Also the calls that tell a sanitizer about fibers.
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

// Calls around each switch between fibers: start_switch() before it; finish_switch() after it, with
// the result of start_switch().
void* start_switch(const StackBounds& target);
void finish_switch(void* fake_stack);
// After the first switch into a fiber, with the bounds of the stack that it came from, and before
// the last switch out of it.
void finish_first_switch(StackBounds& from);
void start_last_switch(const StackBounds& target);

}  // namespace tilegate::simt
