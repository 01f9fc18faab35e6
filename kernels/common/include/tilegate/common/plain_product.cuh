// The plain FP32 product, for rungs that split operands: for calls whose operands are too wide for
// their parts, hold NaN or Inf, or whose K is small: 128×64 results per tile, 8×4 per thread. Runs
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
constexpr int kFp32Rows = 128, kFp32Cols = 64, kFp32K = 16;
constexpr int kFp32Step = 4;  // k between two looks whether a run ends
constexpr int kFp32Run = 32;
// For small K where C has few tiles: there cuBLAS sums in shorter chains, too.
constexpr int kFp32ShortRun = 4;
constexpr std::int64_t kFp32ShortK = 64;
constexpr std::int64_t kFp32FewTiles = 16;  // of 128×128
static_assert(kFp32K % kFp32Step == 0 && kFp32ShortRun % kFp32Step == 0);
static_assert((kFp32Run & (kFp32Run - 1)) == 0 && (kFp32ShortRun & (kFp32ShortRun - 1)) == 0);

// kFp32K k of kExtent rows of op(A), or columns of op(B).
template <int kExtent>
using Fp32Tile = float[kFp32K][kExtent + 4];

// Two tiles each, one of which is multiplied while the other arrives.
struct alignas(16) Fp32Storage {
  Fp32Tile<kFp32Rows> a[2];
  Fp32Tile<kFp32Cols> b[2];
};

// Additions on the longest way of a product to C, the product's own rounding, and alpha and beta.
constexpr std::int64_t fp32_rounding_chain(std::int64_t k, int run = kFp32Run) {
  return (k < run ? k : run) + ceil_div(k, run) + 2;
}

// An operand: element (x, k) at data[x · x_stride + k · k_stride].
struct StridedOperand {
  const float* data;
  std::int64_t x_stride, k_stride, rows;
};

// What a thread brings of a tile of kExtent rows or columns: words one after another along these
// where they lie along k, else along k. So neighbours read what lies next to each other in memory.
template <int kExtent>
struct TileShare {
  static constexpr int kWords = kExtent * kFp32K / kFp32Threads;
  static constexpr int kNextX = kFp32Threads / kFp32K, kNextK = kFp32Threads / kExtent;
  bool along_k;
  int k, x;           // of the first word
  std::int64_t rows;  // from there on
  const float* word;  // the first, of the next tile
  std::int64_t next;  // from word to word
  float v[kWords];

  __device__ TileShare(const StridedOperand& from, std::int64_t x0, int thread)
      : along_k(from.k_stride == 1),
        k(along_k ? thread % kFp32K : thread / kExtent),
        x(along_k ? thread / kFp32K : thread % kExtent),
        rows(from.rows - x0 - x),
        word(from.data + (x0 + x) * from.x_stride + k * from.k_stride),
        next(along_k ? kNextX * from.x_stride : kNextK * from.k_stride) {}

  // From the next tile, zeros outside the operand, which ends `left` k from the tile's first on.
  __device__ void load(std::int64_t left) {
    left -= k;
    const bool any = rows > 0 && left > 0;
    const std::int64_t inside = along_k ? rows : left;
    const int apart = along_k ? kNextX : kNextK;
    const float* from = word;
#pragma unroll
    for (int i = 0; i < kWords; ++i, from += next) {
      v[i] = any && i * apart < inside ? *from : 0.0F;
    }
    word = along_k ? word + kFp32K : from;
  }

  __device__ void keep(Fp32Tile<kExtent>& tile) const {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      tile[k + (along_k ? 0 : i * kNextK)][x + (along_k ? i * kNextX : 0)] = v[i];
    }
  }
};

// A thread's results: four columns of each of two times four rows, half a tile apart.
using Fp32Sums = float[8][4];

// For kFp32Step k from `first` on.
__device__ inline void multiply_fp32_step(const Fp32Tile<kFp32Rows>& a,
                                          const Fp32Tile<kFp32Cols>& b, int first, int row, int col,
                                          Fp32Sums& acc) {
#pragma unroll
  for (int k = first; k < first + kFp32Step; ++k) {
    const auto top = device::load_vector<float4>(&a[k][row]);
    const auto bottom = device::load_vector<float4>(&a[k][row + kFp32Rows / 2]);
    const auto cols = device::load_vector<float4>(&b[k][col]);
    const float va[8] = {top.x, top.y, top.z, top.w, bottom.x, bottom.y, bottom.z, bottom.w};
    const float vb[4] = {cols.x, cols.y, cols.z, cols.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) acc[i][j] += va[i] * vb[j];
    }
  }
}

// Of a + b, rounded to `sum`; nothing where that is NaN or Inf, and stays it.
__device__ inline float lost(float a, float b, float sum) {
  return std::fabs(sum) < INFINITY ? b - (sum - a) : 0.0F;
}

// total ← total + acc, and acc ← what that lost.
__device__ inline void add_run(Fp32Sums& total, Fp32Sums& acc) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float sum = total[i][j] + acc[i][j];
      acc[i][j] = lost(total[i][j], acc[i][j], sum);
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
  TileShare<kFp32Rows> share_a(a, row, thread);
  TileShare<kFp32Cols> share_b(b, col, thread);
  share_a.load(args.shape.k);
  share_b.load(args.shape.k);
  Fp32Sums acc{}, total{};
  int buffer = 0;
  for (std::int64_t k = 0; k < args.shape.k; k += kFp32K, buffer ^= 1) {
    share_a.keep(smem.a[buffer]);
    share_b.keep(smem.b[buffer]);
    // These tiles are whole, and the others have been read: by whoever comes here next.
    device::named_barrier<1>(kFp32Threads);
    const std::int64_t left = args.shape.k - k - kFp32K;
    share_a.load(left);
    share_b.load(left);
#pragma unroll 1
    for (int step = 0; step < kFp32K; step += kFp32Step) {
      multiply_fp32_step(smem.a[buffer], smem.b[buffer], step, thread_row, thread_col, acc);
      const int done = static_cast<int>(k) + step + kFp32Step;
      const bool is_last = step + kFp32Step == kFp32K && left <= 0;
      if (args.shape.k > run && (done & (run - 1)) == 0 && !is_last) add_run(total, acc);
    }
  }
  device::named_barrier<1>(kFp32Threads);  // the last tiles have been read: another may come
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::int64_t to_row = row + i / 4 * (kFp32Rows / 2) + thread_row + i % 4;
      const std::int64_t to_col = col + thread_col + j;
      if (to_row < args.shape.m && to_col < args.shape.n) {
        store_element(args, to_row, to_col,
                      args.shape.k > run ? total[i][j] + acc[i][j] : acc[i][j]);
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
    return StridedOperand{data + tile.product * stride, along_k ? ld : 1, along_k ? 1 : ld, rows};
  };
  multiply_fp32_tile(args, strided(args.a, args.stride_a, args.lda, more.a_along_k, args.shape.m),
                     strided(args.b, args.stride_b, args.ldb, more.b_along_k, args.shape.n),
                     std::int64_t{tile.row} * kFp32Rows, std::int64_t{tile.col} * kFp32Cols,
                     more.run, thread, smem);
}

// A tile per block.
inline __global__ void __launch_bounds__(kFp32Threads, 1) plain(KernelArgs args, Fp32Args more) {
  auto& smem = device::shared_storage<Fp32Storage>();
  device::wait_for_previous_kernel();
  multiply_fp32(args, more, blockIdx.x, static_cast<int>(threadIdx.x), smem);
}

}  // namespace tilegate
