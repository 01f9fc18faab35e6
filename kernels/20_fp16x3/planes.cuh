// Where the halves lie in the workspace: chunks of 128 rows × 32 k, in each two slices of 16 k, in
// each both planes, as the tensor cores want them in shared memory, so that a chunk comes with one
// bulk copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/device/device.cuh>

#include "halves.cuh"

namespace tilegate::fp16x3 {

constexpr int kChunkRows = 128;  // of op(A), or columns of op(B)
constexpr int kSliceK = 16;      // of one multiplication by the tensor cores
constexpr int kSlices = 2;
constexpr int kChunkK = kSlices * kSliceK;
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

// Of one operand, all products of the batch.
struct Planes {
  std::int64_t chunks_x = 0, chunks_k = 0;  // of one product
  std::int64_t products = 0;                // 1 if the batch shares the operand

  Planes() = default;
  Planes(std::int64_t rows, std::int64_t k, std::int64_t products_)
      : chunks_x(ceil_div(rows, kChunkRows)), chunks_k(ceil_div(k, kChunkK)), products(products_) {}

  __host__ __device__ std::int64_t rows() const { return chunks_x * kChunkRows; }
  std::size_t bytes() const {
    return static_cast<std::size_t>(products * chunks_x * chunks_k) * kChunkBytes;
  }
  std::size_t step_bytes() const { return static_cast<std::size_t>(products * rows()) * 4; }

  // Bytes from the start of the planes to a chunk; `product` as the batch counts.
  __host__ __device__ std::int64_t chunk(std::int64_t product, std::int64_t x,
                                         std::int64_t k) const {
    return ((own(product) * chunks_x + x) * chunks_k + k) * kChunkBytes;
  }
  __host__ __device__ std::int64_t own(std::int64_t product) const {
    return products == 1 ? 0 : product;
  }
};

}  // namespace tilegate::fp16x3
