// device.cuh on the CPU: CUDA's names for a host compiler, implemented by the executor
// (executor.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <tilegate/device.hpp>
#include <tilegate/device/cpu/executor.hpp>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__

using std::max;
using std::min;

#if !defined(TILEGATE_PLAIN)  // plain kernels have the vectors of plain_vectors.hpp
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
constexpr float2 make_float2(float x, float y) { return {x, y}; }
constexpr float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
#endif

extern constinit thread_local tilegate::simt::Index3 threadIdx;
extern constinit thread_local tilegate::simt::Index3 blockIdx;
extern constinit thread_local tilegate::simt::Index3 blockDim;
extern constinit thread_local tilegate::simt::Index3 gridDim;

// `site` is the caller's source line, for error messages.
inline void __syncthreads(tilegate::simt::Site site = tilegate::simt::Site::current()) {
  tilegate::simt::executor::block_barrier(site);
}

inline void __syncwarp(unsigned mask = ~0U,
                       tilegate::simt::Site site = tilegate::simt::Site::current()) {
  tilegate::simt::executor::warp_barrier(mask, site);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane,
              tilegate::simt::Site site = tilegate::simt::Site::current()) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = tilegate::simt::executor::shuffle(mask, bits, static_cast<unsigned>(lane) % 32, site);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask,
                  tilegate::simt::Site site = tilegate::simt::Site::current()) {
  const int lane = static_cast<int>(tilegate::simt::executor::lane());
  return __shfl_sync(mask, value, lane ^ lane_mask, site);
}

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta,
                   tilegate::simt::Site site = tilegate::simt::Site::current()) {
  const unsigned lane = tilegate::simt::executor::lane();
  return __shfl_sync(mask, value, static_cast<int>(lane + delta < 32 ? lane + delta : lane), site);
}

namespace tilegate::simt {

// Combines the values of the lanes of the mask.
template <typename T, typename Combine>
T reduce_lanes(unsigned mask, T value, const Site& site, Combine combine) {
  T all{};
  bool is_first = true;
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const T other = ::__shfl_sync(mask, value, lane, site);
    all = is_first ? other : combine(all, other);
    is_first = false;
  }
  return all;
}

}  // namespace tilegate::simt

template <typename T>
T __reduce_add_sync(unsigned mask, T value,
                    tilegate::simt::Site site = tilegate::simt::Site::current()) {
  return tilegate::simt::reduce_lanes(mask, value, site, [](T a, T b) { return a + b; });
}

template <typename T>
T __reduce_max_sync(unsigned mask, T value,
                    tilegate::simt::Site site = tilegate::simt::Site::current()) {
  return tilegate::simt::reduce_lanes(mask, value, site, [](T a, T b) { return a > b ? a : b; });
}

inline unsigned __reduce_or_sync(unsigned mask, unsigned value,
                                 tilegate::simt::Site site = tilegate::simt::Site::current()) {
  return tilegate::simt::reduce_lanes(mask, value, site,
                                      [](unsigned a, unsigned b) { return a | b; });
}

namespace tilegate::device {

template <typename... Parameters, typename... Args>
Status launch(const LaunchConfig& config, Stream stream, void (*kernel)(Parameters...),
              Args&&... args) {
  if (OnlyLoad::is_active()) return {};
  const auto thread_body = [&] { kernel(args...); };
  return simt::executor::run(config, stream, std::cref(thread_body));
}

template <typename Kernel>
Status allow_shared_memory(Kernel* /*kernel*/, std::size_t /*bytes*/) {
  return {};
}

template <typename Kernel>
Status prefer_shared_memory(Kernel* /*kernel*/) {
  return {};
}

template <typename T>
T& shared_storage() {
  return *reinterpret_cast<T*>(simt::executor::shared_memory(sizeof(T)));
}

// Bytes from the start of the block's storage.
using SharedAddress = unsigned;

inline SharedAddress shared_address(const void* smem) {
  return static_cast<SharedAddress>(static_cast<const std::byte*>(smem) -
                                    simt::executor::shared_begin());
}

inline float* shared_pointer(SharedAddress address) {
  return reinterpret_cast<float*>(simt::executor::shared_begin() + address);
}

// Kernels run in sequence; instrumented builds report accesses that come before this wait.
template <typename... T>
void wait_for_previous_kernel(const T*... /*computed*/) {
  simt::executor::wait_for_previous_kernel();
}
inline void launch_dependents() {}

[[noreturn]] inline void fail(const char* message) { simt::executor::fail(message); }

}  // namespace tilegate::device

#if defined(TILEGATE_PLAIN)
#include <tilegate/device/cpu/plain_vectors.hpp>
#elif defined(TILEGATE_COUNTED)
#include <tilegate/device/cpu/counted_access.hpp>
#else

namespace tilegate::device {

// Vector accesses go through these two functions, which check their alignment.
template <typename V>
V load_vector(const float* p) {
  simt::executor::check_alignment(p, sizeof(V), "load");
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}

template <typename V>
void store_vector(float* p, V v) {
  simt::executor::check_alignment(p, sizeof(V), "store");
  std::memcpy(p, &v, sizeof(V));
}

template <int kBytes>
void copy_async(float* smem, const float* gmem, bool inside = true) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "the sizes that cp.async knows");
  simt::executor::check_alignment(smem, kBytes, "async copy");
  if (inside) simt::executor::check_alignment(gmem, kBytes, "async copy");
  simt::executor::copy_async(smem, inside ? gmem : nullptr, kBytes);
}

}  // namespace tilegate::device

#endif

namespace tilegate::device {

inline void copy_async_commit() { simt::executor::copy_async_commit(); }

template <int kPending>
void copy_async_wait() {
  simt::executor::copy_async_wait(kPending);
}

}  // namespace tilegate::device

#if !defined(TILEGATE_PLAIN)
#include <tilegate/device/cpu/ordered.hpp>
#endif
