// device.cuh on CUDA.
#pragma once

#include <string>
#include <utility>

#include <cuda_runtime.h>

#include <tilegate/device.hpp>
#include <tilegate/device/launch_config.hpp>

namespace tilegate::device {

inline Status to_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  return Status::device_error(std::string(what) + ": " + cudaGetErrorString(error));
}

template <typename... Parameters, typename... Args>
Status launch(const LaunchConfig& config, Stream stream, void (*kernel)(Parameters...),
              Args&&... args) {
  if (OnlyLoad::is_active()) {
    cudaFuncAttributes attributes{};
    return to_status(cudaFuncGetAttributes(&attributes, kernel), config.kernel);
  }
  cudaLaunchConfig_t cuda{};
  cuda.gridDim = dim3(static_cast<unsigned>(config.blocks), config.blocks_y, config.blocks_z);
  cuda.blockDim = dim3(config.threads_x, config.threads_y, config.threads_z);
  cuda.dynamicSmemBytes = config.shared_bytes;
  cuda.stream = stream;
  cudaLaunchAttribute attributes[2]{};
  cuda.attrs = attributes;
  if (!StartsAlone::take() && config.overlaps_previous) {
    cudaLaunchAttribute& overlap = attributes[cuda.numAttrs++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  if (config.cluster > 1) {
    cudaLaunchAttribute& cluster = attributes[cuda.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {config.cluster, 1, 1};
  }
  return to_status(cudaLaunchKernelEx(&cuda, kernel, std::forward<Args>(args)...), config.kernel);
}

template <typename Kernel>
Status allow_shared_memory(Kernel* kernel, std::size_t bytes) {
  return to_status(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(bytes)),
                   "shared memory limit");
}

template <typename Kernel>
Status prefer_shared_memory(Kernel* kernel) {
  return to_status(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                        cudaSharedmemCarveoutMaxShared),
                   "shared memory carveout");
}

template <typename T>
__device__ T& shared_storage() {
  // The pattern of the widest swizzle (async.cuh) repeats every 1024 bytes.
  extern __shared__ __align__(1024) unsigned char dynamic_shared_memory[];
  return *reinterpret_cast<T*>(dynamic_shared_memory);
}

template <typename V>
__device__ V load_vector(const float* p) {
  return *reinterpret_cast<const V*>(p);
}

template <typename V>
__device__ void store_vector(float* p, V v) {
  *reinterpret_cast<V*>(p) = v;
}

using SharedAddress = unsigned;

inline __device__ SharedAddress shared_address(const void* smem) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(smem));
}

// No memory clobber: its destination is read only after the wait, which has one. So the compiler
// may move shared loads past it.
template <int kBytes>
__device__ void copy_async(SharedAddress to, const float* gmem, bool inside = true) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "the sizes that cp.async knows");
#if __CUDA_ARCH__ >= 800
  const unsigned from = inside ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(gmem), "r"(from));
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(gmem), "n"(kBytes),
                 "r"(from));
  }
#else
  auto* smem = static_cast<float*>(__cvta_shared_to_generic(to));
  for (int i = 0; i < kBytes / 4; ++i) smem[i] = inside ? gmem[i] : 0.0F;
#endif
}

template <int kBytes>
__device__ void copy_async(float* smem, const float* gmem, bool inside = true) {
  copy_async<kBytes>(shared_address(smem), gmem, inside);
}

inline __device__ void copy_async_part(SharedAddress to, const float* gmem, int words) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(gmem),
               "r"(4 * words));
#else
  auto* smem = static_cast<float*>(__cvta_shared_to_generic(to));
  for (int i = 0; i < 4; ++i) smem[i] = i < words ? gmem[i] : 0.0F;
#endif
}

inline __device__ void copy_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int kPending>
__device__ void copy_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

inline __device__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ptxas (CUDA 13.0) moves an unconditional wait to the front of the kernel, before the pointers are
// computed. So this one has a predicate that depends on them. It is true: blockDim.x is not 0.
template <typename... T>
__device__ void wait_for_previous_kernel(const T*... computed) {
#if __CUDA_ARCH__ >= 900
  asm volatile("{\n.reg .pred any;\nsetp.ne.u64 any, %0, 0;\n@any griddepcontrol.wait;\n}" ::"l"(
                   (reinterpret_cast<std::uintptr_t>(computed) | ... | blockDim.x))
               : "memory");
#endif
}

inline __device__ void launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// CUDA reports cudaErrorAssert from now on, and prints the message.
inline __device__ void fail([[maybe_unused]] const char* message) {
#if defined(__CUDA_ARCH__)
  __assert_fail(message, __FILE__, __LINE__, __func__);
#endif
}

// c[j] += a·b[j], for j in either direction.
template <int kCount>
__device__ __forceinline__ void add_products(float (&c)[kCount], float a, const float (&b)[kCount],
                                             bool ascending) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int j = ascending ? i : kCount - 1 - i;
    c[j] += a * b[j];
  }
}

namespace ordered {

inline __device__ void fma(float& c, float a, float b) {
  asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(c) : "f"(a), "f"(b));
}

// Calls before(i) and then computes product i of c[j] += a·b[j], for j in either direction.
template <int kCount, typename Before>
__device__ __forceinline__ void fma_row(float (&c)[kCount], const float& a,
                                        const float (&b)[kCount], bool ascending, Before before) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int j = ascending ? i : kCount - 1 - i;
    before(i);
    fma(c[j], a, b[j]);
  }
}

// v[0 … 3] ← the vector at `from`.
inline __device__ void load_shared(float* v, SharedAddress from) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
               : "r"(from)
               : "memory");
}

inline __device__ void store_shared(SharedAddress to, float v) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(v) : "memory");
}

inline __device__ void store_shared(SharedAddress to, const float4& v) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v.x), "f"(v.y), "f"(v.z),
               "f"(v.w)
               : "memory");
}

// v ← base[vector], as float4.
inline __device__ void load_global(float4& v, const float* base, unsigned vector) {
  asm volatile(
      "{\n.reg .b64 from;\nmad.wide.u32 from, %4, 16, %5;\n"
      "ld.global.v4.f32 {%0, %1, %2, %3}, [from];\n}"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "r"(vector), "l"(base)
      : "memory");
}

inline __device__ void add(unsigned& value, unsigned increment) {
  asm volatile("add.u32 %0, %0, %1;" : "+r"(value) : "r"(increment));
}

}  // namespace ordered

}  // namespace tilegate::device
