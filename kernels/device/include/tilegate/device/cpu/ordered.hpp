// The portability layer's accesses by shared-memory address, and its instructions that nvcc keeps
// in order. On the CPU both are plain accesses, counted at the caller's line.
#pragma once

#include <utility>

namespace tilegate::device {

template <int kBytes>
__forceinline__ void copy_async(SharedAddress to, const float* gmem, bool inside = true) {
  copy_async<kBytes>(shared_pointer(to), gmem, inside);
}

__forceinline__ void copy_async_part(SharedAddress to, const float* gmem, int words) {
  if (words == 0 || words == 4) {
    copy_async<16>(to, gmem, words == 4);
  } else {
    for (int i = 0; i < 4; ++i) copy_async<4>(to + 4U * i, gmem + i, i < words);
  }
}

// Always ascending: compilers vectorize that.
template <int kCount>
__forceinline__ void add_products(float (&c)[kCount], float a, const float (&b)[kCount],
                                  bool /*ascending*/) {
#if defined(__clang__)  // instrumented kernels: keep the row in registers, where it is not counted
#pragma unroll
#endif
  for (int j = 0; j < kCount; ++j) c[j] += a * b[j];
}

namespace ordered {

// Calls before(i) for all products first: it must not change their operands.
template <int kCount, typename Before>
__forceinline__ void fma_row(float (&c)[kCount], const float& a, const float (&b)[kCount],
                             bool ascending, Before before) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (before(i), ...);
  }(std::make_integer_sequence<int, kCount>{});
  add_products(c, a, b, ascending);
}

__forceinline__ void load_shared(float* v, SharedAddress from) {
  const float4 loaded = load_vector<float4>(shared_pointer(from));
  v[0] = loaded.x;
  v[1] = loaded.y;
  v[2] = loaded.z;
  v[3] = loaded.w;
}

__forceinline__ void store_shared(SharedAddress to, float v) { *shared_pointer(to) = v; }

__forceinline__ void store_shared(SharedAddress to, const float4& v) {
  store_vector(shared_pointer(to), v);
}

__forceinline__ void load_global(float4& v, const float* base, unsigned vector) {
  v = load_vector<float4>(base + std::size_t{4} * vector);
}

__forceinline__ void add(unsigned& value, unsigned increment) { value += increment; }

}  // namespace ordered
}  // namespace tilegate::device
