// How the interleaved kernels store a tile: each thread its results, or, where the threads of a
// block multiply different slices of K, the sums of their results.
#pragma once

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/fragment.cuh>
#include <tilegate/common/interleaved/mainloop.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::interleaved {

// C ← alpha·acc + beta·C for the tile from which on `to` has C. The sum over the slices goes
// through shared memory four rows of each thread at a time, in the room of the tiles; first slice
// first.
template <typename Config, typename Layout>
__device__ void store_tile(const KernelArgs& to,
                           const float (&acc)[Config::kThreadM][Config::kThreadN]) {
  constexpr int kN = Config::kThreadN, kSlices = Config::kSlices;
  const auto at = Config::position();
  if constexpr (kSlices == 1) {
    store_parts<Layout::kVector>(to, at.m, at.n, Config::kPartStepM, Config::kPartStepN, acc);
  } else {
    static_assert(kN % kSlices == 0, "each slice adds the same number of vectors");
    auto& sums = device::shared_storage<SharedStorage<Config, Layout>>().sums;
    const int slice = Config::slice();
    const int thread = static_cast<int>(threadIdx.x) % Config::kSliceThreads;
#pragma unroll
    for (int part = 0; part < Config::kThreadM / 4; ++part) {
      __syncthreads();  // what was here has been read before anyone overwrites it
#pragma unroll
      for (int word = 0; word < 4 * kN; ++word) {
        sums[slice][word][thread] = acc[4 * part + word / kN][word % kN];
      }
      __syncthreads();  // all slices are stored before anyone adds them
#pragma unroll
      for (int vector = 0; vector < kN; vector += kSlices) {
        float sum[4];
        const int word = 4 * (vector + slice);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sum[i] = sums[0][word + i][thread];
#pragma unroll
          for (int s = 1; s < kSlices; ++s) sum[i] += sums[s][word + i][thread];
        }
        store4<Layout::kVector>(to, at.m + part * Config::kPartStepM + word / kN,
                                at.n + word % kN / 4 * Config::kPartStepN,
                                make_float4(sum[0], sum[1], sum[2], sum[3]));
      }
    }
  }
}

}  // namespace tilegate::interleaved
