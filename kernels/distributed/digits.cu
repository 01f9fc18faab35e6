#include <algorithm>
#include <limits>

#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/device.cuh>

#include "18_int8x3/gemm_sm90.cuh"
#include "18_int8x3/split.cuh"
#include "digits.hpp"

namespace tilegate::distributed {

using int8x3::Path;
using int8x3::Planes;
using int8x3::Scale;

static_assert(static_cast<std::int32_t>(Path::kFp32) == kInFp32);

constexpr std::uint64_t kInfinite = std::numeric_limits<std::uint64_t>::max();
constexpr double kWidthUnit = 0x1p-16;

__host__ __device__ inline std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return a > kInfinite - b ? kInfinite : a + b;
}

std::size_t plane_bytes(std::int64_t rows, std::int64_t k) { return Planes(rows, k, 1).bytes(); }
std::size_t step_bytes(std::int64_t rows) { return Planes(rows, 0, 1).step_bytes(); }

double error_of_digits() { return int8x3::kOperandError; }

// Split kernel: a block splits eight whole rows, as split_short of Int8x3 does.

using Rows = SplitRowsConfig<512, 8>;

struct RowsArgs {
  int8x3::Job job;
  SplitPointers pointers;
  RowBits* bits;
  SplitArgs split;
};

struct RowBitsStorage {
  RowBits bits[Rows::kWarps][Rows::kRows];
};

__global__ void row_bits(RowsArgs args) {
  auto& smem = device::shared_storage<RowBitsStorage>();
  const auto [product, first_row, first_k, row] = RowsOfBlock<Rows>(args.job, blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  RowBits found;
  float v[kSegmentK];
  for (std::int64_t k = first_k; k < args.job.k; k += Rows::kBlockK) {
    load_segment(args.job, args.pointers, first_row + row, k, v);
#pragma unroll
    for (const float value : v) {
      const std::uint32_t bits = bits_of(value);
      found = {max(found.largest, bits & 0x7FFFFFFFU), found.all | bits};
    }
  }
#pragma unroll
  for (int lanes = Rows::kRows; lanes < 32; lanes *= 2) {
    found.largest = max(found.largest, __shfl_xor_sync(~0U, found.largest, lanes));
    found.all |= __shfl_xor_sync(~0U, found.all, lanes);
  }
  if (lane < Rows::kRows) smem.bits[warp][row] = found;
  __syncthreads();  // all warps have stored theirs
  if (threadIdx.x >= Rows::kRows || first_row + row >= args.job.rows) return;
  for (int other = 1; other < Rows::kWarps; ++other) {
    const RowBits more = smem.bits[other][row];
    found = {max(found.largest, more.largest), found.all | more.all};
  }
  args.bits[first_row + row] = found;
}

struct SplitStorage {
  Scale scale[Rows::kRows];
  bool has_scale[Rows::kRows];
  std::uint64_t sums[Rows::kWarps][Rows::kRows];
};

// Warp 0, one lane per row: computes the scale from the elements of all ranks.
__device__ inline void scale_row(const RowsArgs& args, std::int64_t row, int in_block,
                                 SplitStorage& smem) {
  RowBits found;
  for (int set = 0; row < args.job.rows && set < args.split.sets; ++set) {
    const RowBits more = args.split.bits[set * args.split.next_set + row];
    found = {max(found.largest, more.largest), found.all | more.all};
  }
  const float largest = float_of(found.largest);
  const int8x3::RowStats stats{.largest = largest, .sum = largest, .bits = found.all};
  smem.scale[in_block] = int8x3::scale_of(stats);
  smem.has_scale[in_block] = is_scalable(stats);
  args.split.steps[row] = smem.scale[in_block].step;
}

__global__ void split_rows(RowsArgs args) {
  auto& smem = device::shared_storage<SplitStorage>();
  const auto [product, first_row, first_k, row] = RowsOfBlock<Rows>(args.job, blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x < Rows::kRows) scale_row(args, first_row + row, row, smem);
  __syncthreads();  // all scales are stored
  const Scale scale = smem.scale[row];
  std::byte* planes = args.split.planes +
                      args.job.planes.chunk(product, first_row / kChunkRows, 0) +
                      int8x3::offset_in_chunk(static_cast<int>(first_row % kChunkRows) + row,
                                              static_cast<int>(first_k % kChunkK) / kSegmentK);
  std::uint64_t sum = 0;
  float v[kSegmentK];
  for (std::int64_t k = first_k; k < args.job.planes.chunks_k * kChunkK; k += Rows::kBlockK) {
    load_segment(args.job, args.pointers, first_row + row, k, v);
#pragma unroll
    for (const float value : v) {
      const auto x = static_cast<std::uint32_t>(int8x3::integer_of(value, scale));
      sum += x >> 31 == 0 ? x : 0U - x;
    }
    int8x3::store_segment(v, scale, planes + k / kChunkK * int8x3::kChunkBytes);
  }
#pragma unroll
  for (int lanes = Rows::kRows; lanes < 32; lanes *= 2) sum += __shfl_xor_sync(~0U, sum, lanes);
  if (lane < Rows::kRows) smem.sums[warp][row] = sum;
  __syncthreads();  // all warps have stored theirs
  if (threadIdx.x >= Rows::kRows || first_row + row >= args.job.rows) return;
  for (int other = 1; other < Rows::kWarps; ++other) sum += smem.sums[other][row];
  args.split.sums[first_row + row] = smem.has_scale[row] ? sum : kInfinite;
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
  // Ranks do not exchange spreads.
  const float width_a = mean_width(all.a, args.rows_a), width_b = mean_width(all.b, args.rows_b);
  device::store_vector(args.widths, make_float4(width_a, width_a, width_a, 0.0F));
  device::store_vector(args.widths + int8x3::kNumWidths,
                       make_float4(width_b, width_b, width_b, 0.0F));
  *args.decision = static_cast<std::int32_t>(int8x3::decide(
      {width_a, width_a, width_a}, {width_b, width_b, width_b}, args.summed, Path::kSix, false));
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

Status prepare_multiply_sums() {
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
  if (*args.decision == kInFp32) return;
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
