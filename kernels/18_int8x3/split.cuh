// The split pass: reads the rows of op(A) and the columns of op(B), here called rows both, scales
// each by its largest element, and writes their digits to the workspace.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "decision.cuh"
#include "digits.cuh"
#include "planes.cuh"

namespace tilegate::int8x3 {

constexpr int kSplitRows = 8;  // of a block, which takes all of their k
constexpr int kSplitThreads = 512;
constexpr int kSplitWarps = kSplitThreads / 32;
constexpr int kLanePieces = 32 / kSplitRows;      // of a row, that a warp has at a time
constexpr int kStrideK = kLanePieces * kPiece;    // k of a warp at a time
constexpr int kBlockStrideK = kSplitWarps * kStrideK;
constexpr int kKept = 3;  // pieces that a thread keeps in shared memory; two blocks have room

// One operand. Element (row, k) is at from[row · ld + k], or at from[k · ld + row].
struct Job {
  Planes planes;
  bool along_k = false, vectors = false;
  std::int64_t rows = 0, k = 0;
  Divisor blocks;  // of one product

  std::int64_t num_blocks() const { return planes.products * blocks.value(); }
};

struct Place {
  const float* from = nullptr;
  std::int64_t ld = 0, stride = 0;
  std::byte* planes = nullptr;
  float* steps = nullptr;   // of each row; Scale::step
  float* widths = nullptr;  // of each block: the sum of its rows'
};

struct SplitJobs {
  Job job[2];
  Place place[2];
  unsigned blocks_of_first = 0;
};

struct SplitStorage {
  Seen seen[kSplitWarps][kSplitRows];
  Scale scale[kSplitRows];
  float width[kSplitRows];
  float4 kept[kKept][kPiece / 4][kSplitThreads];
};

// v[i] ← element (row, k + i), or 0 outside the operand.
__device__ inline void load_piece(const Job& job, const Place& place, std::int64_t row,
                                  std::int64_t k, float (&v)[kPiece]) {
  const std::int64_t next = job.along_k ? 1 : place.ld;
  const float* from = place.from + (job.along_k ? row * place.ld + k : k * place.ld + row);
  const std::int64_t inside = row < job.rows ? job.k - k : 0;
  if (job.vectors && inside >= kPiece) {
#pragma unroll
    for (int i = 0; i < kPiece; i += 4) {
      const auto vector = device::load_vector<float4>(from + i);
      v[i] = vector.x;
      v[i + 1] = vector.y;
      v[i + 2] = vector.z;
      v[i + 3] = vector.w;
    }
  } else if (inside >= kPiece) {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) v[i] = from[i * next];
  } else {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) v[i] = i < inside ? from[i * next] : 0.0F;
  }
}

// What all warps have seen of each row; thread `row` has it, and its scale and width are stored.
__device__ inline void settle_rows(const Job& job, const Place& place, std::int64_t first_row,
                                   std::int64_t product, SplitStorage& smem) {
  if (threadIdx.x < kSplitRows) {
    Seen seen;
    for (int warp = 0; warp < kSplitWarps; ++warp) seen.add(smem.seen[warp][threadIdx.x]);
    const Scale scale = scale_of(seen);
    smem.scale[threadIdx.x] = scale;
    smem.width[threadIdx.x] = width_of(seen, scale, static_cast<float>(job.k));
    place.steps[product * job.planes.rows() + first_row + threadIdx.x] = scale.step;
  }
  __syncthreads();  // all scales are there
  if (threadIdx.x == 0) {
    float sum = 0.0F;
    for (int row = 0; row < kSplitRows; ++row) sum += smem.width[row];
    place.widths[blockIdx.x] = sum;
  }
}

