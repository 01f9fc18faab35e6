// The kernels of Skinny for one row or column of C: products of a matrix and a vector.
//
// No word of the matrix is used twice, so none goes through shared memory. Each thread loads
// several vectors, or words, into registers before it multiplies the first; many warps per
// multiprocessor keep enough loads in flight.
#pragma once

#include <bit>
#include <cstdint>

#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>

#include "skinny.cuh"

namespace tilegate::skinny {

inline constexpr int kGemvBlocksPerSm = 4;  // a thread has at most 64 registers

// The work of a block: one tile of C, for one split of K and one matrix of the batch. blockIdx.x
// counts them in this order. A split is a whole number of k tiles, of kBlockK.
template <int kBlockX, int kBlockK>
struct GemvTile {
  unsigned split, batch_index;
  std::int64_t x, k;  // the first
  int k_count;

  __device__ explicit GemvTile(const Task& task) {
    const auto tiles = static_cast<unsigned>(ceil_div(task.x, kBlockX));
    const auto k_splits = static_cast<unsigned>(task.k_splits);
    const unsigned tile = blockIdx.x % tiles;
    split = blockIdx.x / tiles % k_splits;
    batch_index = blockIdx.x / tiles / k_splits;
    const auto boundary = [&](unsigned i) {
      return min(ceil_div(task.k, kBlockK) * i / k_splits * kBlockK, task.k);
    };
    x = std::int64_t{tile} * kBlockX;
    k = boundary(split);
    k_count = static_cast<int>(boundary(split + 1) - k);
  }

  __device__ const float* big(const Task& task) const {
    return task.big + batch_index * task.batch_stride_big;
  }
  __device__ const float* small(const Task& task, std::int64_t stride) const {
    return task.small + batch_index * task.batch_stride_small + k * stride;
  }
  __device__ float* c(const Task& task) const {
    return task.c + batch_index * task.batch_stride_c + split * task.split_c;
  }
};

// Elements of the small operand from one k to the next.
inline __device__ std::int64_t stride_of_small(const Task& task) {
  return task.small_along_k ? 1 : task.ld_small;
}

// sums ← their sums over the lanes of a warp that have the same number modulo kLanes.
template <int kLanes, int kCount>
__device__ void add_lanes(float (&sums)[kCount]) {
#pragma unroll
  for (int lanes = 16; lanes >= kLanes; lanes /= 2) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i] += __shfl_xor_sync(~0U, sums[i], lanes);
  }
}

// Rows of the matrix lie along k. A warp has four of them; kRowWarps_ warps share their rows, and
// take parts of 32·kWidth_ words in turn.
template <int kWidth_, int kRowWarps_>
struct GemvAlongK {
  static constexpr int kWidth = kWidth_, kRowWarps = kRowWarps_, kRows = 4;
  static constexpr int kBlockX = kNumWarps / kRowWarps * kRows, kBlockK = kRowWarps * 32 * kWidth;
  static constexpr int kTilesAtATime = kWidth == 4 ? 2 : 4;
  // On the longest way to a result: per k tile, and after the k tiles.
  static constexpr int kTileAdditions = kWidth, kLastAdditions = 5 + kRowWarps - 1;

  struct SharedStorage {
    float sums[kNumWarps][kRows];
  };

  static __device__ void multiply(const Task& task, SharedStorage& smem) {
    const GemvTile<kBlockX, kBlockK> tile(task);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t stride = stride_of_small(task);
    const float* const small = tile.small(task, stride);
    const float* rows[kRows];  // beyond the matrix the last one, whose sum is not stored
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const std::int64_t row = min(tile.x + warp / kRowWarps * kRows + i, task.x - 1);
      rows[i] = tile.big(task) + row * task.ld_big + tile.k;
    }

