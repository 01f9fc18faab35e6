// Where the digits lie in the workspace: chunks of 128 rows × 32 k, three planes in each, as the
// tensor cores want them in shared memory, so that a chunk comes with one bulk copy.
#pragma once

#include <tilegate/common/split_chunks.cuh>
#include <tilegate/device/device.cuh>

#include "digits.cuh"

namespace tilegate::int8x3 {

constexpr int kPlaneBytes = kChunkRows * kChunkK;
constexpr int kChunkBytes = kPlanes * kPlaneBytes;
constexpr int kPiece = 16;           // bytes of a row that lie together
constexpr int kGroupBytes = 8 * 32;  // 8 rows, after which the swizzle repeats

// Offset in a plane of the 16 digits of a row from k = 16·piece on. The two pieces of rows 4 to 7
// of each 8 change places (the 32-byte swizzle), so that eight rows' pieces are in different banks.
__host__ __device__ inline int offset_in_plane(int row, int piece) {
  return row * kChunkK + ((piece ^ (row >> 2 & 1)) * kPiece);
}

using Planes = SplitChunks<kChunkBytes>;

}  // namespace tilegate::int8x3
