// Threads of a block, lanes of a warp, atomic operations and blocks: plain CUDA.
#include <tilegate/device/plain.cuh>

#include "races.hpp"

constexpr int kThreads = 64;
constexpr int kLast = kThreads - 1;

// Barriers of a block.

template <bool kRacy>
__global__ void neighbour(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  if (!kRacy) __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = words[(threadIdx.x + 1) % kThreads];
}

template <bool kRacy>
__global__ void barrier_in_loop(float* memory) {
  __shared__ float words[kThreads];
  float sum = 0.F;
  for (int i = 0; i < 3; ++i) {
    words[threadIdx.x] = memory[i * kThreads + threadIdx.x];
    __syncthreads();
    sum += words[kLast - threadIdx.x];
    if (!kRacy) __syncthreads();  // all have read before the next words are written
  }
  memory[tilegate::races::kResults + threadIdx.x] = sum;
}

// The branch is the same for all threads of a block: its barrier does not diverge.
template <bool kRacy>
__global__ void barrier_in_one_branch(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = 1.F;
  if (blockIdx.x == 0) {
    __syncthreads();
  } else {
    words[threadIdx.x] = 2.F;
    if (!kRacy) __syncthreads();
  }
  memory[blockIdx.x * kThreads + threadIdx.x] = words[kLast - threadIdx.x];
}

template <bool kRacy>
__global__ void divergent_barrier(float* memory) {
  if (!kRacy || threadIdx.x != 9) __syncthreads();
  memory[blockIdx.x * kThreads + threadIdx.x] = 1.F;
}

template <bool kRacy>
__global__ void reduction_tree(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  __syncthreads();
  for (int stride = kThreads / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) words[threadIdx.x] += words[threadIdx.x + stride];
    if (!kRacy || stride != kThreads / 4) __syncthreads();
  }
  if (threadIdx.x == 0) memory[tilegate::races::kResults + blockIdx.x] = words[0];
}

// Hillis and Steele's sum in place reads and writes the same words.
template <bool kRacy>
__global__ void scan_in_place(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  __syncthreads();
  for (int stride = 1; stride < kThreads; stride *= 2) {
    const float left = threadIdx.x >= stride ? words[threadIdx.x - stride] : 0.F;
    if (!kRacy) __syncthreads();  // all have read
    words[threadIdx.x] += left;
    __syncthreads();
  }
  memory[tilegate::races::kResults + threadIdx.x] = words[threadIdx.x];
}

// With two buffers one barrier per step is enough.
template <bool kRacy>
__global__ void ping_pong(float* memory) {
  __shared__ float words[2][kThreads];
  float value = memory[threadIdx.x];
  for (int i = 0; i < 4; ++i) {
    float* const buffer = words[kRacy ? 0 : i % 2];
    buffer[threadIdx.x] = value;
    __syncthreads();
    value += buffer[kLast - threadIdx.x];
  }
  memory[tilegate::races::kResults + threadIdx.x] = value;
}

template <bool kRacy>
__global__ void transpose(float* memory) {
  __shared__ float tile[8][9];
  const int row = threadIdx.x / 8, col = threadIdx.x % 8;
  tile[row][col] = memory[threadIdx.x];
  if (!kRacy) __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = tile[col][row];
}

template <bool kRacy>
__global__ void broadcast(float* memory) {
  __shared__ float word;
  if (threadIdx.x == 0) word = memory[0];
  if (!kRacy) __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = word;
}

template <bool kRacy>
__global__ void reuse_after_loop(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  __syncthreads();
  float sum = 0.F;
  for (int i = 0; i < kThreads; ++i) sum += words[i];
  if (!kRacy) __syncthreads();
  words[threadIdx.x] = sum;
  memory[tilegate::races::kResults + threadIdx.x] = words[threadIdx.x];
}

// Indices, strides, guards.

template <bool kRacy>
__global__ void stride_too_small(float* memory) {
  __shared__ float words[2 * kThreads];
  float* const own = words + threadIdx.x * (kRacy ? 1 : 2);
  own[0] = 1.F;
  own[1] = 2.F;
  memory[tilegate::races::kResults + threadIdx.x] = own[0];
}

template <bool kRacy>
__global__ void one_element_too_many(float* memory) {
  __shared__ float words[4 * kThreads + 1];
  for (int i = 0; i < (kRacy ? 5 : 4); ++i) words[4 * threadIdx.x + i] = memory[i];
  memory[tilegate::races::kResults + threadIdx.x] = words[4 * threadIdx.x];
}

