// The plain FP32 product, for rungs that split operands: for calls whose operands are too wide for
// their parts, hold NaN or Inf, or whose K is small.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/fp32_tile.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_order.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/flag.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// For small K where C has few tiles: there cuBLAS sums in shorter chains, too.
constexpr int kFp32ShortRun = 4;
constexpr std::int64_t kFp32ShortK = 64;
constexpr std::int64_t kFp32FewTiles = 16;  // of 128×128
static_assert(kFp32ShortRun % kFp32Step == 0);
static_assert((kFp32Run & (kFp32Run - 1)) == 0 && (kFp32ShortRun & (kFp32ShortRun - 1)) == 0);

// Additions on the longest way of a product to C, the product's own rounding, and alpha and beta.
constexpr std::int64_t fp32_rounding_chain(std::int64_t k, int run = kFp32Run) {
  return (k < run ? k : run) + ceil_div(k, run) + 2;
}

// Where there are more blocks than tiles, these are shared along K, each in as many parts.
struct Fp32Parts {
  static constexpr std::int64_t kLeastK = 64, kMost = 16;

  unsigned count = 1;
  std::int64_t k = 0;         // of a part; the last may have less
  float* sums = nullptr;      // of each block: kFp32SumBytes
  unsigned* flags = nullptr;  // of each block: raised once they are there

  Fp32Parts() = default;
  // `blocks`: or clusters, which take as many tiles as they have blocks, and count as one.
  Fp32Parts(std::int64_t all_k, std::int64_t tiles, std::int64_t blocks) {
    const std::int64_t most =
        std::clamp<std::int64_t>(std::min(blocks / tiles, all_k / kLeastK), 1, kMost);
    k = ceil_div(ceil_div(all_k, most), kFp32Run) * kFp32Run;
    count = static_cast<unsigned>(ceil_div(all_k, k));
  }
};
constexpr std::size_t kFp32SumBytes = sizeof(Fp32Sums) * kFp32Threads;

// Beside KernelArgs: whether the rows of op(A), and the columns of op(B), lie along k, the k of a
// run, and the tiles.
struct Fp32Args {
  bool a_along_k = false, b_along_k = false;
  int run = kFp32Run;
  TileOrder order;
  Fp32Parts parts{};
};

// acc + total ← a tile's sums, over `k` from `first` on. This and the others: by kFp32Threads
// threads, numbered `thread`.
__device__ inline void sum_fp32(const KernelArgs& args, const Fp32Args& more,
                                const TileOrder::Tile& tile, std::int64_t first, std::int64_t k,
                                int thread, Fp32Storage& smem, Fp32Sums& acc, Fp32Sums& total) {
  const auto strided = [&](const float* data, std::int64_t stride, std::int64_t ld, bool along_k,
                           std::int64_t rows) {
    const std::int64_t next = along_k ? 1 : ld;
    return StridedOperand{data + tile.product * stride + first * next, along_k ? ld : 1, next,
                          rows};
  };
  sum_fp32_tile(strided(args.a, args.stride_a, args.lda, more.a_along_k, args.shape.m),
                strided(args.b, args.stride_b, args.ldb, more.b_along_k, args.shape.n),
                std::int64_t{tile.row} * kFp32Rows, std::int64_t{tile.col} * kFp32Cols, k, more.run,
                thread, smem, acc, total);
}

// `has_total`: there was more than one run.
__device__ inline void store_fp32(KernelArgs args, const TileOrder::Tile& tile, bool has_total,
                                  int thread, const Fp32Sums& acc, const Fp32Sums& total) {
  args.c += tile.product * args.stride_c;
  const std::int64_t row = std::int64_t{tile.row} * kFp32Rows + fp32_row(thread);
  const std::int64_t col = std::int64_t{tile.col} * kFp32Cols + fp32_col(thread);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::int64_t to_row = row + i / 4 * (kFp32Rows / 2) + i % 4;
      if (to_row < args.shape.m && col + j < args.shape.n) {
        store_element(args, to_row, col + j, has_total ? total[i][j] + acc[i][j] : acc[i][j]);
      }
    }
  }
}

