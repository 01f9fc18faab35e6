// Asynchronous copies, mbarriers, stores by the copy engine, tensor cores, clusters, named barriers
// and flags.
#include <cstdint>

#include <tilegate/device/async.cuh>
#include <tilegate/device/flag.cuh>

#include "races.hpp"

namespace tilegate::races {
namespace {

using enum Hazard;

constexpr unsigned kThreads = 64;
constexpr unsigned kLast = kThreads - 1;
constexpr unsigned kRowBytes = kThreads * sizeof(float);

// cp.async: four tiles through two stages.

struct Stages {
  alignas(128) float words[2][kThreads];
};

inline void copy_own(float* to, const float* from) {
  device::copy_async<4>(to + threadIdx.x, from + threadIdx.x);
  device::copy_async_commit();
}

enum class Copy { kRight, kWaitsForOlder, kNoBarrier, kWaitsAfterBarrier, kReusesStage };

template <Copy kFault>
__global__ void copy_two_stages(float* memory) {
  auto& stages = device::shared_storage<Stages>().words;
  copy_own(stages[0], memory);
  float sum = 0.0F;
  for (int tile = 0; tile < 4; ++tile) {
    if (tile < 3) copy_own(stages[(tile + 1) % 2], memory + (tile + 1) * kThreads);
    const auto wait = [&] {
      if (kFault == Copy::kWaitsForOlder || tile < 3) {
        device::copy_async_wait<1>();  // all but the youngest: this tile is there
      } else {
        device::copy_async_wait<0>();
      }
    };
    if (kFault != Copy::kWaitsAfterBarrier) wait();
    if (kFault != Copy::kNoBarrier) __syncthreads();  // the copies of all threads
    if (kFault == Copy::kWaitsAfterBarrier) wait();
    sum += stages[tile % 2][kLast - threadIdx.x];
    if (kFault != Copy::kReusesStage) __syncthreads();  // all have read
  }
  device::copy_async_wait<0>();
  memory[kResults + threadIdx.x] = sum;
}

// A copy without a commit belongs to no group that a wait covers.
template <bool kRacy>
__global__ void commit_is_missing(float* memory) {
  auto& words = device::shared_storage<Stages>().words[0];
  device::copy_async<4>(&words[threadIdx.x], &memory[threadIdx.x]);
  if (!kRacy) device::copy_async_commit();
  device::copy_async_wait<0>();
  memory[kResults + threadIdx.x] = words[threadIdx.x];
  device::copy_async_commit();
  device::copy_async_wait<0>();
}

// A copy reads its source until the wait.
template <bool kRacy>
__global__ void source_overwritten(float* memory) {
  auto& words = device::shared_storage<Stages>().words[0];
  copy_own(words, memory);
  if (!kRacy) device::copy_async_wait<0>();
  memory[threadIdx.x] = 0.0F;
  device::copy_async_wait<0>();
  memory[kResults + threadIdx.x] = words[threadIdx.x];
}

// mbarriers: warp 1 fills two stages by bulk copies, warp 0 reads them.

enum class Ring {
  kRight,
  kNoWait,
  kWrongParity,
  kNoRelease,
  kReleasesBeforeRead,
  kLeaderWaitsAlone,
  kExpectsTooMany,
  kProducerParity,
};

struct RingStorage {
  alignas(128) float words[2][32];
  device::Barrier full[2], empty[2];
};

template <Ring kFault>
__global__ void ring(float* memory) {
  auto& smem = device::shared_storage<RingStorage>();
  constexpr unsigned kTiles = 5;
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; ++stage) {
      device::barrier_init(smem.full[stage], 1);
      device::barrier_init(smem.empty[stage], kFault == Ring::kExpectsTooMany ? 2 : 1);
    }
    device::barrier_init_fence();
  }
  __syncthreads();  // the barriers are made
  float sum = 0.0F;
  for (unsigned tile = 0; tile < kTiles; ++tile) {
    const unsigned stage = tile % 2, parity = tile / 2 % 2;
    if (threadIdx.x == 32) {
      if (kFault != Ring::kNoRelease) {
        device::barrier_wait(smem.empty[stage], kFault == Ring::kProducerParity ? 1 : parity ^ 1);
      }
      device::barrier_arrive_expect(smem.full[stage], sizeof(smem.words[0]));
      device::copy_bulk(smem.words[stage], memory + 32 * tile, sizeof(smem.words[0]),
                        smem.full[stage]);
    } else if (threadIdx.x < 32) {
      if (kFault != Ring::kNoWait && (kFault != Ring::kLeaderWaitsAlone || lane == 0)) {
        device::barrier_wait(smem.full[stage], kFault == Ring::kWrongParity ? 0 : parity);
      }
      if (kFault == Ring::kReleasesBeforeRead && lane == 0)
        device::barrier_arrive(smem.empty[stage]);
      sum += smem.words[stage][31 - lane];
      __syncwarp();  // all lanes have read
      if (kFault != Ring::kReleasesBeforeRead && lane == 0) {
        device::barrier_arrive(smem.empty[stage]);
      }
    }
  }
  if (threadIdx.x < 32) memory[kResults + lane] = sum;
}