template <bool kRacy>
__global__ void offset_by_one(float* memory) {
  __shared__ float words[kThreads + 1];
  words[threadIdx.x] = memory[threadIdx.x];
  memory[tilegate::races::kResults + threadIdx.x] =
      words[threadIdx.x + (kRacy && threadIdx.x < kLast ? 1 : 0)];
}

template <bool kRacy>
__global__ void index_wraps(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x % (kRacy ? kLast : kThreads)] = memory[threadIdx.x];
  __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = words[0];
}

// Where a thread writes is data: word i of memory holds i.
template <bool kRacy>
__global__ void index_from_data(float* memory) {
  __shared__ float words[kThreads];
  const int to = static_cast<int>(memory[threadIdx.x]) / (kRacy ? 2 : 1);
  words[to] = 1.F;
  __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = words[to];
}

template <bool kRacy>
__global__ void guard_is_missing(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  __syncthreads();
  if (kRacy || threadIdx.x < kThreads / 2) {
    words[threadIdx.x] += words[(threadIdx.x + kThreads / 2) % kThreads];
  }
  __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = words[0];
}

// All threads write the same value. The CUDA and C++ models call it a race; so does the detector.
template <bool kRacy>
__global__ void same_value(float* memory) {
  __shared__ float word;
  if (kRacy || threadIdx.x == 0) word = 1.F;
  __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = word;
}

template <bool kRacy>
__global__ void past_the_array(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x + (kRacy ? 1 : 0)] = 1.F;
  __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = words[0];
}

// Lanes of a warp.

template <bool kRacy>
__global__ void lanes_exchange(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  if (!kRacy) __syncwarp();
  memory[tilegate::races::kResults + threadIdx.x] = words[threadIdx.x ^ 1];
}

// The last steps of a reduction, by one warp, without barriers: right before Volta.
template <bool kRacy>
__global__ void warp_synchronous(float* memory) {
  __shared__ volatile float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  __syncthreads();
  if (threadIdx.x >= 32) return;
  for (int stride = 32; stride > 0; stride /= 2) {
    const float right = words[threadIdx.x + stride];
    if (!kRacy) __syncwarp();
    words[threadIdx.x] = words[threadIdx.x] + right;
    if (!kRacy) __syncwarp();
  }
  if (threadIdx.x == 0) memory[tilegate::races::kResults] = words[0];
}

template <bool kRacy>
__global__ void mask_is_too_small(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  const bool is_low = threadIdx.x % 32 < 16;
  __syncwarp(kRacy ? (is_low ? 0xffffU : 0xffff0000U) : ~0U);
  memory[tilegate::races::kResults + threadIdx.x] = words[threadIdx.x ^ 16];
}

template <bool kRacy>
__global__ void shuffle_between(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  const float other = __shfl_xor_sync(~0U, words[threadIdx.x], 1);
  memory[tilegate::races::kResults + threadIdx.x] = kRacy ? words[threadIdx.x ^ 1] : other;
}

template <bool kRacy>
__global__ void ballot_between(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  const unsigned lanes = __ballot_sync(~0U, memory[threadIdx.x] > 3.F);
  if (!kRacy) __syncwarp();
  memory[tilegate::races::kResults + threadIdx.x] = words[threadIdx.x ^ 1] + lanes;
}

template <bool kRacy>
__global__ void warp_barrier_for_two_warps(float* memory) {
  __shared__ float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  kRacy ? __syncwarp() : __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = words[threadIdx.x ^ 32];
}

template <bool kRacy>
__global__ void leader_overwrites(float* memory) {
  __shared__ float words[2];
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) words[warp] = memory[warp];
  __syncwarp();
  const float value = words[warp];
  if (!kRacy) __syncwarp();
  if (threadIdx.x % 32 == 0) words[warp] = 2.F;
  memory[tilegate::races::kResults + threadIdx.x] = value;
}

// Atomic operations.

template <bool kRacy>
__global__ void counter(float* memory) {
  __shared__ volatile unsigned count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (kRacy) {
    count = count + 1;
  } else {
    atomicAdd(const_cast<unsigned*>(&count), 1);
  }
  __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = count;
}

