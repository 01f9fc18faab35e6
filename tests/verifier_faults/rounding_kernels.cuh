// One thread per element of C, in every form: kernels that round what they should not, or that are
// wrong by a multiple of their bound in one element.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::faults {

enum class RoundingFault {
  kNone,
  kSumsHalves,  // of K, in the workspace; and declares so
  kRoundsA,     // to the 11 significant bits of TF32, with the longest chain that is allowed
  kRoundsB,
  kRoundsC,
  kRoundsPartialSum,
  kShortChain,    // by one
  kLongChain,     // longer than any rung may declare
  kAddsTwice,     // the last product of the last element, and half of it each time
  kHalfTheBound,  // in the last element
  kTwiceInFirstElement,
  kTwiceInLastRow,
  kTwiceInLastColumn,
  kTwiceInLastElement,
  kTwiceInWorkspaceTail,
};

constexpr int kThreads = 64;  // of a block, one per element of C

// How far off an element is, in bounds.
__host__ __device__ constexpr double bounds_off(RoundingFault fault) {
  if (fault < RoundingFault::kHalfTheBound) return 0.0;
  return fault == RoundingFault::kHalfTheBound ? 0.5 : 2.0;
}

struct Sum {
  KernelArgs args;
  bool transposed_a, transposed_b;
  std::int64_t rounding_chain;
};

__device__ float to_tf32(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  bits = (bits + 0x1000U) & ~0x1fffU;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

struct Element {
  std::int64_t index, row, col;
};

__device__ Element element_at(const Shape& shape, std::int64_t i) {
  return {i / (shape.m * shape.n), i / shape.n % shape.m, i % shape.n};
}

template <RoundingFault kFault>
__device__ bool is_faulty(const KernelArgs& args, const Element& at) {
  const bool first_row = at.row == 0, last_row = at.row == args.shape.m - 1;
  const bool first_col = at.col == 0, last_col = at.col == args.shape.n - 1;
  if (kFault == RoundingFault::kTwiceInFirstElement) return at.index == 0 && first_row && first_col;
  if (at.index != args.batch - 1) return false;
  if (kFault == RoundingFault::kTwiceInLastRow) return last_row && first_col;
  if (kFault == RoundingFault::kTwiceInLastColumn) return first_row && last_col;
  return (kFault == RoundingFault::kAddsTwice || bounds_off(kFault) != 0.0) && last_row && last_col;
}

template <RoundingFault kFault>
__device__ float product_at(const Sum& sum, const Element& at, std::int64_t k) {
  const KernelArgs& args = sum.args;
  const float* const a = args.a + at.index * args.stride_a;
  const float* const b = args.b + at.index * args.stride_b;
  float of_a = sum.transposed_a ? a[k * args.lda + at.row] : a[at.row * args.lda + k];
  float of_b = sum.transposed_b ? b[at.col * args.ldb + k] : b[k * args.ldb + at.col];
  if (kFault == RoundingFault::kRoundsA) of_a = to_tf32(of_a);
  if (kFault == RoundingFault::kRoundsB) of_b = to_tf32(of_b);
  return of_a * of_b;
}

// What is added to the last product of the element.
template <RoundingFault kFault>
__device__ double error_of(const Sum& sum, const Element& at) {
  if (bounds_off(kFault) == 0.0 || sum.args.shape.k == 0 || !is_faulty<kFault>(sum.args, at)) {
    return 0.0;
  }
  double scale = 0.0;
  for (std::int64_t k = 0; k < sum.args.shape.k; ++k) {
    scale += fabs(static_cast<double>(product_at<kFault>(sum, at, k)));
  }
  scale *= fabs(static_cast<double>(sum.args.alpha));
  if (sum.args.beta != 0.0F) {
    const float c = sum.args.c[at.index * sum.args.stride_c + at.row * sum.args.ldc + at.col];
    scale += fabs(static_cast<double>(sum.args.beta) * static_cast<double>(c));
  }
  const double roundings = static_cast<double>(sum.rounding_chain) * 0x1p-24;
  return bounds_off(kFault) * roundings / (1.0 - roundings) * scale /
         static_cast<double>(sum.args.alpha);
}

template <RoundingFault kFault>
__device__ void store(const KernelArgs& args, const Element& at, double sum) {
  float* const c = args.c + at.index * args.stride_c + at.row * args.ldc + at.col;
  double result = static_cast<double>(args.alpha) * sum;
  if (args.beta != 0.0F) {
    const float before = kFault == RoundingFault::kRoundsC ? to_tf32(*c) : *c;
    result += static_cast<double>(args.beta) * static_cast<double>(before);
  }
  *c = static_cast<float>(result);
}

template <RoundingFault kFault>
__global__ void sum_in_order(Sum sum) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const auto [m, n, k_end] = sum.args.shape;
  if (i >= sum.args.batch * m * n) return;
  const Element at = element_at(sum.args.shape, i);
  float total = 0.0F;
  for (std::int64_t k = 0; k < k_end; ++k) total += product_at<kFault>(sum, at, k);
  if (kFault == RoundingFault::kAddsTwice && k_end > 0 && is_faulty<kFault>(sum.args, at)) {
    total += 0.5F * product_at<kFault>(sum, at, k_end - 1);
  }
  store<kFault>(sum.args, at, static_cast<double>(total) + error_of<kFault>(sum, at));
}

// The sums of the first halves, then those of the second.
template <RoundingFault kFault>
__global__ void sum_half(Sum sum) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const auto [m, n, k_end] = sum.args.shape;
  const std::int64_t elements = sum.args.batch * m * n;
  if (i >= 2 * elements) return;
  const Element at = element_at(sum.args.shape, i % elements);
  const bool second = i >= elements;
  float total = 0.0F;
  for (std::int64_t k = second ? k_end / 2 : 0; k < (second ? k_end : k_end / 2); ++k) {
    total += product_at<kFault>(sum, at, k);
  }
  if (second) total += static_cast<float>(error_of<kFault>(sum, at));
  if (kFault == RoundingFault::kRoundsPartialSum) total = to_tf32(total);
  static_cast<float*>(sum.args.workspace)[i] = total;
}

template <RoundingFault kFault>
__global__ void add_halves_of(Sum sum) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t elements = sum.args.batch * sum.args.shape.m * sum.args.shape.n;
  if (i >= elements) return;
  const auto* const halves = static_cast<const float*>(sum.args.workspace);
  const float total = halves[i] + halves[elements + i];
  store<kFault>(sum.args, element_at(sum.args.shape, i), static_cast<double>(total));
}

}  // namespace tilegate::faults
