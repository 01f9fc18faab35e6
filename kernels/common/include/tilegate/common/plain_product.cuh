// The plain FP32 product, for rungs that split operands: for calls whose operands are too wide for
// their parts, hold NaN or Inf, or whose K is small: 128×128 results per tile, 8×8 per thread. Runs
// of k are summed in their order. What is lost when a run is added to the total goes into the next
// run (W. Kahan, Further Remarks on Reducing Truncation Errors, 1965), so that rounding errors grow
// with the run, not with K.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_order.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

constexpr int kFp32Threads = 256;
constexpr int kFp32Tile = 128, kFp32K = 16;
constexpr int kFp32Words = kFp32Tile * kFp32K / kFp32Threads;  // of a tile of A, or B, per thread
constexpr int kFp32Step = 4;  // k between two looks whether a run ends
constexpr int kFp32Run = 32;
// For small K where C has few tiles: there cuBLAS sums in shorter chains, too.
constexpr int kFp32ShortRun = 4;
constexpr std::int64_t kFp32ShortK = 64;
constexpr std::int64_t kFp32FewTiles = 16;
static_assert(kFp32K % kFp32Step == 0 && kFp32ShortRun % kFp32Step == 0);

// Two tiles each, one of which is multiplied while the other arrives.
using Fp32Rows = float[kFp32K][kFp32Tile + 4];
struct alignas(16) Fp32Storage {
  Fp32Rows a[2], b[2];
};

// Additions on the longest way of a product to C, the product's own rounding, and alpha and beta.
constexpr std::int64_t fp32_rounding_chain(std::int64_t k, int run = kFp32Run) {
  return (k < run ? k : run) + ceil_div(k, run) + 2;
}

// An operand: element (x, k) at data[x · x_stride + k · k_stride].
struct StridedOperand {
  const float* data;
  std::int64_t x_stride, k_stride, rows, k;
};

// A thread's words of a tile: (k + i·next_k, x + i·next_x); neighbours lie next to each other in
// memory.
struct TileShare {
  int k, x, next_k, next_x;

  __device__ TileShare(bool along_k, int thread)
      : k(along_k ? thread % kFp32K : thread / kFp32Tile),
        x(along_k ? thread / kFp32K : thread % kFp32Tile),
        next_k(along_k ? 0 : kFp32Threads / kFp32Tile),
        next_x(along_k ? kFp32Threads / kFp32K : 0) {}
};

// How many of a tile's rows, or k, from `first` on are inside; no more than the tile has.
__device__ inline int rows_inside(std::int64_t extent, std::int64_t first) {
  const std::int64_t left = extent - first;
  return left < kFp32Tile ? static_cast<int>(left) : kFp32Tile;
}

__device__ inline void load_fp32(const StridedOperand& from, const TileShare& share,
                                 std::int64_t x0, std::int64_t k0, float (&v)[kFp32Words]) {
  const int rows = rows_inside(from.rows, x0 + share.x), ks = rows_inside(from.k, k0 + share.k);
  const float* word = from.data + (x0 + share.x) * from.x_stride + (k0 + share.k) * from.k_stride;
  const std::int64_t next = share.next_x * from.x_stride + share.next_k * from.k_stride;
#pragma unroll
  for (int i = 0; i < kFp32Words; ++i, word += next) {
    v[i] = i * share.next_x < rows && i * share.next_k < ks ? *word : 0.0F;
  }
}

__device__ inline void keep_fp32(const TileShare& share, const float (&v)[kFp32Words],
                                 Fp32Rows& tile) {
#pragma unroll
  for (int i = 0; i < kFp32Words; ++i) {
    tile[share.k + i * share.next_k][share.x + i * share.next_x] = v[i];
  }
}

// Four of the first half of a tile's rows, and four of the second.
__device__ inline void load_fragment(const float* from, float (&v)[8]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const auto vector = device::load_vector<float4>(from + half * (kFp32Tile / 2));
    v[4 * half] = vector.x;
    v[4 * half + 1] = vector.y;
    v[4 * half + 2] = vector.z;
    v[4 * half + 3] = vector.w;
  }
}

// For kFp32Step k from `first` on.
__device__ inline void multiply_fp32_step(const Fp32Rows& tile_a, const Fp32Rows& tile_b, int first,
                                          int row, int col, float (&acc)[8][8]) {
#pragma unroll 2
  for (int k = first; k < first + kFp32Step; ++k) {
    float a[8], b[8];
    load_fragment(&tile_a[k][row], a);
    load_fragment(&tile_b[k][col], b);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[i][j] += a[i] * b[j];
    }
  }
}

