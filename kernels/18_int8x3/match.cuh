// How the rows of op(A) match the columns of op(B) along k, from a sample of pairs. The widths of
// rows do not tell whether their large elements meet small ones.
#pragma once

#include <cmath>
#include <cstdint>

#include <tilegate/device/device.cuh>

#include "digits.cuh"
#include "layout.cuh"

namespace tilegate::int8x3 {

// Of a pair so many chunks of K are sampled, spread over it, or all; a lane has one k of each.
constexpr int kPairChunks = 8;

// A warp's sample of a pair; a lane reads only what it has copied.
struct PairStorage {
  float a[kPairChunks][32], b[kPairChunks][32];
};

// A number from 0 to count - 1, at random.
__host__ __device__ inline std::int64_t random_of(unsigned pair, std::int64_t count) {
  const std::uint32_t random = (pair + 1) * 0x9E3779B1U;
  return static_cast<std::int64_t>(random) * count >> 32;
}
// The same in part `part` of kPairs equal parts. So the sampled rows are spread over all, but not
// with a period.
__host__ __device__ inline std::int64_t random_of_part(unsigned pair, unsigned part,
                                                       std::int64_t count) {
  return (part % kPairs * count + random_of(pair, count)) / kPairs;
}

// The k of a lane's elements.
struct PairK {
  unsigned all_k, chunks, first;

  __device__ PairK(const Job& job, unsigned pair)
      : all_k(static_cast<unsigned>(job.k)),
        chunks(static_cast<unsigned>(job.planes.chunks_k)),
        first(static_cast<unsigned>(random_of(pair, chunks))) {
    static_assert(kMaxSplitK + kChunkK <= ~0U / kPairChunks * kChunkK);
  }
  // Of element i; all_k or more: there is none.
  __device__ unsigned k(unsigned i) const {
    const unsigned chunk = chunks < kPairChunks ? i : (i * chunks + first) / kPairChunks;
    return chunk * kChunkK + threadIdx.x % 32;
  }
};

// One warp: copies a pair. `job`, `pointers`: of op(A) and of op(B).
__device__ inline void copy_pair(const Job (&job)[2], const Pointers (&pointers)[2], unsigned pair,
                                 PairStorage& smem) {
  const std::int64_t matrices = job[0].planes.matrices > job[1].planes.matrices
                                    ? job[0].planes.matrices
                                    : job[1].planes.matrices;
  const PairK of(job[0], pair);
  const unsigned lane = threadIdx.x % 32;
  // Matrix, row and column have nothing to do with each other.
  const std::int64_t matrix = random_of_part(pair, 29 * pair, matrices);
  const auto row = [&](int operand, unsigned part) {
    return pointers[operand].from + matrix * pointers[operand].stride +
           random_of_part(pair, part, job[operand].rows) *
               (job[operand].along_k ? pointers[operand].ld : 1);
  };
  const float *a = row(0, pair), *b = row(1, 37 * pair + 11);
  const std::int64_t next_a = job[0].along_k ? 1 : pointers[0].ld,
                     next_b = job[1].along_k ? 1 : pointers[1].ld;
#pragma unroll 1
  for (unsigned i = 0; i < kPairChunks; ++i) {
    const unsigned k = of.k(i);
    device::copy_async<4>(&smem.a[i][lane], a + k * next_a, k < of.all_k);
    device::copy_async<4>(&smem.b[i][lane], b + k * next_b, k < of.all_k);
  }
  device::copy_async_commit();
  device::copy_async_wait<0>();
}

template <typename T>
__device__ T sum_over_lanes(T sum) {
#pragma unroll 1
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0U, sum, lanes);
  return sum;
}
__device__ inline int sum_over_lanes(int sum) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0U, sum);
#else
  return sum_over_lanes<int>(sum);
#endif
}

// One warp: sets the outliers of a row of a pair to 0 (find_bound), as far as the sample tells
// which these are.
__device__ inline void leave_out_outliers(const Job& job, unsigned pair,
                                          float (&row)[kPairChunks][32]) {
  const PairK of(job, pair);
  const unsigned lane = threadIdx.x % 32;
  float roots = 0.0F;
  int sampled = 0;
#pragma unroll 1
  for (unsigned i = 0; i < kPairChunks; ++i) {
    roots += near_root(std::fabs(row[i][lane]));
    sampled += of.k(i) < of.all_k ? 1 : 0;
  }
  sampled = sum_over_lanes(sampled);
  const float root = sum_over_lanes(roots) / static_cast<float>(sampled);
  const auto allows = [&](float bound, int most) {
    int above = 0;
#pragma unroll 1
    for (const auto& of_chunk : row) above += std::fabs(of_chunk[lane]) >= bound ? 1 : 0;
    return sum_over_lanes(above) <= outliers_of_sample(most, sampled, job.k);
  };
  const float far = root * root * (1 << kFar), very_far = root * root * (1 << kVeryFar);
  float bound = INFINITY;
  if (allows(very_far, kMaxOutliers)) bound = very_far;
  if (allows(far, kFewOutliers)) bound = far;
#pragma unroll 1
  for (auto& of_chunk : row) {
    if (std::fabs(of_chunk[lane]) >= bound) of_chunk[lane] = 0.0F;
  }
}

