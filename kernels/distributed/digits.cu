#include <algorithm>
#include <limits>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

#include "18_int8x3/gemm_sm90.cuh"
#include "18_int8x3/split.cuh"
#include "digits.hpp"

namespace tilegate::distributed {

using int8x3::Path;
using int8x3::Planes;
using int8x3::Scale;

static_assert(static_cast<std::int32_t>(Path::kFp32) == kWithoutDigits);

constexpr std::uint64_t kInfinite = std::numeric_limits<std::uint64_t>::max();
constexpr double kWidthUnit = 0x1p-16;

__host__ __device__ inline std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return a > kInfinite - b ? kInfinite : a + b;
}

std::size_t plane_bytes(std::int64_t rows, std::int64_t k) { return Planes(rows, k, 1).bytes(); }
std::size_t step_bytes(std::int64_t rows) { return Planes(rows, 0, 1).step_bytes(); }

double error_of_digits() { return int8x3::kOperandError; }

// Split kernels. Where ranks share rows: row_bits, then split_rows with the bits of all ranks.
// Where a rank has whole rows, on compute capability 9.0: split_whole_rows, which reads them once
// if they fit. In all three a block has eight rows, and its threads have segments of K, as in
// split_short of Int8x3. The loads of four segments per thread are in flight together.

using Rows = SplitRowsConfig<256, 8>;
constexpr int kSegments = 4;
constexpr std::int64_t kRoundK = kSegments * Rows::kBlockK;  // K of a block's four segments

struct RowsArgs {
  int8x3::Job job;
  SplitPointers pointers;
  RowBits* bits;
  SplitArgs split;
};

struct RowBitsStorage {
  RowBits bits[Rows::kWarps][Rows::kRows];
};

struct SplitStorage {
  Scale scale[Rows::kRows];
  bool has_scale[Rows::kRows];
  std::uint64_t sums[Rows::kWarps][Rows::kRows];
};

__device__ inline RowBits joined(const RowBits& a, const RowBits& b) {
  return {max(a.largest, b.largest), a.all | b.all};
}

__device__ inline void add_segments(const float (&v)[kSegments][kSegmentK], RowBits& found) {
#pragma unroll
  for (int i = 0; i < kSegments * kSegmentK; ++i) {
    const std::uint32_t bits = bits_of(v[i / kSegmentK][i % kSegmentK]);
    found = joined(found, {bits & 0x7FFFFFFFU, bits});
  }
}

// The thread's segments from k on; zeros from `end` on.
__device__ inline void load_segments(const int8x3::Job& job, const SplitPointers& pointers,
                                     std::int64_t row, std::int64_t k, std::int64_t end,
                                     float (&v)[kSegments][kSegmentK]) {
#pragma unroll
  for (int i = 0; i < kSegments; ++i) {
    const std::int64_t at = k + i * Rows::kBlockK;
    load_segment(job, pointers, row, at < end ? at : job.k, v[i]);
  }
}

// Joins what the block's threads found. The result is that of a row, in the first kRows threads.
__device__ inline RowBits join_in_block(RowBits found, RowBitsStorage& smem) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int lanes = Rows::kRows; lanes < 32; lanes *= 2) {
    found = joined(found, {__shfl_xor_sync(~0U, found.largest, lanes),
                           __shfl_xor_sync(~0U, found.all, lanes)});
  }
  if (lane < Rows::kRows) smem.bits[warp][lane] = found;
  __syncthreads();  // all warps have stored theirs
  if (threadIdx.x < Rows::kRows) {
    for (int other = 1; other < Rows::kWarps; ++other) {
      found = joined(found, smem.bits[other][lane]);
    }
  }
  return found;
}

// A thread per row of the block: its scale, from the bits of all its elements.
__device__ inline void finalize_row(const RowBits& found, float* steps, SplitStorage& smem) {
  const unsigned row = threadIdx.x;
  const float largest = float_of(found.largest);
  const int8x3::RowStats stats{.largest = largest, .sum = largest, .bits = found.all};
  smem.scale[row] = int8x3::scale_of(stats);
  smem.has_scale[row] = is_scalable(stats);
  steps[row] = smem.scale[row].step;
}

