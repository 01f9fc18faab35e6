// Partial sums of C in the workspace, and the kernel that adds them in a fixed order, so that the
// same call gives the same bits. Split z of product p has an M×N matrix of its own, without
// padding: number p·splits + z.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::partial_sums {

// Few splits, few loads; many, and their latencies would add up. So each warp of a block adds an
// eighth of the splits, and then the block adds eight numbers per element.
constexpr int kParts = 8;
constexpr int kNumThreads = 32 * kParts;
constexpr int kElements = 128;  // of C per block
constexpr int kPerLane = kElements / 32;
static_assert(kElements <= kNumThreads, "one thread adds the parts of an element");

// Elements of one partial sum. Kernels count them in 32 bits.
inline std::int64_t elements(const Shape& shape) { return shape.m * shape.n; }
inline bool fits(const Shape& shape) {
  return static_cast<double>(shape.m) * static_cast<double>(shape.n) < 0x1p31;
}

inline std::size_t bytes(const Problem& problem, int splits) {
  return static_cast<std::size_t>(problem.batch * splits * elements(problem.shape)) * sizeof(float);
}

// Additions on the longest way of a partial sum to C.
inline std::int64_t rounding_chain(int splits) {
  return ceil_div(splits, kParts) + std::min(splits, kParts);
}

template <int kSplitParts>
struct SharedStorage {
  float sums[kSplitParts][kElements];
};

// C ← alpha·(sum of the partial sums) + beta·C; batches of C.
template <int kSplitParts>
__global__ void __launch_bounds__(kNumThreads) add(KernelArgs args, int splits) {
  auto& smem = device::shared_storage<SharedStorage<kSplitParts>>();
  const auto size = static_cast<unsigned>(args.shape.m * args.shape.n);
  const unsigned blocks = (size + kElements - 1) / kElements;  // per product
  const unsigned product = blockIdx.x / blocks;
  const unsigned first = blockIdx.x % blocks * kElements;
  const int part = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* partial = static_cast<const float*>(args.workspace) +
                         std::int64_t{product} * splits * size + first + lane;

  device::wait_for_previous_kernel();
  device::launch_dependents();
  float sum[kPerLane]{};
#pragma unroll 4
  for (int split = splits * part / kSplitParts; split < splits * (part + 1) / kSplitParts;
       ++split) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (first + lane + 32 * i < size) sum[i] += partial[std::int64_t{split} * size + 32 * i];
    }
  }
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) smem.sums[part][lane + 32 * i] = sum[i];
  __syncthreads();  // all parts are stored before anyone adds them
  const unsigned element = first + threadIdx.x;
  if (threadIdx.x >= kElements || element >= size) return;
  float total = smem.sums[0][threadIdx.x];
  for (int i = 1; i < kSplitParts; ++i) total += smem.sums[i][threadIdx.x];
  const auto cols = static_cast<unsigned>(args.shape.n);
  args.c += product * args.stride_c;
  store_element(args, element / cols, element % cols, total);
}

inline Status enqueue_add(const KernelArgs& args, int splits, bool overlaps, Stream stream) {
  return device::launch({.kernel = "add partial sums",
                         .blocks = args.batch * ceil_div(elements(args.shape), kElements),
                         .threads_x = kNumThreads,
                         .shared_bytes = sizeof(SharedStorage<kParts>),
                         .overlaps_previous = overlaps},
                        stream, add<kParts>, args, splits);
}

}  // namespace tilegate::partial_sums