// An even power of two by which the largest of all lanes' magnitudes comes to ½ … 4.
__device__ inline float scale_of_largest(float largest) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    largest = std::fmax(largest, __shfl_xor_sync(~0U, largest, lanes));
  }
  constexpr int kOne = 127;  // the exponent of 1
  int exponent = static_cast<int>(bits_of(largest) >> 23);
  if (exponent == 0) exponent = kOne;  // zeros, or too small
  if (exponent > 2 * kOne - 2) exponent = 2 * kOne - 2;
  return float_of(static_cast<std::uint32_t>(kOne - ((exponent - kOne) / 2 * 2)) << 23);
}

// The squared rounding error of adding a product to a sum in FP32, over that of random bits, as the
// lane's sum over its products of a pair. `total`: the magnitude of the sum.
__device__ inline float rounding_of_pair(const PairStorage& smem, float scale_a, float scale_b,
                                         float total) {
  const unsigned lane = threadIdx.x % 32;
  constexpr std::uint32_t kExponent = 0x7F80'0000U;
  const float units = 0x1p23F / float_of(bits_of(total) & kExponent);  // per 1
  float sum = 0.0F;
#pragma unroll 4
  for (int i = 0; i < kPairChunks; ++i) {
    const float a = smem.a[i][lane] * scale_a, b = smem.b[i][lane] * scale_b;
    const float product = a * b, rest = std::fma(a, b, -product) * units;
    float error = product * units;
    error = error - std::rint(error) + rest;
    error -= std::rint(error);
    sum += error * error;
  }
  return 12.0F * sum;
}

// One warp: stores how a pair matches. `pairs`: of all.
__device__ inline void store_match(const Job& job, unsigned pair, const PairStorage& smem,
                                   float4* pairs) {
  const PairK of(job, pair);
  const unsigned lane = threadIdx.x % 32;
  float largest_a = 0.0F, largest_b = 0.0F;
#pragma unroll 4
  for (int i = 0; i < kPairChunks; ++i) {
    largest_a = std::fmax(largest_a, std::fabs(smem.a[i][lane]));
    largest_b = std::fmax(largest_b, std::fabs(smem.b[i][lane]));
  }
  const float scale_a = scale_of_largest(largest_a), scale_b = scale_of_largest(largest_b);
  float squares_a = 0.0F, squares_b = 0.0F, squares = 0.0F, total = 0.0F;
  float roots_a = 0.0F, roots_b = 0.0F, roots = 0.0F, moment = 0.0F;
  float before_a = 0.0F, before_b = 0.0F;
  int sampled = 0, filled = 0, equal = 0;
#pragma unroll 4
  for (unsigned i = 0; i < kPairChunks; ++i) {
    const unsigned k = of.k(i);
    const float a = smem.a[i][lane] * scale_a, b = smem.b[i][lane] * scale_b;
    squares_a += a * a;
    squares_b += b * b;
    squares += a * a * (b * b);
    total += a * b;
    const float root_a = a != 0.0F ? near_root(std::fabs(a)) : 0.0F,
                root_b = b != 0.0F ? near_root(std::fabs(b)) : 0.0F;
    roots_a += root_a;
    roots_b += root_b;
    roots += root_a * root_b;
    moment += root_a * root_b * static_cast<float>(k);
    sampled += k < of.all_k ? 1 : 0;
    filled += a != 0.0F && b != 0.0F ? 1 : 0;
    equal += a != 0.0F && std::fabs(a) == before_a ? 1 : 0;
    equal += b != 0.0F && std::fabs(b) == before_b ? 1 : 0;
    before_a = std::fabs(a);
    before_b = std::fabs(b);
  }
#pragma unroll 1
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    const auto add = [&](auto& sum) { sum += __shfl_xor_sync(~0U, sum, lanes); };
    add(squares_a), add(squares_b), add(squares), add(total);
    add(roots_a), add(roots_b), add(roots), add(moment);
    add(sampled), add(filled), add(equal);
  }
  const auto count = static_cast<float>(sampled), all_k = static_cast<float>(of.all_k);
  // No products to match. Of a row of zeros, cuBLAS's error is none, and so is that of digits.
  float4 match = make_float4(1.0F, 0.5F, 1.0F, roots_a == 0.0F || roots_b == 0.0F ? 1.0F : 0.0F);
  if (filled > 0) {
    // The sum of all K products: of one sign, or of either.
    const float share = all_k / count;
    total = std::fmax(std::fabs(total) * share, std::sqrt(squares * share));
    const float rounding = sum_over_lanes(rounding_of_pair(smem, scale_a, scale_b, total)) / count;
    match = make_float4(count * squares / (squares_a * squares_b), (moment / roots + 0.5F) / all_k,
                        roots_a * roots_b / (count * roots), rounding);
  }
  if (lane > 0) return;
  device::store_vector(&pairs[pair].x, match);
  (&pairs[kPairs].x)[pair] = static_cast<float>(equal) / (2.0F * count);
}

// One warp: samples the pair `first`, and every `next`th after it.
__device__ inline void sample_pairs(const SplitJobs& jobs, unsigned first, unsigned next,
                                    PairStorage& smem) {
  if (jobs.pairs == nullptr) return;
#pragma unroll 1
  for (unsigned pair = first; pair < kPairs; pair += next) {
    copy_pair(jobs.job, jobs.pointers, pair, smem);
    store_match(jobs.job[0], pair, smem, jobs.pairs);
  }
}

}  // namespace tilegate::int8x3