// Writes the digits of the thread's segments from k on; returns Σ|x| of their integers.
__device__ inline std::uint64_t write_segments(const float (&v)[kSegments][kSegmentK],
                                               const Scale& scale, std::int64_t k, std::int64_t end,
                                               std::byte* planes) {
  std::uint64_t sum = 0;
#pragma unroll
  for (int i = 0; i < kSegments; ++i) {
    const std::int64_t at = k + i * Rows::kBlockK;
    if (at >= end) break;
    // Rounds as biased_digits does. From 2^23 to 2^24 the bits of a float are those of 2^23 plus
    // its integer.
    std::uint32_t of_segment = 0;
#pragma unroll
    for (const float value : v[i]) {
      const float shifted = std::fma(std::fabs(value), scale.to_integer, 0x1p23F);
      of_segment += bits_of(shifted) - bits_of(0x1p23F);
    }
    sum += of_segment;
    int8x3::store_segment(v[i], scale, planes + at / kChunkK * int8x3::kChunkBytes);
  }
  return sum;
}

// sums[row] ← the sum over the block's threads that have a part of the row, for the first `rows`.
__device__ inline void store_sums(std::uint64_t sum, std::int64_t rows, SplitStorage& smem,
                                  std::uint64_t* sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int lanes = Rows::kRows; lanes < 32; lanes *= 2) sum += __shfl_xor_sync(~0U, sum, lanes);
  if (lane < Rows::kRows) smem.sums[warp][lane] = sum;
  __syncthreads();  // all warps have stored theirs
  if (threadIdx.x >= Rows::kRows || threadIdx.x >= rows) return;
  for (int other = 1; other < Rows::kWarps; ++other) sum += smem.sums[other][lane];
  sums[lane] = smem.has_scale[lane] ? sum : kInfinite;
}

// The first byte of a thread's digits at K = 0.
__device__ inline std::byte* digits_of(std::byte* planes, const int8x3::Job& job,
                                       const RowsOfBlock<Rows>& rows) {
  return planes + job.planes.chunk(rows.batch_index, rows.first_row / kChunkRows, 0) +
         int8x3::offset_in_chunk(static_cast<int>(rows.first_row % kChunkRows) + rows.row,
                                 static_cast<int>(rows.first_k % kChunkK) / kSegmentK);
}

__global__ void row_bits(RowsArgs args) {
  auto& smem = device::shared_storage<RowBitsStorage>();
  const RowsOfBlock<Rows> rows(args.job, blockIdx.x);
  RowBits found;
  float v[kSegments][kSegmentK];
  for (std::int64_t k = rows.first_k; k < args.job.k; k += kRoundK) {
    load_segments(args.job, args.pointers, rows.first_row + rows.row, k, args.job.k, v);
    add_segments(v, found);
  }
  found = join_in_block(found, smem);
  if (threadIdx.x >= Rows::kRows || rows.first_row + threadIdx.x >= args.job.rows) return;
  args.bits[rows.first_row + threadIdx.x] = found;
}

__global__ void split_rows(RowsArgs args) {
  auto& smem = device::shared_storage<SplitStorage>();
  const RowsOfBlock<Rows> rows(args.job, blockIdx.x);
  const SplitArgs& split = args.split;
  if (threadIdx.x < Rows::kRows) {
    const std::int64_t row = rows.first_row + threadIdx.x;
    RowBits found;
    for (int set = 0; row < args.job.rows && set < split.sets; ++set) {
      found = joined(found, split.bits[set * split.next_set + row]);
    }
    finalize_row(found, split.steps + rows.first_row, smem);
  }
  __syncthreads();  // all scales are stored
  const Scale scale = smem.scale[rows.row];
  std::byte* const planes = digits_of(split.planes, args.job, rows);
  const std::int64_t end = args.job.planes.chunks_k * kChunkK;
  std::uint64_t sum = 0;
  float v[kSegments][kSegmentK];
  for (std::int64_t k = rows.first_k; k < end; k += kRoundK) {
    load_segments(args.job, args.pointers, rows.first_row + rows.row, k, end, v);
    sum += write_segments(v, scale, k, end, planes);
  }
  store_sums(sum, args.job.rows - rows.first_row, smem, split.sums + rows.first_row);
}

// The blocks of a cluster share eight rows, and each has a range of K. Threads keep their four
// segments in registers from the first pass, which finds the bits of the rows, to the second, which
// writes digits. What does not fit is read again, the latest first.

