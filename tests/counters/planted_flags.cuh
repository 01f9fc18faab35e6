// Three kernels of a call; in the second each block waits for the one before, by a flag.
#pragma once

#include <tilegate/device/flag.cuh>

#include "planted_operands.cuh"

namespace tilegate::planted::calls {

enum class FlagFault {
  kNone,
  kLeavesFlag,   // as memory had it
  kNeverRaises,  // the flag of the first block
  kDoesNotWaitForFlag,
  kStoresAfterRaise,  // what the next block loads
  kRaisesForOthers,   // threads that it has not met
};

constexpr unsigned kWordsOfBlock = 2;  // in the workspace; then come the flags

inline __device__ unsigned* flags_of(const KernelArgs& args) {
  return static_cast<unsigned*>(args.workspace) + args.shape.m * kWordsOfBlock;
}

template <FlagFault kFault>
__global__ void lower_flags(KernelArgs args) {
  if (kFault == FlagFault::kLeavesFlag && blockIdx.x == 1) return;
  if (threadIdx.x == 0) flags_of(args)[blockIdx.x] = 0;
}

template <FlagFault kFault>
__global__ void wait_in_turn(KernelArgs args) {
  auto* const words = static_cast<volatile float*>(args.workspace) + blockIdx.x * kWordsOfBlock;
  unsigned* const flag = flags_of(args) + blockIdx.x;
  if (threadIdx.x < kWordsOfBlock) words[threadIdx.x] = 1.0F;
  if (kFault != FlagFault::kRaisesForOthers) __syncthreads();  // the block's words are there
  if (threadIdx.x != 0) return;
  if (kFault != FlagFault::kNeverRaises || blockIdx.x != 0) device::raise_flag(flag);
  if (kFault == FlagFault::kStoresAfterRaise) words[1] = 2.0F;
  if (blockIdx.x == 0) return;
  if (kFault != FlagFault::kDoesNotWaitForFlag) device::wait_for_flag(flag - 1);
  static_cast<void>(*(words - 1));  // the last of the block before
}

template <FlagFault kFault>
Status enqueue_flags(const KernelArgs& args, Stream stream) {
  const device::LaunchConfig config{.kernel = "planted",
                                    .blocks = args.shape.m,
                                    .threads_x = static_cast<unsigned>(args.shape.n)};
  if (Status s = device::launch(config, stream, lower_flags<kFault>, args); !s.ok()) return s;
  if (Status s = device::launch_in_order(config, stream, wait_in_turn<kFault>, args); !s.ok()) {
    return s;
  }
  return device::launch(config, stream, multiply<Fault::kNone>, args);
}

}  // namespace tilegate::planted::calls
