// The plain FP32 product, for calls whose operands are too wide for digits, hold NaN or Inf, or
// whose K is small: 128×64 results per tile, 8×4 per thread. Sums of kFp32Run k in their order, and
// then the sum of these: rounding errors grow with the longer of the two, not with K.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "tile_order.cuh"

namespace tilegate::int8x3 {

constexpr int kFp32Threads = 256;
constexpr int kFp32M = 128, kFp32N = 64, kFp32K = 16;
constexpr std::int64_t kFp32Run = 256;
static_assert(kFp32Run % kFp32K == 0);

// Words of a tile of so many rows per thread, and the tile, rows of one k.
template <int kRows>
constexpr int kFp32Loads = kRows* kFp32K / kFp32Threads;
template <int kRows>
using Fp32Words = float[kFp32Loads<kRows>];
template <int kRows>
using Fp32Rows = float[kFp32K][kRows + 4];

struct alignas(16) Fp32Storage {
  Fp32Rows<kFp32M> a;
  Fp32Rows<kFp32N> b;
};

// Additions on the longest way of a product to C, the product's own rounding, and alpha and beta.
constexpr std::int64_t fp32_rounding_chain(std::int64_t k) {
  return (k < kFp32Run ? k : kFp32Run) + ceil_div(k, kFp32Run) + 2;
}

// An operand: element (x, k) at data[x · x_stride + k · k_stride].
struct Strided {
  const float* data;
  std::int64_t x_stride, k_stride, rows, k;
};

// A thread's elements of a tile: (k + i·next_k, x + i·next_x); neighbours lie next to each other in
// memory.
template <int kRows>
struct Share {
  int k, x, next_k, next_x;

  __device__ Share(bool along_k, int thread)
      : k(along_k ? thread % kFp32K : thread / kRows),
        x(along_k ? thread / kFp32K : thread % kRows),
        next_k(along_k ? 0 : kFp32Threads / kRows),
        next_x(along_k ? kFp32Threads / kFp32K : 0) {}
};

template <int kRows>
__device__ void load_fp32(const Strided& from, const Share<kRows>& share, std::int64_t x0,
                          std::int64_t k0, Fp32Words<kRows>& v) {
#pragma unroll
  for (int i = 0; i < kFp32Loads<kRows>; ++i) {
    const std::int64_t x = x0 + share.x + i * share.next_x, k = k0 + share.k + i * share.next_k;
    v[i] = x < from.rows && k < from.k ? from.data[x * from.x_stride + k * from.k_stride] : 0.0F;
  }
}

template <int kRows>
__device__ void keep_fp32(const Share<kRows>& share, const Fp32Words<kRows>& v,
                          Fp32Rows<kRows>& tile) {
#pragma unroll
  for (int i = 0; i < kFp32Loads<kRows>; ++i) {
    tile[share.k + i * share.next_k][share.x + i * share.next_x] = v[i];
  }
}

__device__ inline void load_fragment(const float* from, float* v) {
  const auto vector = device::load_vector<float4>(from);
  v[0] = vector.x;
  v[1] = vector.y;
  v[2] = vector.z;
  v[3] = vector.w;
}

__device__ inline void multiply_fp32_step(const Fp32Storage& smem, int row, int col,
                                          float (&acc)[8][4]) {
#pragma unroll 4
  for (int k = 0; k < kFp32K; ++k) {
    float a[8], b[4];
    load_fragment(&smem.a[k][row], a);
    load_fragment(&smem.a[k][row + kFp32M / 2], a + 4);
    load_fragment(&smem.b[k][col], b);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) acc[i][j] += a[i] * b[j];
    }
  }
}

// By kFp32Threads threads, numbered `thread`; `args` of the tile's product.
__device__ inline void multiply_fp32_tile(const KernelArgs& args, const Strided& a,
                                          const Strided& b, std::int64_t row, std::int64_t col,
                                          int thread, Fp32Storage& smem) {
  const int thread_row = thread / 16 * 4, thread_col = thread % 16 * 4;
  const Share<kFp32M> share_a(a.k_stride == 1, thread);
  const Share<kFp32N> share_b(b.k_stride == 1, thread);
  Fp32Words<kFp32M> va;  // of the next tiles, while these multiply
  Fp32Words<kFp32N> vb;
  load_fp32(a, share_a, row, 0, va);
  load_fp32(b, share_b, col, 0, vb);
  float total[8][4]{}, acc[8][4]{};
  for (std::int64_t k0 = 0; k0 < args.shape.k; k0 += kFp32K) {
    device::named_barrier<1>(kFp32Threads);  // the tiles before have been read
    keep_fp32(share_a, va, smem.a);
    keep_fp32(share_b, vb, smem.b);
    device::named_barrier<1>(kFp32Threads);  // the tiles are whole
    load_fp32(a, share_a, row, k0 + kFp32K, va);
    load_fp32(b, share_b, col, k0 + kFp32K, vb);
    multiply_fp32_step(smem, thread_row, thread_col, acc);
    if ((k0 + kFp32K) % kFp32Run == 0 || k0 + kFp32K >= args.shape.k) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          total[i][j] += acc[i][j];
          acc[i][j] = 0.0F;
        }
      }
    }
  }
  device::named_barrier<1>(kFp32Threads);  // the last tiles have been read: another may come
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::int64_t to_row = row + i / 4 * (kFp32M / 2) + thread_row + i % 4;
      const std::int64_t to_col = col + thread_col + j;
      if (to_row < args.shape.m && to_col < args.shape.n) {
        store_element(args, to_row, to_col, total[i][j]);
      }
    }
  }
}

// Tile `index` of the batch.
__device__ inline void multiply_fp32(KernelArgs args, bool a_along_k, bool b_along_k,
                                     const TileOrder& order, unsigned index, int thread,
                                     Fp32Storage& smem) {
  const TileOrder::Tile tile = order.tile(index);
  args.c += tile.product * args.stride_c;
  const Strided a{args.a + tile.product * args.stride_a, a_along_k ? args.lda : 1,
                  a_along_k ? 1 : args.lda, args.shape.m, args.shape.k};
  const Strided b{args.b + tile.product * args.stride_b, b_along_k ? args.ldb : 1,
                  b_along_k ? 1 : args.ldb, args.shape.n, args.shape.k};
  multiply_fp32_tile(args, a, b, std::int64_t{tile.row} * kFp32M,
                     std::int64_t{tile.col} * kFp32N, thread, smem);
}

// A tile per block.
inline __global__ void __launch_bounds__(kFp32Threads, 1)
    plain(KernelArgs args, bool a_along_k, bool b_along_k, TileOrder order) {
  auto& smem = device::shared_storage<Fp32Storage>();
  device::wait_for_previous_kernel();
  multiply_fp32(args, a_along_k, b_along_k, order, blockIdx.x, static_cast<int>(threadIdx.x), smem);
}

}  // namespace tilegate::int8x3
