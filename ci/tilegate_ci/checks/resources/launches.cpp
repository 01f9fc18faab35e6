// Prints how a rung launches its kernels: compiled by ci/gate check resources together with the rung's
// own object files, in place of the CUDA runtime. It plans and launches the rung over shapes that
// reach every tile size and both kinds of alignment, and what arrives at the runtime is the launch.
// No GPU.
//
//   launches <compute capability> <multiprocessors>
//
// Prints "requires", the least compute capability and the stage's name; then a line per kernel:
// "kernel", its mangled name, threads, dynamic shared bytes, the stage or variant that launched it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <cuda_runtime_api.h>

#include <tilegate/device/tensor_map.hpp>
#include <tilegate/stage.hpp>

namespace tilegate::TILEGATE_RUNG {
extern const Stage stage;
#if TILEGATE_HAS_VARIANTS
std::span<const Stage* const> variants();
#else
std::span<const Stage* const> variants() { return {}; }
#endif
}  // namespace tilegate::TILEGATE_RUNG

namespace {

std::map<const void*, std::string>& names() {  // filled before main
  static std::map<const void*, std::string> names;
  return names;
}

struct Launch {
  unsigned threads = 0;
  std::size_t shared = 0;
};

std::map<std::tuple<std::string, std::string>, Launch> launches;  // by kernel and stage
std::string current_stage;
tilegate::Device recorder{.ordinal = 0, .is_cuda = true, .name = "recorder"};
cudaLaunchConfig_t pushed{};

cudaError_t record(const void* kernel, dim3 block, std::size_t shared) {
  const auto name = names().find(kernel);
  if (name == names().end()) return cudaErrorInvalidDeviceFunction;
  Launch& largest = launches[{name->second, current_stage}];
  largest.threads = std::max(largest.threads, block.x * block.y * block.z);
  largest.shared = std::max(largest.shared, shared);
  return cudaSuccess;
}

}  // namespace

// What nvcc's own code and the rungs call of the CUDA runtime.
extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  names()[host] = name;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st*) {
  pushed.gridDim = grid;
  pushed.blockDim = block;
  pushed.dynamicSmemBytes = shared;
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void*) {
  *grid = pushed.gridDim;
  *block = pushed.blockDim;
  *shared = pushed.dynamicSmemBytes;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3 block, void**, std::size_t shared,
                               cudaStream_t) {
  return record(reinterpret_cast<const void*>(kernel), block, shared);
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3, dim3 block, void**, std::size_t shared,
                             cudaStream_t) {
  return record(kernel, block, shared);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void**) {
  return record(kernel, config->blockDim, config->dynamicSmemBytes);
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) { return cudaSuccess; }
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaMemsetAsync(void*, int, std::size_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* number) {
  *number = 0;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "not a kernel of this rung"; }

}  // extern "C"

namespace tilegate::device {
const Device& current() { return recorder; }
Status make_tensor_map(const TensorLayout&, TensorMap*) { return {}; }
Status set_tensor_data(void*, TensorMap*) { return {}; }
}  // namespace tilegate::device

namespace {

using tilegate::Plan;
using tilegate::Problem;
using tilegate::Stage;
using tilegate::Status;

constexpr std::int64_t kExtents[] = {1,   3,   16,   64,   100,  128,  256,
                                     512, 768, 1000, 2048, 4096, 65536};
constexpr std::uintptr_t kOperandBytes = 1ULL << 44;
constexpr std::uintptr_t kOperands = 1ULL << 45;  // addresses are never read

float* operand(int index, std::int64_t offset_bytes) {
  return reinterpret_cast<float*>(kOperands + static_cast<std::uintptr_t>(index) * kOperandBytes +
                                  static_cast<std::uintptr_t>(offset_bytes));
}

Status launch(const Stage& stage, const tilegate::Shape& shape, bool aligned) {
  Problem problem = Problem::dense(shape);
  const auto pad = [&](std::int64_t ld) { return (ld + 3) / 4 * 4 + (aligned ? 0 : 1); };
  problem.lda = pad(problem.lda);
  problem.ldb = pad(problem.ldb);
  problem.ldc = pad(problem.ldc);
  const std::int64_t offset = aligned ? 0 : 4;
  problem.offset_bytes = {offset, offset, offset};
  const Plan plan = stage.plan(problem, recorder);
  if (plan.status().code() == Status::Code::kUnsupported) return {};
  return plan.launch({.a = operand(0, offset),
                      .b = operand(1, offset),
                      .c = operand(2, offset),
                      .workspace = operand(3, 0),
                      .workspace_bytes = plan.workspace_bytes()});
}

Status launch_everything(const Stage& stage) {
  current_stage = stage.name;
  if (recorder.compute_capability < stage.requirements.compute_capability) return {};
  if (Status s = stage.prepare(); !s.ok()) return s;
  for (const std::int64_t m : kExtents) {
    for (const std::int64_t n : kExtents) {
      for (const std::int64_t k : kExtents) {
        for (const bool aligned : {true, false}) {
          if (Status s = launch(stage, {m, n, k}, aligned); !s.ok()) return s;
        }
      }
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  recorder.compute_capability = std::atoi(argv[1]);
  recorder.multiprocessors = std::atoi(argv[2]);
  const Stage& rung = tilegate::TILEGATE_RUNG::stage;
  std::vector<const Stage*> stages{&rung};
  const auto variants = tilegate::TILEGATE_RUNG::variants();
  stages.insert(stages.end(), variants.begin(), variants.end());
  for (const Stage* stage : stages) {
    if (Status s = launch_everything(*stage); !s.ok()) {
      std::cerr << stage->name << ": " << s.message() << '\n';
      return 1;
    }
  }
  std::cout << "requires\t" << rung.requirements.compute_capability << '\t' << rung.name << '\n';
  for (const auto& [key, launch] : launches) {
    std::cout << "kernel\t" << std::get<0>(key) << '\t' << launch.threads << '\t' << launch.shared
              << '\t' << std::get<1>(key) << '\n';
  }
  return 0;
}
