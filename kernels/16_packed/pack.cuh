// Packs operands: copies them to the workspace in rows of one k and consecutive x (m of A, n of B),
// aligned to vectors and padded with zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::packed {

constexpr int kTile = 64;  // tiles of kTile×kTile, one per block
constexpr int kNumThreads = 256;
constexpr int kLane = 32;  // neighbouring words per warp and access
constexpr int kWarps = kNumThreads / kLane;
constexpr int kRows = kTile / kWarps;  // per thread
constexpr int kCols = kTile / kLane;
constexpr int kLine = 32;  // words of an L2 cache line, to which packed rows are aligned

// One operand, all matrices of the batch.
struct Job {
  bool transposes = false;          // rows lie along k
  std::int64_t rows = 0, cols = 0;  // of the operand in memory
  std::int64_t packed_ld = 0;       // leading dimension of the K packed rows
  std::int64_t packed_stride = 0;   // from one matrix to the next
  std::int64_t matrices = 0;        // matrices to pack: 1 if the batch shares the operand
  RasterAlongN raster;              // of the operand's tiles

  std::int64_t blocks() const { return matrices * raster.tiles.value(); }
};

// Addresses of an operand and of its packed copy.
struct Source {
  const float* from = nullptr;
  std::int64_t ld = 0, stride = 0;
  float* to = nullptr;
};

struct Jobs {
  Job job[2];
  Source source[2];
  unsigned blocks_of_first = 0;
};

struct SharedStorage {
  float tile[kTile][kTile + 1];  // padded by a word, so that a column is in 32 banks
};

// One tile of the operand per block; the last tile of a row also writes the padding.
inline __global__ void __launch_bounds__(kNumThreads) pack(Jobs jobs) {
  auto& smem = device::shared_storage<SharedStorage>();
  const bool second = blockIdx.x >= jobs.blocks_of_first;
  const Job& job = jobs.job[second];
  const Source& source = jobs.source[second];
  const unsigned block = second ? blockIdx.x - jobs.blocks_of_first : blockIdx.x;
  const TileCoord tile = job.raster.tile(block);
  const std::int64_t row0 = std::int64_t{tile.row} * kTile, col0 = std::int64_t{tile.col} * kTile;
  const int lane = static_cast<int>(threadIdx.x) % kLane;
  const int warp = static_cast<int>(threadIdx.x) / kLane;
  const float* from = source.from + tile.batch_index * source.stride;
  float* to = source.to + tile.batch_index * job.packed_stride;

  float v[kRows][kCols];  // all loads before the first store: they are in flight together
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kCols; ++j) {
      const std::int64_t row = row0 + warp + kWarps * i, col = col0 + lane + kLane * j;
      v[i][j] = row < job.rows && col < job.cols ? from[row * source.ld + col] : 0.0F;
    }
  }
  if (!job.transposes) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kCols; ++j) {
        const std::int64_t row = row0 + warp + kWarps * i, col = col0 + lane + kLane * j;
        if (row < job.rows && col < job.packed_ld) to[row * job.packed_ld + col] = v[i][j];
      }
    }
    return;
  }
  // idea:begin Packed
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kCols; ++j) smem.tile[lane + kLane * j][warp + kWarps * i] = v[i][j];
  }
  __syncthreads();  // the tile is stored before any thread reads it
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kCols; ++j) {
      const std::int64_t k = col0 + warp + kWarps * i, x = row0 + lane + kLane * j;
      if (k < job.cols && x < job.packed_ld) {
        to[k * job.packed_ld + x] = smem.tile[warp + kWarps * i][lane + kLane * j];
      }
    }
  }
  // idea:end
}

inline Status enqueue_pack(const Jobs& jobs, Stream stream) {
  return device::launch({.kernel = "pack",
                         .blocks = jobs.job[0].blocks() + jobs.job[1].blocks(),
                         .threads_x = kNumThreads,
                         .shared_bytes = sizeof(SharedStorage)},
                        stream, pack, jobs);
}

}  // namespace tilegate::packed
