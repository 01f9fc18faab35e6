// Epilogue: C ← alpha·sum + beta·C, by elements, float2 and float4. With beta == 0 C is not
// read: it may hold NaN. Before that, the reduction of split-K.
#pragma once

#include <bit>
#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/device/once.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// sum += v
__device__ inline void accumulate(float4& sum, const float4& v) {
  sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
}

// Partial sums that a thread loads at a time. With few, registers allow more blocks per SM.
constexpr int kPartialsInFlight = 8, kFewPartialsInFlight = 4;
constexpr bool are_few_partials(std::int64_t count) { return count <= 8; }

// Minimum of blocks per SM, of 256 threads, for __launch_bounds__ of a kernel that reduces partial
// sums. Without it ptxas (CUDA 13.0) keeps to the 32 registers of full occupancy, and has two to
// four loads in flight.
template <int kInFlight>
constexpr int kReduceBlocksPerSm = 32 / kInFlight;

// The reduction of split-K: the sums of `count` partial sums, `stride` words apart, of four
// elements that lie kStep words apart. The order is fixed, so that the same call gives the same
// bits. A batch is added in pairs, so that chains of additions are short.
template <int kInFlight = kPartialsInFlight, int kStep = 1>
__device__ float4 reduce_partials(const float* partial, std::int64_t stride, unsigned count) {
  const auto load = [](const float* p) {
    if constexpr (kStep == 1) return device::load_vector<float4>(p);
    return make_float4(p[0], p[kStep], p[2 * kStep], p[3 * kStep]);
  };
  constexpr unsigned kBatch = kInFlight;
  float4 sum = load(partial);
  const auto add_next = [&](unsigned next) {
    float4 v[kBatch]{};  // all loads before the first addition: they are in flight together
#pragma unroll
    for (unsigned i = 0; i < kBatch; ++i) {
      if (i < next) v[i] = load(partial + (i + 1) * stride);
    }
#pragma unroll
    for (unsigned pairs = kBatch / 2; pairs > 0; pairs /= 2) {
#pragma unroll
      for (unsigned i = 0; i < pairs; ++i) accumulate(v[i], v[i + pairs]);
    }
    accumulate(sum, v[0]);
    partial += next * stride;
  };
  unsigned left = count - 1;
  // Whole batches have no conditions, which would keep loads from being issued one after another.
#pragma unroll 1
  for (; left >= kBatch; left -= kBatch) add_next(kBatch);
  add_next(left);
  return sum;
}

// The longest of its chains: how many additions round a partial sum.
constexpr std::int64_t reduction_chain(std::int64_t count) {
  const std::int64_t others = count - 1;
  const auto in_batch =
      static_cast<std::uint64_t>(others < kPartialsInFlight ? others : kPartialsInFlight);
  if (others == 0) return 0;
  return (others + kPartialsInFlight - 1) / kPartialsInFlight + std::bit_width(in_batch - 1);
}
static_assert(reduction_chain(2) == 1 && reduction_chain(3) == 2 && reduction_chain(9) == 4 &&
              reduction_chain(10) == 5);

__device__ inline void store(const KernelArgs& args, float* c, float sum) {
  *c = args.beta == 0.0F ? args.alpha * sum : args.alpha * sum + args.beta * *c;
}

// C(row, col)
__device__ inline void store_element(const KernelArgs& args, std::int64_t row, std::int64_t col,
                                     float sum) {
  store(args, args.c + row * args.ldc + col, sum);
}

// Two neighbouring elements, which must be an aligned vector. kOnce: with L2 eviction priority
// evict_first.
template <bool kOnce = false>
__device__ void store_float2(const KernelArgs& args, float* c, float first, float second) {
  float2 v = make_float2(args.alpha * first, args.alpha * second);
  if (args.beta != 0.0F) {
    const auto old = device::load_vector<float2>(c);
    v = make_float2(v.x + args.beta * old.x, v.y + args.beta * old.y);
  }
  if constexpr (kOnce) {
    device::store_once(c, v);
  } else {
    device::store_vector(c, v);
  }
}

// Four neighbouring elements, which must be an aligned vector.
__device__ inline void store_vector4(const KernelArgs& args, float* c, const float4& sum) {
  float4 v =
      make_float4(args.alpha * sum.x, args.alpha * sum.y, args.alpha * sum.z, args.alpha * sum.w);
  if (args.beta != 0.0F) {
    const float4 old = device::load_vector<float4>(c);
    v = make_float4(v.x + args.beta * old.x, v.y + args.beta * old.y, v.z + args.beta * old.z,
                    v.w + args.beta * old.w);
  }
  device::store_vector(c, v);
}

// C(row, col … col + 3), elements outside C excluded; col % 4 == 0.
template <bool kVector>
__device__ void store4(const KernelArgs& args, std::int64_t row, std::int64_t col, float4 sum) {
  if (row >= args.shape.m) return;
  if constexpr (kVector) {
    if (col < args.shape.n) store_vector4(args, args.c + row * args.ldc + col, sum);
  } else {
    if (col + 0 < args.shape.n) store_element(args, row, col + 0, sum.x);
    if (col + 1 < args.shape.n) store_element(args, row, col + 1, sum.y);
    if (col + 2 < args.shape.n) store_element(args, row, col + 2, sum.z);
    if (col + 3 < args.shape.n) store_element(args, row, col + 3, sum.w);
  }
}

}  // namespace tilegate