    device::wait_for_previous_kernel(rows[0], small);
    device::launch_dependents();
    float sums[kRows]{};
#pragma unroll 1
    for (int k = (warp % kRowWarps * 32 + lane) * kWidth; k < tile.k_count;
         k += kTilesAtATime * kBlockK) {
      float big[kTilesAtATime][kRows][kWidth]{}, of_small[kTilesAtATime][kWidth]{};
#pragma unroll
      for (int i = 0; i < kTilesAtATime; ++i) {
        const int at = k + i * kBlockK;
        if (at >= tile.k_count) continue;
#pragma unroll
        for (int row = 0; row < kRows; ++row) load_words<kWidth>(big[i][row], rows[row] + at);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) of_small[i][j] = small[(at + j) * stride];
      }
#pragma unroll
      for (int i = 0; i < kTilesAtATime; ++i) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
#pragma unroll
          for (int row = 0; row < kRows; ++row) sums[row] += big[i][row][j] * of_small[i][j];
        }
      }
    }
    add_lanes<1>(sums);
    if (lane == 0) {
#pragma unroll
      for (int row = 0; row < kRows; ++row) smem.sums[warp][row] = sums[row];
    }
    __syncthreads();  // all warps' sums are stored before any thread adds them
    const auto x = static_cast<int>(threadIdx.x);
    if (x >= kBlockX || tile.x + x >= task.x) return;
    const int first = x / kRows * kRowWarps;
    float sum = smem.sums[first][x % kRows];
#pragma unroll
    for (int i = 1; i < kRowWarps; ++i) sum += smem.sums[first + i][x % kRows];
    store(task, tile.c(task), tile.x + x, 0, sum);
  }
};

// Rows of the matrix lie along x. kLanesX lanes of a warp share a row; the warp's other lanes, and
// the block's other warps, have other rows.
template <int kWidth_, int kLanesX_>
struct GemvAlongX {
  static constexpr int kWidth = kWidth_, kLanesX = kLanesX_, kLanesK = 32 / kLanesX;
  static constexpr int kBlockX = kLanesX * kWidth, kBlockK = kNumWarps * kLanesK;
  static constexpr int kTilesAtATime = kWidth == 4 ? 8 : 16;
  static constexpr int kTileAdditions = 1,
                       kLastAdditions = std::countr_zero(unsigned{kLanesK}) + kNumWarps - 1;

  struct SharedStorage {
    float sums[kNumWarps][kBlockX];
  };

  static __device__ void multiply(const Task& task, SharedStorage& smem) {
    const GemvTile<kBlockX, kBlockK> tile(task);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int x = lane % kLanesX * kWidth, first = warp * kLanesK + lane / kLanesX;
    const std::int64_t stride = stride_of_small(task);
    const bool inside = tile.x + x < task.x;
    const float* big = tile.big(task) + (tile.k + first) * task.ld_big + (inside ? tile.x + x : 0);
    const float* small = tile.small(task, stride) + first * stride;

    device::wait_for_previous_kernel(big, small);
    device::launch_dependents();
    float sums[kWidth]{};
#pragma unroll 1
    for (int left = tile.k_count - first; left > 0; left -= kTilesAtATime * kBlockK) {
      float rows[kTilesAtATime][kWidth]{}, of_small[kTilesAtATime]{};
#pragma unroll
      for (int i = 0; i < kTilesAtATime; ++i) {
        if (i * kBlockK >= left) continue;
        load_words<kWidth>(rows[i], big + i * kBlockK * task.ld_big);
        of_small[i] = small[i * kBlockK * stride];
      }
      big += kTilesAtATime * kBlockK * task.ld_big, small += kTilesAtATime * kBlockK * stride;
#pragma unroll
      for (int i = 0; i < kTilesAtATime; ++i) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) sums[j] += rows[i][j] * of_small[i];
      }
    }
    add_lanes<kLanesX>(sums);
    if (lane < kLanesX) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) smem.sums[warp][x + j] = sums[j];
    }
    __syncthreads();  // all warps' sums are stored before any thread adds them
    const auto col = static_cast<int>(threadIdx.x);
    if (col >= kBlockX || tile.x + col >= task.x) return;
    float sum = smem.sums[0][col];
#pragma unroll
    for (int i = 1; i < kNumWarps; ++i) sum += smem.sums[i][col];
    store(task, tile.c(task), tile.x + col, 0, sum);
  }
};

// C(x, 0) ← alpha·sum over k of big(x, k)·small(k, 0) + beta·C(x, 0); with splits, a partial sum.
template <typename Config>
__global__ void __launch_bounds__(kNumThreads, kGemvBlocksPerSm) gemv(Task task) {
  Config::multiply(task, device::shared_storage<typename Config::SharedStorage>());
}

}  // namespace tilegate::skinny
