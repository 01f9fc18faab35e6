// Where the parts of a split operand lie in the workspace: in chunks of 128 rows × 32 k, each in
// the order in which the tensor cores want it in shared memory, so that it comes with one bulk
// copy. Columns of op(B) are called rows, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

constexpr int kChunkRows = 128;  // of op(A), or columns of op(B)
constexpr int kChunkK = 32;

// Of one operand, all products of the batch.
template <int kChunkBytes>
struct SplitChunks {
  std::int64_t chunks_x = 0, chunks_k = 0;  // of one product
  std::int64_t products = 0;                // 1 if the batch shares the operand

  SplitChunks() = default;
  SplitChunks(std::int64_t rows, std::int64_t k, std::int64_t products_)
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
  // Of chunks along x, the last for those beyond it.
  __host__ __device__ std::int64_t inside(std::int64_t x) const {
    return x < chunks_x ? x : chunks_x - 1;
  }
  __host__ __device__ std::int64_t own(std::int64_t product) const {
    return products == 1 ? 0 : product;
  }
};

}  // namespace tilegate
