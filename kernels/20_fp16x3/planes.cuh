// Where the halves lie in the workspace: chunks of 128 rows × 32 k, in each two slices of 16 k, in
// each both planes, as the tensor cores want them in shared memory, so that a chunk comes with one
// bulk copy.
#pragma once

#include <tilegate/common/split_chunks.cuh>
#include <tilegate/device/device.cuh>

#include "halves.cuh"

namespace tilegate::fp16x3 {

constexpr int kSliceK = 16;  // of one multiplication by the tensor cores
constexpr int kSlices = kChunkK / kSliceK;
constexpr int kPlaneBytes = kChunkRows * kSliceK * 2;
constexpr int kSliceBytes = kPlanes * kPlaneBytes;
constexpr int kChunkBytes = kSlices * kSliceBytes;
constexpr int kPieceBytes = 16;      // of a row that lie together
constexpr int kGroupBytes = 8 * 32;  // 8 rows, after which the swizzle repeats

// Offset in a plane of 8 halves of a row, from k = 8·piece on. The two pieces of rows 4 to 7 of
// each 8 change places (the 32-byte swizzle), so that eight rows' pieces are in different banks.
__host__ __device__ inline int offset_in_plane(int row, int piece) {
  return row * 2 * kPieceBytes + ((piece ^ (row >> 2 & 1)) * kPieceBytes);
}

using Planes = SplitChunks<kChunkBytes>;

}  // namespace tilegate::fp16x3
