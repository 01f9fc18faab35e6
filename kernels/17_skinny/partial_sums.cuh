// Partial sums of C in the workspace, and the kernel that reduces them in a fixed order, so that
// the same call gives the same bits. Layout: (batch, split, M, N), without padding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::partial_sums {

// C is small and has up to 512 splits: too few threads for reduce_partials(), which adds them all
// in one thread. Here each warp of a block adds an eighth of the splits, and then the block adds
// eight numbers per element.
constexpr int kAddWarps = 8;
constexpr int kNumThreads = 32 * kAddWarps;
constexpr int kElements = 128;  // of C per block
constexpr int kPerLane = kElements / 32;
static_assert(kElements <= kNumThreads, "one thread adds the warps' sums of an element");

// Elements of one partial sum. Kernels count them in 32 bits.
inline std::int64_t elements(const Shape& shape) { return shape.m * shape.n; }
inline bool fits(const Shape& shape) {
  return static_cast<double>(shape.m) * static_cast<double>(shape.n) < 0x1p31;
}

inline std::size_t bytes(const Problem& problem, int k_splits) {
  return static_cast<std::size_t>(problem.batch * k_splits * elements(problem.shape)) *
         sizeof(float);
}

// Rounding chain of the reduction.
inline std::int64_t rounding_chain(int k_splits) {
  return ceil_div(k_splits, kAddWarps) + std::min(k_splits, kAddWarps);
}

template <int kWarps>
struct SharedStorage {
  float sums[kWarps][kElements];
};

// C ← alpha·(sum of the partial sums) + beta·C, for the whole batch.
template <int kWarps>
__global__ void __launch_bounds__(kNumThreads) add(KernelArgs args, int k_splits) {
  auto& smem = device::shared_storage<SharedStorage<kWarps>>();
  const auto size = static_cast<unsigned>(args.shape.m * args.shape.n);
  const unsigned blocks = (size + kElements - 1) / kElements;  // per matrix of the batch
  const unsigned batch_index = blockIdx.x / blocks;
  const unsigned first = blockIdx.x % blocks * kElements;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* partial = static_cast<const float*>(args.workspace) +
                         std::int64_t{batch_index} * k_splits * size + first + lane;

  device::wait_for_previous_kernel(partial);
  device::launch_dependents();
  float sum[kPerLane]{};
#pragma unroll 4
  for (int split = k_splits * warp / kWarps; split < k_splits * (warp + 1) / kWarps; ++split) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (first + lane + 32 * i < size) sum[i] += partial[std::int64_t{split} * size + 32 * i];
    }
  }
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) smem.sums[warp][lane + 32 * i] = sum[i];
  __syncthreads();  // all warps' sums are stored before any thread adds them
  const unsigned element = first + threadIdx.x;
  if (threadIdx.x >= kElements || element >= size) return;
  float total = smem.sums[0][threadIdx.x];
  for (int i = 1; i < kWarps; ++i) total += smem.sums[i][threadIdx.x];
  const auto cols = static_cast<unsigned>(args.shape.n);
  args.c += batch_index * args.stride_c;
  store_element(args, element / cols, element % cols, total);
}

inline Status enqueue_add(const KernelArgs& args, int k_splits, bool overlaps, Stream stream) {
  return device::launch({.kernel = "add partial sums",
                         .blocks = args.batch * ceil_div(elements(args.shape), kElements),
                         .threads_x = kNumThreads,
                         .shared_bytes = sizeof(SharedStorage<kAddWarps>),
                         .overlaps_previous = overlaps},
                        stream, add<kAddWarps>, args, k_splits);
}

}  // namespace tilegate::partial_sums
