// Flags in global memory, by which blocks of a launch wait for other blocks. An earlier kernel sets
// them to 0. In namespace tilegate::device,
//
//   raise_flag(flag)      one thread; a release, also for threads that it has met at a barrier
//   wait_for_flag(flag)   an acquire: orders the thread's later accesses, bulk copies included.
//                         Compute capability 9.0
//
//   launch_in_order(…)    as launch, for kernels that wait for flags
//
// A block may wait only for blocks with lower indices, which start before it. The executor runs the
// blocks of such a launch in order of their indices under every schedule. A wait for a flag that no
// earlier block has raised ends the launch with an error.
#pragma once

#include <utility>

#include <tilegate/device/device.cuh>

namespace tilegate::device {

#if defined(__CUDACC__)

template <typename... Args>
Status launch_in_order(const LaunchConfig& config, Args&&... args) {
  return launch(config, std::forward<Args>(args)...);
}

inline __device__ void raise_flag(unsigned* flag) {
  asm volatile("st.release.gpu.u32 [%0], 1;" ::"l"(flag) : "memory");
}

inline __device__ void wait_for_flag(const unsigned* flag) {
  unsigned raised = 0;
  do {
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(raised) : "l"(flag) : "memory");
  } while (raised == 0);
  // Orders threads' stores before reads of the copy engine; the acquire alone does not.
  asm volatile("fence.proxy.async;" ::: "memory");
}

#else

template <typename... Args>
Status launch_in_order(const LaunchConfig& config, Args&&... args) {
  simt::executor::in_order = true;
  Status status = launch(config, std::forward<Args>(args)...);
  simt::executor::in_order = false;
  return status;
}

inline void raise_flag(unsigned* flag, simt::Site site = simt::Site::current()) {
  simt::executor::raise_flag(flag, site);
}

inline void wait_for_flag(const unsigned* flag, simt::Site site = simt::Site::current()) {
  simt::executor::wait_for_flag(flag, site);
}

#endif

}  // namespace tilegate::device
