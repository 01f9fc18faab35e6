// Where the digits lie in the workspace: chunks of 128 rows × 32 k, three planes in each, as the
// tensor cores want them in shared memory, so that a chunk comes with one bulk copy.
#pragma once

#include <tilegate/common/split_chunks.cuh>
#include <tilegate/device/device.cuh>

#include "digits.cuh"

namespace tilegate::int8x3 {

constexpr int kRowBytes = kPlanes * kChunkK;
constexpr int kChunkBytes = kChunkRows * kRowBytes;
constexpr int kPiece = 16;                // bytes of a row that lie together
constexpr int kNextPlane = 8 * kChunkK;   // bytes: 8 rows of a plane, then the same of the next
constexpr int kNextRows = 8 * kRowBytes;  // bytes from 8 rows to the next 8

// So any multiple of 8 rows, with all of its planes, is contiguous.

// Offset in a chunk of the 16 high digits of a row from k = 16·piece on. The two pieces of rows 4
// to 7 of each 8 change places (the 32-byte swizzle), so that eight rows' pieces are in different
// banks.
__host__ __device__ inline int offset_in_chunk(int row, int piece) {
  return row / 8 * kNextRows + row % 8 * kChunkK + (piece ^ (row >> 2 & 1)) * kPiece;
}

using Planes = SplitChunks<kChunkBytes>;

}  // namespace tilegate::int8x3
