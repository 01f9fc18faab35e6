// The results of a block on their way from registers through shared memory to C, or to the
// workspace. In shared memory they lie as in the tile, so that neighbouring threads store
// neighbouring columns; and there the slices meet.
//
// Neighbours are swapped on the way. A vector store takes its four words from four registers in
// order, the first of them even: if acc[i][0 … 3] went into one vector, acc[i][j] would be in a
// register of the parity of j for the whole kernel, and so are the fragments, which come from
// vector loads. Register files have two banks, even and odd, and an FFMA that finds its three
// sources in one of them takes longer. With acc[i][1], acc[i][0], acc[i][3], acc[i][2] in a vector,
// acc[i][j] has never the parity of b[j].
#pragma once

#include <cstdint>

#include <tilegate/common/async/config.cuh>
#include <tilegate/common/epilogue.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

template <typename Config>
__device__ __forceinline__ void stage_results(
    const typename Config::Position& at,
    const float (&acc)[Config::kFragmentM][Config::kFragmentN]) {
  auto& smem = device::shared_storage<typename Config::SharedStorage>();
  device::copy_async_wait<0>();
  __syncthreads();  // the ring is read, and no copy is on its way, before results overwrite it
#pragma unroll
  for (int i = 0; i < Config::kFragmentM; ++i) {
#pragma unroll
    for (int j = 0; j < Config::kFragmentN; j += 4) {
      const float* v = &acc[i][j];
      device::store_vector(
          &smem.results[at.slice][at.m + Config::row_step(i)][at.n + j / 4 * Config::kStepN],
          Config::kSwapsNeighbours ? make_float4(v[1], v[0], v[3], v[2])
                                   : make_float4(v[0], v[1], v[2], v[3]));
    }
  }
  __syncthreads();  // all results are there before anyone reads them
}

// Sum of the slices, first slice first, of row `row` and columns col … col + 3.
template <typename Config>
__device__ __forceinline__ float4 sum_slices4(int row, int col) {
  auto& smem = device::shared_storage<typename Config::SharedStorage>();
  float4 sum = device::load_vector<float4>(&smem.results[0][row][col]);
#pragma unroll
  for (int slice = 1; slice < Config::kSlices; ++slice) {
    const auto v = device::load_vector<float4>(&smem.results[slice][row][col]);
    sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
  }
  return Config::kSwapsNeighbours ? make_float4(sum.y, sum.x, sum.w, sum.z) : sum;
}

template <typename Config>
__device__ __forceinline__ float sum_slices(int row, int col) {
  auto& smem = device::shared_storage<typename Config::SharedStorage>();
  const int swapped_col = Config::kSwapsNeighbours ? col ^ 1 : col;
  float sum = smem.results[0][row][swapped_col];
#pragma unroll
  for (int slice = 1; slice < Config::kSlices; ++slice)
    sum += smem.results[slice][row][swapped_col];
  return sum;
}

// All of the tile, row by row.
template <typename Config>
__device__ __forceinline__ void store_partial(float* partial) {
  static_assert(Config::kBlockM * Config::kBlockN % (4 * Config::kNumThreads) == 0,
                "vectors past the tile would be stored");
#pragma unroll 4
  for (int word = 4 * static_cast<int>(threadIdx.x); word < Config::kBlockM * Config::kBlockN;
       word += 4 * Config::kNumThreads) {
    device::store_vector(partial + word,
                         sum_slices4<Config>(word / Config::kBlockN, word % Config::kBlockN));
  }
}

// C ← alpha·sum + beta·C, for a `target` whose C begins with the tile and has target.shape rows and
// columns from there on; rows and columns before the own ones are left to others.
template <typename Config>
__device__ __forceinline__ void store_results(const KernelArgs& target, int own_row, int own_col,
                                              bool vectors) {
  const int thread = static_cast<int>(threadIdx.x);
  if (vectors) {
#pragma unroll 4
    for (int word = 4 * thread; word < Config::kBlockM * Config::kBlockN;
         word += 4 * Config::kNumThreads) {
      const int row = word / Config::kBlockN, col = word % Config::kBlockN;
      if (row < own_row || col < own_col) continue;
      if (row >= target.shape.m || col >= target.shape.n) continue;
      store4<true>(target, row, col, sum_slices4<Config>(row, col));
    }
  } else {
    const auto rows = static_cast<int>(min(target.shape.m, std::int64_t{Config::kBlockM}));
    const auto cols = static_cast<int>(min(target.shape.n, std::int64_t{Config::kBlockN}));
    // Where rows are long, each store of a warp is a whole line of 128 bytes: the first begins
    // before the row does. Short ones would lose more to the stores that are cut off.
    constexpr bool kWholeLines = Config::kBlockN >= 128;
    constexpr int kStores = (Config::kBlockN + (kWholeLines ? 62 : 31)) / 32;
    for (int row = own_row + thread / 32; row < rows; row += Config::kNumThreads / 32) {
      const auto before = reinterpret_cast<std::uintptr_t>(target.c + row * target.ldc) % 128;
      const int first = thread % 32 - (kWholeLines ? static_cast<int>(before / sizeof(float)) : 0);
#pragma unroll
      for (int i = 0; i < kStores; ++i) {
        const int col = first + 32 * i;
        if (col < own_col || col >= cols) continue;
        store_element(target, row, col, sum_slices<Config>(row, col));
      }
    }
  }
}

}  // namespace tilegate
