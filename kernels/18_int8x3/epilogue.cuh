// Epilogue: fold the levels of each element into FP32, scale, alpha and beta, store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/opaque.cuh>
#include <tilegate/common/store_words.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "digits.cuh"
#include "layout.cuh"

namespace tilegate::int8x3 {

// Dequantization steps of a warpgroup. Each thread loads its share before the main loop and stores
// it to shared memory after the loop. If the epilogue loaded steps between its stores to C, each
// load would wait for memory.
template <typename T>
struct StepShare {
  float row = 0.0F, col = 0.0F;

  __device__ StepShare(const GemmParams& params, const TileCoord& tile, int warpgroup, int thread) {
    const float* rows = params.steps_a + params.a.own(tile.batch_index) * params.a.rows() +
                        std::int64_t{tile.row} * T::kBlockM + T::first_row(warpgroup);
    const std::int64_t first_col = std::int64_t{tile.col} * T::kBlockN;
    const float* cols = params.steps_b + params.b.own(tile.batch_index) * params.b.rows() +
                        params.b.inside(first_col / kChunkRows) * kChunkRows +
                        first_col % kChunkRows;
    if (thread < kBlockM / 2) row = rows[thread];
    if (thread < T::kBlockN) col = cols[thread];
  }

  __device__ void publish(Steps& steps, int warpgroup, int thread) const {
    sync(warpgroup);  // the previous tile's steps have been read
    if constexpr (T::kHasTails) {
      if (thread < kBlockM / 2) steps.exact_row[thread] = exact_step(row);
      if (thread < T::kBlockN) steps.exact_col[thread] = exact_step(col);
    } else {
      if (thread < kBlockM / 2) steps.row[thread] = row;
      if (thread < T::kBlockN) steps.col[thread] = col;
    }
    sync(warpgroup);  // these steps are stored before anyone reads them
  }

  // Barrier of a warpgroup.
  static __device__ void sync(int warpgroup) {
    if (warpgroup == 0) {
      device::named_barrier<2>(kWarpgroup);
    } else {
      device::named_barrier<3>(kWarpgroup);
    }
  }
};

// Accumulators `index` of all levels.
template <typename T>
struct Levels {
  std::int32_t level[T::kLevels];

  __device__ Levels(const std::int32_t (&acc)[T::kLevels][T::kBlockN / 2], int index) {
#pragma unroll
    for (int i = 0; i < T::kLevels; ++i) level[i] = acc[i][index];
  }
};

// Their result, unscaled.
template <typename T>
__device__ float fold_result(const std::int32_t (&acc)[T::kLevels][T::kBlockN / 2], int index) {
  return fold(Levels<T>(acc, index).level);
}

// The same times the steps of the row and the column, which of ten products may be exact ones.
template <typename T, typename Step>
__device__ float scaled_result(const std::int32_t (&acc)[T::kLevels][T::kBlockN / 2], int index,
                               Step row, Step col) {
  if constexpr (!T::kHasTails) {
    return fold_result<T>(acc, index) * (row * col);
  } else if constexpr (std::is_same_v<Step, float>) {
    return scaled_result<T>(acc, index, exact_step(row), exact_step(col));
  } else {
    return scaled_fold_ten(Levels<T>(acc, index).level, row * col);
  }
}

// Folds, scales and stores the results of a warpgroup (64 rows) or of a warp (16 rows). In each 16
// rows lane t has pairs of columns of rows t / 4 and t / 4 + 8 (accumulator layout of wgmma and
// mma). (row, col): the first element in C; `step_rows`, `step_cols`: steps of the rows and columns
// from there on; `float2_c`: C allows float2 accesses; `exchange`: the warp's, see store_words.
template <typename T, typename Step>
__device__ void store_results(const KernelArgs& args, bool float2_c, std::int64_t row,
                              std::int64_t col, int thread, const Step* step_rows,
                              const Step* step_cols,
                              std::int32_t (&acc)[T::kLevels][T::kBlockN / 2], float* exchange) {
  const int of_warp = __shfl_sync(~0U, thread / 32 * 16, 0);  // for nvcc: the same in all lanes
  const int in_eight = thread % 32 / 4, in_col = thread % 4 * 2;
  const int cols = at_most(args.shape.n - col, T::kBlockN);
  const auto for_halves = [&](auto store_half) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int first = of_warp + 8 * half;
      const Step step_row = step_rows[first + in_eight];
      store_half(args.c + (row + first) * args.ldc + col, at_most(args.shape.m - row - first, 8),
                 [&](int group) {
                   const int index = 4 * group + 2 * half;
                   const Step* step_col = step_cols + 8 * group + in_col;
                   return make_float2(scaled_result<T>(acc, index, step_row, step_col[0]),
                                      scaled_result<T>(acc, index + 1, step_row, step_col[1]));
                 });
    }
  };
  if (float2_c) {
    for_halves([&](float* c, int rows, auto pair_of) {
      c += in_eight * args.ldc + in_col;
#pragma unroll
      for (int group = 0; group < T::kBlockN / 8; ++group) {
        const float2 pair = pair_of(group);
        if (in_eight < rows && 8 * group + in_col < cols) {
          store_float2(args, c + 8 * group, pair.x, pair.y);
        }
      }
    });
  } else {
    for_halves([&](float* c, int rows, auto pair_of) {
#pragma unroll
      for (int group = 0; group < T::kBlockN / 8; group += 2) {
        const float2 left = pair_of(group);
        float2 right{};
        if constexpr (T::kBlockN > 8) right = pair_of(group + 1);
        store_words(args, c + 8 * group, rows, cols - 8 * group, thread % 32, in_eight, left, right,
                    exchange);
      }
    });
  }
}

