// The seam for blocks that wait for others of their launch, by flags in global memory, which an
// earlier kernel has set to 0. In namespace tilegate::device,
//
//   raise_flag(flag)      by a thread, for itself and for those that it has met at barriers since
//                         they stored
//   wait_for_flag(flag)   what came before the flag was raised comes before what the thread does
//                         now, copies of the copy engine too. Compute capability 9.0
//
//   launch_in_order(…)    as launch, of blocks that wait for flags
//
// A block may wait for blocks of lower numbers alone, which start before it. The executor runs
// block after block, in order under every schedule: there a flag that those before have not raised
// ends the launch.
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
  // What threads have stored and the copy engine reads: without it the acquire does not order them.
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
