// FP32 GEMM on CUDA cores, the fallback of rungs that split operands: for small K; and, but for
// compute capability 9.0 (fp64_fallback.cuh), for operands whose dynamic range is too wide and for
// NaN and Inf.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/gpu_model.hpp>
#include <tilegate/common/lane_layout.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// A block computes a tile of 128×128 sums, 8×8 per thread. A thread sums a run of 4 to 256 products
// in order of k, and adds it to its total. The rounding error of that addition is added to the next
// run (compensated summation: W. Kahan, Further Remarks on Reducing Truncation Errors, CACM 1965).
// So rounding errors grow with the length of a run, not with K.

constexpr int kFp32Threads = 256;
constexpr int kFp32Tile = 128;  // rows and columns
constexpr int kFp32K = 16;
constexpr int kFp32Step = 4;  // after so many k the loop checks whether a run ends
constexpr int kFp32Run = 32, kFp32LongRun = 256;
static_assert(kFp32K % kFp32Step == 0);

// (kFp32K, kFp32Tile): rows of op(A) or columns of op(B).
constexpr int kFp32Pitch = kFp32Tile + 4;
using Fp32Tile = float[kFp32K][kFp32Pitch];

// Double buffers: one tile is multiplied while the other is loaded.
struct alignas(16) Fp32Storage {
  Fp32Tile a[2], b[2];
};

// An operand, transposed or not: element (x, k) at data[x · x_stride + k · k_stride].
struct StridedOperand {
  const float* data;
  std::int64_t x_stride, k_stride, rows;
};

// A thread's share of the loads of a tile. Neighbouring threads load neighbouring words of memory:
// along k if the operand's rows lie along k, else along x.
struct TileShare {
  static constexpr int kWords = kFp32Tile * kFp32K / kFp32Threads;
  static constexpr int kNextX = kFp32Threads / kFp32K, kNextK = kFp32Threads / kFp32Tile;
  bool along_k;
  int k, x;           // of the thread's first word
  int rows;           // of the operand in the tile, from the first word on
  const float* word;  // first word, in the next tile
  std::int64_t next;  // from a word to the thread's next one
  float v[kWords];

  __device__ TileShare(const StridedOperand& from, std::int64_t x0, int thread)
      : along_k(from.k_stride == 1),
        k(along_k ? thread % kFp32K : thread / kFp32Tile),
        x(along_k ? thread / kFp32K : thread % kFp32Tile),
        rows(at_most(from.rows - x0, kFp32Tile) - x),
        word(from.data + (x0 + x) * from.x_stride + k * from.k_stride),
        next(along_k ? kNextX * from.x_stride : kNextK * from.k_stride) {}

  // Loads the next tile, which has `left` k; zeros outside the operand.
  __device__ void load(std::int64_t left_k) {
    const int left = at_most(left_k, kFp32K) - k;
    const bool any = rows > 0 && left > 0;
    const int inside = along_k ? rows : left;
    const int apart = along_k ? kNextX : kNextK;
    const float* from = word;
#pragma unroll
    for (int i = 0; i < kWords; ++i, from += next) {
      v[i] = any && i * apart < inside ? *from : 0.0F;
    }
    word = along_k ? word + kFp32K : from;
  }

  __device__ void store(Fp32Tile& tile) const {
    float* to = &tile[k][x];
    const int apart = along_k ? kNextX : kNextK * kFp32Pitch;
#pragma unroll
    for (int i = 0; i < kWords; ++i, to += apart) *to = v[i];
  }
};

// A thread's results: 4×4 in each quarter of the tile.
using Fp32Sums = float[8][8];
// The tile's row of sums[i][·], and the column of sums[·][i].
__device__ inline int fp32_row(int thread, int i) {
  return i / 4 * (kFp32Tile / 2) + thread / 128 * 32 + lane_row<4, true>(thread % 32) * 4 + i % 4;
}
__device__ inline int fp32_col(int thread, int i) {
  return i / 4 * (kFp32Tile / 2) + thread / 32 % 4 * 16 + lane_column<4, true>(thread % 32) * 4 +
         i % 4;
}

