// The second kernel of a product whose tiles are split along K (k_split.cuh): it adds the partial
// sums of each tile, first part first, so that the same call gives the same bits.
#pragma once

#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/common/k_split.cuh>
#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::split_sums {

constexpr int kNumThreads = 256;

// C ← alpha·(sum of the partial sums) + beta·C for the tiles that are split; a vector of C, or a
// word, per thread.
template <bool kVectors>
__global__ void __launch_bounds__(kNumThreads) add(KernelArgs args, KSplit split) {
  constexpr int kWords = kVectors ? 4 : 1;
  const auto size = static_cast<unsigned>(split.partial_size());
  const unsigned blocks = size / (kNumThreads * kWords);  // per tile
  const unsigned tile = blockIdx.x / blocks;
  const unsigned word = (blockIdx.x % blocks * kNumThreads + threadIdx.x) * kWords;
  const auto row = static_cast<int>(word / split.block_n);
  const auto col = static_cast<int>(word % split.block_n);
  const KSplit::Part part = split.tile(split.whole + tile);
  if (row < part.own_row || col < part.own_col) return;
  if (row >= args.shape.m - part.row || col >= args.shape.n - part.col) return;

  const unsigned parts = split.parts.value();
  const float* partial =
      static_cast<const float*>(args.workspace) + std::int64_t{tile} * parts * size + word;
  args.c += part.product * args.stride_c;
  if constexpr (kVectors) {
    float4 sum = device::load_vector<float4>(partial);
#pragma unroll 8
    for (unsigned i = 1; i < parts; ++i) {
      const auto v = device::load_vector<float4>(partial + std::int64_t{i} * size);
      sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
    }
    store4<true>(args, part.row + row, part.col + col, sum);
  } else {
    float sum = *partial;
#pragma unroll 8
    for (unsigned i = 1; i < parts; ++i) sum += partial[std::int64_t{i} * size];
    store_element(args, part.row + row, part.col + col, sum);
  }
}

// Of `tiles` tiles; the kernel of the parts has been enqueued before.
inline Status enqueue(const KernelArgs& args, const KSplit& split, std::int64_t tiles,
                      Stream stream) {
  const int words = split.vectors ? 4 : 1;
  return device::launch({.kernel = "add partial sums",
                         .blocks = tiles * (split.partial_size() / (kNumThreads * words)),
                         .threads_x = kNumThreads},
                        stream, split.vectors ? add<true> : add<false>, args, split);
}

}  // namespace tilegate::split_sums