// Of a + b, rounded to `sum`; nothing where that is NaN or Inf, and stays it.
__device__ inline float lost(float a, float b, float sum) {
  return std::fabs(sum) < INFINITY ? b - (sum - a) : 0.0F;
}

// total ← total + acc, and acc ← what that lost; the last time acc ← the sum.
__device__ inline void add_run(bool is_last, float (&total)[8][8], float (&acc)[8][8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float sum = total[i][j] + acc[i][j];
      acc[i][j] = is_last ? sum : lost(total[i][j], acc[i][j], sum);
      total[i][j] = sum;
    }
  }
}

// By kFp32Threads threads, numbered `thread`; `args` of the tile's product.
__device__ inline void multiply_fp32_tile(const KernelArgs& args, const StridedOperand& a,
                                          const StridedOperand& b, std::int64_t row,
                                          std::int64_t col, int run, int thread,
                                          Fp32Storage& smem) {
  const int thread_row = thread / 16 * 4, thread_col = thread % 16 * 4;
  const TileShare share_a(a.k_stride == 1, thread), share_b(b.k_stride == 1, thread);
  float va[kFp32Words], vb[kFp32Words];
  load_fp32(a, share_a, row, 0, va);
  load_fp32(b, share_b, col, 0, vb);
  float acc[8][8]{}, total[8][8]{};
  int buffer = 0;
  for (std::int64_t k = 0; k < args.shape.k; k += kFp32K, buffer ^= 1) {
    keep_fp32(share_a, va, smem.a[buffer]);
    keep_fp32(share_b, vb, smem.b[buffer]);
    // These tiles are whole, and the others have been read: by whoever comes here next.
    device::named_barrier<1>(kFp32Threads);
    const std::int64_t next = k + kFp32K;
    load_fp32(a, share_a, row, next, va);
    load_fp32(b, share_b, col, next, vb);
#pragma unroll 1
    for (int step = 0; step < kFp32K; step += kFp32Step) {
      multiply_fp32_step(smem.a[buffer], smem.b[buffer], step, thread_row, thread_col, acc);
      const std::int64_t done = k + step + kFp32Step;
      const bool is_last = step + kFp32Step == kFp32K && next >= args.shape.k;
      if (args.shape.k > run && (done % run == 0 || is_last)) {
        add_run(is_last, total, acc);
      }
    }
  }
  device::named_barrier<1>(kFp32Threads);  // the last tiles have been read: another may come
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const std::int64_t to_row = row + i / 4 * (kFp32Tile / 2) + thread_row + i % 4;
      const std::int64_t to_col = col + j / 4 * (kFp32Tile / 2) + thread_col + j % 4;
      if (to_row < args.shape.m && to_col < args.shape.n) {
        store_element(args, to_row, to_col, acc[i][j]);
      }
    }
  }
}

// Beside KernelArgs: whether the rows of op(A), and the columns of op(B), lie along k, the k of a
// run, and the tiles.
struct Fp32Args {
  bool a_along_k = false, b_along_k = false;
  int run = kFp32Run;
  TileOrder order;
};

// Tile `index` of the batch.
__device__ inline void multiply_fp32(KernelArgs args, const Fp32Args& more, unsigned index,
                                     int thread, Fp32Storage& smem) {
  const TileOrder::Tile tile = more.order.tile(index);
  args.c += tile.product * args.stride_c;
  const auto strided = [&](const float* data, std::int64_t stride, std::int64_t ld, bool along_k,
                           std::int64_t rows) {
    return StridedOperand{data + tile.product * stride, along_k ? ld : 1, along_k ? 1 : ld, rows,
                          args.shape.k};
  };
  multiply_fp32_tile(args, strided(args.a, args.stride_a, args.lda, more.a_along_k, args.shape.m),
                     strided(args.b, args.stride_b, args.ldb, more.b_along_k, args.shape.n),
                     std::int64_t{tile.row} * kFp32Tile, std::int64_t{tile.col} * kFp32Tile,
                     more.run, thread, smem);
}

// A tile per block.
inline __global__ void __launch_bounds__(kFp32Threads, 1) plain(KernelArgs args, Fp32Args more) {
  auto& smem = device::shared_storage<Fp32Storage>();
  device::wait_for_previous_kernel();
  multiply_fp32(args, more, blockIdx.x, static_cast<int>(threadIdx.x), smem);
}

}  // namespace tilegate