struct WholeRowsArgs {
  int8x3::Job job[2] = {};
  SplitPointers pointers[2] = {};
  std::uint64_t* sums[2] = {};
  std::int64_t next_set = 0;
  unsigned groups_of_first = 0, cluster = 1;
  std::int64_t block_k = 0;
};

struct WholeRowsStorage {
  RowBitsStorage bits;
  float4 block_bits[Rows::kRows][int8x3::kMaxSplitCluster];  // x, y: RowBits of the row in a block
  device::Barrier bits_ready;
  SplitStorage split;
};

// Threads of one warp, one per row: joins what the blocks of the cluster found.
__device__ inline RowBits join_in_cluster(RowBits found, unsigned cluster, WholeRowsStorage& smem) {
  const unsigned row = threadIdx.x;
  for (unsigned to = 0; to < cluster; ++to) {
    device::store_remote(smem.block_bits[row][device::cluster_rank()],
                         make_float4(float_of(found.largest), float_of(found.all), 0.0F, 0.0F),
                         smem.bits_ready, to);
  }
  device::barrier_wait(smem.bits_ready, 0);
  for (unsigned from = 0; from < cluster; ++from) {
    const float4 more = smem.block_bits[row][from];
    found = joined(found, {bits_of(more.x), bits_of(more.y)});
  }
  return found;
}

__global__ void __launch_bounds__(Rows::kThreads, 2) split_whole_rows(WholeRowsArgs args) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<WholeRowsStorage>();
  const bool in_cluster = args.cluster > 1;
  const unsigned rank = in_cluster ? device::cluster_rank() : 0;
  if (in_cluster) {
    if (threadIdx.x == 0) {
      device::barrier_init(smem.bits_ready, 1);
      device::barrier_init_fence();
      device::barrier_arrive_expect(smem.bits_ready, args.cluster * Rows::kRows * sizeof(float4));
    }
    device::cluster_arrive();
  }
  const unsigned group = blockIdx.x / args.cluster;
  const bool second = group >= args.groups_of_first;
  const int8x3::Job& job = args.job[second];
  const SplitPointers& pointers = args.pointers[second];
  const RowsOfBlock<Rows> rows(job, second ? group - args.groups_of_first : group);
  const std::int64_t all_k = job.planes.chunks_k * kChunkK, begin = rank * args.block_k;
  const std::int64_t end = begin + args.block_k < all_k ? begin + args.block_k : all_k;
  const std::int64_t row = rows.first_row + rows.row;
  RowBits found;
  float v[kSegments][kSegmentK];
  std::int64_t k = begin + rows.first_k;
  for (; k < end; k += kRoundK) {
    load_segments(job, pointers, row, k, end, v);
    add_segments(v, found);
  }
  found = join_in_block(found, smem.bits);
  if (in_cluster) device::cluster_wait();  // all blocks have initialised their barriers
  if (threadIdx.x < Rows::kRows) {
    if (in_cluster) found = join_in_cluster(found, args.cluster, smem);
    finalize_row(found, pointers.steps + rows.first_row, smem.split);
  }
  __syncthreads();  // all scales are stored
  const Scale scale = smem.split.scale[rows.row];
  std::byte* const planes = digits_of(pointers.planes, job, rows);
  std::uint64_t sum = 0;
  for (bool is_latest = true; k > begin + rows.first_k; is_latest = false) {
    k -= kRoundK;
    if (!is_latest) load_segments(job, pointers, row, k, end, v);
    sum += write_segments(v, scale, k, end, planes);
  }
  store_sums(sum, job.rows - rows.first_row, smem.split,
             args.sums[second] + rank * args.next_set + rows.first_row);
#endif
}

template <typename Storage>
Status enqueue_rows(const char* name, const Problem& problem, Operand operand, const float* from,
                    RowBits* bits, const SplitArgs& split, void (*kernel)(RowsArgs),
                    Stream stream) {
  if (split_extent(problem, operand) == 0) return {};
  const auto planes = split_chunks<Planes>(problem, operand);
  const RowsArgs args{.job = split_job(problem, operand, planes, Rows::kRows),
                      .pointers = {.from = from, .ld = problem.ld(operand)},
                      .bits = bits,
                      .split = split};
  return device::launch({.kernel = name,
                         .blocks = args.job.num_groups(),
                         .threads_x = Rows::kThreads,
                         .shared_bytes = sizeof(Storage)},
                        stream, kernel, args);
}

