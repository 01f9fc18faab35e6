#include "fault_sources.hpp"

#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tilegate::simt {
namespace {

std::string hex(const void* address) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", address);
  return text;
}

// Runs on the stack of the faulting fiber, and abandons it.
void on_memory_fault(int signal, siginfo_t* info, void* /*context*/) {
  if (!kernel_is_running()) {
    std::signal(signal, SIG_DFL);  // a fault of host code: it repeats, and ends the process
    return;
  }
  report_kernel_fault("access outside every operand at " + hex(info->si_addr));
  abandon_kernel_thread();
}

#if defined(__SANITIZE_ADDRESS__)
void on_address_report(const char* /*report*/) {
  if (!kernel_is_running()) std::abort();  // host code is at fault
  report_kernel_fault("access outside every operand at " + hex(__asan_get_report_address()) + " (" +
                      __asan_get_report_description() + ")");
}
#endif

}  // namespace

FaultSources::FaultSources() {
  struct sigaction action{};
  action.sa_sigaction = on_memory_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_segv_);
  sigaction(SIGBUS, &action, &previous_bus_);
#if defined(__SANITIZE_ADDRESS__)
  __asan_set_error_report_callback(on_address_report);
#endif
}

FaultSources::~FaultSources() {
  sigaction(SIGSEGV, &previous_segv_, nullptr);
  sigaction(SIGBUS, &previous_bus_, nullptr);
}

#if defined(__SANITIZE_ADDRESS__)

void* start_switch(const StackBounds& target) {
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, target.bottom, target.size);
  return fake_stack;
}

void finish_switch(void* fake_stack) {
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}

void finish_first_switch(StackBounds& from) {
  __sanitizer_finish_switch_fiber(nullptr, &from.bottom, &from.size);
}

void start_last_switch(const StackBounds& target) {
  __sanitizer_start_switch_fiber(nullptr, target.bottom, target.size);
}

#else

void* start_switch(const StackBounds& /*target*/) { return nullptr; }
void finish_switch(void* /*fake_stack*/) {}
void finish_first_switch(StackBounds& /*from*/) {}
void start_last_switch(const StackBounds& /*target*/) {}

#endif

}  // namespace tilegate::simt

// Reports do not end the process: the executor ends the launch, and the test run continues.
#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __asan_default_options() {
  return "halt_on_error=0:suppress_equal_pcs=0:detect_stack_use_after_return=0:"
         "allocator_may_return_null=1:detect_leaks=0";
}

extern "C" void __ubsan_on_report() {
  if (!tilegate::simt::kernel_is_running()) std::abort();  // host code is at fault
  tilegate::simt::report_kernel_fault("undefined behaviour; the report above says which");
}
#endif
