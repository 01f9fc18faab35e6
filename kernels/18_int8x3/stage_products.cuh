// How a warpgroup multiplies what a stage holds: from shared memory, or with the digits of A in
// registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/warp_mma.cuh>

#include "multiply_args.cuh"
#include "planes.cuh"

namespace tilegate::int8x3 {

// Of 8·n rows of a plane in a stage.
__device__ inline device::MatrixDescriptor plane_descriptor(const std::byte* rows, int plane) {
  return device::matrix_descriptor(rows + plane * kNextPlane, device::Swizzle::k32Bytes, kPiece,
                                   kNextRows);
}

// What a warpgroup multiplies: `a`, `b`: its 64 rows of the stage and the tile's columns. When it
// returns, nobody reads the stage before any more.
template <typename T, bool kInRegisters = T::kBlockN == 128>
struct StageProducts {
  __device__ void multiply(const std::byte* a, const std::byte* b,
                           std::int32_t (&acc)[T::kLevels][T::kBlockN / 2]) {
    device::warpgroup_arrive();
#pragma unroll
    for (int level = 0; level < T::kLevels; ++level) {
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane) {
        const int other = level - plane;
        if (other < 0 || other >= kPlanes) continue;
        device::warpgroup_mma_s8<T::kBlockN>(acc[level], plane_descriptor(a, plane),
                                             plane_descriptor(b, other));
      }
    }
    device::warpgroup_commit();
    device::warpgroup_wait<1>();
  }
};

// The same with the digits of A in registers: read from shared memory once, not for each product.
// On an NVIDIA H200 wide tiles take 1 % less time by it, and tiles of 64 columns 4 % more (README).
// The products of each plane of A are a group; the plane is overwritten once those of the stage
// before are done.
template <typename T>
struct StageProducts<T, true> {
  std::uint32_t digits[kPlanes][4]{};

  __device__ void multiply(const std::byte* a, const std::byte* b,
                           std::int32_t (&acc)[T::kLevels][T::kBlockN / 2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
    const std::byte* row = a + offset_in_chunk(warp * 16 + lane % 16, lane / 16);
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane) {
      device::warpgroup_wait<kPlanes - 1>();
      device::warpgroup_results(digits[plane]);
      device::load_matrices(digits[plane], row + plane * kNextPlane);
      device::warpgroup_arrive();
#pragma unroll
      for (int other = 0; other < kPlanes && plane + other < T::kLevels; ++other) {
        device::warpgroup_mma_s8<T::kBlockN>(acc[plane + other], digits[plane],
                                             plane_descriptor(b, other));
      }
      device::warpgroup_commit();
    }
    __syncwarp();  // all lanes have read A's digits, and one releases the stage for them
  }
};

}  // namespace tilegate::int8x3