template <bool kRacy>
__global__ void histogram(float* memory) {
  __shared__ unsigned bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  if (!kRacy) __syncthreads();  // all bins are empty
  atomicAdd(&bins[static_cast<int>(memory[threadIdx.x]) % 8], 1);
  __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = bins[threadIdx.x % 8];
}

template <bool kRacy>
__global__ void load_beside_atomics(float* memory) {
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  if (!kRacy) __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = count;
}

template <bool kRacy>
__global__ void store_beside_atomics(float* memory) {
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (threadIdx.x != kLast) atomicAdd(&count, 1);
  if (!kRacy) __syncthreads();
  if (threadIdx.x == kLast) count = 0;
}

// The first update is another warp's; the warp barrier orders the two others.
template <bool kRacy>
__global__ void first_of_three_updates(float* memory) {
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (threadIdx.x == 63 || threadIdx.x == 2 || threadIdx.x == 1) atomicAdd(&count, 1);
  kRacy ? __syncwarp() : __syncthreads();
  if (threadIdx.x == 0) memory[tilegate::races::kResults] = count;
}

// Lane 3 is not among the lanes of the warp barrier.
template <bool kRacy>
__global__ void updates_of_lanes(float* memory) {
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (threadIdx.x >= 1 && threadIdx.x <= 3) atomicAdd(&count, 1);
  if (threadIdx.x <= (kRacy ? 2 : 3)) __syncwarp(kRacy ? 7 : 15);
  if (threadIdx.x == 0) memory[tilegate::races::kResults] = count;
}

// A ticket gives each thread its word.
template <bool kRacy>
__global__ void ticket(float* memory) {
  __shared__ unsigned next;
  __shared__ float words[kThreads];
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  words[atomicAdd(&next, 1) / (kRacy ? 2 : 1)] = 1.F;
  __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = words[0];
}

// The first thread that comes writes; the others do not know when.
template <bool kRacy>
__global__ void first_thread_writes(float* memory) {
  __shared__ unsigned taken;
  __shared__ float word;
  if (threadIdx.x == 0) taken = 0;
  __syncthreads();
  if (atomicCAS(&taken, 0, 1) == 0) word = memory[0];
  if (!kRacy) __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = word;
}

// Global memory.

template <bool kRacy>
__global__ void block_exchange(float* memory) {
  memory[blockIdx.x * kThreads + threadIdx.x] = 1.F;
  if (!kRacy) __syncthreads();
  memory[tilegate::races::kResults + blockIdx.x * kThreads + threadIdx.x] =
      memory[blockIdx.x * kThreads + kLast - threadIdx.x];
}

template <bool kRacy>
__global__ void blocks_overlap(float* memory) {
  memory[blockIdx.x * (kRacy ? kLast : kThreads) + threadIdx.x] = blockIdx.x;
}

template <bool kRacy>
__global__ void halo_of_next_block(float* memory) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float right = memory[i + 1];  // the last is the next block's
  __syncthreads();
  memory[kRacy ? i : tilegate::races::kResults + i] = right;
}

template <bool kRacy>
__global__ void sum_of_blocks(float* memory) {
  if (threadIdx.x != 0) return;
  if (kRacy) {
    memory[tilegate::races::kResults] += 1.F;
  } else {
    atomicAdd(&memory[tilegate::races::kResults], 1.F);
  }
}

template <bool kRacy>
__global__ void load_beside_other_blocks_atomics(float* memory) {
  float* const sum = &memory[tilegate::races::kResults];
  if (threadIdx.x == 0) atomicAdd(sum, 1.F);
  if (threadIdx.x == 1) {
    const float seen = kRacy ? *sum : atomicAdd(sum, 0.F);
    memory[blockIdx.x] = seen;
  }
}

template <bool kRacy>
__global__ void blocks_set_a_flag(float* memory) {
  if (threadIdx.x == 0) memory[kRacy ? 0 : blockIdx.x] = 1.F;  // all the same value
}

// Three threads load a word; one of them, ordered after the second only, stores it.
template <bool kRacy>
__global__ void first_of_three_loads(float* memory) {
  volatile float* const word = memory;
  if (threadIdx.x == 63 || threadIdx.x == 1 || threadIdx.x == 0) {
    memory[tilegate::races::kResults + kThreads * blockIdx.x + threadIdx.x] =
        word[blockIdx.x * kThreads];
  }
  kRacy ? __syncwarp() : __syncthreads();
  if (threadIdx.x == 0) word[blockIdx.x * kThreads] = 1.F;
}

