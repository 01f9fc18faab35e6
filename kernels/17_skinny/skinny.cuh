// The first kernel of Skinny: one tile of C, or the partial sum of one split of it, per block.
//
// The big operand streams through a ring of k tiles in shared memory, read once and by nobody else
// (where C has one strip). Each warp takes an eighth of every k tile; at the end their sums are
// added in order.
#pragma once

#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/device/device.cuh>

#include "config.cuh"
#include "copy.cuh"
#include "multiply.cuh"

namespace tilegate::skinny {

// Which part of the task a block computes. Strips of the short extent come first, because they
// share the big operand; then tiles of the long one, splits of K, and products.
template <typename Config>
struct Place {
  unsigned strip, tile, split, product;

  __device__ explicit Place(const Task& task) {
    const auto strips = static_cast<unsigned>(ceil_div(task.s, Config::kBlockS));
    const auto tiles = static_cast<unsigned>(ceil_div(task.x, Config::kBlockX));
    const auto splits = static_cast<unsigned>(task.splits);
    strip = blockIdx.x % strips;
    tile = blockIdx.x / strips % tiles;
    split = blockIdx.x / strips / tiles % splits;
    product = blockIdx.x / strips / tiles / splits;
  }

  __device__ std::int64_t s() const { return std::int64_t{strip} * Config::kBlockS; }  // the first
  __device__ std::int64_t x() const { return std::int64_t{tile} * Config::kBlockX; }

  // The split's range of k: whole tiles, as evenly as possible.
  __device__ std::int64_t k_begin(const Task& task) const { return k_boundary(task, split); }
  __device__ std::int64_t k_end(const Task& task) const {
    return min(k_boundary(task, split + 1), task.k);
  }

 private:
  static __device__ std::int64_t k_boundary(const Task& task, unsigned split) {
    return ceil_div(task.k, Config::kBlockK) * split / task.splits * Config::kBlockK;
  }
};

// C(x, s) ← alpha·sum + beta·C(x, s); with beta == 0, C is not read.
inline __device__ void store(const Task& task, float* c, std::int64_t x, std::int64_t s,
                             float sum) {
  c += x * task.stride_x + s * task.stride_s;
  *c = task.beta == 0.0F ? task.alpha * sum : task.alpha * sum + task.beta * *c;
}

// v: kVectorS sums. Those with an even s change places with their neighbours: a vector in registers
// is aligned, and so would have accumulators and the small operand's fragment, vectors both, of one
// s in one register bank. This way they are in different ones.
template <int kSize>
__device__ void store_swapped(float* smem, const float* v) {
  if constexpr (kSize == 4) {
    device::store_vector(smem, make_float4(v[1], v[0], v[3], v[2]));
  } else if constexpr (kSize == 2) {
    device::store_vector(smem, make_float2(v[1], v[0]));
  } else {
    *smem = v[0];
  }
}

// C ← the sums over the warps, first to last.
template <typename Config>
__device__ void store_tile(const Task& task, const Place<Config>& place, const Lane<Config>& lane,
                           const float (&acc)[Config::kThreadX][Config::kThreadS]) {
  constexpr int kVector = Config::kVectorS, kThreadS = Config::kThreadS, kSumS = Config::kSumS;
  auto& sums = device::shared_storage<WarpSums<Config>>().sums;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* const c = task.c + place.product * task.product_c + place.split * task.split_c;
  // Neighbouring threads store to neighbouring words of C.
  const bool x_first = task.stride_x == 1;
#pragma unroll
  for (int first = 0; first < kThreadS; first += kSumS) {  // of the lane's columns
    __syncthreads();  // the last k tile, or the last sums, are read before these overwrite them
#pragma unroll
    for (int i = 0; i < Config::kThreadX; ++i) {
#pragma unroll
      for (int s = 0; s < kSumS; s += kVector) {
        store_swapped<kVector>(&sums[warp][lane.x(i)][lane.s() / kThreadS * kSumS + s],
                               &acc[i][first + s]);
      }
    }
    __syncthreads();  // all sums are stored before anyone adds them
    constexpr int kVectors = Config::kSumCols / kVector;
    for (int e = static_cast<int>(threadIdx.x); e < kVectors * Config::kBlockX; e += kNumThreads) {
      const int x = x_first ? e % Config::kBlockX : e / kVectors;
      const int col = (x_first ? e / Config::kBlockX : e % kVectors) * kVector;
      float sum[kVector];
      load_words<kVector>(sum, &sums[0][x][col]);
#pragma unroll
      for (int w = 1; w < kNumWarps; ++w) {
        float next[kVector];
        load_words<kVector>(next, &sums[w][x][col]);
#pragma unroll
        for (int j = 0; j < kVector; ++j) sum[j] += next[j];
      }
      const std::int64_t to_x = place.x() + x;
      const std::int64_t to_s = place.s() + col / kSumS * kThreadS + first + col % kSumS;
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        if (to_x >= task.x || to_s + j >= task.s) continue;
        store(task, c, to_x, to_s + j, sum[kVector == 1 ? j : j ^ 1]);
      }
    }
  }
}