struct WordsAndBarrier {
  alignas(128) float words[kThreads];
  alignas(128) float more[kThreads];
  device::Barrier barrier;
};

inline WordsAndBarrier& make_barrier(unsigned arrivals) {
  auto& smem = device::shared_storage<WordsAndBarrier>();
  if (threadIdx.x == 0) {
    device::barrier_init(smem.barrier, arrivals);
    device::barrier_init_fence();
  }
  __syncthreads();  // the barrier is made
  return smem;
}

// The barrier completes when one of the two warps has arrived.
template <bool kRacy>
__global__ void arrivals_of_one_warp(float* memory) {
  auto& smem = make_barrier(kRacy ? 32 : 64);
  smem.words[threadIdx.x] = memory[threadIdx.x];
  if (!kRacy || threadIdx.x < 32) device::barrier_arrive(smem.barrier);
  device::barrier_wait(smem.barrier, 0);
  memory[kResults + threadIdx.x] = smem.words[kLast - threadIdx.x];
}

template <bool kRacy>
__global__ void store_after_arrival(float* memory) {
  auto& smem = make_barrier(kThreads);
  if (!kRacy) smem.words[threadIdx.x] = memory[threadIdx.x];
  device::barrier_arrive(smem.barrier);
  if (kRacy) smem.words[threadIdx.x] = memory[threadIdx.x];
  device::barrier_wait(smem.barrier, 0);
  memory[kResults + threadIdx.x] = smem.words[kLast - threadIdx.x];
}

// Copies by the copy engine.

template <bool kRacy>
__global__ void copy_over_words_in_use(float* memory) {
  auto& smem = make_barrier(1);
  smem.words[threadIdx.x] = memory[threadIdx.x];
  __syncthreads();
  const float value = smem.words[kLast - threadIdx.x];
  if (!kRacy) __syncthreads();  // all have read
  if (threadIdx.x == 0) {
    device::barrier_arrive_expect(smem.barrier, kRowBytes);
    device::copy_bulk(smem.words, memory + kThreads, kRowBytes, smem.barrier);
  }
  device::barrier_wait(smem.barrier, 0);
  memory[kResults + threadIdx.x] = value + smem.words[threadIdx.x];
}

enum class Store {
  kRight,
  kUnfenced,
  kFencesAfterBarrier,
  kNoBarrier,
  kOverwrites,
  kWaitsForOlder,
};

template <Store kFault>
__global__ void store_tile(float* memory) {
  auto& smem = device::shared_storage<WordsAndBarrier>();
  smem.words[threadIdx.x] = static_cast<float>(threadIdx.x);
  smem.more[threadIdx.x] = 1.0F;
  if (kFault != Store::kUnfenced && kFault != Store::kFencesAfterBarrier) {
    device::fence_async_proxy();
  }
  if (kFault != Store::kNoBarrier) __syncthreads();  // all have stored
  if (kFault == Store::kFencesAfterBarrier) device::fence_async_proxy();
  if (threadIdx.x == 0) {
    device::store_bulk(memory + kResults, smem.more, kRowBytes);
    device::store_commit();
    device::store_bulk(memory + kResults + kThreads, smem.words, kRowBytes);
    device::store_commit();
    if (kFault == Store::kWaitsForOlder) {
      device::store_wait<1>();
    } else if (kFault != Store::kOverwrites) {
      device::store_wait<0>();
    }
  }
  __syncthreads();  // the stores have read
  smem.words[threadIdx.x] = 0.0F;
  if (threadIdx.x == 0) device::store_wait<0>();
}