Status enqueue_row_bits(const Problem& problem, Operand operand, const float* from, RowBits* bits,
                        Stream stream) {
  return enqueue_rows<RowBitsStorage>("find largest elements", problem, operand, from, bits, {},
                                      row_bits, stream);
}

Status enqueue_split(const Problem& problem, Operand operand, const float* from,
                     const SplitArgs& args, Stream stream) {
  return enqueue_rows<SplitStorage>("split rows", problem, operand, from, nullptr, args, split_rows,
                                    stream);
}

int whole_rows_cluster(std::int64_t k, const Device& device) {
  if (!int8x3::has_warpgroups(device)) return 0;
  return static_cast<int>(
      std::clamp<std::int64_t>(ceil_div(k, kRoundK), 1, int8x3::kMaxSplitCluster));
}

Status enqueue_split_whole_rows(const Problem& problem, const WholeRows& rows, Stream stream) {
  WholeRowsArgs args{.next_set = rows.next_set, .cluster = static_cast<unsigned>(rows.cluster)};
  args.block_k = ceil_div(ceil_div(problem.shape.k, rows.cluster), Rows::kWarpK) * Rows::kWarpK;
  std::int64_t groups = 0;
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    const auto i = static_cast<std::size_t>(operand);
    const WholeRows::Of& of = rows.of[i];
    args.pointers[i] = {
        .from = of.from, .ld = problem.ld(operand), .planes = of.planes, .steps = of.steps};
    args.sums[i] = of.sums;
    if (operand == Operand::kB) args.groups_of_first = static_cast<unsigned>(groups);
    if (split_extent(problem, operand) == 0) continue;
    const auto planes = split_chunks<Planes>(problem, operand);
    args.job[i] = split_job(problem, operand, planes, Rows::kRows);
    groups += args.job[i].num_groups();
  }
  if (groups == 0) return {};
  return device::launch({.kernel = "split whole rows",
                         .blocks = groups * rows.cluster,
                         .threads_x = Rows::kThreads,
                         .shared_bytes = sizeof(WholeRowsStorage),
                         .cluster = args.cluster},
                        stream, split_whole_rows, args);
}

// Decision kernels.

float summed_by_cublas(const Shape& shape) { return summed_in_fp32(Problem::dense(shape)); }

constexpr unsigned kWeighThreads = 1024;

struct WeighStorage {
  std::uint64_t totals[kWeighThreads];
};

// The width of a row (digits.cuh), from the sum of its integers. It may exceed K, the value that
// the spread has here.
__device__ inline std::uint64_t width_of(std::uint64_t sum, double k) {
  if (sum == 0 || sum == kInfinite) return sum;
  const double ratio = static_cast<double>(int8x3::kFull) * k / static_cast<double>(sum);
  const double width = static_cast<double>(int8x3::kNormal) * ratio * ratio / kWidthUnit;
  return width < 0x1p63 ? static_cast<std::uint64_t>(width) : kInfinite;
}

// One block.
__global__ void weigh(WeighArgs args) {
  auto& smem = device::shared_storage<WeighStorage>();
  const unsigned thread = threadIdx.x;
  for (int operand = 0; operand < 2; ++operand) {
    const bool second = operand == 1;
    const std::int64_t first = second ? args.rows_a : 0;
    const std::int64_t rows = second ? args.rows_b : args.rows_a;
    std::uint64_t total = 0;
    for (std::int64_t row = thread; row < rows; row += kWeighThreads) {
      std::uint64_t sum = 0;
      for (int set = 0; set < args.sets; ++set) {
        sum = saturating_sum(sum, args.sums[set * args.next_set + first + row]);
      }
      total = saturating_sum(total, width_of(sum, static_cast<double>(args.k)));
    }
    smem.totals[thread] = total;
    for (unsigned half = kWeighThreads / 2; half > 0; half /= 2) {
      __syncthreads();  // the totals of the previous step are stored
      if (thread < half) {
        smem.totals[thread] = saturating_sum(smem.totals[thread], smem.totals[thread + half]);
      }
    }
    if (thread == 0) (second ? args.totals->b : args.totals->a) = smem.totals[0];
    __syncthreads();  // the total is read before the next one overwrites it
  }
}

__device__ inline float mean_width(std::uint64_t total, std::int64_t rows) {
  if (total == kInfinite) return INFINITY;
  return static_cast<float>(static_cast<double>(total) * kWidthUnit / static_cast<double>(rows));
}

