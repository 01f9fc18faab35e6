// CUDA's names for plain kernels on the executor; see ../plain.cuh. translate.py rewrites the
// language extensions: __shared__, asm, <<<...>>>.
#pragma once

#if !defined(TILEGATE_PLAIN)
#error "a source that has just begun to include plain.cuh: run cmake again"
#endif

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include <sys/types.h>

#include <tilegate/device/cpu/device.hpp>

#define __align__(n) __attribute__((aligned(n)))
#define __maxnreg__(...)

namespace tilegate::simt::executor {

[[noreturn]] void fail_assertion(const char* condition, const char* file, int line);
// For an asynchronous copy of a size that the executor does not support.
[[noreturn]] void fail_copy(std::size_t bytes);

}  // namespace tilegate::simt::executor

namespace tilegate::cuda_names {

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned all_x = 1, unsigned all_y = 1, unsigned all_z = 1)
      : x(all_x), y(all_y), z(all_z) {}
  constexpr dim3(const simt::Index3& index) : x(index.x), y(index.y), z(index.z) {}
};

using cudaStream_t = Stream;
enum cudaError_t { cudaSuccess, cudaErrorUnknown };
constexpr const char* cudaGetErrorString(cudaError_t) { return "see plain::run"; }
inline cudaError_t cudaGetLastError();
inline cudaError_t cudaPeekAtLastError() { return cudaGetLastError(); }

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize,
  cudaFuncAttributePreferredSharedMemoryCarveout
};
constexpr int cudaSharedmemCarveoutMaxShared = 100;
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel&&, cudaFuncAttribute, int) {
  return cudaSuccess;
}

enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual
};
template <typename Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel&&, cudaFuncCache) {
  return cudaSuccess;
}

constexpr int warpSize = 32;

// CUDA's min and max of two types: the result has their common type, as in an expression of both.
template <typename A, typename B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && !std::is_same_v<A, B>)
constexpr auto min(A a, B b) {
  return b < a ? b : a;
}
template <typename A, typename B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && !std::is_same_v<A, B>)
constexpr auto max(A a, B b) {
  return a < b ? b : a;
}

template <typename T>
TILEGATE_INLINE T __ldg(const T* p) {
  return *p;
}
template <typename T>
TILEGATE_INLINE T __ldca(const T* p) {
  return *p;
}
template <typename T>
TILEGATE_INLINE T __ldcg(const T* p) {
  return *p;
}
template <typename T>
TILEGATE_INLINE T __ldcs(const T* p) {
  return *p;
}
template <typename T>
TILEGATE_INLINE void __stcg(T* p, T value) {
  *p = value;
}
template <typename T>
TILEGATE_INLINE void __stcs(T* p, T value) {
  *p = value;
}

TILEGATE_INLINE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TILEGATE_INLINE float __fmul_rn(float a, float b) {
  const volatile float product = a * b;  // never part of a multiply-add
  return product;
}
TILEGATE_INLINE float __fadd_rn(float a, float b) { return a + b; }
TILEGATE_INLINE float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
TILEGATE_INLINE int __float_as_int(float value) { return std::bit_cast<int>(value); }
TILEGATE_INLINE float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
TILEGATE_INLINE unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }

inline std::size_t __cvta_generic_to_shared(const void* smem) {
  return device::shared_address(smem);
}

// Shuffles within parts of a warp of `width` lanes. If the source lane is outside the part, the
// caller gets its own value.
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width,
              simt::Site site = simt::Site::current()) {
  const int own = static_cast<int>(simt::executor::lane());
  return ::__shfl_sync(mask, value, own / width * width + lane % width, site);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width,
                  simt::Site site = simt::Site::current()) {
  const int own = static_cast<int>(simt::executor::lane()), to = own ^ lane_mask;
  return ::__shfl_sync(mask, value, to < own / width * width + width ? to : own, site);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width,
                   simt::Site site = simt::Site::current()) {
  const int own = static_cast<int>(simt::executor::lane()), to = own + static_cast<int>(delta);
  return ::__shfl_sync(mask, value, to < own / width * width + width ? to : own, site);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 simt::Site site = simt::Site::current()) {
  const int own = static_cast<int>(simt::executor::lane()), to = own - static_cast<int>(delta);
  return ::__shfl_sync(mask, value, to >= own / width * width ? to : own, site);
}

// The lanes of the mask whose predicate is true.
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              simt::Site site = simt::Site::current()) {
  unsigned lanes = 0;
  for (int lane = 0; lane < warpSize; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    lanes |= (::__shfl_sync(mask, predicate, lane, site) != 0 ? 1U : 0U) << lane;
  }
  return lanes;
}
inline int __any_sync(unsigned mask, int predicate, simt::Site site = simt::Site::current()) {
  return __ballot_sync(mask, predicate, site) != 0;
}
inline int __all_sync(unsigned mask, int predicate, simt::Site site = simt::Site::current()) {
  return __ballot_sync(mask, predicate, site) == mask;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return std::countl_zero(static_cast<unsigned>(bits)); }

// A fence orders blocks only together with atomic operations: communication between blocks without
// them is a race.
inline void __threadfence() { simt::executor::thread_fence(); }
inline void __threadfence_block() {}
inline void __threadfence_system() { __threadfence(); }

}  // namespace tilegate::cuda_names

namespace tilegate::plain {

template <typename T, typename Change>
T update(T* data, Change change, const simt::Site& site) {
  T before, after;
  simt::executor::atomic_load(data, &before, sizeof(T), site);
  after = change(before);
  simt::executor::atomic_store(data, &after, sizeof(T));
  return before;
}

}  // namespace tilegate::plain