// The same with the atomic updates of global memory.
template <bool kRacy>
__global__ void first_of_three_global_updates(float* memory) {
  float* const word = &memory[blockIdx.x * kThreads];
  if (threadIdx.x == 63 || threadIdx.x == 2 || threadIdx.x == 1) atomicAdd(word, 1.F);
  kRacy ? __syncwarp() : __syncthreads();
  if (threadIdx.x == 0) memory[tilegate::races::kResults + blockIdx.x] = *word;
}

// The block that takes the last ticket adds what the others have stored.
enum class LastBlock { kRight, kNoFence, kOneFence, kNoTicket };

template <LastBlock kFault>
__global__ void last_block(float* memory) {
  auto* const tickets = reinterpret_cast<int*>(memory) + 1000;
  float* const sums = memory + tilegate::races::kResults;
  if (threadIdx.x != 0) return;
  sums[blockIdx.x] = memory[blockIdx.x * kThreads];
  if (kFault != LastBlock::kNoFence) __threadfence();
  const unsigned ticket = atomicAdd(tickets, 1) - __float_as_int(1000.F);
  if (kFault != LastBlock::kNoFence && kFault != LastBlock::kOneFence) __threadfence();
  if (kFault == LastBlock::kNoTicket || ticket == gridDim.x - 1) {
    memory[kThreads * blockIdx.x + 1] = sums[0] + sums[1] + sums[2];
  }
}

// Vectors and parts of words.

template <bool kRacy>
__global__ void scalar_in_vector(float* memory) {
  __shared__ __align__(16) float words[kThreads];
  if (threadIdx.x < 8) {
    reinterpret_cast<float4*>(words)[threadIdx.x] = make_float4(1, 1, 1, 1);
  } else if (threadIdx.x >= 32) {
    words[threadIdx.x - (kRacy && threadIdx.x == 32 ? 1 : 0)] = 2.F;
  }
  __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = words[threadIdx.x % 32];
}

template <bool kRacy>
__global__ void vector_of_others(float* memory) {
  __shared__ __align__(16) float words[kThreads];
  words[threadIdx.x] = memory[threadIdx.x];
  if (!kRacy) __syncwarp();
  if (threadIdx.x % 32 >= 8) return;
  const int first = threadIdx.x / 32 * 8;
  const float4 v = reinterpret_cast<float4*>(words)[first + threadIdx.x % 32];
  memory[tilegate::races::kResults + threadIdx.x] = v.x + v.w;
}

template <bool kRacy>
__global__ void bytes_of_a_word(float* memory) {
  __shared__ unsigned char bytes[kThreads];
  bytes[kRacy ? threadIdx.x / 2 : threadIdx.x] = 1;
  __syncthreads();
  memory[tilegate::races::kResults + threadIdx.x] = bytes[0];
}

template <bool kRacy>
__global__ void halves_of_a_word(float* memory) {
  __shared__ unsigned short halves[kThreads];
  halves[threadIdx.x] = static_cast<unsigned short>(memory[threadIdx.x]);
  memory[tilegate::races::kResults + threadIdx.x] = halves[kRacy ? threadIdx.x ^ 1 : threadIdx.x];
}

// Words of shared memory that were accessed as a whole before.
template <bool kRacy>
__global__ void byte_of_a_loaded_word(float* memory) {
  __shared__ union {
    unsigned words[kThreads];
    unsigned char bytes[4 * kThreads];
  } shared;
  shared.words[threadIdx.x] = 1;
  __syncthreads();
  if (kRacy || threadIdx.x >= 32) memory[threadIdx.x] = shared.words[threadIdx.x];
  if (threadIdx.x < 32) shared.bytes[(kRacy ? 128 : 0) + threadIdx.x] = 2;
}

template <bool kRacy>
__global__ void bytes_of_a_global_word(float* memory) {
  auto* const bytes = reinterpret_cast<unsigned char*>(memory);
  bytes[kRacy ? threadIdx.x : 2 * threadIdx.x + blockIdx.x] = 1;
}

