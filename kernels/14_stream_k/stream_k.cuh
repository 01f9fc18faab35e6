// StreamK's kernels: tiles, some of them split along K, and the reduction of their partial sums.
#pragma once

#include <cstdint>

#include <tilegate/common/condition.cuh>
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/interleaved/mainloop.cuh>
#include <tilegate/common/interleaved/plan.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::stream_k {

constexpr int kAddThreads = 256;

// The first `head` tiles take one block each. Each of the `tail` others takes `k_splits` blocks:
// block head + split · tail + tile. Partial sums are in that order in the workspace, each a whole
// tile. SplitK (common/async/split_k.cuh) numbers blocks by tile first, and gives the first splits
// the longer ranges of K: other bits.
struct TailSplit {
  TileScheduler scheduler;
  unsigned head, tail, k_splits;

  __device__ bool is_partial(unsigned block) const { return block >= head; }
  __device__ unsigned tile_index(unsigned block) const {
    return is_partial(block) ? head + (block - head) % tail : block;
  }
  // idea:begin StreamK
  template <typename Config>
  __device__ interleaved::KTiles<Config> k_tiles(unsigned block, std::int64_t k) const {
    auto tiles = interleaved::KTiles<Config>::all(k);
    if (!is_partial(block)) return tiles;
    const std::int64_t all = tiles.end, split = (block - head) / tail;
    tiles.begin = static_cast<int>(all * split / k_splits);
    tiles.end = static_cast<int>(all * (split + 1) / k_splits);
    return tiles;
  }
  // idea:end
};

// For kernels with a condition.
struct LimitedSplit : TailSplit {
  int longest;  // k tiles of a sum, at most
};

template <typename Config>
constexpr std::int64_t kTileWords = std::int64_t{Config::kBlockM} * Config::kBlockN;
template <typename Config>
constexpr unsigned kAddBlocks = kTileWords<Config> / 4 / kAddThreads;  // of `add`, per tile

// The destination of a block: C, or, for a partial sum, a tile of the workspace.
template <typename Config>
__device__ KernelArgs target(const KernelArgs& args, const TileCoord& tile, const TailSplit& split,
                             unsigned block) {
  if (!split.is_partial(block)) return interleaved::from_tile<Config>(args, tile);
  KernelArgs to = args;
  to.c = static_cast<float*>(args.workspace) + (block - split.head) * kTileWords<Config>;
  to.ldc = Config::kBlockN;
  to.shape = {Config::kBlockM, Config::kBlockN, 0};
  to.alpha = 1.0F;
  to.beta = 0.0F;
  return to;
}

// `Order` becomes part of the symbol.
template <typename Config, typename Layout, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args, TailSplit split) {
  device::wait_for_previous_kernel();
  device::launch_dependents();
  auto& smem = device::shared_storage<interleaved::SharedStorage<Config, Layout>>();
  const TileCoord tile = split.scheduler.tile(split.tile_index(blockIdx.x));
  if (threadIdx.x == 0) smem.tile = tile;
  float acc[Config::kThreadM][Config::kThreadN]{};
  interleaved::Loop<Config, Layout>(args, tile, split.k_tiles<Config>(blockIdx.x, args.shape.k))
      .multiply(acc);
  __syncthreads();  // smem.tile is stored before any thread reads it
  interleaved::store_tile<Config, Layout>(target<Config>(args, smem.tile, split, blockIdx.x), acc);
}

template <typename Config, typename Layout>
struct LimitedStorage {
  interleaved::SharedStorage<Config, Layout> loop;  // first: where the loop expects it
  // By words: vectors would put four accumulators into consecutive registers, and with them
  // operands of FFMA into the same register bank.
  float totals[Config::kThreadM][Config::kThreadN][Config::kNumThreads];
};