// store_wait() waits until shared memory has been read, not until global memory has been written.
template <bool kRacy>
__global__ void load_of_stored_tile(float* memory) {
  auto& smem = device::shared_storage<WordsAndBarrier>();
  smem.words[threadIdx.x] = 1.0F;
  device::fence_async_proxy();
  __syncthreads();  // all have stored
  if (threadIdx.x == 0) {
    device::store_bulk(memory + kResults, smem.words, kRowBytes);
    device::store_commit();
    device::store_wait<0>();
    if (kRacy) memory[0] = memory[kResults + 1];
  }
}

// A bulk copy reads global memory by the async proxy: stores by threads need the fence.
template <bool kRacy>
__global__ void copy_of_stored_words(float* memory) {
  auto& smem = make_barrier(1);
  memory[threadIdx.x] = 1.0F;
  if (!kRacy) device::fence_async_proxy();
  __syncthreads();  // all have stored
  if (threadIdx.x == 0) {
    device::barrier_arrive_expect(smem.barrier, kRowBytes);
    device::copy_bulk(smem.words, memory, kRowBytes, smem.barrier);
  }
  device::barrier_wait(smem.barrier, 0);
  memory[kResults + threadIdx.x] = smem.words[threadIdx.x];
}

// Tensor cores: a warpgroup multiplies a tile of each of two stages.

constexpr unsigned kWarpgroup = 128;
constexpr int kN = 8;
constexpr unsigned kBytesOfA = 64 * 32, kBytesOfB = kN * 32;

struct Tiles {
  alignas(128) std::int8_t a[2][kBytesOfA];
  alignas(128) std::int8_t b[kBytesOfB];
};

enum class Multiply { kRight, kUnfenced, kWaitsForOlder, kNoWait, kReadsEarly };

inline void fill(void* tile, unsigned bytes) {
  auto* const words = static_cast<float*>(tile);
  for (unsigned i = threadIdx.x; i < bytes / 4; i += kWarpgroup) words[i] = 1.0F;
}

template <Multiply kFault>
__global__ void multiply_tiles(float* memory) {
  auto& smem = device::shared_storage<Tiles>();
  fill(smem.a[0], kBytesOfA);
  fill(smem.a[1], kBytesOfA);
  fill(smem.b, kBytesOfB);
  if (kFault != Multiply::kUnfenced) device::fence_async_proxy();
  __syncthreads();  // all is stored
  std::int32_t acc[kN / 2] = {};
  const auto b = device::matrix_descriptor(smem.b, device::Swizzle::kNone, kBytesOfB / 2, 128);
  for (int stage = 0; stage < 2; ++stage) {
    const auto a =
        device::matrix_descriptor(smem.a[stage], device::Swizzle::kNone, kBytesOfA / 2, 128);
    device::warpgroup_arrive();
    device::warpgroup_mma_s8<kN>(acc, a, b);
    device::warpgroup_commit();
  }
  std::int32_t early = 0;
  if (kFault == Multiply::kReadsEarly) early = acc[1];
  if (kFault == Multiply::kWaitsForOlder) {
    device::warpgroup_wait<1>();
  } else if (kFault != Multiply::kNoWait) {
    device::warpgroup_wait<0>();
  }
  __syncthreads();  // all warps have waited
  fill(smem.a[1], kBytesOfA);
  device::warpgroup_wait<0>();
  device::warpgroup_fence_operand(acc);
  memory[kResults + threadIdx.x] = static_cast<float>(acc[0] + early);
}

// Clusters of two blocks.

constexpr unsigned kCluster = 2;

enum class Peer { kRight, kReadsEarly, kEndsEarly, kOverwritesEarly };

