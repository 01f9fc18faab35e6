// A kernel that breaks the contract of its call and does no harm to the result. One thread per
// element of C, in blocks of a row.
#pragma once

#include <cstdint>

#include <tilegate/device/async.cuh>

#include "planted.hpp"

namespace tilegate::planted::calls {

enum class Fault {
  kNone,
  kLoadsPaddingOfA,
  kLoadsPaddingOfB,
  kLoadsVectorOverEndOfRow,
  kLoadsAfterA,
  kLoadsAAtAlphaZero,
  kLoadsBAtAlphaZero,
  kRewritesA,
  kRewritesB,
  kRewritesAByBulkStore,
  kLoadsCAtBetaZero,
  kRewritesPaddingOfC,
  kStoresPaddingOfC,
  kStoresTwice,
  kStoresVectorOverOthers,  // its first element is stored once
  kStoresRowOfNextBlock,
  kLeavesElement,
  kStoresBeforeC,
  kLoadsBetweenMatrices,
  kDoesNotWait,        // but for the first block: for the launch before, which this one overlaps
  kOneThreadWaits,     // and no barrier tells the others
  kStoresTwiceAtOnce,  // the first block, before any barrier
};

struct Storage {
  alignas(16) float words[4];
};

inline __device__ void store_in_bulk(float* to, const float* from) {
  auto& words = device::shared_storage<Storage>().words;
  for (int i = 0; i < 4; ++i) words[i] = from[i];
  device::fence_async_proxy();
  device::store_bulk(to, words, sizeof(words));
  device::store_commit();
  device::store_wait<0>();
}

// A load whose value goes nowhere, but which the compiler may not leave out.
inline __device__ void load_only(const float* p) {
  static_cast<void>(*const_cast<const volatile float*>(p));
}

template <Fault kFault>
__global__ void multiply(KernelArgs args) {
  constexpr bool kAllWait = kFault == Fault::kStoresTwiceAtOnce;
  const bool waits = kFault != Fault::kDoesNotWait || blockIdx.x == 0;
  if (waits && (kAllWait || threadIdx.x == 0)) {
    device::wait_for_previous_kernel();
  }
  if (kFault != Fault::kOneThreadWaits && !kAllWait) {  // tell the others, all of one warp
    blockIdx.x % 2 == 0 ? __syncthreads() : __syncwarp();
  }

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
  if (kFault == Fault::kLoadsBAtAlphaZero && is_first) load_only(b);
  if (kFault == Fault::kRewritesB && is_first) {
    *const_cast<volatile float*>(b) = *const_cast<const volatile float*>(b);
  }
  if (kFault == Fault::kRewritesA && is_first) {
    *const_cast<volatile float*>(a) = *const_cast<const volatile float*>(a);
  }
  if (kFault == Fault::kRewritesAByBulkStore && is_first) {
    store_in_bulk(const_cast<float*>(a), args.b);
  }
  if (kFault == Fault::kLoadsCAtBetaZero && is_last) load_only(c);
  if (kFault == Fault::kLeavesElement && is_last) return;

  if (kFault == Fault::kStoresVectorOverOthers && is_first) {
    return device::store_vector(c, make_float4(0.0F, 0.0F, 0.0F, 0.0F));
  }

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

}  // namespace tilegate::planted::calls
