// Epilogue with staging: results move from registers through shared memory to C, or to the
// workspace. In shared memory they have the layout of the tile, so that neighbouring threads store
// neighbouring columns; there the slices of K are added, too.
//
// Neighbouring columns are swapped in shared memory, because of register banks. The register file
// has two banks, even and odd, and an FFMA whose three sources are in one bank takes longer. A
// vector store needs four consecutive registers, the first of them even; so does the vector load of
// a fragment. If acc[i][0 … 3] were one vector, acc[i][j] and b[j] would both be in registers of
// j's parity for the whole kernel. With acc[i][1], acc[i][0], acc[i][3], acc[i][2] as the vector,
// acc[i][j] and b[j] are in different banks.
#pragma once

#include <cstdint>

#include <tilegate/common/async/config.cuh>
#include <tilegate/common/epilogue.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// Registers to shared memory.
template <typename Config>
__device__ __forceinline__ void stage_results(
    const typename Config::Position& at,
    const float (&acc)[Config::kFragmentM][Config::kFragmentN]) {
  auto& smem = device::shared_storage<typename Config::SharedStorage>();
  device::copy_async_wait<0>();
  __syncthreads();  // the ring has been read, and no copy is in flight, before results overwrite it
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
  __syncthreads();  // all results are stored before any thread reads them
}

// Sum over the slices, in order, of row `row` and columns col … col + 3.
template <typename Config>
__device__ __forceinline__ float4 sum_slices4(int row, int col) {
  auto& smem = device::shared_storage<typename Config::SharedStorage>();
  float4 sum = device::load_vector<float4>(&smem.results[0][row][col]);
#pragma unroll
  for (int slice = 1; slice < Config::kSlices; ++slice) {
    accumulate(sum, device::load_vector<float4>(&smem.results[slice][row][col]));
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

// Stores the whole tile to the workspace, in row-major order.
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

// C ← alpha·sum + beta·C. `target`: C from the tile's first element on, and the shape of what is
// left of it. Elements before (own_row, own_col) belong to other tiles.
template <typename Config>
__device__ __forceinline__ void store_results(const KernelArgs& target, int own_row, int own_col,
                                              bool vectors) {
  const int thread = static_cast<int>(threadIdx.x);
  // So many loads of C, by vectors or rows of words, come before the first store: the compiler must
  // assume that they alias.
  constexpr int kAtATime = 4;
  if (vectors) {
    constexpr int kWords = Config::kBlockM * Config::kBlockN, kStep = 4 * Config::kNumThreads;
    const auto is_inside = [&](int row, int col) {
      return row >= own_row && col >= own_col && row < target.shape.m && col < target.shape.n;
    };
    int word = 4 * thread;
    if (target.beta == 0.0F) {
#pragma unroll 4
      for (; word < kWords; word += kStep) {
        const int row = word / Config::kBlockN, col = word % Config::kBlockN;
        if (is_inside(row, col)) store4<true>(target, row, col, sum_slices4<Config>(row, col));
      }
    }
    for (; word < kWords; word += kAtATime * kStep) {
      // f(i, row, col) for the thread's next vectors.
      const auto for_each = [&](const auto& f) {
#pragma unroll
        for (int i = 0; i < kAtATime; ++i) {
          const int at = word + i * kStep, row = at / Config::kBlockN, col = at % Config::kBlockN;
          if (at < kWords && is_inside(row, col)) f(i, row, col);
        }
      };
      float4 old[kAtATime];
      for_each([&](int i, int row, int col) {
        old[i] = device::load_vector<float4>(target.c + row * target.ldc + col);
      });
      for_each([&](int i, int row, int col) {
        const float4 sum = sum_slices4<Config>(row, col);
        device::store_vector(target.c + row * target.ldc + col,
                             make_float4(target.alpha * sum.x + target.beta * old[i].x,
                                         target.alpha * sum.y + target.beta * old[i].y,
                                         target.alpha * sum.z + target.beta * old[i].z,
                                         target.alpha * sum.w + target.beta * old[i].w));
      });
    }
  } else {
    const auto rows = static_cast<int>(min(target.shape.m, std::int64_t{Config::kBlockM}));
    const auto cols = static_cast<int>(min(target.shape.n, std::int64_t{Config::kBlockN}));
    // In wide tiles each store of a warp is an aligned line of 128 bytes; the first one begins
    // before the row. Narrow tiles would lose more to the additional, partial stores.
    constexpr bool kWholeLines = Config::kBlockN >= 128;
    constexpr int kStores = (Config::kBlockN + (kWholeLines ? 62 : 31)) / 32;
    // f(i, row, col) for the thread's elements of a row.
    const auto for_each = [&](int row, const auto& f) {
      const auto before = reinterpret_cast<std::uintptr_t>(target.c + row * target.ldc) % 128;
      const int first = thread % 32 - (kWholeLines ? static_cast<int>(before / sizeof(float)) : 0);
#pragma unroll
      for (int i = 0; i < kStores; ++i) {
        const int col = first + 32 * i;
        if (row >= rows || col < own_col || col >= cols) continue;
        f(i, row, col);
      }
    };
    constexpr int kStep = Config::kNumThreads / 32;
    int row = own_row + thread / 32;
    if (target.beta == 0.0F) {
      for (; row < rows; row += kStep) {
        for_each(row, [&](int, int at_row, int col) {
          target.c[at_row * target.ldc + col] = target.alpha * sum_slices<Config>(at_row, col);
        });
      }
    }
    for (; row < rows; row += kAtATime * kStep) {
      float old[kAtATime][kStores];
#pragma unroll
      for (int r = 0; r < kAtATime; ++r) {
        for_each(row + r * kStep, [&](int i, int at_row, int col) {
          old[r][i] = target.c[at_row * target.ldc + col];
        });
      }
#pragma unroll
      for (int r = 0; r < kAtATime; ++r) {
        for_each(row + r * kStep, [&](int i, int at_row, int col) {
          target.c[at_row * target.ldc + col] =
              target.alpha * sum_slices<Config>(at_row, col) + target.beta * old[r][i];
        });
      }
    }
  }
}

}  // namespace tilegate