template <Peer kFault>
__global__ void read_peer(float* memory) {
  auto& smem = device::shared_storage<WordsAndBarrier>();
  const unsigned rank = device::cluster_rank();
  smem.words[threadIdx.x] = memory[threadIdx.x];
  kFault == Peer::kReadsEarly ? __syncthreads() : device::cluster_sync();
  const float* const words = device::cluster_peer(&smem.words[0], rank ^ 1);
  memory[kResults + rank * kThreads + threadIdx.x] = words[threadIdx.x];
  if (kFault == Peer::kOverwritesEarly) smem.words[threadIdx.x] = 0.0F;
  if (kFault != Peer::kEndsEarly) device::cluster_sync();  // the peer has read
}

enum class Remote { kRight, kNoWait, kOverTileInUse, kTooFewBytes };

// Each block stores vectors to the other one.
template <Remote kFault>
__global__ void store_to_peer(float* memory) {
  auto& smem = make_barrier(1);
  const unsigned rank = device::cluster_rank();
  float value = 0.0F;
  if (kFault == Remote::kOverTileInUse) smem.words[threadIdx.x] = memory[threadIdx.x];
  device::cluster_sync();  // the barriers are made
  if (kFault == Remote::kOverTileInUse) value = smem.words[kLast - threadIdx.x];
  if (threadIdx.x == 0) {
    device::barrier_arrive_expect(smem.barrier, kFault == Remote::kTooFewBytes ? 128 : kRowBytes);
  }
  if (threadIdx.x < kThreads / 4) {
    auto& to = reinterpret_cast<float4*>(smem.words)[threadIdx.x];
    device::store_remote(to, make_float4(1, 2, 3, 4), smem.barrier, rank ^ 1);
  }
  if (kFault != Remote::kNoWait) device::barrier_wait(smem.barrier, 0);
  value += smem.words[threadIdx.x];
  if (kFault == Remote::kNoWait) device::barrier_wait(smem.barrier, 0);
  memory[kResults + rank * kThreads + threadIdx.x] = value;
  device::cluster_sync();  // no block ends while it is stored to
}

// Named barriers.

enum class Named { kRight, kNone, kOtherBarrier, kTooFewThreads, kOtherCounts };

template <Named kFault>
__global__ void named_exchange(float* memory) {
  auto& words = device::shared_storage<WordsAndBarrier>().words;
  words[threadIdx.x] = memory[threadIdx.x];
  const bool is_second = threadIdx.x >= 32;
  if (kFault == Named::kOtherBarrier && is_second) {
    device::named_barrier<2>(kThreads);
  } else if (kFault == Named::kOtherCounts && is_second) {
    device::named_barrier<1>(96);
  } else if (kFault != Named::kNone) {
    device::named_barrier<1>(kFault == Named::kTooFewThreads ? 32 : kThreads);
  }
  memory[kResults + threadIdx.x] = words[kLast - threadIdx.x];
}

// The first barrier of the launch that orders warps comes after reads of both warps.
template <bool kRacy>
__global__ void read_then_named_barrier(float* memory) {
  auto& words = device::shared_storage<WordsAndBarrier>().words;
  words[threadIdx.x] = memory[threadIdx.x];
  __syncthreads();
  const float value = words[0];
  if (!kRacy || threadIdx.x < 32) device::named_barrier<1>(kRacy ? 32 : kThreads);
  if (threadIdx.x == 0) words[0] = 1.0F;
  memory[kResults + threadIdx.x] = value;
}

// The same by three warps, of which the second does not come to the barrier.
template <bool kRacy>
__global__ void read_by_three_warps(float* memory) {
  auto& words = device::shared_storage<WordsAndBarrier>().words;
  if (threadIdx.x < kThreads) words[threadIdx.x] = memory[threadIdx.x];
  __syncthreads();
  const float value = words[0];
  if (!kRacy || threadIdx.x / 32 != 1) device::named_barrier<1>(kRacy ? 64 : 96);
  if (threadIdx.x == 0) words[0] = 1.0F;
  memory[kResults + threadIdx.x] = value;
}

// Flags between blocks.

enum class Flag { kRight, kNoWait, kStoresAfterRaise, kNoBarrier };

constexpr unsigned kFlags = 1000;  // where the flags are in memory

__global__ void lower_flags(float* memory) {
  if (threadIdx.x < 8) reinterpret_cast<unsigned*>(memory)[kFlags + threadIdx.x] = 0;
}