// Eight rows of op(A), or columns of op(B), of one k.
__device__ inline void load_fp32(const float (&of_k)[kFp32Pitch], int first, float (&v)[8]) {
  const auto low = device::load_vector<float4>(&of_k[first]);
  const auto high = device::load_vector<float4>(&of_k[first + kFp32Tile / 2]);
  v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
  v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
}

// acc += the products of kFp32Step k from `first` on.
__device__ inline void multiply_fp32_step(const Fp32Tile& a, const Fp32Tile& b, int first, int row,
                                          int col, Fp32Sums& acc) {
#pragma unroll
  for (int k = first; k < first + kFp32Step; ++k) {
    float va[8], vb[8];
    load_fp32(a[k], row, va);
    load_fp32(b[k], col, vb);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[i][j] += va[i] * vb[j];
    }
  }
}

// Rounding error of sum = a + b; 0 where the sum is NaN or Inf.
__device__ inline float rounding_error(float a, float b, float sum) {
  return std::fabs(sum) < INFINITY ? b - (sum - a) : 0.0F;
}

// total ← total + acc; acc ← the rounding errors.
__device__ inline void add_run(Fp32Sums& total, Fp32Sums& acc) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float sum = total[i][j] + acc[i][j];
      acc[i][j] = rounding_error(total[i][j], acc[i][j], sum);
      total[i][j] = sum;
    }
  }
}

// sums ← sums + others.
__device__ inline void add_sums(Fp32Sums& sums, const Fp32Sums& others) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) sums[i][j] += others[i][j];
  }
}

// acc + total ← a tile's sums over `k`. The tile begins at `row` of op(A) and `col` of op(B).
// Called by kFp32Threads threads; `thread` is the index among them.
__device__ inline void sum_fp32_tile(const StridedOperand& a, const StridedOperand& b,
                                     std::int64_t row, std::int64_t col, std::int64_t k, int run,
                                     int thread, Fp32Storage& smem, Fp32Sums& acc,
                                     Fp32Sums& total) {
  const int thread_row = fp32_row(thread, 0), thread_col = fp32_col(thread, 0);
  TileShare share_a(a, row, thread), share_b(b, col, thread);
  share_a.load(k);
  share_b.load(k);
  int buffer = 0;
  for (std::int64_t first = 0; first < k; first += kFp32K, buffer ^= 1) {
    share_a.store(smem.a[buffer]);
    share_b.store(smem.b[buffer]);
    // These tiles are stored before any thread reads them, and the other buffers have been read
    // before the next iteration overwrites them.
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
  device::named_barrier<1>(kFp32Threads);  // the last tiles have been read: the next may be stored
}

// Shorter runs where K is small and C has few tiles: cuBLAS sums in shorter chains there, too.
constexpr int kFp32ShortRun = 4;
constexpr std::int64_t kFp32ShortK = 512;
constexpr std::int64_t kFp32FewTiles = 16;
static_assert(kFp32ShortRun % kFp32Step == 0);

// A power of two: at most a quarter of cuBLAS's chains, where these are long.
inline int fp32_run(const Problem& problem) {
  const TileScheduler scheduler(problem.shape, kFp32Tile, kFp32Tile);
  if (problem.shape.k <= kFp32ShortK && problem.batch * scheduler.count < kFp32FewTiles) {
    return kFp32ShortRun;
  }
  const auto quarter = static_cast<unsigned>(summed_in_fp32(problem) / 4.0F);
  return static_cast<int>(std::clamp<unsigned>(std::bit_floor(quarter), kFp32Run, kFp32LongRun));
}

// Rounding chain: the product, the run's additions, those of the runs, alpha and beta.
inline std::int64_t fp32_rounding_chain(const Problem& problem) {
  const std::int64_t k = problem.shape.k, run = fp32_run(problem);
  return (k < run ? k : run) + ceil_div(k, run) + 2;
}

// Parameters beside KernelArgs.
struct Fp32Args {
  bool a_along_k = false, b_along_k = false;  // rows of op(A), columns of op(B) lie along k
  int run = kFp32Run;
  TileScheduler scheduler;
};

__device__ inline void store_fp32(KernelArgs args, const TileCoord& tile, int thread,
                                  const Fp32Sums& sums) {
  const std::int64_t row = std::int64_t{tile.row} * kFp32Tile + fp32_row(thread, 0),
                     col = std::int64_t{tile.col} * kFp32Tile + fp32_col(thread, 0);
  args.c += tile.batch_index * args.stride_c + row * args.ldc + col;
  // Rows and columns of C from the thread's first one on.
  const int rows = at_most(args.shape.m - row, kFp32Tile),
            cols = at_most(args.shape.n - col, kFp32Tile);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int next_row = fp32_row(0, i);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int next_col = fp32_col(0, j);
      if (next_row < rows && next_col < cols) store_element(args, next_row, next_col, sums[i][j]);
    }
  }
}