// Waits until at most `pending` of the thread's groups of copies are in flight; rounded down to
// what there is an instruction for.
inline __device__ void wait_for_copies(int pending) {
  if (pending >= 8) {
    device::copy_async_wait<8>();
  } else if (pending >= 4) {
    device::copy_async_wait<4>();
  } else if (pending == 3) {
    device::copy_async_wait<3>();
  } else if (pending == 2) {
    device::copy_async_wait<2>();
  } else if (pending == 1) {
    device::copy_async_wait<1>();
  } else {
    device::copy_async_wait<0>();
  }
}

// `Order` is there to be part of the symbol.
template <typename Config, typename Order>
__global__ void __launch_bounds__(kNumThreads, Config::kBlocksPerSm) multiply(Task task) {
  KTile<Config>* const ring = &device::shared_storage<KTile<Config>>();  // task.depth of them
  const Place<Config> place(task);
  const Lane<Config> lane;
  const int warp_k = static_cast<int>(threadIdx.x) / 32 * Config::kWarpK;

  using Big = BigCopies<Config>;
  using SmallAlongK = SmallCopiesAlongK<Config>;
  using SmallAlongS = SmallCopiesAlongS<Config>;
  constexpr bool kBigAlongX = Config::kBigAlong == Along::kX;
  const std::int64_t k_begin = place.k_begin(task);
  const auto k_count = static_cast<int>(place.k_end(task) - k_begin);
  const std::int64_t ld_big = task.ld_big, ld_small = task.ld_small;
  const float* const big =
      task.big + place.product * task.product_big +
      (kBigAlongX ? k_begin * ld_big + place.x() : place.x() * ld_big + k_begin);
  const float* const small =
      task.small + place.product * task.product_small +
      (task.small_along_k ? place.s() * ld_small + k_begin : k_begin * ld_small + place.s());
  CopyPosition big_at = Big::start(big, ld_big, task.x - place.x());
  CopyPosition small_at = task.small_along_k
                              ? SmallAlongK::start(small, ld_small, task.s - place.s())
                              : SmallAlongS::start(small, ld_small, task.s - place.s());

  constexpr int kBlockK = Config::kBlockK;
  constexpr auto kTileBytes = static_cast<unsigned>(sizeof(KTile<Config>));
  constexpr auto kSmallOffset = static_cast<unsigned>(sizeof(KTile<Config>::big));
  const device::SharedAddress ring_begin = device::shared_address(ring);
  // The next k tile, of whose k `left` are inside; after the last one, an empty group.
  const auto copy = [&](int slot, int left) {
    if (left > 0) {
      const device::SharedAddress to = ring_begin + slot * kTileBytes;
      Big::copy(big_at, ld_big, to, left);
      if (task.small_along_k) {
        SmallAlongK::copy(small_at, ld_small, to + kSmallOffset, left);
      } else {
        SmallAlongS::copy(small_at, ld_small, to + kSmallOffset, left);
      }
    }
    device::copy_async_commit();
  };

  device::wait_for_previous_kernel();
  device::let_next_kernel_start();
  const int depth = task.depth, k_ahead = (depth - 1) * kBlockK;
#pragma unroll 1
  for (int slot = 0; slot < depth - 1; ++slot) copy(slot, k_count - slot * kBlockK);
  float acc[Config::kThreadX][Config::kThreadS]{};
  int slot = 0;
#pragma unroll 1
  for (int k_left = k_count; k_left > 0; k_left -= kBlockK) {
    wait_for_copies(depth - 2);
    // The slot's copies are complete for all threads before anyone reads it, and the slot before it
    // is read by all before the next copies overwrite it.
    __syncthreads();
    copy(slot == 0 ? depth - 1 : slot - 1, k_left - k_ahead);
    multiply_tile<Config>(ring[slot], warp_k, lane, acc);
    slot = slot + 1 == depth ? 0 : slot + 1;
  }
  store_tile<Config>(task, place, lane, acc);
}

}  // namespace tilegate::skinny