// One block.
__global__ void decide(DecideArgs args) {
  for (std::int64_t i = threadIdx.x; i < args.num_flags; i += blockDim.x) args.flags[i] = 0;
  if (threadIdx.x > 0) return;
  Totals all;
  for (int set = 0; set < args.sets; ++set) {
    all = {saturating_sum(all.a, args.totals[set].a), saturating_sum(all.b, args.totals[set].b)};
  }
  // Ranks do not exchange spreads. K is without limit, because sums of digits are exact.
  const float width_a = mean_width(all.a, args.rows_a), width_b = mean_width(all.b, args.rows_b);
  device::store_vector(args.widths, make_float4(width_a, width_a, width_a, 0.0F));
  device::store_vector(args.widths + int8x3::kNumWidths,
                       make_float4(width_b, width_b, width_b, 0.0F));
  *args.decision = static_cast<std::int32_t>(int8x3::decide(
      {width_a, width_a, width_a}, {width_b, width_b, width_b}, int8x3::Match{}, {}, false,
      INFINITY, int8x3::squared_error_of(args.summed), 0.0F, Path::kSix, false));
}

Status enqueue_weigh(const WeighArgs& args, Stream stream) {
  return device::launch({.kernel = "weigh rows",
                         .blocks = 1,
                         .threads_x = kWeighThreads,
                         .shared_bytes = sizeof(WeighStorage)},
                        stream, weigh, args);
}

Status enqueue_decide(const DecideArgs& args, Stream stream) {
  return device::launch({.kernel = "decide", .blocks = 1, .threads_x = 256}, stream, decide, args);
}

// Exact sums: the main loop of Int8x3, with another epilogue. Compute capability 9.0.

template <int kN, int kProducts>
struct SumTiles : int8x3::Tiles<kN, kProducts> {
  static constexpr Path kPath = kProducts == 6 ? Path::kSix : Path::kEight;
};

}  // namespace tilegate::distributed

namespace tilegate::int8x3 {

// Stores Σ level·2^(8·(3 − number of the level)) in args.workspace; with beta 1 it adds. C is not
// used.
template <int kN, int kProducts>
struct TileEpilogue<distributed::SumTiles<kN, kProducts>, false> {
  using T = distributed::SumTiles<kN, kProducts>;
  int row, col;  // the thread's first in the tile; layout as in store_results

  __device__ TileEpilogue(const GemmParams& /*params*/, const TileCoord& /*tile*/, int warpgroup,
                          int thread)
      : row(warpgroup * (kBlockM / 2) + thread / 32 * 16 + thread % 32 / 4), col(thread % 4 * 2) {}

  __device__ void store(const KernelArgs& args, const GemmParams& /*params*/, const TileCoord& tile,
                        unsigned /*index*/, bool /*is_last*/,
                        std::int32_t (&acc)[T::kLevels][kN / 2], GemmStorage& /*smem*/) {
    auto* const sums = static_cast<std::int64_t*>(args.workspace);
#pragma unroll
    for (int i = 0; i < kN / 2; ++i) {
      const std::int64_t m = std::int64_t{tile.row} * kBlockM + row + i / 2 % 2 * 8;
      const std::int64_t n = std::int64_t{tile.col} * kN + col + i / 4 * 8 + i % 2;
      if (m >= args.shape.m || n >= args.shape.n) continue;
      std::int64_t sum = 0;
#pragma unroll
      for (int level = 0; level < 4; ++level) {
        sum = sum * 256 + (level < T::kLevels ? acc[level][i] : 0);
      }
      std::int64_t& to = sums[m * args.shape.n + n];
      to = args.beta == 0.0F ? sum : to + sum;
    }
  }
};

}  // namespace tilegate::int8x3

