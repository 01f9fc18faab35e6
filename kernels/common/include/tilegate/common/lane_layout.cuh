// Lane layouts: row and column of a lane's thread tile among those of its warp. Row-major, with
// kLanesN lanes per row; or permuted: l and l ^ 1 share rows, l and l ^ 2 share columns, so that
// every 128-bit shared load takes two wavefronts, where B's take four in row-major layout.
#pragma once

#include <tilegate/device/device.cuh>

namespace tilegate {

template <int kLanesN, bool kPermuted>
__device__ __forceinline__ int lane_row(int lane) {
  static_assert(!kPermuted || kLanesN == 4, "a permuted warp has 8×4 thread tiles");
  if constexpr (kPermuted) {
    return (lane >> 1 & 1) | (lane >> 3 & 1) << 1 | (lane >> 4) << 2;
  } else {
    return lane / kLanesN;
  }
}

template <int kLanesN, bool kPermuted>
__device__ __forceinline__ int lane_column(int lane) {
  if constexpr (kPermuted) {
    return (lane & 1) | (lane >> 2 & 1) << 1;
  } else {
    return lane % kLanesN;
  }
}

}  // namespace tilegate
