// The functions of the CUDA runtime that the preload calls, on host memory.
#include <cstdlib>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "fake.hpp"

namespace {

int room = 1000000, blocks = 0;
unsigned long long captures = 0;
bool is_capturing = false, is_relaxed = false, is_valid = true;
cudaError_t last_error = cudaSuccess;

struct UserObject {
  cudaHostFn_t destroy;
  void* data;
};
std::vector<UserObject> retained;  // by graphs

cudaError_t allocate(void** memory, size_t bytes) {
  *memory = room-- > 0 ? std::malloc(bytes) : nullptr;
  if (*memory == nullptr) return last_error = cudaErrorMemoryAllocation;
  ++blocks;
  return cudaSuccess;
}

cudaError_t release(void* memory) {
  std::free(memory);
  --blocks;
  return cudaSuccess;
}

}  // namespace

extern "C" {
void fake_begin_capture() { is_capturing = true, ++captures; }
void fake_end_capture() { is_capturing = false; }
void fake_invalidate_capture() { is_valid = false; }
void fake_destroy_graphs() {
  for (const UserObject& object : std::exchange(retained, {})) object.destroy(object.data);
}
int fake_blocks() { return blocks; }
void fake_set_room(int allocations) { room = allocations; }

// In a capture it would become a node of the graph.
cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t) {
  return is_capturing ? cudaErrorStreamCaptureUnsupported : allocate(memory, bytes);
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  return is_capturing ? cudaErrorStreamCaptureUnsupported : release(memory);
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return is_capturing && !is_relaxed ? cudaErrorStreamCaptureUnsupported : allocate(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  return is_capturing && !is_relaxed ? cudaErrorStreamCaptureUnsupported : release(memory);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const bool was_relaxed = std::exchange(is_relaxed, *mode == cudaStreamCaptureModeRelaxed);
  *mode = was_relaxed ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeGlobal;
  return cudaSuccess;
}
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*) {
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t**, size_t*) {
#endif
  *status = !is_capturing ? cudaStreamCaptureStatusNone
            : is_valid    ? cudaStreamCaptureStatusActive
                          : cudaStreamCaptureStatusInvalidated;
  *id = captures;
  *graph = nullptr;
  return cudaSuccess;
}
cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy,
                                 unsigned, unsigned) {
  *object = reinterpret_cast<cudaUserObject_t>(new UserObject{destroy, data});
  return cudaSuccess;
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned) {
  auto* found = reinterpret_cast<UserObject*>(object);
  found->destroy(found->data);
  delete found;
  return cudaSuccess;
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, cudaUserObject_t object, unsigned, unsigned) {
  auto* found = reinterpret_cast<UserObject*>(object);
  retained.push_back(*found);
  delete found;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
}
