// The portability layer's accesses in instrumented builds. Each is one call of the counters
// (kernels/device/cpu/counted), so that a vector access is counted as one. instrument.py fills in
// the last argument, the source line.
#pragma once

extern "C" {
float2 tilegate_counted_load_float2(const float* p, unsigned site);
float4 tilegate_counted_load_float4(const float* p, unsigned site);
void tilegate_counted_store_float2(float* p, float2 v, unsigned site);
void tilegate_counted_store_float4(float* p, float4 v, unsigned site);
void tilegate_counted_copy_async(float* smem, const float* gmem, unsigned bytes, unsigned site);
}

namespace tilegate::device {

template <typename V>
__attribute__((always_inline)) inline V load_vector(const float* p) {
  if constexpr (std::is_same_v<V, float4>) {
    return tilegate_counted_load_float4(p, 0);
  } else {
    static_assert(std::is_same_v<V, float2>, "the vectors that CUDA's float has");
    return tilegate_counted_load_float2(p, 0);
  }
}

__attribute__((always_inline)) inline void store_vector(float* p, float2 v) {
  tilegate_counted_store_float2(p, v, 0);
}
__attribute__((always_inline)) inline void store_vector(float* p, float4 v) {
  tilegate_counted_store_float4(p, v, 0);
}

template <int kBytes>
__attribute__((always_inline)) inline void copy_async(float* smem, const float* gmem,
                                                      bool inside = true) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "the sizes that cp.async knows");
  tilegate_counted_copy_async(smem, inside ? gmem : nullptr, kBytes, 0);
}

}  // namespace tilegate::device
