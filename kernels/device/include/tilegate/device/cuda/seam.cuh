// The seam on CUDA; see device.cuh.
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
  cudaLaunchConfig_t cuda{};
  cuda.gridDim = dim3(static_cast<unsigned>(config.blocks));
  cuda.blockDim = dim3(config.threads_x, config.threads_y);
  cuda.dynamicSmemBytes = config.shared_bytes;
  cuda.stream = stream;
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
  extern __shared__ __align__(128) unsigned char dynamic_shared_memory[];
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

template <int kBytes>
__device__ void copy_async(float* smem, const float* gmem) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "the sizes that cp.async knows");
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(smem));
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(gmem) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(gmem), "n"(kBytes)
                 : "memory");
  }
#else
  for (int i = 0; i < kBytes / 4; ++i) smem[i] = gmem[i];
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

}  // namespace tilegate::device
