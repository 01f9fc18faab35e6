// CUDA's vector types for plain kernels (../plain.cuh). A copy of a vector is one access of its
// size, as `reinterpret_cast<float4*>(p)[0]` is on a GPU. Its alignment is checked; instrumented
// builds count it and check it for hazards.
#pragma once

#include <cstring>

#include <tilegate/device/cpu/executor.hpp>

namespace tilegate::simt {

// Vectors as the counters' functions take them.
struct alignas(8) Bits8 {
  float words[2];
};
struct alignas(16) Bits16 {
  float words[4];
};

}  // namespace tilegate::simt

#if defined(TILEGATE_COUNTED)
extern "C" {
tilegate::simt::Bits8 tilegate_counted_load_float2(const void* p, unsigned site);
tilegate::simt::Bits16 tilegate_counted_load_float4(const void* p, unsigned site);
void tilegate_counted_store_float2(void* p, tilegate::simt::Bits8 v, unsigned site);
void tilegate_counted_store_float4(void* p, tilegate::simt::Bits16 v, unsigned site);
void tilegate_counted_copy_async(void* smem, const void* gmem, unsigned bytes, unsigned site);
}
#endif

namespace tilegate::plain {

#define TILEGATE_INLINE __attribute__((always_inline)) inline

#if defined(TILEGATE_COUNTED)
TILEGATE_INLINE void load(const void* from, simt::Bits8& bits) {
  bits = tilegate_counted_load_float2(from, 0);
}
TILEGATE_INLINE void load(const void* from, simt::Bits16& bits) {
  bits = tilegate_counted_load_float4(from, 0);
}
TILEGATE_INLINE void store(void* to, const simt::Bits8& bits) {
  tilegate_counted_store_float2(to, bits, 0);
}
TILEGATE_INLINE void store(void* to, const simt::Bits16& bits) {
  tilegate_counted_store_float4(to, bits, 0);
}
#else
// Hides the pointer from the compiler, which assumes that vectors are aligned.
TILEGATE_INLINE void check_alignment(const void* p, std::size_t bytes, const char* access) {
  asm("" : "+r"(p));
  simt::executor::check_alignment(p, bytes, access);
}
template <typename Bits>
TILEGATE_INLINE void load(const void* from, Bits& bits) {
  check_alignment(from, sizeof(Bits), "load");
  std::memcpy(&bits, from, sizeof(Bits));
}
template <typename Bits>
TILEGATE_INLINE void store(void* to, const Bits& bits) {
  check_alignment(to, sizeof(Bits), "store");
  std::memcpy(to, &bits, sizeof(Bits));
}
#endif

// Constructors and assignment that make a structure of 8 or 16 bytes such a vector.
#define TILEGATE_VECTOR_COPIES(name, Bits)                      \
  name() = default;                                             \
  TILEGATE_INLINE name(const name& other) {                     \
    ::tilegate::simt::Bits bits;                                \
    ::tilegate::plain::load(&other, bits);                      \
    std::memcpy(static_cast<void*>(this), &bits, sizeof(bits)); \
  }                                                             \
  TILEGATE_INLINE name& operator=(const name& other) {          \
    ::tilegate::simt::Bits bits;                                \
    ::tilegate::plain::load(&other, bits);                      \
    ::tilegate::plain::store(this, bits);                       \
    return *this;                                               \
  }

}  // namespace tilegate::plain

// CUDA's names only: kernels see this whole namespace.
namespace tilegate::cuda_names {

#define TILEGATE_VECTORS_OF(T, name)                                     \
  struct alignas(8) name##2 {                                            \
    T x, y;                                                              \
    constexpr name##2(T all_x, T all_y = {}) : x(all_x), y(all_y) {}     \
    TILEGATE_VECTOR_COPIES(name##2, Bits8)                               \
  };                                                                     \
  struct alignas(16) name##4 {                                           \
    T x, y, z, w;                                                        \
    constexpr name##4(T all_x, T all_y = {}, T all_z = {}, T all_w = {}) \
        : x(all_x), y(all_y), z(all_z), w(all_w) {}                      \
    TILEGATE_VECTOR_COPIES(name##4, Bits16)                              \
  };                                                                     \
  constexpr name##2 make_##name##2(T x, T y) { return name##2(x, y); }   \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return name##4(x, y, z, w); }

TILEGATE_VECTORS_OF(float, float)
TILEGATE_VECTORS_OF(int, int)
TILEGATE_VECTORS_OF(unsigned, uint)

struct float3 {
  float x, y, z;
};
struct int3 {
  int x, y, z;
};
using uint3 = simt::Index3;  // the type of threadIdx
constexpr float3 make_float3(float x, float y, float z) { return {x, y, z}; }
constexpr int3 make_int3(int x, int y, int z) { return {x, y, z}; }
constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

struct alignas(16) double2 {
  double x, y;
  constexpr double2(double all_x, double all_y = {}) : x(all_x), y(all_y) {}
  TILEGATE_VECTOR_COPIES(double2, Bits16)
};
constexpr double2 make_double2(double x, double y) { return double2(x, y); }

}  // namespace tilegate::cuda_names

using namespace tilegate::cuda_names;

namespace tilegate::device {

template <int kBytes>
TILEGATE_INLINE void copy_async(void* smem, const void* gmem, bool inside = true) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "the sizes that cp.async knows");
#if defined(TILEGATE_COUNTED)
  tilegate_counted_copy_async(smem, inside ? gmem : nullptr, kBytes, 0);
#else
  simt::executor::check_alignment(smem, kBytes, "async copy");
  if (inside) simt::executor::check_alignment(gmem, kBytes, "async copy");
  simt::executor::copy_async(static_cast<float*>(smem),
                             inside ? static_cast<const float*>(gmem) : nullptr, kBytes);
#endif
}

}  // namespace tilegate::device