// The same where a condition holds. Accumulators sum `longest` k tiles, at most, and are then added
// to totals in shared memory, so that the error is that of the shorter sums.
template <typename Config, typename Layout, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm_in_sums(KernelArgs args, LimitedSplit split, Condition when) {
  if (!holds(when)) return;
  device::launch_dependents();
  auto& smem = device::shared_storage<LimitedStorage<Config, Layout>>();
  constexpr int kM = Config::kThreadM, kN = Config::kThreadN;
  float acc[kM][kN]{};
  interleaved::KTiles<Config> rest = split.template k_tiles<Config>(blockIdx.x, args.shape.k);
  bool has_totals = false;
#pragma unroll 1
  while (true) {
    const TileCoord tile = split.scheduler.tile(split.tile_index(blockIdx.x));
    if (threadIdx.x == 0) smem.loop.tile = tile;
    interleaved::KTiles<Config> tiles = rest;
    if (rest.end - rest.begin > split.longest) tiles.end = rest.begin + split.longest;
    interleaved::Loop<Config, Layout>(args, tile, tiles).multiply(acc);
    if (has_totals) {
#pragma unroll
      for (int i = 0; i < kM * kN; ++i)
        acc[i / kN][i % kN] += smem.totals[i / kN][i % kN][threadIdx.x];
    }
    rest.begin = tiles.end;
    if (rest.begin >= rest.end) break;
#pragma unroll
    for (int i = 0; i < kM * kN; ++i) {
      smem.totals[i / kN][i % kN][threadIdx.x] = acc[i / kN][i % kN];
      acc[i / kN][i % kN] = 0.0F;
    }
    has_totals = true;
    __syncthreads();  // all threads have read the last k tile before the next one overwrites it
  }
  __syncthreads();  // smem.loop.tile is stored before any thread reads it
  interleaved::store_tile<Config, Layout>(target<Config>(args, smem.loop.tile, split, blockIdx.x),
                                          acc);
}

// C ← alpha·(sum of the partial sums) + beta·C in the tail; four columns per thread.
template <typename Config, bool kVector, int kInFlight, typename... When>
__global__ void __launch_bounds__(kAddThreads, kReduceBlocksPerSm<kInFlight>)
    add(KernelArgs args, TailSplit split, When... when) {
  if (!holds(when...)) return;
  const unsigned tile = blockIdx.x / kAddBlocks<Config>;
  const unsigned word = (blockIdx.x % kAddBlocks<Config> * kAddThreads + threadIdx.x) * 4;
  const unsigned row = word / Config::kBlockN, col = word % Config::kBlockN;
  const KernelArgs to =
      interleaved::from_tile<Config>(args, split.scheduler.tile(split.head + tile));
  if (row >= to.shape.m || col >= to.shape.n) return;
  const float* partial =
      static_cast<const float*>(args.workspace) + tile * kTileWords<Config> + word;
  const std::int64_t stride = split.tail * kTileWords<Config>;
  store4<kVector>(to, row, col,
                  reduce_partials<float4, kInFlight>(partial, stride, split.k_splits));
}

template <typename Config>
constexpr auto kernel_for =
    []<typename Layout>(Layout) -> interleaved::KernelOf<KernelArgs, TailSplit> {
  if constexpr (Config::template kTakes<Layout>) {
    return {sgemm<Config, Layout, typename Config::Order>,
            sizeof(interleaved::SharedStorage<Config, Layout>)};
  }
  return {};
};

// The kernels that do nothing unless a condition holds, in conditional.cu: beside those without one
// nvcc would inline other functions into both, and 3 of 24 kernels would have other machine code.
template <typename... When>
using AddKernel = void (*)(KernelArgs, TailSplit, When...);
template <typename Config>
struct Conditional {
  // The kernel of the tile for the problem; nullptr: there is none.
  static interleaved::KernelOf<KernelArgs, LimitedSplit, Condition> kernel(const Problem& problem);
  static AddKernel<Condition> add(bool vectors);
  static Status setup();
};

}  // namespace tilegate::stream_k