namespace tilegate::cuda_names {

#define TILEGATE_ATOMIC(name, after)                                                        \
  template <typename T>                                                                     \
  T name(T* data, std::type_identity_t<T> value, simt::Site site = simt::Site::current()) { \
    return plain::update(data, [&](T before) { return static_cast<T>(after); }, site);      \
  }
TILEGATE_ATOMIC(atomicAdd, before + value)
TILEGATE_ATOMIC(atomicSub, before - value)
TILEGATE_ATOMIC(atomicMax, before < value ? value : before)
TILEGATE_ATOMIC(atomicMin, value < before ? value : before)
TILEGATE_ATOMIC(atomicExch, value)
TILEGATE_ATOMIC(atomicAnd, before& value)
TILEGATE_ATOMIC(atomicOr, before | value)
TILEGATE_ATOMIC(atomicXor, before ^ value)
TILEGATE_ATOMIC(atomicInc, before >= value ? 0 : before + 1)
TILEGATE_ATOMIC(atomicDec, before == 0 || before > value ? value : before - 1)

template <typename T>
T atomicCAS(T* data, std::type_identity_t<T> compare, std::type_identity_t<T> value,
            simt::Site site = simt::Site::current()) {
  return plain::update(data, [&](T before) { return before == compare ? value : before; }, site);
}

}  // namespace tilegate::cuda_names

namespace tilegate::plain {

// The first error of the launches since status_of() began; null outside of it.
inline constinit thread_local Status* launch_status = nullptr;

// `<<<grid, block, shared_bytes, stream>>>`.
class Launch {
 public:
  Launch(dim3 grid, dim3 block, std::size_t shared_bytes = 0, Stream stream = nullptr)
      : grid_(grid), block_(block), shared_bytes_(shared_bytes), stream_(stream) {}

  template <typename Kernel, typename... Args>
  void operator()(const char* name, Kernel kernel, Args... args) const {
    const device::LaunchConfig config{.kernel = name,
                                      .blocks = grid_.x,
                                      .threads_x = block_.x,
                                      .threads_y = block_.y,
                                      .shared_bytes = shared_bytes_,
                                      .adds_to_c = true,
                                      .blocks_y = grid_.y,
                                      .blocks_z = grid_.z,
                                      .threads_z = block_.z,
                                      .has_shared_variables = true};
    const auto thread_body = [&] { kernel(args...); };
    Status status = simt::executor::run(config, stream_, std::cref(thread_body));
    if (launch_status != nullptr && launch_status->ok()) *launch_status = std::move(status);
  }

 private:
  dim3 grid_, block_;
  std::size_t shared_bytes_;
  Stream stream_;
};

// Calls `launch_all`, which launches kernels; returns their first error.
template <typename LaunchAll>
Status status_of(LaunchAll launch_all) {
  Status status;
  launch_status = &status;
  launch_all();
  launch_status = nullptr;
  return status;
}

// The __shared__ variable of one declaration. `Tag` distinguishes declarations, and instances of a
// template.
template <typename T, std::size_t kAlignment, typename Tag>
T& shared(Tag /*tag*/, const char* name) {
  static_assert(std::is_trivially_destructible_v<T>, "a __shared__ variable is not constructed");
  static constexpr char kKey = 0;
  return *reinterpret_cast<T*>(
      simt::executor::shared_variable(&kKey, name, sizeof(T), std::max(kAlignment, alignof(T))));
}

template <typename T>
T& dynamic_shared() {
  return *reinterpret_cast<T*>(simt::executor::shared_begin());
}

// An asynchronous copy of `bytes` bytes by one thread.
TILEGATE_INLINE void copy_piece(void* to, const void* from, std::size_t bytes, bool zeros) {
  if (bytes == 16) {
    device::copy_async<16>(to, from, !zeros);
  } else if (bytes == 8) {
    device::copy_async<8>(to, from, !zeros);
  } else if (bytes == 4) {
    device::copy_async<4>(to, from, !zeros);
  } else {
    simt::executor::fail_copy(bytes);
  }
}

// Functions for PTX that translate.py has parsed; see ptx.py. Addresses of shared memory are
// offsets from its beginning, as __cvta_generic_to_shared returns them.
namespace ptx {

inline std::byte* shared(std::uint64_t address) { return simt::executor::shared_begin() + address; }

// `bytes`: how many are copied from `gmem`; the rest becomes zeros.
template <int kBytes>
TILEGATE_INLINE void cp_async(std::uint64_t smem, std::uint64_t gmem, int bytes = kBytes) {
  if (bytes != 0 && bytes != kBytes) simt::executor::fail_copy(static_cast<std::size_t>(bytes));
  device::copy_async<kBytes>(shared(smem), reinterpret_cast<const void*>(gmem), bytes != 0);
}

// An operand as an address.
template <typename T>
TILEGATE_INLINE std::uint64_t address(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

template <typename T>
TILEGATE_INLINE T load(const void* from) {
  return *static_cast<const T*>(from);
}
template <typename T>
TILEGATE_INLINE void store(void* to, T value) {
  *static_cast<T*>(to) = value;
}
template <typename To, typename From>
TILEGATE_INLINE void set(To& to, From value) {
  if constexpr (sizeof(To) == sizeof(From) &&
                std::is_floating_point_v<To> != std::is_floating_point_v<From>) {
    to = std::bit_cast<To>(value);
  } else {
    to = (To)value;
  }
}

}  // namespace ptx
}  // namespace tilegate::plain

inline cudaError_t tilegate::cuda_names::cudaGetLastError() {
  const bool ok = tilegate::plain::launch_status == nullptr || tilegate::plain::launch_status->ok();
  return ok ? cudaSuccess : cudaErrorUnknown;
}
