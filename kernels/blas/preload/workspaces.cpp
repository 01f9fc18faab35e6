#include "workspaces.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace tilegate::preload {
namespace {

struct Block {
  void* memory = nullptr;
  std::size_t bytes = 0;
  int device = -1;
};

// During its lifetime this thread may allocate although a stream is capturing.
class AllowDuringCapture {
 public:
  AllowDuringCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~AllowDuringCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// True on success. Clears an error, so that the program does not see it.
bool succeeded(cudaError_t status) {
  if (status == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

struct Capture {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
};

bool find_capture(cudaStream_t stream, Capture* found) {
#if CUDART_VERSION >= 13000
  return succeeded(cudaStreamGetCaptureInfo(stream, &found->status, &found->id, &found->graph,
                                            nullptr, nullptr, nullptr));
#else
  return succeeded(cudaStreamGetCaptureInfo_v2(stream, &found->status, &found->id, &found->graph,
                                               nullptr, nullptr));
#endif
}

// Identifies a stream: every thread has another cudaStreamPerThread.
const void* identity(cudaStream_t stream) {
  static thread_local char of_thread;
  return stream == cudaStreamPerThread ? &of_thread : static_cast<const void*>(stream);
}

class Workspaces {
 public:
  void* get(int device, cudaStream_t stream, std::size_t bytes) {
    Capture capture;
    if (!find_capture(stream, &capture)) return nullptr;
    const std::lock_guard lock(mutex_);
    take_back();
    if (capture.status == cudaStreamCaptureStatusNone) return get_eager(device, stream, bytes);
    if (capture.status != cudaStreamCaptureStatusActive) return nullptr;
    return get_captured(capture, device, stream, bytes);
  }

  std::size_t peak() {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  using CaptureKey = std::pair<unsigned long long, const void*>;

  // Buffers that a graph owns.
  struct Held {
    Workspaces* owner;
    CaptureKey key;
    Block block;
  };

  void count(std::size_t bytes) {
    held_ += bytes;
    peak_ = std::max(peak_, held_);
  }

  void* get_eager(int device, cudaStream_t stream, std::size_t bytes) {
    for (const Block& block : free_) {
      const AllowDuringCapture allow;
      succeeded(cudaFree(block.memory));
      held_ -= block.bytes;
    }
    free_.clear();
    Block& block = eager_[{device, identity(stream)}];
    if (block.bytes >= bytes) return block.memory;
    void* memory = nullptr;
    if (!succeeded(cudaMallocAsync(&memory, bytes, stream))) return nullptr;
    if (block.memory != nullptr) {
      succeeded(cudaFreeAsync(block.memory, stream));
      held_ -= block.bytes;
    }
    block = {memory, bytes, device};
    count(bytes);
    return memory;
  }

  void* get_captured(const Capture& capture, int device, cudaStream_t stream, std::size_t bytes) {
    const CaptureKey key{capture.id, identity(stream)};
    const auto known = captured_.find(key);
    if (known != captured_.end() && known->second.bytes >= bytes) return known->second.memory;
    const Block block = take_free_or_allocate(device, bytes);
    if (block.memory == nullptr) return nullptr;
    auto* held = new Held{this, key, block};
    cudaUserObject_t object = nullptr;
    if (!succeeded(cudaUserObjectCreate(&object, held, &Workspaces::on_destroyed, 1,
                                        cudaUserObjectNoDestructorSync))) {
      free_.push_back(block);
      delete held;
      return nullptr;
    }
    if (!succeeded(cudaGraphRetainUserObject(capture.graph, object, 1, cudaGraphUserObjectMove))) {
      succeeded(cudaUserObjectRelease(object, 1));  // calls on_destroyed
      return nullptr;
    }
    captured_[key] = block;
    return block.memory;
  }

  Block take_free_or_allocate(int device, std::size_t bytes) {
    const auto fits = std::ranges::find_if(
        free_, [&](const Block& block) { return block.device == device && block.bytes >= bytes; });
    if (fits != free_.end()) {
      const Block block = *fits;
      free_.erase(fits);
      return block;
    }
    const AllowDuringCapture allow;
    void* memory = nullptr;
    if (!succeeded(cudaMalloc(&memory, bytes))) return {};
    count(bytes);
    return {memory, bytes, device};
  }

  // Called by a thread of CUDA, which must not call CUDA, nor wait for a thread that does.
  static void CUDART_CB on_destroyed(void* data) {
    auto* held = static_cast<Held*>(data);
    const std::lock_guard lock(held->owner->returned_mutex_);
    held->owner->returned_.push_back(held);
  }

  void take_back() {
    std::vector<Held*> returned;
    {
      const std::lock_guard lock(returned_mutex_);
      returned.swap(returned_);
    }
    for (Held* held : returned) {
      const auto known = captured_.find(held->key);
      if (known != captured_.end() && known->second.memory == held->block.memory) {
        captured_.erase(known);
      }
      free_.push_back(held->block);
      delete held;
    }
  }

  std::mutex mutex_;
  std::map<std::pair<int, const void*>, Block> eager_;
  std::map<CaptureKey, Block> captured_;
  std::vector<Block> free_;          // blocks of destroyed graphs
  std::size_t held_ = 0, peak_ = 0;  // bytes
  std::mutex returned_mutex_;        // never held while CUDA is called
  std::vector<Held*> returned_;
};

// Never destroyed: threads may outlive main.
Workspaces& workspaces() {
  static auto& all = *new Workspaces;
  return all;
}

}  // namespace

void* get_workspace(int device, cudaStream_t stream, std::size_t bytes) {
  return workspaces().get(device, stream, bytes);
}

std::size_t peak_of_workspaces() { return workspaces().peak(); }

}  // namespace tilegate::preload