namespace tilegate::distributed {

template <typename T>
__global__ void __launch_bounds__(int8x3::kNumThreads, 1)
    multiply_sums(KernelArgs args, int8x3::GemmParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if (*params.decision != T::kPath) return;
  auto& smem = device::shared_storage<int8x3::GemmStorage>();
  if (threadIdx.x == 0) {
    init_pipeline(smem.full, smem.empty, int8x3::kConsumers / 32);
    device::barrier_init_fence();
  }
  __syncthreads();  // barriers are initialised
  constexpr auto kDecomposition = int8x3::Decomposition::kDataParallel;
  if (threadIdx.x < int8x3::kWarpgroup) {
    device::reg_dealloc<int8x3::kProducerRegisters>();
    if (threadIdx.x == 0)
      int8x3::produce<T, 1, kDecomposition>(params, params.six, params.six.count, smem);
  } else {
    device::reg_alloc<int8x3::kConsumerRegisters>();
    int8x3::consume<T, 1, kDecomposition>(args, params, params.six, params.six.count, smem);
  }
#endif
}

using Six = SumTiles<128, 6>;
using Eight = SumTiles<64, 8>;

Status prepare_digits(const Device& device) {
  if (!int8x3::has_warpgroups(device)) return {};
  Status status = device::allow_shared_memory(multiply_sums<Six>, sizeof(int8x3::GemmStorage));
  if (!status.ok()) return status;
  return device::allow_shared_memory(multiply_sums<Eight>, sizeof(int8x3::GemmStorage));
}

template <typename T>
Status enqueue_multiply_sums(const MultiplySumsArgs& sums, const Device& device, Stream stream) {
  const auto [m, n, k] = sums.shape;
  int8x3::GemmParams params;
  params.a = Planes(m, k, 1);
  params.b = Planes(n, k, 1);
  params.planes_a = sums.planes_a;
  params.planes_b = sums.planes_b;
  params.six = TileScheduler(sums.shape, int8x3::kBlockM, T::kBlockN);
  params.decision = reinterpret_cast<Path*>(sums.decision);
  KernelArgs args{.shape = sums.shape, .workspace = sums.sums};
  const device::LaunchConfig launch{
      .kernel = "multiply digits to sums",
      .blocks = std::min<std::int64_t>(params.six.count, device.multiprocessors),
      .threads_x = int8x3::kNumThreads,
      .shared_bytes = sizeof(int8x3::GemmStorage)};
  for (; params.first_chunk < params.a.chunks_k; params.first_chunk += params.chunks) {
    params.chunks = std::min(params.a.chunks_k - params.first_chunk, int8x3::kMaxExactK / kChunkK);
    Status status = device::launch(launch, stream, multiply_sums<T>, args, params);
    if (!status.ok()) return status;
    args.beta = 1.0F;
  }
  return {};
}

// Launches both kernels. A kernel returns at once if the device has not decided for its products.
Status enqueue_multiply_sums(const MultiplySumsArgs& args, const Device& device, Stream stream) {
  if (Status s = enqueue_multiply_sums<Six>(args, device, stream); !s.ok()) return s;
  return enqueue_multiply_sums<Eight>(args, device, stream);
}

constexpr unsigned kScaleThreads = 256;
constexpr std::int64_t kMostScaleBlocks = 1 << 20;  // then threads loop over elements

// A thread adds the sums of kWidth elements of a row.
template <int kWidth>
__global__ void scale_sums(ScaleSumsArgs args) {
  if (*args.decision >= kWithoutDigits) return;
  const std::int64_t per_row = args.n / kWidth, elements = args.rows * args.n;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kScaleThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kScaleThreads + threadIdx.x;
       i < args.rows * per_row; i += step) {
    std::int64_t sums[kWidth] = {};
    for (int other = args.own == nullptr ? 0 : -1; other < args.num_others; ++other) {
      const std::int64_t* const from =
          (other < 0 ? args.own : args.others + other * elements) + i * kWidth;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sums[j] += from[j];
    }
    const std::int64_t row = i / per_row, col = i % per_row * kWidth;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const float scaled =
          static_cast<float>(sums[j]) * 0x1p-24F * (args.steps_a[row] * args.steps_b[col + j]);
      float& c = args.c[row * args.ldc + col + j];
      c = args.beta == 0.0F ? args.alpha * scaled : args.alpha * scaled + args.beta * c;
    }
  }
}

Status enqueue_scale_sums(const ScaleSumsArgs& args, Stream stream) {
  if (args.rows * args.n == 0) return {};
  const bool four = args.n % 4 == 0;
  return device::launch(
      {.kernel = "scale sums",
       .blocks =
           std::min(ceil_div(args.rows * args.n / (four ? 4 : 1), kScaleThreads), kMostScaleBlocks),
       .threads_x = kScaleThreads},
      stream, four ? scale_sums<4> : scale_sums<1>, args);
}

}  // namespace tilegate::distributed
