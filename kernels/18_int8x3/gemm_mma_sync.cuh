// GEMM kernel for all devices but those of compute capability 9.0: 7.5 to 8.9, and from 10.0 on. It
// is the configuration 128x64warps: each warp computes 32×32 results with mma.sync from a ring of
// stages that all threads of the block copy. Digits, levels and fold are those of gemm_sm90.cuh,
// and so are the bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/warp_mma.cuh>
#include <tilegate/stage.hpp>

#include "decision.cuh"
#include "epilogue.cuh"
#include "layout.cuh"

namespace tilegate::int8x3 {

constexpr int kWarpsThreads = 256;
constexpr int kWarpTile = 32;           // rows, and columns, of a warp
constexpr int kWarpsN = 2 * kWarpTile;  // columns of a block's tile, of kBlockM rows
constexpr int kWarpsStageBytes = (kBlockM + kWarpsN) * kRowBytes;
constexpr int kWarpsStages = 3;
static_assert(kWarpsThreads / 32 * kWarpTile * kWarpTile == kBlockM * kWarpsN);
static_assert(kWarpsThreads == kFp32Threads && kWarpsN == Eight::kBlockN);

struct WarpsStorage {
  union {
    std::byte ring[kWarpsStages * kWarpsStageBytes];
    Fp32Storage fp32;
  };
  DecisionSums<kWarpsThreads> sums;
  float row[kBlockM], col[kWarpsN];  // dequantization steps
  alignas(8) float exchange[kWarpsThreads / 32][kExchangedWords];
};
static_assert(sizeof(WarpsStorage) <= 64 * 1024, "compute capability 7.5 has 64 KiB");

// What store_results needs of a tile type: here 16 rows of a warp's results.
template <int kLevels_>
struct WarpResults {
  static constexpr int kLevels = kLevels_, kBlockN = kWarpTile;
  static constexpr bool kHasTails = false;
};

// Copies the digits of a stage: a chunk of A, and the tile's columns of a chunk of B.
__device__ inline void copy_stage(const std::byte* a, const std::byte* b, std::byte* stage) {
  const auto copy = [](std::byte* to, const std::byte* from) {
    device::copy_async<kSegment>(reinterpret_cast<float*>(to),
                                 reinterpret_cast<const float*>(from));
  };
  for (int at = static_cast<int>(threadIdx.x) * kSegment; at < kChunkBytes;
       at += kWarpsThreads * kSegment) {
    copy(stage + at, a + at);
  }
  for (int at = static_cast<int>(threadIdx.x) * kSegment; at < kWarpsN * kRowBytes;
       at += kWarpsThreads * kSegment) {
    copy(stage + kChunkBytes + at, b + at);
  }
}

// acc += a warp's products of one stage. (row, col): the warp's first element in the tile. Eight
// neighbouring lanes of ldmatrix read eight rows, whose segments are in different banks.
template <int kLevels>
__device__ void multiply_stage_by_warp(const std::byte* stage, int row, int col, int lane,
                                       std::int32_t (&acc)[2][kLevels][kWarpTile / 2]) {
  std::uint32_t a[kPlanes][2][4], b[kPlanes][2][4];
#pragma unroll
  for (int plane = 0; plane < kPlanes; ++plane) {
    const std::byte* from_a = stage + plane * kNextPlane;
    const std::byte* from_b = stage + kChunkBytes + plane * kNextPlane;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      device::load_matrices(a[plane][i],
                            from_a + offset_in_chunk(row + 16 * i + lane % 16, lane / 16));
      device::load_matrices(
          b[plane][i],
          from_b + offset_in_chunk(col + 16 * i + lane / 16 * 8 + lane % 8, lane / 8 % 2));
    }
  }
#pragma unroll
  for (int level = 0; level < kLevels; ++level) {
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane) {
      const int other = level - plane;
      if (other < 0 || other >= kPlanes) continue;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < kWarpTile / 8; ++j) {
          const std::uint32_t (&cols)[4] = b[other][j / 2];
          device::multiply_s8(&acc[i][level][4 * j], a[plane][i],
                              {cols[j % 2 * 2], cols[j % 2 * 2 + 1]});
        }
      }
    }
  }
}

