#include <algorithm>

#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>

#include "kernels.hpp"

namespace tilegate::distributed {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kMostBlocks = 1 << 20;  // then threads loop over elements

__device__ inline std::int64_t first_element() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ inline std::int64_t next_element(std::int64_t element) {
  return element + static_cast<std::int64_t>(gridDim.x) * kThreads;
}

__global__ void pack(PackArgs args) {
  for (std::int64_t i = first_element(); i < args.rows * args.k; i = next_element(i)) {
    const std::int64_t row = i / args.k, k = i % args.k;
    args.packed[i] = args.a[args.op == Op::kN ? row * args.lda + k : k * args.lda + row];
  }
}

__global__ void sum(SumArgs args) {
  const std::int64_t elements = args.rows * args.n;
  for (std::int64_t i = first_element(); i < elements; i = next_element(i)) {
    const float* others = args.others + i;
    float total = 0.0F;
    for (int rank = 0; rank < args.size; ++rank) {
      float partial = args.own[i];
      if (rank != args.rank) {
        partial = *others;
        others += elements;
      }
      total = rank == 0 ? partial : total + partial;
    }
    float& c = args.c[i / args.n * args.ldc + i % args.n];
    c = args.beta == 0.0F ? args.alpha * total : args.alpha * total + args.beta * c;
  }
}

template <typename Args>
Status enqueue(const char* name, std::int64_t elements, void (*kernel)(Args), const Args& args,
               Stream stream) {
  if (elements == 0) return {};
  return device::launch({.kernel = name,
                         .blocks = std::min(ceil_div(elements, kThreads), kMostBlocks),
                         .threads_x = kThreads},
                        stream, kernel, args);
}

Status enqueue_pack(const PackArgs& args, Stream stream) {
  return enqueue("pack own rows", args.rows * args.k, pack, args, stream);
}

Status enqueue_sum(const SumArgs& args, Stream stream) {
  return enqueue("add partial sums", args.rows * args.n, sum, args, stream);
}

}  // namespace tilegate::distributed
