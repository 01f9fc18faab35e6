// Kernels that break the contract of a call, or that race in global memory, and do no harm to the
// result. One thread per element of C, in blocks of a row.
#include <cstdint>

#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

#include "planted.hpp"

namespace tilegate::planted {
namespace {

enum class Fault {
  kNone,
  kLoadsPaddingOfA,
  kLoadsPaddingOfB,
  kLoadsVectorOverEndOfRow,
  kLoadsAfterA,
  kLoadsAAtAlphaZero,
  kRewritesA,
  kRewritesAByBulkStore,
  kLoadsCAtBetaZero,
  kRewritesPaddingOfC,
  kStoresPaddingOfC,
  kStoresTwice,
  kStoresRowOfNextBlock,
  kLeavesElement,
  kStoresBeforeC,
  kLoadsBetweenMatrices,
  kDoesNotWait,        // for the launch before, which this one overlaps
  kOneThreadWaits,     // and no barrier tells the others
  kStoresTwiceAtOnce,  // the first block, before any barrier
};

struct Storage {
  alignas(16) float words[4];
};

__device__ void store_in_bulk(float* to, const float* from) {
  auto& words = device::shared_storage<Storage>().words;
  for (int i = 0; i < 4; ++i) words[i] = from[i];
  device::fence_async_proxy();
  device::store_bulk(to, words, sizeof(words));
  device::store_commit();
  device::store_wait<0>();
}

// A load whose value goes nowhere, but which the compiler may not leave out.
__device__ void load_only(const float* p) {
  static_cast<void>(*const_cast<const volatile float*>(p));
}

template <Fault kFault>
__global__ void multiply(KernelArgs args) {
  constexpr bool kAllWait = kFault == Fault::kStoresTwiceAtOnce;
  if (kFault != Fault::kDoesNotWait && (kAllWait || threadIdx.x == 0)) {
    device::wait_for_previous_kernel();
  }
  if (kFault != Fault::kOneThreadWaits && !kAllWait) __syncthreads();  // it may access memory

  const std::int64_t index = blockIdx.x / args.shape.m;
  const std::int64_t row = blockIdx.x % args.shape.m;
  const std::int64_t col = threadIdx.x;
  const bool is_last = index == 0 && row == args.shape.m - 1 && col == args.shape.n - 1;
  const bool is_first = index == 0 && row == 0 && col == 0;
  const float* const a = args.a + index * args.stride_a + row * args.lda;
  const float* const b = args.b + index * args.stride_b + col;
  float* const c = args.c + index * args.stride_c + row * args.ldc + col;
  if (kFault == Fault::kLoadsPaddingOfA && row == 1) load_only(a + args.shape.k);
  if (kFault == Fault::kLoadsPaddingOfB && is_first) load_only(args.b + 2 * args.ldb - 1);
  if (kFault == Fault::kLoadsVectorOverEndOfRow && is_first) {
    static_cast<void>(device::load_vector<float4>(args.b + 4));
  }
  if (kFault == Fault::kLoadsAfterA && is_last) load_only(a + args.shape.k + 1);
  if (kFault == Fault::kLoadsBetweenMatrices && is_last) load_only(a + args.lda);
  if (kFault == Fault::kLoadsAAtAlphaZero && is_first) load_only(a);
  if (kFault == Fault::kRewritesA && is_first) {
    *const_cast<volatile float*>(a) = *const_cast<const volatile float*>(a);
  }
  if (kFault == Fault::kRewritesAByBulkStore && is_first) {
    store_in_bulk(const_cast<float*>(a), args.b);
  }
  if (kFault == Fault::kLoadsCAtBetaZero && is_last) load_only(c);
  if (kFault == Fault::kLeavesElement && is_last) return;

  float sum = 0.0F;
  for (std::int64_t k = 0; k < args.shape.k; ++k) sum += a[k] * b[k * args.ldb];
  const float result = args.beta == 0.0F ? args.alpha * sum : args.alpha * sum + args.beta * *c;
  volatile float* const to = c;
  *to = result;
  if (kFault == Fault::kStoresTwice && is_last) *to = result;
  if (kFault == Fault::kStoresTwiceAtOnce && is_first) *to = result;
  if (kFault == Fault::kStoresPaddingOfC && row == 1 && col == args.shape.n - 1) to[1] = 0.0F;
  if (kFault == Fault::kRewritesPaddingOfC && row == 1 && col == args.shape.n - 1) to[1] = to[1];
  if (kFault == Fault::kStoresRowOfNextBlock && row == 0) to[args.ldc] = 0.0F;
  if (kFault == Fault::kStoresBeforeC && is_first) to[-2] = 0.0F;
}

template <Fault kFault>
Status enqueue(const KernelArgs& args, Stream stream) {
  const device::LaunchConfig config{.kernel = "planted",
                                    .blocks = args.batch * args.shape.m,
                                    .threads_x = static_cast<unsigned>(args.shape.n),
                                    .shared_bytes = sizeof(Storage),
                                    .overlaps_previous = true};
  return device::launch(config, stream, multiply<kFault>, args);
}

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

Problem padded(float alpha = 1.0F, float beta = 1.0F) {
  Problem problem = Problem::dense({4, 6, 3});
  problem.lda = 5;
  problem.ldb = problem.ldc = 8;
  problem.alpha = alpha;
  problem.beta = beta;
  return problem;
}

// Two matrices each; a row lies between two of A.
Problem batched() {
  Problem problem = padded();
  problem.batch = 2;
  problem.stride_a = 5 * problem.lda;
  problem.stride_b = 3 * problem.ldb;
  problem.stride_c = 4 * problem.ldc;
  return problem;
}

// Both products have one A.
Problem shared() {
  Problem problem = batched();
  problem.stride_a = 0;
  return problem;
}

// The rows of two matrices of A lie in turn.
Problem interleaved() {
  Problem problem = batched();
  problem.stride_a = 4;
  problem.lda = 8;
  return problem;
}

}  // namespace

#define PLANT(fault, problem, message) \
  { &(#fault)[1], problem, enqueue<Fault::fault>, enqueue<Fault::kNone>, message }
#define PLANT_THREE(fault, message)                               \
  {                                                               \
    &(#fault)[1], padded(), enqueue_three<WorkspaceFault::fault>, \
        enqueue_three<WorkspaceFault::kNone>, message             \
  }

std::span<const PlantedCall> planted_calls() {
  static const PlantedCall kCalls[] = {
      PLANT(kLoadsPaddingOfA, padded(),
            "block 1, .* load of the padding of a after row 1, column 3 of 3, at .*planted_calls"),
      PLANT(kLoadsPaddingOfB, padded(), "load of the padding of b after row 1, column 7 of 6, at"),
      PLANT(kLoadsVectorOverEndOfRow, padded(),
            "load of the padding of b after row 0, column 6 of 6, at"),
      PLANT(kLoadsAfterA, padded(),
            "load of memory outside every operand, 2 elements after the last of a, at"),
      PLANT(kLoadsAAtAlphaZero, padded(0, 1), "load of a\\(0, 0\\), although alpha or K is 0, at"),
      PLANT(kRewritesA, padded(), "store to a\\(0, 0\\), an input, at"),
      PLANT(kRewritesAByBulkStore, padded(), "store to a\\(0, 0\\), an input, at .*planted_calls"),
      PLANT(kLoadsCAtBetaZero, padded(1, 0), "load of c\\(3, 5\\), although beta is 0, at"),
      PLANT(kRewritesPaddingOfC, padded(), "load of the padding of c after row 1, column 6 of 6"),
      PLANT(kStoresPaddingOfC, padded(), "store to the padding of c after row 1, column 6 of 6"),
      PLANT(kStoresTwice, padded(),
            "second store to c\\(3, 5\\), at .*; block 3, thread \\(5,0,0\\) stored it, at"),
      PLANT(kStoresTwiceAtOnce, padded(), "second store to c\\(0, 0\\), at"),
      PLANT(kStoresRowOfNextBlock, padded(),
            "block [01], .* (second store to|race at) c\\(1, \\d\\).*, at .*; block [01], thread"),
      PLANT(kLeavesElement, padded(), "^c\\(3, 5\\) was never stored"),
      PLANT(kStoresBeforeC, padded(),
            "store to memory outside every operand, 2 elements before the first of c, at"),
      PLANT(kLoadsPaddingOfA, batched(),
            "load of the padding of a\\[[01]\\] after row 1, column 3 of 3"),
      PLANT(kLoadsPaddingOfA, shared(), "load of the padding of a after row 1, column 3 of 3"),
      PLANT(kLoadsBetweenMatrices, batched(), "load of what lies between two matrices of a, at"),
      PLANT(kStoresTwice, batched(), "second store to c\\[0\\]\\(3, 5\\), at"),
      PLANT(kLoadsPaddingOfA, interleaved(),
            "load of the padding of a\\[[01]\\] after row [01], column \\d of 3"),
      PLANT(kDoesNotWait, padded(),
            "load of a\\(\\d, 0\\) before wait_for_previous_kernel\\(\\), at .*planted_calls"),
      PLANT(kOneThreadWaits, padded(),
            "load of a\\(\\d, 0\\) before wait_for_previous_kernel\\(\\), at .*planted_calls"),
      PLANT_THREE(kLoadsUnwritten,
                  "load of element 3 of the workspace, which no kernel of the call has stored, at"),
      PLANT_THREE(
          kLoadsOfOtherBlock,
          "race at element \\d+ of the workspace: this thread (loads|stores) it, at .*; block "
          "\\d, .* (stored|loaded) it, at .*; nothing orders the blocks of a launch"),
      PLANT_THREE(
          kStoresForAllBlocks,
          "race at element 0 of the workspace: this thread (stores|loads) it, at .*; block \\d, .* "
          "nothing orders the blocks"),
      PLANT_THREE(kStoresAfterLoads,
                  "race at element 0 of the workspace: this thread (stores|loads) it, at .*; block "
                  "\\d, thread \\(0,0,0\\) (loaded|stored) it, .* nothing orders the blocks"),
      PLANT_THREE(kNoBarrier, "race at element \\d+ of the workspace: .*; no barrier between"),
      PLANT_THREE(kStoresAfterTwoLoads,
                  "race at element \\d+ of the workspace: .*; no barrier between"),
      PLANT_THREE(kOtherStream, "planted: launched on another stream than its call"),
      PLANT_THREE(
          kStoresPastEnd,
          "store to memory outside every operand, 1 elements after the last of the workspace"),
  };
  return kCalls;
}

}  // namespace tilegate::planted
