// The seam for blocks that wait for others of their launch, by flags in global memory, which an
// earlier kernel has set to 0. In namespace tilegate::device,
//
//   raise_flag(flag)      by a thread, for itself and for those that it has met at barriers since
//                         they stored
//   wait_for_flag(flag)   what came before the flag was raised comes before what the thread does
//                         now, copies of the copy engine too. Compute capability 9.0
//
// A block may wait for blocks of lower numbers alone, which start before it; the launch says so
// (LaunchConfig::waits_for_flags). The executor runs block after block: there a flag that they have
// not raised ends the launch.
#pragma once

#include <tilegate/device/device.cuh>

namespace tilegate::device {

#if defined(__CUDACC__)

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

inline void raise_flag(unsigned* flag, simt::Site site = simt::Site::current()) {
  simt::executor::raise_flag(flag, site);
}

inline void wait_for_flag(const unsigned* flag, simt::Site site = simt::Site::current()) {
  simt::executor::wait_for_flag(flag, site);
}

#endif

}  // namespace tilegate::device