// Staged epilogue: consumers fold a tile into shared memory and go on with the next one, while the
// store warps scale it and store whole rows to C. The consumers themselves store the last tile of a
// block, as nothing runs beside it.

// Barrier arrival of a whole warp.
__device__ inline void warp_arrive(device::Barrier& barrier) {
  __syncwarp();  // after the accesses of all lanes
  if (threadIdx.x % 32 == 0) device::barrier_arrive(barrier);
}

// Consumer warp: folds its 16 rows of the tile, from `row` on. Lane t has pairs of columns of rows
// t / 4 and t / 4 + 8.
template <typename T>
__device__ void fold_results(const std::int32_t (&acc)[T::kLevels][T::kBlockN / 2], int row,
                             int lane, float* folded) {
  float* to = folded + (row + lane / 4) * kFoldedRow + lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int group = 0; group < T::kBlockN / 8; ++group) {
      const int index = 4 * group + 2 * half;
      device::store_vector(to + 8 * half * kFoldedRow + 8 * group,
                           make_float2(fold_result<T>(acc, index), fold_result<T>(acc, index + 1)));
    }
  }
}

// Store warps: load the dequantization steps of the tile.
template <typename T>
__device__ void fetch_steps(const GemmParams& params, const TileCoord& tile, int thread,
                            Steps& steps) {
  const std::int64_t col = std::int64_t{tile.col} * T::kBlockN;
  const float* rows = params.steps_a + params.a.own(tile.batch_index) * params.a.rows() +
                      std::int64_t{tile.row} * kBlockM;
  const float* cols = params.steps_b + params.b.own(tile.batch_index) * params.b.rows() +
                      params.b.inside(col / kChunkRows) * kChunkRows + col % kChunkRows;
  for (int i = thread; i < kBlockM; i += 32 * kStoreWarps) steps.row[i] = rows[i];
  for (int i = thread; i < T::kBlockN; i += 32 * kStoreWarps) steps.col[i] = cols[i];
}

// One warp: stores rows `first`, `first` + step, … before `end` of a tile. V: float2, or float
// where C allows no float2. A store has 32 neighbouring V.
template <typename T, int kUnroll, typename V>
__device__ void store_rows(const KernelArgs& args, const GemmParams& params, const TileCoord& tile,
                           int first, int end, int step, const Steps& steps, const float* folded) {
  constexpr int kWidth = sizeof(V) / sizeof(float), kOfWarp = 32 * kWidth;
  constexpr int kStores = T::kBlockN / kOfWarp;
  const auto load = [](const float* from) {
    if constexpr (kWidth == 1) return *from;
    if constexpr (kWidth == 2) return device::load_vector<V>(from);
  };
  const int col = static_cast<int>(threadIdx.x) % 32 * kWidth;
  const std::int64_t row_of_c = std::int64_t{tile.row} * kBlockM,
                     col_of_c = std::int64_t{tile.col} * T::kBlockN + col;
  const std::int64_t rows_left = args.shape.m - row_of_c, cols_left = args.shape.n - col_of_c;
  if (rows_left < end) end = static_cast<int>(rows_left);
  const int cols = cols_left < 0 ? 0 : cols_left < 128 ? static_cast<int>(cols_left) : 128;
  float* c = args.c + tile.batch_index * args.stride_c + (row_of_c + first) * args.ldc + col_of_c;
  V step_cols[kStores];
#pragma unroll
  for (int i = 0; i < kStores; ++i) step_cols[i] = load(steps.col + kOfWarp * i + col);
#pragma unroll kUnroll
  for (int row = first; row < end; row += step, c += step * args.ldc) {
    const float step_row = steps.row[row];
#pragma unroll
    for (int i = 0; i < kStores; ++i) {
      const V sums = load(folded + row * kFoldedRow + kOfWarp * i + col);
      if constexpr (kWidth == 1) {
        const float sum = sums * (step_row * step_cols[i]);
        if (kOfWarp * i < cols) store(args, c + kOfWarp * i, sum);
      } else {
        const float sum[2] = {sums.x * (step_row * step_cols[i].x),
                              sums.y * (step_row * step_cols[i].y)};
        if (kOfWarp * i >= cols) continue;
        if (params.evicts_first) {
          store_float2<true>(args, c + kOfWarp * i, sum[0], sum[1]);
        } else {
          store_float2(args, c + kOfWarp * i, sum[0], sum[1]);
        }
      }
    }
  }
}

