// Kernels that misuse asynchronous hardware. One warp copies tiles into stages, a warpgroup
// multiplies them; each fault is one thing done wrong.
#include <cstdint>

#include <tilegate/device/async.cuh>

#include "planted.hpp"

namespace tilegate::planted {
namespace {

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
      device::copy_bulk(smem.unwritten + kPieceOfA, from, kBytesOfA, full);
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
      auto& wider = reinterpret_cast<std::int32_t(&)[kN]>(acc);
      device::warpgroup_mma_s8<2 * kN>(wider, a, b);
    }
    device::warpgroup_commit();
    if (kFault == Fault::kLoadsAccumulator) sum += static_cast<unsigned>(acc[1]);
    if (kFault == Fault::kStoresAccumulator) acc[2] = static_cast<int>(sum);
    if (kFault == Fault::kLeavesMultiplication && is_last) return;
    if (kFault == Fault::kMultipliesAfterArrival) arrive();
    device::warpgroup_wait<0>();
    device::warpgroup_results(acc);
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

// Threads store the tiles themselves.
template <bool kFaulty>
__global__ void multiply_stored_tiles(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  auto* const a = reinterpret_cast<float*>(smem.a[0]);
  auto* const b = reinterpret_cast<float*>(smem.b[0]);
  for (unsigned i = threadIdx.x; i < kBytesOfA / 4; i += kConsumers) a[i] = memory[i];
  for (unsigned i = threadIdx.x; i < kBytesOfB / 4; i += kConsumers) b[i] = memory[i];
  if (!kFaulty) device::fence_async_proxy();
  __syncthreads();                           // all is stored
  if (kFaulty) device::fence_async_proxy();  // too late: the stores of the others are not fenced
  std::int32_t acc[kN / 2] = {};
  device::warpgroup_arrive();
  device::warpgroup_mma_s8<kN>(
      acc, device::matrix_descriptor(a, device::Swizzle::kNone, kBytesOfA / 2, 128),
      device::matrix_descriptor(b, device::Swizzle::kNone, kBytesOfB / 2, 128));
  device::warpgroup_commit();
  device::warpgroup_wait<0>();
  memory[kResults + threadIdx.x] = static_cast<float>(acc[0]);
}

// The same with floats, whose lines lie along k, or, transposed, along the rows.
enum class FloatFault { kNone, kUnfenced, kLoadsAccumulator, kMultipliesBeyondTile };

template <FloatFault kFault, bool kTransposed>
__global__ void multiply_floats(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  auto* const a = reinterpret_cast<float*>(smem.a[0]);
  auto* const b = reinterpret_cast<float*>(smem.b[0]);
  for (unsigned i = threadIdx.x; i < kBytesOfA / 4; i += kConsumers) a[i] = memory[i];
  for (unsigned i = threadIdx.x; i < kBytesOfB / 4; i += kConsumers) b[i] = memory[i];
  if (kFault != FloatFault::kUnfenced) device::fence_async_proxy();
  __syncthreads();  // all is stored
  float acc[kN / 2] = {};
  float sum = 0.0F;
  const unsigned leading = kBytesOfA / (kFault == FloatFault::kMultipliesBeyondTile ? 1 : 2);
  const auto tile_of_a = device::matrix_descriptor(a, device::Swizzle::kNone, leading, 128);
  const auto tile_of_b = device::matrix_descriptor(b, device::Swizzle::kNone, kBytesOfB / 2, 128);
  device::warpgroup_arrive();
  if constexpr (kTransposed) {
    constexpr auto kMN = device::Major::kMN;
    device::warpgroup_mma_f16<kN, kMN, kMN>(acc, tile_of_a, tile_of_b);
  } else {
    device::warpgroup_mma_tf32<kN>(acc, tile_of_a, tile_of_b);
  }
  device::warpgroup_commit();
  if (kFault == FloatFault::kLoadsAccumulator) sum = acc[1];
  device::warpgroup_wait<0>();
  memory[kResults + threadIdx.x] = sum + acc[1];
}

enum class StoreFault {
  kNone,
  kUnfenced,
  kOverwritesWhileStoring,
  kLeavesStore,
  kStoresMisaligned,
  kCopiesMisalignedBox,
  kBeginsBetweenPieces,
  kNamesTooFewCoordinates,
  kStoresBeforeTensor,
  kStoresPastEnd,
};

// A box comes from memory by a tensor copy, and goes to the results by a store.
template <StoreFault kFault>
__global__ void pass_through(float* memory, const __grid_constant__ device::TensorMap map) {
  auto& smem = device::shared_storage<Storage>();
  auto* const words = reinterpret_cast<float*>(smem.a[0]);
  if (threadIdx.x == 0) {
    device::barrier_init(smem.full[0], 1);
    device::barrier_init_fence();
    device::barrier_arrive_expect(smem.full[0], 512);
    float* const to = words + (kFault == StoreFault::kCopiesMisalignedBox ? 4 : 0);
    if (kFault == StoreFault::kNamesTooFewCoordinates) {
      device::copy_tensor(to, map, 0, 0, smem.full[0]);
    } else {
      device::copy_tensor(to, map, kFault == StoreFault::kBeginsBetweenPieces ? 2 : 0, 0, 0,
                          smem.full[0]);
    }
  }
  __syncthreads();  // the barrier is made
  device::barrier_wait(smem.full[0], 0);
  words[threadIdx.x] += 1.0F;
  if (kFault != StoreFault::kUnfenced) device::fence_async_proxy();
  __syncthreads();  // all have stored
  if (threadIdx.x == 0) {
    float* to = memory + kResults + (kFault == StoreFault::kStoresMisaligned ? 1 : 0);
    if (kFault == StoreFault::kStoresPastEnd) to = memory + kWords - 124;
    device::store_bulk(to, words, 512);
    // Two of four rows are past the end of the tensor: nothing is stored there.
    device::store_tensor(map, 0, kFault == StoreFault::kStoresBeforeTensor ? -4 : 2, 0, words);
    device::store_commit();
    if (kFault == StoreFault::kOverwritesWhileStoring) {
      device::store_wait<1>();  // for all but this one
    } else if (kFault != StoreFault::kLeavesStore) {
      device::store_wait<0>();
    }
  }
  if (kFault != StoreFault::kLeavesStore) {
    __syncthreads();  // the store has read
    words[threadIdx.x] = 0.0F;
  }
  if (kFault == StoreFault::kOverwritesWhileStoring && threadIdx.x == 0) device::store_wait<0>();
}

// The last thread, which runs first in the reverse order, has a store read what the others write.
template <bool kFaulty>
__global__ void store_of_others(float* memory) {
  auto& words = *reinterpret_cast<float(*)[kConsumers]>(&device::shared_storage<Storage>());
  words[threadIdx.x] = memory[threadIdx.x];
  device::fence_async_proxy();
  __syncthreads();  // all have written
  if (threadIdx.x == kConsumers - 1) {
    device::store_bulk(memory + kResults, words + 4, 256);
    device::store_commit();
    device::store_wait<0>();
  }
  if (!kFaulty) __syncthreads();  // the store has read
  words[threadIdx.x] = 0.0F;
}

// A store reads what a thread's own copy brings.
template <bool kFaulty>
__global__ void store_of_copy(float* memory) {
  auto& words = *reinterpret_cast<float(*)[kConsumers]>(&device::shared_storage<Storage>());
  if (threadIdx.x != 0) return;
  device::copy_async<16>(words + 4, memory);
  device::copy_async_commit();
  if (!kFaulty) device::copy_async_wait<0>();
  device::fence_async_proxy();
  device::store_bulk(memory + kResults, words + 4, 16);
  device::store_commit();
  device::store_wait<0>();
  if (kFaulty) device::copy_async_wait<0>();
}

template <bool kFaulty>
__global__ void store_of_bulk_copy(float* memory) {
  auto& smem = device::shared_storage<Storage>();
  if (threadIdx.x != 0) return;
  device::barrier_init(smem.full[0], 1);
  device::barrier_init_fence();
  device::barrier_arrive_expect(smem.full[0], 16);
  device::copy_bulk(smem.a[0] + 16, memory, 16, smem.full[0]);
  if (!kFaulty) device::barrier_wait(smem.full[0], 0);
  device::store_bulk(memory + kResults, smem.a[0] + 16, 16);
  device::store_commit();
  device::store_wait<0>();
  if (kFaulty) device::barrier_wait(smem.full[0], 0);
}

template <StoreFault kFault>
Status launch_store(float* memory) {
  device::TensorMap map;
  const device::TensorLayout layout{.data = memory,
                                    .dimensions = 3,
                                    .size = {32, 4, 2},
                                    .stride_bytes = {0, 128, 512},
                                    .box = {32, 4, 1}};
  if (Status s = device::make_tensor_map(layout, &map); !s.ok()) return s;
  const device::LaunchConfig config{
      .kernel = "planted", .blocks = 1, .threads_x = kConsumers, .shared_bytes = sizeof(Storage)};
  return device::launch(config, nullptr, pass_through<kFault>, memory, map);
}

// Two warps exchange words; the others go their own way.
template <bool kRace, bool kDeadlock, bool kOtherCount>
__global__ void exchange(float* memory) {
  auto& words = *reinterpret_cast<float(*)[64]>(&device::shared_storage<Storage>());
  if (threadIdx.x >= 64) return;
  words[threadIdx.x] = memory[threadIdx.x];
  if (kDeadlock && threadIdx.x >= 32) {
    device::named_barrier<2>(64);
  } else if (kOtherCount && threadIdx.x >= 32) {
    device::named_barrier<1>(96);
  } else if (!kRace) {
    device::named_barrier<1>(64);
  }
  if (blockIdx.x == 0) memory[kResults + threadIdx.x] = words[63 - threadIdx.x];
}

// Two warps wait for each other before one of them overwrites what all four have read.
template <bool kFaulty>
__global__ void write_what_others_read(float* memory) {
  auto& word = reinterpret_cast<float*>(&device::shared_storage<Storage>())[1];
  if (threadIdx.x == 0) word = 1.0F;
  device::named_barrier<1>(kConsumers);
  memory[kResults + threadIdx.x] = word;
  if (threadIdx.x >= 64) device::named_barrier<2>(64);
  if (!kFaulty) device::named_barrier<1>(kConsumers);
  if (threadIdx.x == kConsumers - 1) word = 2.0F;
}

template <bool kFaulty>
constexpr auto kRacingExchange = exchange<kFaulty, false, false>;
template <bool kFaulty>
constexpr auto kStuckExchange = exchange<false, kFaulty, false>;
template <bool kFaulty>
constexpr auto kUnequalExchange = exchange<false, false, kFaulty>;

// What a thread does is counted in 16 bits between two block barriers.
template <bool kFaulty>
__global__ void fence_often(float* memory) {
  for (int i = 0; i < (kFaulty ? 65535 : 65534); ++i) {
    if (threadIdx.x == 0) device::fence_async_proxy();
  }
  memory[kResults + threadIdx.x] = 1.0F;
}

template <auto kKernel>
Status launch(float* memory) {
  const device::LaunchConfig config{.kernel = "planted",
                                    .blocks = 2,
                                    .threads_x = kConsumers + 32,
                                    .shared_bytes = sizeof(Storage)};
  return device::launch(config, nullptr, kKernel, memory);
}

template <auto kKernel>
Status launch_warpgroup(float* memory) {
  const device::LaunchConfig config{
      .kernel = "planted", .blocks = 1, .threads_x = kConsumers, .shared_bytes = sizeof(Storage)};
  return device::launch(config, nullptr, kKernel, memory);
}

// A warp of its own is no warpgroup.
Status launch_warp(float* memory) {
  const device::LaunchConfig config{
      .kernel = "planted", .blocks = 1, .threads_x = 96, .shared_bytes = sizeof(Storage)};
  return device::launch(config, nullptr, multiply_stored_tiles<false>, memory);
}

#define PLANT(fault, shows, message) \
  { &(#fault)[1], launch<pipeline<Fault::fault>>, launch<pipeline<Fault::kNone>>, message, shows }

#define PLANT_STORE(fault, shows, message) \
  { &(#fault)[1], launch_store<StoreFault::fault>, launch_store<StoreFault::kNone>, message, shows }

#define PLANT_FLOAT(fault, shows, message)                                            \
  {"Floats_" #fault, launch_warpgroup<multiply_floats<FloatFault::fault, false>>,     \
   launch_warpgroup<multiply_floats<FloatFault::kNone, false>>, message, shows},      \
  {                                                                                   \
    "Transposed_" #fault, launch_warpgroup<multiply_floats<FloatFault::fault, true>>, \
        launch_warpgroup<multiply_floats<FloatFault::kNone, true>>, message, shows    \
  }

// Where a plain build shows it.
constexpr auto kStops = Shows::kStops;
constexpr auto kForward = Shows::kWrongForward;
constexpr auto kReverse = Shows::kWrongReverse;
constexpr auto kNowhere = Shows::kNowhere;

constexpr Plant kPlants[] = {
    PLANT(
        kReadsBeforeWait, kForward,
        "(read of byte \\d+ of shared memory at .*planted_async\\.cu:\\d+ before the barrier_wait "
        "for the bulk copy that thread \\(128,0,0\\) started at|race at|no thread of the block)"),
    PLANT(kMultipliesBeforeWait, kForward,
          "(before the barrier_wait for the bulk copy that thread \\(128,0,0\\) started|"
          "the warpgroup_mma of warpgroup 0 at .* reads byte 0 of shared memory, which nothing in "
          "the "
          "block has "
          "written)"),
    PLANT(kReadsAfterArrival, kReverse,
          "race at byte \\d+ of shared memory: this thread writes at .*; thread .* read at .*; no "
          "barrier between|read of byte \\d+ of shared memory at .* before the barrier_wait"),
    PLANT(
        kMultipliesAfterArrival, kReverse,
        "write of byte \\d+ of shared memory at .*, which the warpgroup_mma of warpgroup \\d at .* "
        "still reads: its wait does not come before"),
    PLANT(
        kKeepsParity, kStops,
        "thread \\(128,0,0\\): wait on the wrong phase: barrier_wait at .* for parity 1 is for "
        "phase -1 of the barrier at byte \\d+ of shared memory, made at .*, which this thread has "
        "waited for before"),
    PLANT(
        kExpectsMoreBytes, kStops,
        "deadlock: thread \\(0,0,0\\) \\(and 127 more\\) waits at .* for phase 0 of the barrier at "
        "byte .*, which has 1 of 1 arrivals and 2304 of 2368 bytes; thread \\(128,0,0\\) waits at "
        ".* for phase 0 of .* 0 of 4 arrivals; thread \\(129,0,0\\) \\(and 30 more\\) has left"),
    PLANT(kExpectsFewerBytes, kStops,
          "(expects 2048 bytes, and copies of 2304 were started, the last at "
          ".*planted_async|deadlock: "
          ".* 2560 of 2048 bytes)"),
    PLANT(kArrivesOnce, kStops, "deadlock: .* 1 of 4 arrivals"),
    PLANT(kArrivesTwice, kStops,
          "barrier_arrive at .* is one more than the 1 arrivals of phase 0 of"),
    PLANT(kCopiesTwice, kForward,
          "write of byte 0 of shared memory at .* before the barrier_wait for the bulk copy"),
    PLANT(kCopiesPastSharedMemory, kStops,
          "copy_bulk at .* of 2048 bytes that are not in the \\d+ bytes"),
    PLANT(kCopiesMisaligned, kStops, "misaligned copy_bulk at .* of 1024 bytes at byte 0"),
    PLANT(kCopiesFromOutside, kStops, "outside every operand"),
    PLANT(kNobodyWaits, kStops,
          "block ends in phase 0 of the barrier|no thread has waited for phase 0"),
    PLANT(kMakesBarrierTwice, kStops, "barrier_init at .* already: nobody may make it twice"),
    PLANT(kMakesBarrierForNobody, kStops, "barrier_init at .* for 0 arrivals"),
    PLANT(kUsesBarrierUnfenced, kStops,
          "before barrier_init_fence\\(\\) by the thread that made it"),
    PLANT(kUsesBarrierUnsynchronised, kNowhere, "race at byte|that barrier_init has not made"),
    PLANT(kOverwritesBarrier, kStops, "race at byte|that was overwritten"),
    PLANT(kWaitsForParityTwo, kStops, "for parity 2: it is 0 or 1"),
    PLANT(kLoadsAccumulator, kForward,
          "load of acc\\[1\\] at .*planted_async\\.cu:\\d+.* before the warpgroup_wait for the "
          "warpgroup_mma at .*planted_async"),
    PLANT(
        kStoresAccumulator, kStops,
        "store of acc\\[2\\] at .* before the warpgroup_wait|acc\\[2\\] of the warpgroup_mma at .* "
        "was written before its warpgroup_wait"),
    PLANT(kMultipliesBeyondTile, kForward,
          "the warpgroup_mma of warpgroup \\d at .* reads byte \\d+ of shared memory, which "
          "nothing in "
          "the block has "
          "written"),
    PLANT(kMultipliesBeyondSharedMemory, kStops,
          "the descriptor of a puts row 0 at byte \\d+ of \\d+ bytes of shared memory"),
    PLANT(kMultipliesWithoutArrive, kStops, "without warpgroup_arrive\\(\\) since"),
    PLANT(kMultipliesOtherShape, kStops, "accumulators of the one of another shape at"),
    PLANT(kWarpMultipliesLess, kStops,
          "deadlock: thread \\(0,0,0\\) \\(and 95 more\\) waits at .*planted_async\\.cu:\\d+ for "
          "all threads "
          "of its warpgroup to start the same multiplications"),
    PLANT(kWarpMultipliesOtherTile, kStops,
          "thread \\(96,0,0\\): has not started the same multiplications as thread \\(0,0,0\\)"),
    PLANT(kLeavesMultiplication, kStops, "leaves the kernel before the warpgroup_wait of"),
    {"MultipliesStoredTilesUnfenced", launch_warpgroup<multiply_stored_tiles<true>>,
     launch_warpgroup<multiply_stored_tiles<false>>,
     "the warpgroup_mma of warpgroup \\d at .* reads byte \\d+ of shared memory, which thread "
     "\\(\\d+,0,0\\) stored at "
     ".*planted_async\\.cu:\\d+ and did not fence_async_proxy\\(\\) before a barrier",
     kNowhere},
    PLANT_STORE(kUnfenced, kNowhere,
                "the store of thread \\(0,0,0\\) at .* reads byte 0 of shared memory, which thread "
                "\\(0,0,0\\) stored at .*planted_async\\.cu:\\d+ and did not fence_async_proxy"),
    PLANT_STORE(
        kOverwritesWhileStoring, kReverse,
        "write of byte \\d+ of shared memory at .*planted_async\\.cu:\\d+, which the store of "
        "thread \\(0,0,0\\) at .* still reads: its wait does not come before"),
    PLANT_STORE(kLeavesStore, kStops, "leaves the kernel before the store_wait of the store at"),
    PLANT_STORE(kStoresMisaligned, kStops, "misaligned store_bulk at .* of 512 bytes at byte 0"),
    PLANT_STORE(kCopiesMisalignedBox, kStops,
                "misaligned copy_tensor at .* at byte 16 of shared memory: it must be"),
    PLANT_STORE(kBeginsBetweenPieces, kStops,
                "misaligned copy_tensor at .* of a box that begins at column 2 of elements of 4"),
    PLANT_STORE(kNamesTooFewCoordinates, kStops,
                "copy_tensor at .* names 2 coordinates of a tensor of 3 dimensions"),
    PLANT_STORE(kStoresPastEnd, kStops, "outside every operand"),
    {"StoresWordsOfOthers", launch_warpgroup<store_of_others<true>>,
     launch_warpgroup<store_of_others<false>>,
     "race at byte 16 of shared memory: this thread reads at .*; thread \\(4,0,0\\) wrote at",
     kReverse},
    {"StoresCopyInFlight", launch_warpgroup<store_of_copy<true>>,
     launch_warpgroup<store_of_copy<false>>,
     "read of byte 16 of shared memory at .* before the wait of the async copy that thread "
     "\\(0,0,0\\) started",
     kReverse},
    {"StoresBulkCopyInFlight", launch_warpgroup<store_of_bulk_copy<true>>,
     launch_warpgroup<store_of_bulk_copy<false>>,
     "read of byte 16 of shared memory at .* before the barrier_wait for the bulk copy that thread "
     "\\(0,0,0\\) started",
     kForward},
    PLANT_FLOAT(
        kUnfenced, kNowhere,
        "reads byte 0 of shared memory, which thread .* did not fence_async_proxy\\(\\) before"),
    PLANT_FLOAT(kLoadsAccumulator, kForward,
                "load of acc\\[1\\] at .* before the warpgroup_wait for the warpgroup_mma at"),
    PLANT_FLOAT(kMultipliesBeyondTile, kForward,
                "reads byte \\d+ of shared memory, which nothing in the block has written"),
    PLANT_STORE(kStoresBeforeTensor, kStops, "store_tensor at .* begins at a negative coordinate"),
    {"MultipliesInAWarp", launch_warp, launch_warpgroup<multiply_stored_tiles<false>>,
     "by a warpgroup of fewer than 128 threads", kStops},
    {"FencesTooOften", launch_warpgroup<fence_often<true>>, launch_warpgroup<fence_often<false>>,
     "too many barriers without __syncthreads: 65535 of a thread are counted at most", kNowhere},
    {"ExchangesWithoutBarrier", launch<kRacingExchange<true>>, launch<kRacingExchange<false>>,
     "race at byte \\d+ .*; no (barrier|__syncthreads) between", kReverse},
    {"WritesWhatOthersRead", launch_warpgroup<write_what_others_read<true>>,
     launch_warpgroup<write_what_others_read<false>>,
     "race at byte 4 .* writes at .*; thread \\(\\d+,0,0\\) read at .*; no barrier between",
     kNowhere},
    {"WaitsAtOtherBarrier", launch<kStuckExchange<true>>, launch<kStuckExchange<false>>,
     "deadlock: thread \\(0,0,0\\) \\(and 31 more\\) waits at .* for named barrier 1, which has 32 "
     "of 64 threads; thread \\(32,0,0\\) \\(and 31 more\\) waits at .* for named barrier 2",
     kStops},
    {"WaitsForOtherThreads", launch<kUnequalExchange<true>>, launch<kUnequalExchange<false>>,
     "named_barrier<1> at .* is of \\d\\d threads, and of \\d\\d at", kStops},
};

}  // namespace

std::span<const Plant> async_plants() { return kPlants; }

}  // namespace tilegate::planted