// A block's sums, in vectors of four: first one of each thread, then the next of each.
__device__ inline float* fp32_sums(const Fp32Parts& parts, unsigned block, int thread, int vector) {
  return parts.sums + block * (kFp32SumBytes / sizeof(float)) +
         (vector * kFp32Threads + thread) * 4;
}

__device__ inline void leave_fp32_sums(const Fp32Parts& parts, unsigned block, int thread,
                                       const Fp32Sums& sums) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    device::store_vector(fp32_sums(parts, block, thread, i),
                         make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
  }
  device::named_barrier<1>(kFp32Threads);  // all have stored, and one tells for them
  if (thread == 0) device::raise_flag(parts.flags + block);
}

// Adds to a block's sums those that blocks of the `others` clusters before have left, as runs.
template <unsigned kCluster>
__device__ void add_left_sums(const Fp32Parts& parts, unsigned block, unsigned others, int thread,
                              Fp32Sums& acc, Fp32Sums& total) {
  const auto mine = static_cast<unsigned>(thread);
  if (mine < others) device::wait_for_flag(parts.flags + block - (mine + 1) * kCluster);
  device::named_barrier<1>(kFp32Threads);  // one has waited for each
#pragma unroll 2
  for (unsigned other = 1; other <= others; ++other) {
    add_run(total, acc);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const auto v =
          device::load_vector<float4>(fp32_sums(parts, block - other * kCluster, thread, i));
      acc[i][0] += v.x;
      acc[i][1] += v.y;
      acc[i][2] += v.z;
      acc[i][3] += v.w;
    }
  }
}

// Tile `index` of the batch.
__device__ inline void multiply_fp32(const KernelArgs& args, const Fp32Args& more, unsigned index,
                                     int thread, Fp32Storage& smem) {
  const TileOrder::Tile tile = more.order.tile(index);
  Fp32Sums acc{}, total{};
  sum_fp32(args, more, tile, 0, args.shape.k, thread, smem, acc, total);
  store_fp32(args, tile, args.shape.k > more.run, thread, acc, total);
}

// By all blocks: whole tiles in turn, or a part of one each, and that with the last k stores it.
// The parts of a tile are in as many clusters: what waits for flags wants the others to have lower
// numbers, and not to run beside it. Compute capability 9.0.
template <unsigned kCluster>
__device__ void multiply_fp32_parts(const KernelArgs& args, const Fp32Args& more, int thread,
                                    Fp32Storage& smem) {
  const unsigned tiles = static_cast<unsigned>(args.batch) * more.order.count;
  const unsigned count = more.parts.count, others = count - 1;
  for (unsigned block = blockIdx.x;; block += gridDim.x) {
    const unsigned cluster = block / kCluster, part = cluster % count;
    const unsigned index = cluster / count * kCluster + block % kCluster;
    if (index >= tiles) break;
    const TileOrder::Tile tile = more.order.tile(index);
    const std::int64_t first = part * more.parts.k;
    Fp32Sums acc{}, total{};
    sum_fp32(args, more, tile, first, part < others ? more.parts.k : args.shape.k - first, thread,
             smem, acc, total);
    if (part < others) {
      add_sums(total, acc);
      leave_fp32_sums(more.parts, block, thread, total);
    } else {
      if (others > 0) add_left_sums<kCluster>(more.parts, block, others, thread, acc, total);
      store_fp32(args, tile, true, thread, acc, total);
    }
  }
}

// A tile per block.
inline __global__ void __launch_bounds__(kFp32Threads, 1) plain(KernelArgs args, Fp32Args more) {
  auto& smem = device::shared_storage<Fp32Storage>();
  device::wait_for_previous_kernel();
  multiply_fp32(args, more, blockIdx.x, static_cast<int>(threadIdx.x), smem);
}

}  // namespace tilegate
