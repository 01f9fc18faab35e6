// Whether BF16 planes are as accurate as FP32, from a sample of the operands.
//
// Tensor cores truncate. That harms a result which few products make up: an FP32 sum rounds it a
// few times only. So planes are taken only where many products count. The distance of an element is
// log2(largest / |x|), in octaves, where `largest` is the largest element of its row of op(A), or
// column of op(B). If the mean distances of a row of A and of a column of B are d together, the
// geometric mean of their products is 2^-d times the largest possible product.
//
// Nor are planes taken where all elements are almost equal: then all truncations have one sign.
#pragma once

#include <algorithm>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::bf16x6 {

// In octaves. kMostDistance is for the mean distances of both operands together, each of the row
// where it is largest: a product 24 octaves below the largest just changes an FP32 sum. An element
// that is farther than kFarthest, or 0, counts as kFarthest.
constexpr int kMostDistance = 24, kFarthest = 24;
constexpr float kLeastDistance = 0.0625F;

// A block samples a group of rows, at kPieces places of their K, kPieceK elements each.
constexpr int kSampleRows = 32, kPieces = 8, kPieceK = 8;
constexpr int kSampled = kPieces * kPieceK;  // per row
constexpr int kSampleThreads = kSampleRows * kPieces;
constexpr std::int64_t kMostGroups = 512;  // per operand
static_assert(kPieces * 32 == kSampleThreads, "a piece per warp");

// One operand. Element (row, k) is at from[row · ld + k], or at from[k · ld + row].
struct Sampled {
  bool along_k = false;
  std::int64_t rows = 0, k = 0;
  unsigned groups = 0;    // sampled ones
  Divisor groups_of;      // all groups of a matrix
  std::int64_t step = 1;  // from a sampled group to the next, over all matrices
};

struct SamplePointers {
  const float* from = nullptr;
  std::int64_t ld = 0, stride = 0;
};

struct SampleJobs {
  Sampled operand[2];
  SamplePointers pointers[2];
  std::uint32_t* distances = nullptr;  // a number per group, those of op(A) first
};

__device__ inline std::uint32_t larger(std::uint32_t a, std::uint32_t b) { return a > b ? a : b; }

struct SampleStorage {
  std::uint32_t magnitude[kSampleRows][kSampled + 1];
  std::uint32_t distances[kSampleThreads / 32];
};

// Magnitudes are those of BF16, as integers: about 128·log2(|x|). Distances are summed over the
// sample of a row.
constexpr std::uint32_t kOctave = 128;

// Stores the largest sum of distances of each group's rows.
inline __global__ void __launch_bounds__(kSampleThreads) sample(SampleJobs jobs) {
  auto& smem = device::shared_storage<SampleStorage>();
  device::wait_for_previous_kernel();
  device::launch_dependents();
  const bool is_b = blockIdx.x >= jobs.operand[0].groups;
  const Sampled& operand = jobs.operand[is_b ? 1 : 0];
  const SamplePointers& pointers = jobs.pointers[is_b ? 1 : 0];
  const unsigned sampled = blockIdx.x - (is_b ? jobs.operand[0].groups : 0);
  const auto group = static_cast<std::uint32_t>(sampled * operand.step);
  const std::uint32_t matrix = operand.groups_of.quotient(group);
  const std::int64_t first_row =
      std::int64_t{operand.groups_of.remainder(group, matrix)} * kSampleRows;

  // A warp reads a piece of all rows; its lanes lie beside each other in memory.
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, piece = thread / 32;
  const std::int64_t first_k = piece * ((operand.k - kPieceK) / (kPieces - 1));
  const std::int64_t next_row = operand.along_k ? pointers.ld : 1;
  const std::int64_t next_k = operand.along_k ? 1 : pointers.ld;
  const float* from =
      pointers.from + matrix * pointers.stride + first_row * next_row + first_k * next_k;
  const int rows = at_most(operand.rows - first_row, kSampleRows);
#pragma unroll
  for (int i = 0; i < kPieceK; ++i) {
    constexpr int kRowsOfLoad = 32 / kPieceK;
    const int row = operand.along_k ? i * kRowsOfLoad + lane / kPieceK : lane;
    const int k = operand.along_k ? lane % kPieceK : i;
    const float x = row < rows ? from[row * next_row + k * next_k] : 0.0F;
    smem.magnitude[row][piece * kPieceK + k] = bits_of(x) << 1 >> 17;
  }
  __syncthreads();  // all pieces are stored

  // kPieces threads per row.
  const int row = thread / kPieces;
  const auto& of_row = smem.magnitude[row];
  const int first = thread % kPieces * kPieceK;
  std::uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < kPieceK; ++i) largest = larger(largest, of_row[first + i]);
#pragma unroll
  for (int lanes = kPieces / 2; lanes > 0; lanes /= 2) {
    largest = larger(largest, __shfl_xor_sync(~0U, largest, lanes));
  }
  std::uint32_t distance = 0;
#pragma unroll
  for (int i = 0; i < kPieceK; ++i) {
    const std::uint32_t below = largest - of_row[first + i];
    distance += below < kFarthest * kOctave ? below : kFarthest * kOctave;
  }
#pragma unroll
  for (int lanes = kPieces / 2; lanes > 0; lanes /= 2) {
    distance += __shfl_xor_sync(~0U, distance, lanes);
  }
#pragma unroll
  for (int lanes = 16; lanes >= kPieces; lanes /= 2) {
    distance = larger(distance, __shfl_xor_sync(~0U, distance, lanes));
  }
  if (lane == 0) smem.distances[piece] = distance;
  __syncthreads();  // all warps have stored theirs
  if (thread != 0) return;
  for (const std::uint32_t of_warp : smem.distances) distance = larger(distance, of_warp);
  jobs.distances[blockIdx.x] = distance;
}

// Whether planes are as accurate as FP32, from the largest sums of distances of both operands.
__host__ __device__ inline bool allows_planes(std::uint32_t a, std::uint32_t b) {
  const float distance = static_cast<float>(a + b) / (kOctave * kSampled);
  return distance >= kLeastDistance && distance <= kMostDistance;
}

// Plans.

inline Sampled sampled(const Problem& problem, Operand operand) {
  const std::int64_t rows = split_extent(problem, operand);
  const std::int64_t of_matrix = ceil_div(rows, std::int64_t{kSampleRows});
  const std::int64_t all = split_matrices(problem, operand) * of_matrix;
  const std::int64_t step = ceil_div(all, kMostGroups);
  return {.along_k = is_along_k(problem, operand),
          .rows = rows,
          .k = problem.shape.k,
          .groups = static_cast<unsigned>(ceil_div(all, step)),
          .groups_of = Divisor(static_cast<std::uint32_t>(of_matrix)),
          .step = step};
}

}  // namespace tilegate::bf16x6