template <int kLevels>
__device__ void multiply_tile_by_warps(const KernelArgs& args, const GemmParams& params,
                                       const TileCoord& tile, WarpsStorage& smem) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int row = warp / 2 * kWarpTile, col = warp % 2 * kWarpTile;
  const std::int64_t first_row = std::int64_t{tile.row} * kBlockM,
                     first_col = std::int64_t{tile.col} * kWarpsN;
  const std::byte* a =
      params.planes_a + params.a.chunk(tile.batch_index, tile.row, params.first_chunk);
  const std::byte* b =
      params.planes_b +
      params.b.chunk(tile.batch_index, first_col / kChunkRows, params.first_chunk) +
      first_col % kChunkRows * kRowBytes;
  __syncthreads();  // the previous tile's stages and steps have been read
  if (thread < kBlockM) {
    smem.row[thread] =
        params.steps_a[params.a.own(tile.batch_index) * params.a.rows() + first_row + thread];
  }
  if (thread < kWarpsN) {
    smem.col[thread] =
        params.steps_b[params.b.own(tile.batch_index) * params.b.rows() + first_col + thread];
  }
  const auto copy_chunk = [&](std::int64_t chunk) {
    if (chunk < params.chunks) {
      copy_stage(a + chunk * kChunkBytes, b + chunk * kChunkBytes,
                 smem.ring + chunk % kWarpsStages * kWarpsStageBytes);
    }
    device::copy_async_commit();
  };
  for (int chunk = 0; chunk < kWarpsStages - 1; ++chunk) copy_chunk(chunk);
  std::int32_t acc[2][kLevels][kWarpTile / 2]{};
  for (std::int64_t chunk = 0; chunk < params.chunks; ++chunk) {
    device::copy_async_wait<kWarpsStages - 2>();
    __syncthreads();  // all threads' copies of this chunk are done; the previous chunk has been
                      // read
    copy_chunk(chunk + kWarpsStages - 1);
    multiply_stage_by_warp<kLevels>(smem.ring + chunk % kWarpsStages * kWarpsStageBytes, row, col,
                                    thread % 32, acc);
  }
  device::copy_async_wait<0>();
  KernelArgs matrix = args;
  matrix.c += tile.batch_index * args.stride_c;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    store_results<WarpResults<kLevels>>(matrix, params.float2_c, first_row + row + 16 * i,
                                        first_col + col, thread % 32, smem.row + row + 16 * i,
                                        smem.col + col, acc[i], smem.exchange[warp]);
  }
}

template <int kLevels>
__device__ void multiply_by_warps(const KernelArgs& args, const GemmParams& params,
                                  WarpsStorage& smem) {
  const unsigned tiles = static_cast<unsigned>(args.batch) * params.eight.count;
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    multiply_tile_by_warps<kLevels>(args, params, params.eight.tile(index), smem);
  }
}

inline __global__ void __launch_bounds__(kWarpsThreads, 1)
    multiply_warps(KernelArgs args, GemmParams params) {
  auto& smem = device::shared_storage<WarpsStorage>();
  const Path path = decide_path<kWarpsThreads>(params, false, smem.sums, [] { __syncthreads(); });
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    *params.decision = path == Path::kFp64 ? Path::kFp32 : path;
  }
  if (path == Path::kSix) {
    multiply_by_warps<3>(args, params, smem);
  } else if (path == Path::kEight) {
    multiply_by_warps<4>(args, params, smem);
  } else if (params.first_chunk == 0) {
    // All of K in the first of several launches; the later ones have nothing to do.
    const unsigned tiles = static_cast<unsigned>(args.batch) * params.fp32.scheduler.count;
    for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
      multiply_fp32(args, params.fp32, index, static_cast<int>(threadIdx.x), smem.fp32);
    }
  }
}

}  // namespace tilegate::int8x3
