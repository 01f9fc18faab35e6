// How blocks of threads cover C: a one-dimensional grid, because CUDA limits the other dimensions
// to 65535 blocks and M or N may need more.
#pragma once

#include <cstdint>
#include <string>

#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate {

constexpr __host__ __device__ std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// C in tiles of kBlockM×kBlockN, one a block, row by row of tiles.
template <int kBlockM, int kBlockN>
struct TileGrid {
  static constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;

  static __host__ __device__ std::int64_t num_blocks(const Shape& shape) {
    return ceil_div(shape.m, kBlockM) * ceil_div(shape.n, kBlockN);
  }

  // First row and column of a tile; a block's own, unless several blocks share one.
  struct Origin {
    std::int64_t row, col;
  };
  static __device__ Origin origin(const Shape& shape, unsigned tile) {
    const auto tiles_n = static_cast<unsigned>(ceil_div(shape.n, kBlockN));
    return {static_cast<std::int64_t>(tile / tiles_n) * kBlockM,
            static_cast<std::int64_t>(tile % tiles_n) * kBlockN};
  }
  static __device__ Origin origin(const Shape& shape) { return origin(shape, blockIdx.x); }

  // A Stage's `restrictions`: as many tiles as a grid has blocks.
  static Status fits(const SgemmArgs& args) {
    // In floating point, because the product of two 64-bit extents may overflow.
    const double blocks = static_cast<double>(ceil_div(args.shape.m, kBlockM)) *
                          static_cast<double>(ceil_div(args.shape.n, kBlockN));
    if (blocks <= static_cast<double>(kMaxBlocks)) return {};
    return Status::unsupported("C needs more blocks than a CUDA grid has: tiles of " +
                               std::to_string(kBlockM) + "x" + std::to_string(kBlockN));
  }
};

// C(row, col) ← alpha·sum + beta·C(row, col); with beta == 0, C is not read.
inline __device__ void store_element(const SgemmArgs& args, std::int64_t row, std::int64_t col,
                                     float sum) {
  float* c = args.c + row * args.ldc + col;
  *c = args.beta == 0.0F ? args.alpha * sum : args.alpha * sum + args.beta * *c;
}

// The rounding chain of a serial sum: K additions, then the scaling by alpha and the sum with C.
inline std::int64_t serial_rounding_chain(const Shape& shape) { return shape.k + 2; }

}  // namespace tilegate