template <Flag kFault>
__global__ void pass_words(float* memory) {
  auto* const flag = reinterpret_cast<unsigned*>(memory) + kFlags + blockIdx.x;
  volatile float* const own = memory + blockIdx.x * kThreads;
  if (blockIdx.x > 0) {
    if (threadIdx.x == 0 && kFault != Flag::kNoWait) device::wait_for_flag(flag - 1);
    __syncthreads();  // the words of the block before are there
    own[threadIdx.x] = (own - kThreads)[kLast - threadIdx.x];
  } else {
    own[threadIdx.x] = 1.0F;
  }
  if (kFault != Flag::kNoBarrier) __syncthreads();  // the block's words are there
  if (threadIdx.x == 0) device::raise_flag(flag);
  if (kFault == Flag::kStoresAfterRaise) own[threadIdx.x] = 2.0F;
}

// Four blocks load a word; the last waits for two or three of the others and stores it.
template <bool kRacy>
__global__ void first_of_three_blocks(float* memory) {
  if (threadIdx.x != 0) return;
  auto* const flags = reinterpret_cast<unsigned*>(memory) + kFlags;
  volatile float* const word = memory;
  if (blockIdx.x < 3) {
    memory[kResults + blockIdx.x] = *word;
    device::raise_flag(flags + blockIdx.x);
    return;
  }
  for (int block = kRacy ? 1 : 0; block < 3; ++block) device::wait_for_flag(flags + block);
  *word = 1.0F;
}

template <auto kKernel, unsigned kThreadsOfBlock, std::size_t kSharedBytes, unsigned kBlocks = 1>
Status launch(float* memory) {
  const device::LaunchConfig config{.kernel = "race",
                                    .blocks = kBlocks,
                                    .threads_x = kThreadsOfBlock,
                                    .shared_bytes = kSharedBytes,
                                    .cluster = kBlocks};
  return device::launch(config, nullptr, kKernel, memory);
}

template <auto kKernel, unsigned kBlocks>
Status launch_flags(float* memory) {
  device::LaunchConfig config{.kernel = "race", .blocks = 1, .threads_x = kThreads};
  if (Status s = device::launch(config, nullptr, lower_flags, memory); !s.ok()) return s;
  config.blocks = kBlocks;
  return device::launch_in_order(config, nullptr, kKernel, memory);
}

template <auto kKernel>
constexpr auto kLaunch = launch<kKernel, kThreads, sizeof(WordsAndBarrier)>;
template <auto kKernel>
constexpr auto kLaunchThreeWarps = launch<kKernel, 96, sizeof(WordsAndBarrier)>;
template <auto kKernel>
constexpr auto kLaunchRing = launch<kKernel, kThreads, sizeof(RingStorage)>;
template <auto kKernel>
constexpr auto kLaunchTiles = launch<kKernel, kWarpgroup, sizeof(Tiles)>;
template <auto kKernel>
constexpr auto kLaunchCluster = launch<kKernel, kThreads, sizeof(WordsAndBarrier), kCluster>;
template <auto kKernel>
constexpr auto kLaunchFlags = launch_flags<kKernel, 3>;
template <auto kKernel>
constexpr auto kLaunchFourBlocks = launch_flags<kKernel, 4>;

