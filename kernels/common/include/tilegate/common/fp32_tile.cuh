// The sums of a tile of plain_product.cuh: 128×64 of them, 8×4 per thread. Runs of k are summed in
// their order. What is lost when a run is added to the total goes into the next run (W. Kahan,
// Further Remarks on Reducing Truncation Errors, 1965), so that rounding errors grow with the run,
// not with K.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

constexpr int kFp32Threads = 256;
constexpr int kFp32Rows = 128, kFp32Cols = 64, kFp32K = 16;
constexpr int kFp32Step = 4;  // k between two looks whether a run ends
constexpr int kFp32Run = 32;
static_assert(kFp32K % kFp32Step == 0);

// kFp32K k of kExtent rows of op(A), or columns of op(B).
template <int kExtent>
using Fp32Tile = float[kFp32K][kExtent + 4];

// Two tiles each, one of which is multiplied while the other arrives.
struct alignas(16) Fp32Storage {
  Fp32Tile<kFp32Rows> a[2];
  Fp32Tile<kFp32Cols> b[2];
};

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
__device__ inline int fp32_row(int thread) { return thread / 16 * 4; }
__device__ inline int fp32_col(int thread) { return thread % 16 * 4; }

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

// sums ← sums + others.
__device__ inline void add_sums(Fp32Sums& sums, const Fp32Sums& others) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[i][j] += others[i][j];
  }
}

// A tile's sums of `k` products each; rows and columns of the operands from `row` and `col` on. By
// kFp32Threads threads, numbered `thread`, each of which gets its own.
__device__ inline void sum_fp32_tile(const StridedOperand& a, const StridedOperand& b,
                                     std::int64_t row, std::int64_t col, std::int64_t k, int run,
                                     int thread, Fp32Storage& smem, Fp32Sums& acc,
                                     Fp32Sums& total) {
  const int thread_row = fp32_row(thread), thread_col = fp32_col(thread);
  TileShare<kFp32Rows> share_a(a, row, thread);
  TileShare<kFp32Cols> share_b(b, col, thread);
  share_a.load(k);
  share_b.load(k);
  int buffer = 0;
  for (std::int64_t first = 0; first < k; first += kFp32K, buffer ^= 1) {
    share_a.keep(smem.a[buffer]);
    share_b.keep(smem.b[buffer]);
    // These tiles are whole, and the others have been read: by whoever comes here next.
    device::named_barrier<1>(kFp32Threads);
    const std::int64_t left = k - first - kFp32K;
    share_a.load(left);
    share_b.load(left);
#pragma unroll 1
    for (int step = 0; step < kFp32K; step += kFp32Step) {
      multiply_fp32_step(smem.a[buffer], smem.b[buffer], step, thread_row, thread_col, acc);
      const int done = static_cast<int>(first) + step + kFp32Step;
      const bool is_last = step + kFp32Step == kFp32K && left <= 0;
      if (k > run && (done & (run - 1)) == 0 && !is_last) add_run(total, acc);
    }
  }
  device::named_barrier<1>(kFp32Threads);  // the last tiles have been read: another may come
}

}  // namespace tilegate
