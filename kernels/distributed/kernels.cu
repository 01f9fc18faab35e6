#include <algorithm>
#include <cstdint>

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

__device__ inline float sum_of(float a, float b) { return a + b; }
__device__ inline float4 sum_of(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ inline float product_of(float a, float b) { return a * b; }
__device__ inline float4 product_of(float a, float4 b) {
  return make_float4(a * b.x, a * b.y, a * b.z, a * b.w);
}

// Vector: float4, if rows of C consist of aligned vectors; otherwise float.
template <typename Vector>
__global__ void sum(SumArgs args) {
  constexpr std::int64_t kWidth = sizeof(Vector) / sizeof(float);
  const std::int64_t per_row = args.n / kWidth, elements = args.rows * args.n;
  for (std::int64_t i = first_element(); i < args.rows * per_row; i = next_element(i)) {
    const float* others = args.others + i * kWidth;
    Vector total = {};
    for (int rank = 0; rank < args.size; ++rank) {
      const bool is_own = rank == args.rank;
      const auto partial = device::load_vector<Vector>(is_own ? args.own + i * kWidth : others);
      if (!is_own) others += elements;
      total = rank == 0 ? partial : sum_of(total, partial);
    }
    float* const c = args.c + i / per_row * args.ldc + i % per_row * kWidth;
    total = product_of(args.alpha, total);
    if (args.beta != 0.0F) {
      total = sum_of(total, product_of(args.beta, device::load_vector<Vector>(c)));
    }
    device::store_vector(c, total);
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
  const bool vectors = args.n % 4 == 0 && args.ldc % 4 == 0 && args.c_is_aligned;
  const std::int64_t elements = args.rows * args.n;
  return vectors ? enqueue("add partial sums", elements / 4, sum<float4>, args, stream)
                 : enqueue("add partial sums", elements, sum<float>, args, stream);
}

}  // namespace tilegate::distributed