// Computes tile `index` of the batch, over all of K.
__device__ inline void multiply_fp32(const KernelArgs& args, const Fp32Args& params, unsigned index,
                                     int thread, Fp32Storage& smem) {
  const TileCoord tile = params.scheduler.tile(index);
  const auto strided = [&](const float* data, std::int64_t stride, std::int64_t ld, bool along_k,
                           std::int64_t rows) {
    return StridedOperand{data + tile.batch_index * stride, along_k ? ld : 1, along_k ? 1 : ld,
                          rows};
  };
  Fp32Sums acc{}, total{};
  sum_fp32_tile(strided(args.a, args.stride_a, args.lda, params.a_along_k, args.shape.m),
                strided(args.b, args.stride_b, args.ldb, params.b_along_k, args.shape.n),
                std::int64_t{tile.row} * kFp32Tile, std::int64_t{tile.col} * kFp32Tile,
                args.shape.k, params.run, thread, smem, acc, total);
  add_sums(total, acc);
  store_fp32(args, tile, thread, total);
}

// One tile per block.
inline __global__ void __launch_bounds__(kFp32Threads, 1) plain(KernelArgs args, Fp32Args params) {
  auto& smem = device::shared_storage<Fp32Storage>();
  device::wait_for_previous_kernel();
  multiply_fp32(args, params, blockIdx.x, static_cast<int>(threadIdx.x), smem);
}

// Plans.

inline bool is_along_k(const Problem& problem, Operand operand) {
  return operand == Operand::kA ? problem.op_a == Op::kN : problem.op_b == Op::kT;
}

inline Fp32Args fp32_args(const Problem& problem) {
  return {is_along_k(problem, Operand::kA), is_along_k(problem, Operand::kB), fp32_run(problem),
          TileScheduler(problem.shape, kFp32Tile, kFp32Tile)};
}

inline PlannedKernel planned_kernel(const Problem& problem, const Fp32Args& params) {
  return {.name = std::string("fp32 a ") + (params.a_along_k ? "along k" : "along m") + ", b " +
                  (params.b_along_k ? "along k" : "along n"),
          .parameters = {parameter::rows(kFp32Tile), parameter::columns(kFp32Tile),
                         parameter::depth(kFp32K),
                         parameter::tiles("k in runs", problem.shape.k, params.run),
                         parameter::each("k of a run", params.run), scheduling(params.scheduler),
                         columns_of_groups(params.scheduler)}};
}

// The kernel `plain` as a candidate. `overlaps`: programmatic dependent launch, compute capability
// 9.0.
inline Candidate plain_candidate(const Problem& problem, bool overlaps = true) {
  constexpr double kFlopPerSecond = 30e12, kMultiprocessors = kH200.multiprocessors;
  const Fp32Args params = fp32_args(problem);
  const double waves =
      std::ceil(static_cast<double>(problem.batch * params.scheduler.count) / kMultiprocessors);
  const double flop = 2.0 * kFp32Tile * kFp32Tile * static_cast<double>(problem.shape.k);
  return {{.configuration = "fp32",
           .rounding_chain = fp32_rounding_chain(problem),
           .enqueue =
               [=](const KernelArgs& args, Stream stream) {
                 return device::launch({.kernel = "plain product",
                                        .blocks = args.batch * params.scheduler.count,
                                        .threads_x = kFp32Threads,
                                        .shared_bytes = sizeof(Fp32Storage),
                                        .overlaps_previous = overlaps},
                                       stream, plain, args, params);
               },
           .kernels = [=] { return std::vector{planned_kernel(problem, params)}; }},
          waves * flop * kMultiprocessors / kFlopPerSecond + 4e-6};
}

}  // namespace tilegate