namespace tilegate::races {
namespace {

using enum Hazard;

// What a launch stores another one may load.
template <bool kRacy>
__global__ void shift_words(float* memory, int step) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (kRacy || step == 0) memory[i] = 1.F;
  if (kRacy || step == 1) memory[tilegate::races::kResults + i] = memory[i ^ kThreads];
}
template <bool kRacy>
void shift(float* memory) {
  shift_words<kRacy><<<2, kThreads>>>(memory, 0);
  if (!kRacy) shift_words<kRacy><<<2, kThreads>>>(memory, 1);
}

template <void (*kRun)(float*)>
Status run(float* memory) {
  return plain::status_of([=] { kRun(memory); });
}

template <void (*kKernel)(float*), int kBlocks>
void blocks(float* memory) {
  kKernel<<<kBlocks, kThreads>>>(memory);
}

#define PAIR(blocks_, group, name, hazard) \
  {#name, group, hazard, run<blocks<name<true>, blocks_>>, run<blocks<name<false>, blocks_>>}

#define LAST_BLOCK(fault)                                                                  \
  {"last_block/" #fault, "global", kRace, run<blocks<last_block<LastBlock::k##fault>, 3>>, \
   run<blocks<last_block<LastBlock::kRight>, 3>>}

constexpr Pair kPairs[] = {
    PAIR(1, "block barrier", neighbour, kRace),
    PAIR(1, "block barrier", barrier_in_loop, kRace),
    PAIR(2, "block barrier", barrier_in_one_branch, kRace),
    PAIR(2, "block barrier", divergent_barrier, kSynchronizing),
    PAIR(1, "block barrier", reduction_tree, kRace),
    PAIR(1, "block barrier", scan_in_place, kRace),
    PAIR(1, "block barrier", ping_pong, kRace),
    PAIR(1, "block barrier", transpose, kRace),
    PAIR(1, "block barrier", broadcast, kRace),
    PAIR(1, "block barrier", reuse_after_loop, kRace),
    PAIR(1, "index", stride_too_small, kRace),
    PAIR(1, "index", one_element_too_many, kRace),
    PAIR(1, "index", offset_by_one, kRace),
    PAIR(1, "index", index_wraps, kRace),
    PAIR(1, "index", index_from_data, kRace),
    PAIR(1, "index", guard_is_missing, kRace),
    PAIR(1, "index", same_value, kRace),
    PAIR(1, "index", past_the_array, kBounds),
    PAIR(1, "warp", lanes_exchange, kRace),
    PAIR(1, "warp", warp_synchronous, kRace),
    PAIR(1, "warp", mask_is_too_small, kRace),
    PAIR(1, "warp", shuffle_between, kRace),
    PAIR(1, "warp", ballot_between, kRace),
    PAIR(1, "warp", warp_barrier_for_two_warps, kRace),
    PAIR(1, "warp", leader_overwrites, kRace),
    PAIR(1, "atomic", counter, kRace),
    PAIR(1, "atomic", histogram, kRace),
    PAIR(1, "atomic", load_beside_atomics, kRace),
    PAIR(1, "atomic", store_beside_atomics, kRace),
    PAIR(1, "atomic", first_of_three_updates, kRace),
    PAIR(1, "atomic", updates_of_lanes, kRace),
    PAIR(1, "atomic", ticket, kRace),
    PAIR(1, "atomic", first_thread_writes, kRace),
    PAIR(1, "global", block_exchange, kRace),
    PAIR(2, "global", blocks_overlap, kRace),
    PAIR(2, "global", halo_of_next_block, kRace),
    PAIR(2, "global", sum_of_blocks, kRace),
    PAIR(2, "global", load_beside_other_blocks_atomics, kRace),
    PAIR(2, "global", blocks_set_a_flag, kRace),
    PAIR(2, "global", first_of_three_loads, kRace),
    PAIR(2, "global", first_of_three_global_updates, kRace),
    LAST_BLOCK(NoFence),
    LAST_BLOCK(OneFence),
    LAST_BLOCK(NoTicket),
    {"two_launches", "global", kRace, run<shift<true>>, run<shift<false>>},
    PAIR(1, "width", scalar_in_vector, kRace),
    PAIR(1, "width", vector_of_others, kRace),
    PAIR(1, "width", bytes_of_a_word, kRace),
    PAIR(1, "width", halves_of_a_word, kRace),
    PAIR(1, "width", byte_of_a_loaded_word, kRace),
    PAIR(2, "width", bytes_of_a_global_word, kRace),
};

}  // namespace

std::span<const Pair> thread_pairs() { return kPairs; }

}  // namespace tilegate::races