__device__ inline void store_piece(const float (&v)[kPiece], const Scale& scale, std::byte* to) {
  std::uint32_t biased[kPiece / 4][4];
#pragma unroll
  for (int i = 0; i < kPiece; ++i) biased[i / 4][i % 4] = biased_digits(integer_of(v[i], scale));
#pragma unroll
  for (int plane = 0; plane < kPlanes; ++plane) {
    float words[kPiece / 4];  // bits in, bits out: vectors are of floats
#pragma unroll
    for (int i = 0; i < kPiece / 4; ++i) words[i] = float_of(pack_digits(biased[i], plane));
    device::store_vector(reinterpret_cast<float*>(to + plane * kPlaneBytes),
                         make_float4(words[0], words[1], words[2], words[3]));
  }
}

__device__ inline void keep_piece(const float (&v)[kPiece], float4 (&to)[kPiece / 4][kSplitThreads]) {
#pragma unroll
  for (int i = 0; i < kPiece / 4; ++i) {
    to[i][threadIdx.x] = make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
  }
}

__device__ inline void kept_piece(const float4 (&from)[kPiece / 4][kSplitThreads],
                                  float (&v)[kPiece]) {
#pragma unroll
  for (int i = 0; i < kPiece / 4; ++i) {
    const float4 vector = from[i][threadIdx.x];
    v[4 * i] = vector.x;
    v[4 * i + 1] = vector.y;
    v[4 * i + 2] = vector.z;
    v[4 * i + 3] = vector.w;
  }
}

// Twice over the rows: what the first pass cannot keep the second reads again, from L2 where that
// holds it.
inline __global__ void __launch_bounds__(kSplitThreads, 2) split(SplitJobs jobs) {
  auto& smem = device::shared_storage<SplitStorage>();
  const bool second = blockIdx.x >= jobs.blocks_of_first;
  const Job& job = jobs.job[second];
  const unsigned block = second ? blockIdx.x - jobs.blocks_of_first : blockIdx.x;
  const unsigned product = job.blocks.quotient(block);
  const std::int64_t first_row = std::int64_t{job.blocks.remainder(block, product)} * kSplitRows;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = lane % kSplitRows;
  const std::int64_t first_k = warp * kStrideK + lane / kSplitRows * kPiece;
  const std::int64_t end_k = job.planes.chunks_k * kChunkK;
  Place place = jobs.place[second];
  place.from += product * place.stride;

  device::wait_for_previous_kernel();
  device::let_next_kernel_start();
  Seen seen;
  float v[kPiece];
  int turn = 0;
  for (std::int64_t k = first_k; k < end_k; k += kBlockStrideK, ++turn) {
    load_piece(job, place, first_row + row, k, v);
    if (turn < kKept) keep_piece(v, smem.kept[turn]);
#pragma unroll
    for (int i = 0; i < kPiece; ++i) seen.add(v[i]);
  }
#pragma unroll
  for (int lanes = kSplitRows; lanes < 32; lanes *= 2) {
    seen.add({__shfl_xor_sync(~0U, seen.largest, lanes), __shfl_xor_sync(~0U, seen.sum, lanes),
              __shfl_xor_sync(~0U, seen.bits, lanes)});
  }
  if (lane < kSplitRows) smem.seen[warp][row] = seen;
  __syncthreads();  // what each warp has seen is there
  settle_rows(job, place, first_row, product, smem);

  const Scale scale = smem.scale[row];
  std::byte* planes = place.planes + job.planes.chunk(product, first_row / kChunkRows, 0);
  const int in_plane = offset_in_plane(static_cast<int>(first_row % kChunkRows) + row,
                                       static_cast<int>(first_k % kChunkK) / kPiece);
  turn = 0;
  for (std::int64_t k = first_k; k < end_k; k += kBlockStrideK, ++turn) {
    if (turn < kKept) {
      kept_piece(smem.kept[turn], v);
    } else {
      load_piece(job, place, first_row + row, k, v);
    }
    store_piece(v, scale, planes + k / kChunkK * kChunkBytes + in_plane);
  }
}

}  // namespace tilegate::int8x3
