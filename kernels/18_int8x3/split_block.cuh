// Split kernel for short rows: a block has all k of its rows, and keeps what fits in shared memory.
// First pass: row statistics; then the scales; second pass: each thread writes the digits of
// segments.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

#include "digits.cuh"
#include "layout.cuh"

namespace tilegate::int8x3 {

static_assert(kSegment == kSegmentK, "a thread writes contiguous bytes");

template <typename Config>
struct FinalizedRows {
  RowStats stats[Config::kWarps][Config::kRows + 1];  // padded: a warp reads a column
  Scale scale[Config::kRows];
  Width width[Config::kRows];
};

// Reduces each row's statistics over the warps; computes and stores its scale, and the block's
// widths. `width_of_row(row, stats, scale)`: of one row.
template <typename Config, typename WidthOf>
__device__ void finalize_rows(const Job& job, const Pointers& pointers, std::int64_t first_row,
                              std::int64_t batch_index, unsigned group, FinalizedRows<Config>& smem,
                              WidthOf width_of_row) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int row = warp; row < Config::kRows; row += Config::kWarps) {
    RowStats stats;
    if (lane < Config::kWarps) stats = smem.stats[lane][row];
    reduce_lanes(stats, 1, 32);
    const Scale scale = scale_of(stats);
    if (lane == 0) {
      smem.scale[row] = scale;
      smem.width[row] = width_of_row(row, stats, scale);
      pointers.steps[batch_index * job.planes.rows() + first_row + row] = scale.step;
    }
  }
  __syncthreads();  // all scales and widths are stored
  if (threadIdx.x == 0) {
    float4 widths{};
#pragma unroll 1  // elements take most registers
    for (const Width& width : smem.width) {
      add_widths(widths, make_float4(width.width, width.spread, width.spread, 0.0F));
    }
    device::store_vector(pointers.widths + std::int64_t{group} * kNumWidths, widths);
  }
}

__device__ inline void store_segment(const float (&v)[kSegment], const Scale& scale,
                                     std::byte* to) {
  std::uint32_t biased[kSegment / 4][4];
#pragma unroll
  for (int i = 0; i < kSegment; ++i) biased[i / 4][i % 4] = biased_digits(integer_of(v[i], scale));
#pragma unroll
  for (int plane = 0; plane < kPlanes; ++plane) {
    float words[kSegment / 4];  // bit patterns: store_vector takes floats
#pragma unroll
    for (int i = 0; i < kSegment / 4; ++i) words[i] = float_of(pack_digits(biased[i], plane));
    device::store_vector(reinterpret_cast<float*>(to + plane * kNextPlane),
                         make_float4(words[0], words[1], words[2], words[3]));
  }
}

using FewRows = SplitRowsConfig<512, 8>;
using AnyRows = SplitRowsConfig<512, 8, 1>;  // for any K, in 48 KiB of shared memory

template <typename Config>
struct ShortStorage {
  FinalizedRows<Config> rows;
  KeptSegment<Config> kept[Config::kKept];
};

template <typename Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm)
    split_short(SplitJobs jobs) {
  auto& smem = device::shared_storage<ShortStorage<Config>>();
  const bool second = blockIdx.x >= jobs.groups_of_first;
  const Job& job = jobs.job[second];
  const unsigned block = second ? blockIdx.x - jobs.groups_of_first : blockIdx.x;
  const auto [batch_index, first_row, first_k, row] = RowsOfBlock<Config>(job, block);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t end_k = job.planes.chunks_k * kChunkK;
  Pointers pointers = jobs.pointers[second];
  pointers.from += batch_index * pointers.stride;

  device::wait_for_previous_kernel();
  device::launch_dependents();
  clear_flags(jobs);
  RowStats stats;
  float v[kSegment];
  int step = 0;
  std::int64_t k = first_k;
  for (; k < end_k; k += Config::kBlockK, ++step) {
    load_segment(job, pointers, first_row + row, k, v);
    if (step < Config::kKept) keep_segment<Config>(v, smem.kept[step]);
#pragma unroll
    for (int i = 0; i < kSegment; ++i) {
      stats.add(v[i]);
      if (i % kRootsK == 0) stats.add_root(v[i]);
    }
  }
  reduce_lanes(stats, Config::kRows, 32);
  if (lane < Config::kRows) smem.rows.stats[warp][row] = stats;
  __syncthreads();  // all warps have stored their statistics
  finalize_rows<Config>(job, pointers, first_row, batch_index, block, smem.rows,
                        [&](int, const RowStats& of_row, const Scale& scale) {
                          return width_of(of_row, scale, static_cast<float>(job.k));
                        });

  const Scale scale = smem.rows.scale[row];
  std::byte* planes = pointers.planes + job.planes.chunk(batch_index, first_row / kChunkRows, 0) +
                      offset_in_chunk(static_cast<int>(first_row % kChunkRows) + row,
                                      static_cast<int>(first_k % kChunkK) / kSegment);
  for (bool is_latest = true; step > 0; is_latest = false) {
    --step;
    k -= Config::kBlockK;
    if (step < Config::kKept) {
      restore_segment<Config>(smem.kept[step], v);
    } else if (!is_latest) {
      load_segment(job, pointers, first_row + row, k, v);
    }
    store_segment(v, scale, planes + k / kChunkK * kChunkBytes);
  }
}

}  // namespace tilegate::int8x3
