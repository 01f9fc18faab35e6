// The functions of the CUDA runtime that the preload calls, on host memory.
#include <cstdlib>

#include <cuda_runtime_api.h>

#include "fake.hpp"

namespace {
int capturing = 0, room = 1000000;
}

extern "C" {
void fake_set_capturing(int value) { capturing = value; }
void fake_set_room(int allocations) { room = allocations; }

cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t) {
  *memory = room-- > 0 ? std::malloc(bytes) : nullptr;
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
}
