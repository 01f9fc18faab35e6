// Register fragments of A and B, their outer product, and the thread tiles of C.
#pragma once

#include <cstdint>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// frag[4·i … 4·i + 3] ← the vector at smem + offset(i), for each i; offsets are multiples of 4.
template <int kSize, typename Offset>
__device__ void load_fragment(float (&frag)[kSize], const float* smem, Offset offset) {
  static_assert(kSize % 4 == 0, "fragments are read four elements at a time");
#pragma unroll
  for (int i = 0; i < kSize / 4; ++i) {
    const float4 v = device::load_vector<float4>(smem + offset(i));
    frag[4 * i + 0] = v.x;
    frag[4 * i + 1] = v.y;
    frag[4 * i + 2] = v.z;
    frag[4 * i + 3] = v.w;
  }
}

// Serpentine order: every other row of products runs backwards. Each FFMA then shares an operand
// with the previous one, also where a row ends, and the register reuse cache supplies it.
constexpr __device__ bool is_ascending(int row) { return row % 2 == 0; }

// acc(i, j) += a(i)·b(j).
template <int kM, int kN>
__device__ void multiply_fragments(const float (&a)[kM], const float (&b)[kN],
                                   float (&acc)[kM][kN]) {
#pragma unroll
  for (int i = 0; i < kM; ++i) device::add_products(acc[i], a[i], b, is_ascending(i));
}

// C ← alpha·acc + beta·C for a thread's 4×4 tiles: tile (p, q) starts at
// (row + p·row_step, col + q·col_step).
template <bool kVector, int kM, int kN>
__device__ void store_thread_tiles(const KernelArgs& args, std::int64_t row, std::int64_t col,
                                   int row_step, int col_step, const float (&acc)[kM][kN]) {
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN; j += 4) {
      store4<kVector>(args, row + i / 4 * row_step + i % 4, col + j / 4 * col_step,
                      make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]));
    }
  }
}

}  // namespace tilegate
