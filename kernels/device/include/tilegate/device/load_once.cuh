// The seam for loads of what nobody needs again soon. In namespace tilegate::device,
//
//   load_once<float>(p)            one access of sizeof(V) bytes; p aligned to it; L2 gives up
//   first load_once<float4>(p)           what it brings
#pragma once

#include <type_traits>

#include <tilegate/device/device.cuh>

namespace tilegate::device {

template <typename V>
__device__ inline V load_once(const float* p) {
#if defined(__CUDACC__)
  return __ldcs(reinterpret_cast<const V*>(p));
#else
  if constexpr (std::is_same_v<V, float>) {
    return *p;
  } else {
    return load_vector<V>(p);
  }
#endif
}

}  // namespace tilegate::device
