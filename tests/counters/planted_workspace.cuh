// Three kernels of a call that misuse its workspace, or race in it.
#pragma once

#include <cstdint>

#include "planted_operands.cuh"

namespace tilegate::planted::calls {

enum class WorkspaceFault {
  kNone,
  kLoadsUnwritten,
  kLoadsOfOtherBlock,    // what the block before has stored in this launch
  kStoresForAllBlocks,   // one word
  kStoresAfterLoads,     // of all blocks before it
  kNoBarrier,            // between a store and the load by another thread of the block
  kStoresAfterTwoLoads,  // by the threads of a block, of which one stores
  kOtherStream,          // for the last kernel
  kStoresPastEnd,
};

constexpr std::uintptr_t kOtherStream = 64;  // an address that is no stream's

template <WorkspaceFault kFault>
__global__ void fill_workspace(KernelArgs args) {
  const auto n = static_cast<unsigned>(args.shape.n);
  const unsigned i = blockIdx.x * n + threadIdx.x;
  if (kFault == WorkspaceFault::kLoadsUnwritten && i == 3) return;
  static_cast<float*>(args.workspace)[i] = 1.0F;
}

template <WorkspaceFault kFault>
__global__ void use_workspace(KernelArgs args) {
  auto* const words = static_cast<volatile float*>(args.workspace);
  const auto n = static_cast<unsigned>(args.shape.n);
  const unsigned first = blockIdx.x * n;
  const unsigned i = first + threadIdx.x;
  const float one = words[i];
  if (kFault == WorkspaceFault::kStoresAfterLoads) {
    if (threadIdx.x != 0) return;
    const float of_first = words[0];
    if (blockIdx.x == args.shape.m - 1) words[0] = of_first;
    return;
  }
  if (kFault == WorkspaceFault::kStoresAfterTwoLoads) {
    const float of_first = threadIdx.x < 2 ? words[first] : 0.0F;
    if (threadIdx.x == 1) words[first] = of_first;
    return;
  }
  if (kFault == WorkspaceFault::kStoresForAllBlocks && threadIdx.x == 0) words[0] = one;
  if (kFault == WorkspaceFault::kStoresPastEnd && i == 0) words[args.shape.m * n] = one;
  words[i] = one;
  if (kFault == WorkspaceFault::kLoadsOfOtherBlock && blockIdx.x > 0) {
    static_cast<void>(words[i - n]);
  }
  if (kFault != WorkspaceFault::kNoBarrier) __syncthreads();  // neighbours have stored theirs
  static_cast<void>(words[first + (threadIdx.x + 1) % n]);
}

template <WorkspaceFault kFault>
Status enqueue_three(const KernelArgs& args, Stream stream) {
  const device::LaunchConfig config{.kernel = "planted",
                                    .blocks = args.shape.m,
                                    .threads_x = static_cast<unsigned>(args.shape.n)};
  if (Status s = device::launch(config, stream, fill_workspace<kFault>, args); !s.ok()) return s;
  if (Status s = device::launch(config, stream, use_workspace<kFault>, args); !s.ok()) return s;
  const Stream last =
      kFault == WorkspaceFault::kOtherStream ? reinterpret_cast<Stream>(kOtherStream) : stream;
  return device::launch(config, last, multiply<Fault::kNone>, args);
}

}  // namespace tilegate::planted::calls
