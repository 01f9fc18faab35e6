// StreamK's kernels: tiles, some of them split along K, and the reduction of their partial sums.
#pragma once

#include <cstdint>

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

// C ← alpha·(sum of the partial sums) + beta·C in the tail; four columns per thread.
template <typename Config, bool kVector, int kInFlight>
__global__ void __launch_bounds__(kAddThreads, kReduceBlocksPerSm<kInFlight>)
    add(KernelArgs args, TailSplit split) {
  const unsigned tile = blockIdx.x / kAddBlocks<Config>;
  const unsigned word = (blockIdx.x % kAddBlocks<Config> * kAddThreads + threadIdx.x) * 4;
  const unsigned row = word / Config::kBlockN, col = word % Config::kBlockN;
  const KernelArgs to =
      interleaved::from_tile<Config>(args, split.scheduler.tile(split.head + tile));
  device::wait_for_previous_kernel(to.c);
  if (row >= to.shape.m || col >= to.shape.n) return;
  const float* partial =
      static_cast<const float*>(args.workspace) + tile * kTileWords<Config> + word;
  const std::int64_t stride = split.tail * kTileWords<Config>;
  store4<kVector>(to, row, col, reduce_partials<kInFlight>(partial, stride, split.k_splits));
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

}  // namespace tilegate::stream_k