// The same with the width that C allows.
template <typename T, int kUnroll>
__device__ void store_rows(const KernelArgs& args, const GemmParams& params, const TileCoord& tile,
                           int first, int end, int step, const Steps& steps, const float* folded) {
  if (params.float2_c) {
    store_rows<T, kUnroll, float2>(args, params, tile, first, end, step, steps, folded);
  } else {
    store_rows<T, kUnroll, float>(args, params, tile, first, end, step, steps, folded);
  }
}

// The epilogue of a consumer thread. Constructed before the main loop.
template <typename T, bool kIsStaged = T::kIsStaged>
struct TileEpilogue {
  StepShare<T> share;
  int warpgroup, thread;

  __device__ TileEpilogue(const GemmParams& params, const TileCoord& tile, int warpgroup_,
                          int thread_)
      : share(params, tile, warpgroup_, thread_), warpgroup(warpgroup_), thread(thread_) {}

  __device__ void store(const KernelArgs& args, const GemmParams& params, const TileCoord& tile,
                        unsigned /*index*/, bool /*is_last*/,
                        std::int32_t (&acc)[T::kLevels][T::kBlockN / 2], GemmStorage& smem) {
    const int own = static_cast<int>(opaque(static_cast<unsigned>(thread)));
    const Steps& steps = smem.steps[warpgroup];
    share.publish(smem.steps[warpgroup], warpgroup, own);
    KernelArgs matrix = args;
    matrix.c += tile.batch_index * args.stride_c;
    const auto store = [&](const auto* step_rows, const auto* step_cols) {
      store_results<T>(matrix, params.float2_c,
                       std::int64_t{tile.row} * T::kBlockM + T::first_row(warpgroup),
                       std::int64_t{tile.col} * T::kBlockN, own, step_rows, step_cols, acc,
                       smem.exchange[warpgroup * (kWarpgroup / 32) + own / 32]);
    };
    if constexpr (T::kHasTails) {
      store(steps.exact_row, steps.exact_col);
    } else {
      store(steps.row, steps.col);
    }
  }
};

template <typename T>
struct TileEpilogue<T, true> {
  int row, lane;  // row: the warp's first of 16 in the tile

  __device__ TileEpilogue(const GemmParams& /*params*/, const TileCoord& /*tile*/, int warpgroup,
                          int thread)
      : row(warpgroup * (kBlockM / 2) + thread / 32 * 16), lane(thread % 32) {}

  __device__ void store(const KernelArgs& args, const GemmParams& params, const TileCoord& tile,
                        unsigned index, bool is_last,
                        std::int32_t (&acc)[T::kLevels][T::kBlockN / 2], GemmStorage& smem) {
    device::barrier_wait(smem.is_stored, (index % 2) ^ 1);  // the previous tile
    fold_results<T>(acc, row, lane, smem.folded);
    if (is_last) {
      __syncwarp();  // the warp's rows are stored before any lane reads them
      device::barrier_wait(smem.steps_ready, index % 2);
      store_rows<T, 4>(args, params, tile, row, row + 16, 1, smem.steps[index % 2], smem.folded);
    } else {
      warp_arrive(smem.results_ready);
    }
  }
};

// Store warps: one staged tile.
template <typename T>
__device__ void store_staged_tile(const KernelArgs& args, const GemmParams& params,
                                  const TileCoord& tile, unsigned index, bool is_last, int thread,
                                  GemmStorage& smem) {
  Steps& steps = smem.steps[index % 2];
  fetch_steps<T>(params, tile, thread, steps);
  warp_arrive(smem.steps_ready);
  if (is_last) return;
  device::barrier_wait(smem.steps_ready, index % 2);
  device::barrier_wait(smem.results_ready, index % 2);
  store_rows<T, 1>(args, params, tile, thread / 32, kBlockM, kStoreWarps, steps, smem.folded);
  warp_arrive(smem.is_stored);
}

}  // namespace tilegate::int8x3