#define PAIR(group, launch, name, hazard, ...) \
  {#name, group, hazard, launch<name<true>>, launch<name<false>> __VA_OPT__(, ) __VA_ARGS__}
#define FAULT(group, launch, kernel, Enum, fault, hazard) \
  {#kernel "/" #fault, group, hazard, launch<kernel<Enum::k##fault>>, launch<kernel<Enum::kRight>>}

constexpr Pair kPairs[] = {
    FAULT("cp.async", kLaunch, copy_two_stages, Copy, WaitsForOlder, kPendingCopy),
    FAULT("cp.async", kLaunch, copy_two_stages, Copy, NoBarrier, kRace),
    FAULT("cp.async", kLaunch, copy_two_stages, Copy, WaitsAfterBarrier, kPendingCopy),
    FAULT("cp.async", kLaunch, copy_two_stages, Copy, ReusesStage, kPendingCopy),
    PAIR("cp.async", kLaunch, commit_is_missing, kPendingCopy),
    PAIR("cp.async", kLaunch, source_overwritten, kRace,
         "the load of a cp.async is taken to happen at its start. A kernel of this repository "
         "copies "
         "operands, which no kernel stores to, or what an earlier launch stored"),
    FAULT("mbarrier", kLaunchRing, ring, Ring, NoWait, kPendingBulk),
    FAULT("mbarrier", kLaunchRing, ring, Ring, WrongParity, kSynchronizing),
    FAULT("mbarrier", kLaunchRing, ring, Ring, NoRelease, kPendingBulk),
    FAULT("mbarrier", kLaunchRing, ring, Ring, ReleasesBeforeRead, kRace),
    FAULT("mbarrier", kLaunchRing, ring, Ring, LeaderWaitsAlone, kPendingBulk),
    FAULT("mbarrier", kLaunchRing, ring, Ring, ExpectsTooMany, kSynchronizing),
    FAULT("mbarrier", kLaunchRing, ring, Ring, ProducerParity, kSynchronizing),
    PAIR("mbarrier", kLaunch, arrivals_of_one_warp, kRace),
    PAIR("mbarrier", kLaunch, store_after_arrival, kRace),
    PAIR("copy engine", kLaunch, copy_over_words_in_use, kRace),
    FAULT("copy engine", kLaunch, store_tile, Store, Unfenced, kUnfenced),
    FAULT("copy engine", kLaunch, store_tile, Store, FencesAfterBarrier, kUnfenced),
    FAULT("copy engine", kLaunch, store_tile, Store, NoBarrier, kRace),
    FAULT("copy engine", kLaunch, store_tile, Store, Overwrites, kPendingRead),
    FAULT("copy engine", kLaunch, store_tile, Store, WaitsForOlder, kPendingRead),
    PAIR("copy engine", kLaunch, load_of_stored_tile, kRace),
    PAIR("copy engine", kLaunch, copy_of_stored_words, kUnfenced,
         "fences are checked for shared memory only. In global memory, bulk copies read what an "
         "earlier launch has stored, or a flag orders, whose wait has the fence"),
    FAULT("wgmma", kLaunchTiles, multiply_tiles, Multiply, Unfenced, kUnfenced),
    FAULT("wgmma", kLaunchTiles, multiply_tiles, Multiply, WaitsForOlder, kPendingRead),
    FAULT("wgmma", kLaunchTiles, multiply_tiles, Multiply, NoWait, kPendingRead),
    FAULT("wgmma", kLaunchTiles, multiply_tiles, Multiply, ReadsEarly, kAccumulators),
    FAULT("cluster", kLaunchCluster, read_peer, Peer, ReadsEarly, kRace),
    FAULT("cluster", kLaunchCluster, read_peer, Peer, EndsEarly, kEndedPeer),
    FAULT("cluster", kLaunchCluster, read_peer, Peer, OverwritesEarly, kRace),
    FAULT("cluster", kLaunchCluster, store_to_peer, Remote, NoWait, kPendingBulk),
    FAULT("cluster", kLaunchCluster, store_to_peer, Remote, OverTileInUse, kPendingBulk),
    FAULT("cluster", kLaunchCluster, store_to_peer, Remote, TooFewBytes, kSynchronizing),
    FAULT("named barrier", kLaunch, named_exchange, Named, None, kRace),
    FAULT("named barrier", kLaunch, named_exchange, Named, OtherBarrier, kSynchronizing),
    FAULT("named barrier", kLaunch, named_exchange, Named, TooFewThreads, kRace),
    FAULT("named barrier", kLaunch, named_exchange, Named, OtherCounts, kSynchronizing),
    PAIR("named barrier", kLaunch, read_then_named_barrier, kRace),
    PAIR("named barrier", kLaunchThreeWarps, read_by_three_warps, kRace),
    FAULT("flag", kLaunchFlags, pass_words, Flag, NoWait, kRace),
    FAULT("flag", kLaunchFlags, pass_words, Flag, StoresAfterRaise, kRace),
    FAULT("flag", kLaunchFlags, pass_words, Flag, NoBarrier, kRace),
    PAIR("flag", kLaunchFourBlocks, first_of_three_blocks, kRace),
};

}  // namespace

std::span<const Pair> async_pairs() { return kPairs; }

}  // namespace tilegate::races
