// How blocks of threads cover C: a one-dimensional grid, because CUDA limits the other dimensions
// to 65535 blocks and M or N may need more.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <tilegate/common/gpu_model.hpp>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

constexpr __host__ __device__ std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// C in tiles of kBlockM×kBlockN, one per block, row by row of tiles.
template <int kBlockM, int kBlockN>
struct TileGrid {
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

  // Ok if a grid has as many blocks as C has tiles.
  static Status fits(const Shape& shape) {
    // In floating point, because the product of two 64-bit extents may overflow.
    const double blocks = static_cast<double>(ceil_div(shape.m, kBlockM)) *
                          static_cast<double>(ceil_div(shape.n, kBlockN));
    if (blocks <= static_cast<double>(kMaxBlocks)) return {};
    return Status::unsupported("C needs more blocks than a CUDA grid has: tiles of " +
                               std::to_string(kBlockM) + "x" + std::to_string(kBlockN));
  }
};

// The rounding chain of a serial sum: K additions, then the scaling by alpha and the sum with C.
inline std::int64_t serial_rounding_chain(const Shape& shape) { return shape.k + 2; }

// The choice of a stage that has one tile size and sums serially along K.
template <typename Grid>
Choice serial_choice(const Problem& problem,
                     std::function<Status(const KernelArgs&, Stream)> enqueue) {
  return {.status = Grid::fits(problem.shape),
          .rounding_chain = serial_rounding_chain(problem.shape),
          .enqueue = std::move(enqueue)};
}

}  // namespace tilegate
