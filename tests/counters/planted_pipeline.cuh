// One warp copies tiles into stages, a warpgroup multiplies them; each fault is one thing done
// wrong.
#pragma once

#include <cstdint>

#include <tilegate/device/async.cuh>

#include "planted.hpp"

namespace tilegate::planted::async {

enum class Fault {
  kNone,
  kReadsBeforeWait,
  kMultipliesBeforeWait,
  kReadsAfterArrival,
  kMultipliesAfterArrival,
  kKeepsParity,
  kExpectsMoreBytes,
  kExpectsFewerBytes,
  kArrivesOnce,
  kArrivesTwice,
  kCopiesTwice,
  kCopiesPastSharedMemory,
  kCopiesMisaligned,
  kCopiesFromOutside,
  kNobodyWaits,
  kMakesBarrierTwice,
  kMakesBarrierForNobody,
  kUsesBarrierUnfenced,
  kUsesBarrierUnsynchronised,
  kOverwritesBarrier,
  kWaitsForParityTwo,
  kLoadsAccumulator,
  kStoresAccumulator,
  kMultipliesBeyondTile,
  kMultipliesBeyondSharedMemory,
  kMultipliesWithoutArrive,
  kMultipliesOtherShape,
  kWarpMultipliesLess,
  kWarpMultipliesOtherTile,
  kLeavesMultiplication,
};

constexpr int kTiles = 4;
constexpr int kStages = 2;
constexpr int kN = 8;
constexpr unsigned kConsumers = 128;
constexpr unsigned kBytesOfA = 64 * 32;
constexpr unsigned kBytesOfB = kN * 32;
constexpr unsigned kPieceOfA = kBytesOfA / 2;

struct Storage {
  alignas(128) std::int8_t a[kStages][kBytesOfA];
  alignas(128) std::int8_t b[kStages][kBytesOfB];
  device::Barrier full[kStages], empty[kStages], unused;
  alignas(128) std::int8_t unwritten[kBytesOfA];
};

template <Fault kFault>
__device__ void make_barriers(Storage& smem) {
  for (int stage = 0; stage < kStages; ++stage) {
    device::barrier_init(smem.full[stage], 1);
    device::barrier_init(smem.empty[stage], kConsumers / 32);
  }
  if (kFault == Fault::kMakesBarrierTwice) device::barrier_init(smem.full[1], 1);
  if (kFault == Fault::kMakesBarrierForNobody) device::barrier_init(smem.unused, 0);
  if (kFault == Fault::kNobodyWaits) device::barrier_init(smem.unused, 1);
  if (kFault != Fault::kUsesBarrierUnfenced) device::barrier_init_fence();
}

template <Fault kFault>
__device__ void produce(Storage& smem, const float* memory) {
  for (int tile = 0; tile < kTiles; ++tile) {
    const int stage = tile % kStages;
    const unsigned round = tile / kStages;
    device::Barrier& full = smem.full[stage];
    device::barrier_wait(smem.empty[stage], kFault == Fault::kKeepsParity ? 1 : (round & 1) ^ 1);
    unsigned expected = kBytesOfA + kBytesOfB;
    if (kFault == Fault::kExpectsMoreBytes) expected += 64;
    if (kFault == Fault::kExpectsFewerBytes) expected -= kBytesOfB;
    const float* from = memory + 16 * tile;
    if (kFault == Fault::kCopiesMisaligned) from += 1;
    if (kFault == Fault::kCopiesFromOutside) from += kWords;
    device::barrier_arrive_expect(full, expected);
    if (kFault == Fault::kArrivesTwice) device::barrier_arrive(full);
    device::copy_bulk(smem.a[stage], from, kPieceOfA, full);
    device::copy_bulk(smem.a[stage] + (kFault == Fault::kCopiesTwice ? 0 : kPieceOfA), from,
                      kPieceOfA, full);
    if (kFault == Fault::kCopiesPastSharedMemory) {
      device::copy_bulk(smem.unwritten + kPieceOfA, from, kPieceOfA + 16, full);
    }
    device::copy_bulk(smem.b[stage], from, kBytesOfB, full);
  }
  if (kFault == Fault::kNobodyWaits) {
    device::barrier_arrive_expect(smem.unused, 64);
    device::copy_bulk(smem.unwritten, memory, 64, smem.unused);
  }
}

template <Fault kFault>
__device__ void consume(Storage& smem, float* memory) {
  std::int32_t acc[kN / 2] = {};
  unsigned sum = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
    const int stage = tile % kStages;
    const bool is_last = tile == kTiles - 1;
    const auto* const words = reinterpret_cast<const unsigned*>(smem.a[stage]) + threadIdx.x;
    const auto arrive = [&] {
      __syncwarp();  // all lanes have read
      const bool once = kFault == Fault::kArrivesOnce && threadIdx.x >= 32;
      if (threadIdx.x % 32 == 0 && !once) device::barrier_arrive(smem.empty[stage]);
    };
    if (kFault == Fault::kOverwritesBarrier && threadIdx.x == 64 && tile == 0) {
      smem.empty[0].state = 0;
    }
    if (kFault == Fault::kReadsBeforeWait) sum += *words;
    if (kFault != Fault::kMultipliesBeforeWait || tile > 0) {
      device::barrier_wait(smem.full[stage],
                           kFault == Fault::kWaitsForParityTwo ? 2 : tile / kStages & 1);
    }
    if (kFault != Fault::kReadsBeforeWait && kFault != Fault::kReadsAfterArrival) sum += *words;
    device::MatrixDescriptor a =
        device::matrix_descriptor(smem.a[stage], device::Swizzle::kNone, kBytesOfA / 2, 128);
    const device::MatrixDescriptor b =
        device::matrix_descriptor(smem.b[stage], device::Swizzle::kNone, kBytesOfB / 2, 128);
    if (kFault == Fault::kMultipliesBeyondTile) {
      a = device::matrix_descriptor(smem.unwritten, device::Swizzle::kNone, kBytesOfA / 2, 128);
    }
    if (kFault == Fault::kMultipliesBeyondSharedMemory) {
      a = device::matrix_descriptor(smem.unwritten, device::Swizzle::kNone, kBytesOfA, 128);
    }
    if (kFault == Fault::kWarpMultipliesOtherTile && threadIdx.x >= 96) {
      a = device::matrix_descriptor(smem.a[stage], device::Swizzle::kNone, kBytesOfA / 2, 0);
    }
    if (kFault != Fault::kMultipliesWithoutArrive || tile == 0) device::warpgroup_arrive();
    if (kFault != Fault::kWarpMultipliesLess || !is_last || threadIdx.x < 96) {
      device::warpgroup_mma_s8<kN>(acc, a, b);
    }
    if (kFault == Fault::kMultipliesOtherShape) {
      auto& wider = reinterpret_cast<std::int32_t (&)[kN]>(acc);
      device::warpgroup_mma_s8<2 * kN>(wider, a, b);
    }
    device::warpgroup_commit();
    if (kFault == Fault::kLoadsAccumulator) sum += static_cast<unsigned>(acc[1]);
    if (kFault == Fault::kStoresAccumulator) acc[2] = static_cast<int>(sum);
    if (kFault == Fault::kLeavesMultiplication && is_last) return;
    if (kFault == Fault::kMultipliesAfterArrival) arrive();
    device::warpgroup_wait<0>();
    device::warpgroup_fence_operand(acc);
    if (kFault != Fault::kMultipliesAfterArrival) arrive();
    if (kFault == Fault::kReadsAfterArrival) {
      device::named_barrier<1>(kConsumers);  // others go on meanwhile
      sum += *words;
    }
  }
  for (const std::int32_t value : acc) sum = 3 * sum + static_cast<unsigned>(value);
  if (blockIdx.x == 0) memory[kResults + threadIdx.x] = static_cast<float>(sum % 4093);
}

template <Fault kFault>
__global__ void pipeline(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  if (threadIdx.x == 0) make_barriers<kFault>(smem);
  if (kFault != Fault::kUsesBarrierUnsynchronised) __syncthreads();  // the barriers are made
  if (threadIdx.x < kConsumers) {
    consume<kFault>(smem, memory);
  } else if (threadIdx.x == kConsumers) {
    produce<kFault>(smem, memory);
  }
}

}  // namespace tilegate::planted::async
