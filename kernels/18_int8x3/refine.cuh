// Around the GEMM, what three planes of digits leave out: the kernel `refine`, between the split
// kernel and the GEMM, and the kernel `add_outliers` after it.
//
// `refine` decides for the GEMM, and stores the decision. If that is ten products, it writes the
// fourth digit of each element, the tail. If it is FP64, and outliers may be set apart, it splits
// the operands again without them, and the GEMM decides for the rest. Otherwise it ends. It also
// ends if a sample shows that the rest would need FP64, too.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/divisor.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/flag.cuh>
#include <tilegate/stage.hpp>

#include "decision.cuh"
#include "digits.cuh"
#include "layout.cuh"
#include "split.cuh"

namespace tilegate::int8x3 {

// Rows of a block: eight of an operand whose rows lie along k, so that a thread reads 64 bytes of
// one; otherwise 32, so that a warp reads 128 bytes for each k.
constexpr int kRefineThreads = 256;
using RowsAlongK = SplitRowsConfig<kRefineThreads, 8>;
using RowsAcrossK = SplitRowsConfig<kRefineThreads, 32>;
constexpr int kRefineBlocksPerSm = 2;

// Tails of a segment of a row.
__device__ inline void store_tails(const float (&v)[kSegment], const Scale& scale, std::byte* to) {
  float words[kSegment / 4];  // bit patterns: store_vector takes floats
#pragma unroll
  for (int i = 0; i < kSegment / 4; ++i) words[i] = float_of(tails_of(v + 4 * i, scale));
  device::store_vector(reinterpret_cast<float*>(to),
                       make_float4(words[0], words[1], words[2], words[3]));
}

// One block: the tails of a group of rows, for one slice of K.
template <typename Rows>
__device__ void refine_slice(const Job& job, Pointers pointers, unsigned group, unsigned slice) {
  const auto [batch_index, first_row, first_k, row] = RowsOfBlock<Rows>(job, group);
  const std::int64_t k = std::int64_t{slice} * Rows::kBlockK + first_k;
  pointers.from += batch_index * pointers.stride;
  const float step = pointers.steps[batch_index * job.planes.rows() + first_row + row];
  const Scale scale = scale_of_step(step);
  std::byte* tails = pointers.tails +
                     job.planes.chunk(batch_index, first_row / kChunkRows, 0) / kPlanes +
                     offset_in_chunk(static_cast<int>(first_row % kChunkRows) + row,
                                     static_cast<int>(first_k % kChunkK) / kSegment, kNextTailRows);
  if (k >= job.planes.chunks_k * kChunkK) return;
  float v[kSegment];
  load_segment(job, pointers, first_row + row, k, v);
  store_tails(v, scale, tails + k / kChunkK * kTailChunkBytes);
}

// Outliers apart: for operands whose rows have a few elements far above all others, such as the
// gradient of a softmax. Digits would be scaled by these, and leave few bits for the others.
//
// With A = A' + Aₒ and B = B' + Bₒ, of which Aₒ and Bₒ have the outliers,
//
//   A·B = A'·B' + A'·Bₒ + Aₒ·B
//
// The GEMM multiplies the digits of A' and B'. The kernel `add_outliers` adds the other two to C in
// FP32: at most kMaxOutliers products per element for each.
//
// `refine` calls set_outliers_apart where the decision on the whole operands is FP64. It finds the
// outliers of each row, splits the row again without them, and stores statistics for a second
// decision. If that one is FP64, too, outliers and digits are not used.

constexpr int kOctaves = 16;   // that are counted
constexpr int kNoBound = 255;  // of a row that cannot be scaled: no element is an outlier

__host__ __device__ inline int exponent_of(float value) {
  return static_cast<int>(bits_of(value) >> 23 & 0xFFU);
}

template <typename Rows>
struct ApartStorage {
  FinalizedRows<Rows> rows;
  float squares[Rows::kWarps][Rows::kRows];  // sums without outliers
  int filled[Rows::kWarps][Rows::kRows];     // elements other than zero, without outliers
  float zeros[Rows::kRows];                  // share of the row
  float factor[Rows::kRows];                 // of the elements that are squared
  int bound[Rows::kRows];                    // exponents above this are outliers
  int counts[kOctaves][Rows::kThreads];      // elements of each thread
  int outliers[Rows::kThreads];              // of each thread
};

// The largest magnitude of a row with this step, or slightly more. 0: a zero row, or one that is
// not scaled.
__device__ inline float largest_of(float step) { return step * (kFull / 65536.0F); }

// One warp: the exponent above which elements of a row are outliers. `octave`: that of the row's
// largest; `most_few`, `most`: kFewOutliers and kMaxOutliers, or fewer in a sample.
template <typename Rows>
__device__ int find_bound(int row, int octave, std::int64_t k, int most_few, int most,
                          const ApartStorage<Rows>& smem) {
  static_assert(kOctaves == 16, "half a warp has an octave per lane");
  constexpr int kThreadsOfRow = Rows::kThreads / Rows::kRows;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  RowStats stats;
  if (lane < Rows::kWarps) stats = smem.rows.stats[lane][row];
  reduce_lanes(stats, 1, 32);
  int count = 0;  // of octave lane % kOctaves
  for (int i = lane / kOctaves; i < kThreadsOfRow; i += 2) {
    count += smem.counts[lane % kOctaves][i * Rows::kRows + row];
  }
  count += __shfl_xor_sync(~0U, count, kOctaves);
  if (octave == 0 || !(stats.sum < INFINITY)) return kNoBound;  // zeros, or not scaled
  const float root = stats.roots / std::ceil(static_cast<float>(k) * (1.0F / kRootsK));
  const int typical = exponent_of(root * root);
  int above = 0;
  for (int i = 0; i < kOctaves; ++i) {
    above += __shfl_sync(~0U, count, i);
    const bool few = above <= most_few && octave >= typical + kFar,
               very_far = above <= most && octave >= typical + kVeryFar;
    if (!few && !very_far) break;
    --octave;
  }
  return octave;
}

// v without outliers.
__device__ inline void leave_out(float (&v)[kSegment], int bound) {
#pragma unroll
  for (float& value : v) value = exponent_of(value) > bound ? 0.0F : value;
}

// Statistics of each row over the threads of a warp, for the reduction over warps.
template <typename Rows>
__device__ void store_stats(RowStats& stats, int row, ApartStorage<Rows>& smem) {
  reduce_lanes(stats, Rows::kRows, 32);
  const unsigned lane = threadIdx.x % 32;
  if (lane < Rows::kRows) smem.rows.stats[threadIdx.x / 32][row] = stats;
  __syncthreads();  // all warps have stored their statistics
}

// Adds a segment to the statistics of its row, and counts its elements per octave, from
// `first_octave` down.
template <typename Rows>
__device__ void count_segment(const float (&v)[kSegment], int first_octave, RowStats& stats,
                              ApartStorage<Rows>& smem) {
#pragma unroll
  for (int i = 0; i < kSegment; ++i) {
    stats.add(v[i]);
    if (i % kRootsK == 0) stats.add_root(v[i]);
    const auto octave = static_cast<unsigned>(first_octave - exponent_of(v[i]));
    if (octave < kOctaves && v[i] != 0.0F) ++smem.counts[octave][threadIdx.x];
  }
}

// Clears the thread's counts.
template <typename Rows>
__device__ void clear_counts(ApartStorage<Rows>& smem) {
#pragma unroll 1
  for (int octave = 0; octave < kOctaves; ++octave) smem.counts[octave][threadIdx.x] = 0;
}

// Stores the bounds of the first `rows` rows. `steps`: those of all; `stats`: of the thread's row,
// over `k` elements of `all_k`.
template <typename Rows>
__device__ void find_bounds(const float* steps, RowStats& stats, int row, int rows, std::int64_t k,
                            std::int64_t all_k, ApartStorage<Rows>& smem) {
  store_stats(stats, row, smem);
  for (int i = static_cast<int>(threadIdx.x) / 32; i < rows; i += Rows::kWarps) {
    const int bound = find_bound(i, exponent_of(largest_of(steps[i])), k,
                                 outliers_of_sample(kFewOutliers, k, all_k),
                                 outliers_of_sample(kMaxOutliers, k, all_k), smem);
    if (threadIdx.x % 32 == 0) smem.bound[i] = bound;
  }
  __syncthreads();  // all bounds are stored, and all steps have been read
}

// What a thread has seen of a row without its outliers, which are zeros here.
struct Rest {
  float factor;  // of elements that are squared
  RowStats stats{};
  float squares = 0.0F;
  int filled = 0;

  __device__ void add(const float (&v)[kSegment]) {
#pragma unroll
    for (int i = 0; i < kSegment; ++i) {
      stats.add(v[i]);
      if (i % kRootsK == 0) stats.add_root(v[i]);
      squares += v[i] * factor * (v[i] * factor);
      filled += v[i] != 0.0F ? 1 : 0;
    }
  }
};

// Stores it per warp.
template <typename Rows>
__device__ void store_rest(Rest& rest, int row, ApartStorage<Rows>& smem) {
#pragma unroll
  for (int lanes = Rows::kRows; lanes < 32; lanes *= 2) {
    rest.squares += __shfl_xor_sync(~0U, rest.squares, lanes);
    rest.filled += __shfl_xor_sync(~0U, rest.filled, lanes);
  }
  if (threadIdx.x % 32 < Rows::kRows) {
    smem.squares[threadIdx.x / 32][row] = rest.squares;
    smem.filled[threadIdx.x / 32][row] = rest.filled;
  }
  if (threadIdx.x < Rows::kRows) smem.factor[row] = rest.factor;
  store_stats(rest.stats, row, smem);
}

// The width of a row without its outliers, and its share of zeros. `stats`: of all its warps;
// `k`: elements.
template <typename Rows>
__device__ Width width_of_rest(int row, const RowStats& stats, const Scale& scale, float k,
                               ApartStorage<Rows>& smem) {
  float sum = 0.0F;
  int count = 0;
#pragma unroll 1
  for (int w = 0; w < Rows::kWarps; ++w) {
    sum += smem.squares[w][row];
    count += smem.filled[w][row];
  }
  const float share = static_cast<float>(count) / k;
  // Nothing is rounded in a row of zeros.
  smem.zeros[row] = count == 0 ? 0.0F : 1.0F - share;
  return width_without_outliers(stats, scale, k, share, sum / k, smem.factor[row]);
}

// A sample of an operand: a segment per thread, spread over K. Of the middle group of rows of the
// first matrix the first kSampleRows count. Stores their widths without outliers.
constexpr int kSampleRows = 8;
template <typename Rows>
__device__ void sample_widths(const Job& job, Pointers pointers, float4& to,
                              ApartStorage<Rows>& smem) {
  const auto group = static_cast<unsigned>((job.rows + Rows::kRows - 1) / Rows::kRows / 2);
  const auto [batch_index, first_row, first_k, row] = RowsOfBlock<Rows>(job, group);
  pointers.from += batch_index * pointers.stride;
  const float* steps = pointers.steps + batch_index * job.planes.rows() + first_row;
  const float largest = largest_of(steps[row]);
  constexpr int kSegments = Rows::kBlockK / kSegment;  // of a row
  const std::int64_t all = (job.k + kSegment - 1) / kSegment, segment = first_k / kSegment;
  const std::int64_t sampled = job.k < Rows::kBlockK ? job.k : Rows::kBlockK;

  float v[kSegment];
  load_segment(job, pointers, first_row + row,
               (all > kSegments ? segment * all / kSegments : segment) * kSegment, v);
  clear_counts(smem);
  RowStats stats;
  count_segment(v, exponent_of(largest), stats, smem);
  find_bounds(steps, stats, row, kSampleRows, sampled, job.k, smem);

  Rest rest{.factor = largest > 0.0F ? 1.0F / largest : 1.0F};
  if (row < kSampleRows) leave_out(v, smem.bound[row]);
  rest.add(v);
  store_rest(rest, row, smem);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int i = static_cast<int>(threadIdx.x) / 32; i < kSampleRows; i += Rows::kWarps) {
    RowStats of_row;
    if (lane < Rows::kWarps) of_row = smem.rows.stats[lane][i];
    reduce_lanes(of_row, 1, 32);
    if (lane == 0) {
      smem.rows.width[i] =
          width_of_rest(i, of_row, scale_of(of_row), static_cast<float>(sampled), smem);
    }
  }
  __syncthreads();  // all widths are stored
  if (threadIdx.x > 0) return;
  float4 widths{};
#pragma unroll
  for (int i = 0; i < kSampleRows; ++i) {
    const Width& width = smem.rows.width[i];
    add_widths(widths, make_float4(width.width, width.spread, width.spread, smem.zeros[i]));
  }
  const std::int64_t left = job.rows - first_row;
  const auto rows = static_cast<float>(left < kSampleRows ? left : kSampleRows);
  to = make_float4(widths.x / rows, widths.y / rows, widths.z, widths.w);
}

// Calls use(k, v) with each segment of the thread, from `k` on. The next one is loaded meanwhile.
template <typename Rows, typename Use>
__device__ void for_segments(const Job& job, const Pointers& pointers, std::int64_t row,
                             std::int64_t k, Use use) {
  const std::int64_t end = job.planes.chunks_k * kChunkK;
  float next[kSegment];
  if (k < end) load_segment(job, pointers, row, k, next);
  while (k < end) {
    float v[kSegment];
#pragma unroll
    for (int i = 0; i < kSegment; ++i) v[i] = next[i];
    if (k + Rows::kBlockK < end) load_segment(job, pointers, row, k + Rows::kBlockK, next);
    use(k, v);
    k += Rows::kBlockK;
  }
}

// One block: finds the outliers of a group of rows and stores them. Then it splits the rest again:
// digits, tails and steps, and the widths in pointers.widths_without_outliers. Three passes over
// the rows: count per octave; store outliers, statistics of the rest; digits.
template <typename Rows>
__device__ void set_outliers_apart(const Job& job, Pointers pointers, unsigned group,
                                   ApartStorage<Rows>& smem) {
  pointers.widths = pointers.widths_without_outliers;
  const auto [batch_index, first_row, first_k, row] = RowsOfBlock<Rows>(job, group);
  const int thread = static_cast<int>(threadIdx.x);
  pointers.from += batch_index * pointers.stride;

  // The step is that of the split pass.
  const float* steps = pointers.steps + batch_index * job.planes.rows() + first_row;
  const float largest = largest_of(steps[row]);
  const int first_octave = exponent_of(largest);
  clear_counts(smem);
  RowStats stats;
  for_segments<Rows>(
      job, pointers, first_row + row, first_k,
      [&](std::int64_t, float (&v)[kSegment]) { count_segment(v, first_octave, stats, smem); });
  find_bounds(steps, stats, row, Rows::kRows, job.k, job.k, smem);

  const int bound = smem.bound[row];
  int outliers = 0;
#pragma unroll 1
  for (int octave = 0; octave < first_octave - bound; ++octave)
    outliers += smem.counts[octave][thread];
  smem.outliers[thread] = outliers;
  __syncthreads();  // all threads have stored their number of outliers
  int entry = 0;    // of this thread's first outlier: after those of the row's threads before it
#pragma unroll 1
  for (int before = row; before < thread; before += Rows::kRows) {
    entry += smem.outliers[before];
  }
  const std::int64_t rows = job.planes.matrices * job.planes.rows();
  Outlier* to = pointers.outliers + batch_index * job.planes.rows() + first_row + row;
  if (thread >= Rows::kThreads - Rows::kRows) {  // the last thread of the row
#pragma unroll 1
    for (int i = entry + outliers; i < kMaxOutliers; ++i) to[i * rows] = {-1, 0.0F};
  }
  to += entry * rows;
  Rest rest{.factor = largest > 0.0F ? 1.0F / largest : 1.0F};
  for_segments<Rows>(job, pointers, first_row + row, first_k,
                     [&](std::int64_t k, float (&v)[kSegment]) {
#pragma unroll
                       for (int i = 0; i < kSegment; ++i) {
                         if (exponent_of(v[i]) > bound) {
                           *to = {static_cast<std::int32_t>(k) + i, v[i]};
                           to += rows;
                           v[i] = 0.0F;
                         }
                       }
                       rest.add(v);
                     });
  store_rest(rest, row, smem);
  finalize_rows<Rows>(job, pointers, first_row, batch_index, group, smem.rows,
                      [&](int of_row, const RowStats& of_rest, const Scale& scale) {
                        return width_of_rest(of_row, of_rest, scale, static_cast<float>(job.k),
                                             smem);
                      });
  if (thread == 0) {
    float zeros = 0.0F;
#pragma unroll 1
    for (const float of_row : smem.zeros) zeros = std::fmax(zeros, of_row);
    pointers.widths[std::int64_t{group} * kNumWidths + 3] = zeros;
  }

  const Scale scale = smem.rows.scale[row];
  const int row_in_chunk = static_cast<int>(first_row % kChunkRows) + row,
            segment = static_cast<int>(first_k % kChunkK) / kSegment;
  const std::int64_t chunk = job.planes.chunk(batch_index, first_row / kChunkRows, 0);
  std::byte* planes = pointers.planes + chunk + offset_in_chunk(row_in_chunk, segment);
  std::byte* tails =
      pointers.tails + chunk / kPlanes + offset_in_chunk(row_in_chunk, segment, kNextTailRows);
  for_segments<Rows>(job, pointers, first_row + row, first_k,
                     [&](std::int64_t k, float (&v)[kSegment]) {
                       leave_out(v, bound);
                       store_segment(v, scale, planes + k / kChunkK * kChunkBytes);
                       store_tails(v, scale, tails + k / kChunkK * kTailChunkBytes);
                     });
}

// The kernel `refine`.

union RefineStorage {
  DecisionSums<kRefineThreads> sums;
  PairStorage pairs[kRefineThreads / 32];
  ApartStorage<RowsAlongK> along_k;
  ApartStorage<RowsAcrossK> across_k;
};

struct RefineJobs {
  Job job[2];  // in groups of rows as RowsAlongK or RowsAcrossK has them
  Pointers pointers[2];
  unsigned groups[2];
  Divisor slices[2];     // of K, per group
  unsigned first_apart;  // blocks that set outliers of the first operand apart
};

// What so many rows are expected to have, of a sample: its widths, but a larger spread. The largest
// of n spreads is taken to be a power of n times the mean.
__device__ inline Widths widths_of_all(const float4& of_sample, float rows) {
  Widths widths{of_sample.x, of_sample.y, of_sample.z, of_sample.w};
  const float over_mean = widths.most / widths.spread,
              more = std::log2(rows) / std::log2(static_cast<float>(kSampleRows));
  if (more > 1.0F && over_mean > 1.0F) {
    widths.most = widths.spread * std::exp2(std::log2(over_mean) * more);
  }
  return widths;
}

// Whether digits may be accurate enough without outliers, as far as a sample of both operands
// tells. If so, all rows decide. If not, the product is in FP64, and the operands are not read
// three more times. The first blocks sample: each of two an operand, each of the others a pair per
// warp. The last of them decides for all blocks, and sets outliers apart like those behind it. The
// others have nothing more to do.
constexpr unsigned kWidthSamplers = 2, kSamplers = kWidthSamplers + kPairs / (kRefineThreads / 32),
                   kDecider = kSamplers - 1;
__device__ inline bool may_set_apart(const RefineJobs& jobs, const GemmParams& params,
                                     RefineStorage& smem) {
  // Of the allowed squared error: a sample of so few rows is inaccurate.
  constexpr float kShare = 0.25F;
  const unsigned block = blockIdx.x;
  if (block < kSamplers) __syncthreads();  // all threads have read the sums
  if (block < kWidthSamplers) {
    float4& to = params.samples[block];
    if (jobs.job[block].along_k) {
      sample_widths(jobs.job[block], jobs.pointers[block], to, smem.along_k);
    } else {
      sample_widths(jobs.job[block], jobs.pointers[block], to, smem.across_k);
    }
  } else if (block < kSamplers) {
    const unsigned warp = threadIdx.x / 32,
                   pair = (block - kWidthSamplers) * (kRefineThreads / 32) + warp;
    PairStorage& of_pair = smem.pairs[warp];
    copy_pair(jobs.job, jobs.pointers, pair, of_pair);
    leave_out_outliers(jobs.job[0], pair, of_pair.a);
    leave_out_outliers(jobs.job[0], pair, of_pair.b);
    store_match(jobs.job[0], pair, of_pair, params.pairs_without_outliers);
  }
  // All samplers have read the steps before another block splits its rows again.
  if (block >= kDecider && threadIdx.x < kSamplers && threadIdx.x < block) {
    device::wait_for_flag(params.sample_flags + threadIdx.x);
  }
  __syncthreads();  // all samples are stored, and the flags have been waited for
  if (block == kDecider && threadIdx.x < 32) {
    const Path path = decide(widths_of_all(params.samples[0], params.rows_a),
                             widths_of_all(params.samples[1], params.rows_b),
                             match_of_pairs(params.pairs_without_outliers), {}, false,
                             static_cast<float>(jobs.job[0].k), kShare * params.allowed,
                             kShare * params.allowed_of_ten, params.least, params.allows_ten, true);
    if (threadIdx.x == 0) *params.are_apart = path == Path::kFp64 ? 0 : 1;
  }
  if (block < kSamplers) {
    __syncthreads();  // the decision is stored
    if (threadIdx.x == 0) device::raise_flag(params.sample_flags + block);
  }
  return block >= kDecider && *params.are_apart != 0;
}

inline __global__ void __launch_bounds__(kRefineThreads, kRefineBlocksPerSm)
    refine(RefineJobs jobs, GemmParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<RefineStorage>();
  device::wait_for_previous_kernel();
  device::launch_dependents();
  const Path path = decide_path<kRefineThreads>(params, false, smem.sums, [] { __syncthreads(); });
  if (blockIdx.x == 0 && threadIdx.x == 0) *params.refined = path;
  if (path == Path::kFp64 && params.allows_outliers) {
    if (!may_set_apart(jobs, params, smem)) return;
    // Each block has one operand: its groups may have four times the rows of the other's.
    const unsigned block = blockIdx.x - kDecider;  // the blocks before have returned
    const bool second = block >= jobs.first_apart;
    const unsigned blocks = second ? gridDim.x - kDecider - jobs.first_apart : jobs.first_apart;
    const Job& job = jobs.job[second];
    for (unsigned group = second ? block - jobs.first_apart : block; group < jobs.groups[second];
         group += blocks) {
      __syncthreads();  // all threads are done with the sums, or with the previous group
      if (job.along_k) {
        set_outliers_apart(job, jobs.pointers[second], group, smem.along_k);
      } else {
        set_outliers_apart(job, jobs.pointers[second], group, smem.across_k);
      }
    }
    return;
  }
  if (path != Path::kTen) return;
  const unsigned of_first = jobs.groups[0] * jobs.slices[0].value(),
                 units = of_first + jobs.groups[1] * jobs.slices[1].value();
  for (unsigned index = blockIdx.x; index < units; index += gridDim.x) {
    const bool second = index >= of_first;
    const unsigned unit = second ? index - of_first : index;
    const Job& job = jobs.job[second];
    const unsigned group = jobs.slices[second].quotient(unit),
                   slice = jobs.slices[second].remainder(unit, group);
    if (job.along_k) {
      refine_slice<RowsAlongK>(job, jobs.pointers[second], group, slice);
    } else {
      refine_slice<RowsAcrossK>(job, jobs.pointers[second], group, slice);
    }
  }
#endif
}

// The kernel `add_outliers`. A unit of work is a strip: kStripRows rows and up to kStripCols
// columns of C. The strip's rows of A are in shared memory, kStripK of them at a time, because the
// outliers of each column are at other k.

constexpr int kStripRows = 8, kStripK = 6144, kStripThreads = 1024;
constexpr int kStripCols = 2 * kStripThreads;
constexpr int kStripBlocksPerSm = 1;
constexpr int kStripLoads = 4;  // outliers of a row or column whose loads are in flight together

struct OutlierJobs {
  Job a, b;
  SplitPointers from_a, from_b;
  const Outlier *outliers_a = nullptr, *outliers_b = nullptr;  // (kMaxOutliers, rows)
  const std::int32_t* without_outliers = nullptr;              // GemmParams::without_outliers
  std::int64_t strips_m = 0, strips_n = 0, strips = 0;
};

struct StripStorage {
  float a[kStripRows][kStripK + 4];  // padded: eight threads store a vector to each row
  Outlier of_rows[kMaxOutliers][kStripRows];
  int has_outliers[kStripThreads / 32];
};

// Whether `of_thread` is true in any thread of the block.
__device__ inline bool any_thread(bool of_thread, int (&smem)[kStripThreads / 32]) {
  int any = of_thread ? 1 : 0;
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) any |= __shfl_xor_sync(~0U, any, lanes);
  if (threadIdx.x % 32 == 0) smem[threadIdx.x / 32] = any;
  __syncthreads();  // all warps have stored theirs
  any = 0;
#pragma unroll
  for (const int of_warp : smem) any |= of_warp;
  return any != 0;
}

// Loads the strip's rows of A from `first_k` on, without their outliers.
__device__ inline void load_strip(const OutlierJobs& jobs, const SplitPointers& a,
                                  std::int64_t first_row, std::int64_t first_k,
                                  StripStorage& smem) {
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread % kStripRows;
#pragma unroll 1
  for (int k = thread / kStripRows * kSegmentK; k < kStripK;
       k += kStripThreads / kStripRows * kSegmentK) {
    float v[kSegmentK];
    load_segment(jobs.a, a, first_row + row, first_k + k, v);
#pragma unroll
    for (int i = 0; i < kSegmentK; i += 4) {
      device::store_vector(&smem.a[row][k + i], make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]));
    }
  }
  __syncthreads();  // the strip is stored before its outliers are cleared
  if (thread < kStripRows * kMaxOutliers) {
    const std::int64_t k = smem.of_rows[thread / kStripRows][row].k - first_k;
    if (k >= 0 && k < kStripK) smem.a[row][k] = 0.0F;
  }
  __syncthreads();  // the strip is complete
}

// sum[row] += products of A and the outliers of a column, as far as the strip has their k.
// `of_col`: the first; `next`: from one to the next. Returns whether there are any.
__device__ inline bool add_of_column(const Outlier* of_col, std::int64_t next, std::int64_t first_k,
                                     const StripStorage& smem, float (&sum)[kStripRows]) {
  bool any = false;
#pragma unroll 1
  for (int first = 0; first < kMaxOutliers; first += kStripLoads) {
    Outlier outliers[kStripLoads];
#pragma unroll
    for (int i = 0; i < kStripLoads; ++i) outliers[i] = of_col[(first + i) * next];
#pragma unroll
    for (const Outlier& outlier : outliers) {
      const std::int64_t k = outlier.k - first_k;
      if (outlier.k < 0 || k < 0 || k >= kStripK) continue;
      any = true;
#pragma unroll
      for (int row = 0; row < kStripRows; ++row) {
        sum[row] = std::fma(smem.a[row][k], outlier.value, sum[row]);
      }
    }
    if (outliers[kStripLoads - 1].k < 0) break;  // the last
  }
  return any;
}

// sum[row] += products of the outliers of each row of the strip and a column of op(B).
__device__ inline void add_of_rows(const Job& job, const SplitPointers& b, std::int64_t col,
                                   const StripStorage& smem, float (&sum)[kStripRows]) {
  const float* from = b.from + (job.along_k ? col * b.ld : col);
  const std::int64_t next_k = job.along_k ? 1 : b.ld;
#pragma unroll
  for (int row = 0; row < kStripRows; ++row) {
#pragma unroll 1
    for (int first = 0; first < kMaxOutliers; first += kStripLoads) {
      if (smem.of_rows[first][row].k < 0) break;
      float v[kStripLoads];
#pragma unroll
      for (int i = 0; i < kStripLoads; ++i) {
        const std::int32_t k = smem.of_rows[first + i][row].k;
        v[i] = k < 0 ? 0.0F : from[k * next_k];
      }
#pragma unroll
      for (int i = 0; i < kStripLoads; ++i) {
        const Outlier outlier = smem.of_rows[first + i][row];
        if (outlier.k >= 0) sum[row] = std::fma(outlier.value, v[i], sum[row]);
      }
    }
  }
}

inline __global__ void __launch_bounds__(kStripThreads, kStripBlocksPerSm)
    add_outliers(KernelArgs args, OutlierJobs jobs) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<StripStorage>();
  device::wait_for_previous_kernel();
  device::launch_dependents();
  if (*jobs.without_outliers == 0) return;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t rows_a = jobs.a.planes.matrices * jobs.a.planes.rows(),
                     rows_b = jobs.b.planes.matrices * jobs.b.planes.rows();
  for (std::int64_t strip = blockIdx.x; strip < jobs.strips; strip += gridDim.x) {
    const std::int64_t product = strip / (jobs.strips_m * jobs.strips_n),
                       in_product = strip % (jobs.strips_m * jobs.strips_n);
    const std::int64_t first_row = in_product % jobs.strips_m * kStripRows,
                       first_col = in_product / jobs.strips_m * kStripCols;
    const std::int64_t end_col =
        first_col + kStripCols < args.shape.n ? first_col + kStripCols : args.shape.n;
    SplitPointers a = jobs.from_a, b = jobs.from_b;
    a.from += jobs.a.planes.own(product) * a.stride;
    b.from += jobs.b.planes.own(product) * b.stride;
    const Outlier* of_a = jobs.outliers_a + jobs.a.planes.own(product) * jobs.a.planes.rows();
    const Outlier* of_b = jobs.outliers_b + jobs.b.planes.own(product) * jobs.b.planes.rows();
    const std::int64_t rows = args.shape.m - first_row;  // of C, from first_row on

    __syncthreads();  // all threads are done with the previous strip
    if (thread < kStripRows * kMaxOutliers) {
      const int row = thread % kStripRows, i = thread / kStripRows;
      smem.of_rows[i][row] = of_a[i * rows_a + first_row + row];
    }
    bool of_cols = false;  // whether a column has outliers
    for (std::int64_t col = first_col + thread; col < end_col; col += kStripThreads) {
      of_cols = of_cols || of_b[col].k >= 0;
    }
    of_cols = any_thread(of_cols, smem.has_outliers);

    constexpr int kCols = kStripCols / kStripThreads;  // of a thread
    float sum[kCols][kStripRows]{};
    bool of_col[kCols]{};
    for (std::int64_t first_k = 0; of_cols && first_k < jobs.a.k; first_k += kStripK) {
      if (first_k > 0) __syncthreads();  // all threads have read the strip
      load_strip(jobs, a, first_row, first_k, smem);
#pragma unroll
      for (int i = 0; i < kCols; ++i) {
        const std::int64_t col = first_col + i * kStripThreads + thread;
        if (col < end_col && add_of_column(of_b + col, rows_b, first_k, smem, sum[i])) {
          of_col[i] = true;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      const std::int64_t col = first_col + i * kStripThreads + thread;
      if (col >= end_col) continue;
      add_of_rows(jobs.b, b, col, smem, sum[i]);
      float* c = args.c + product * args.stride_c + first_row * args.ldc + col;
      float element[kStripRows];
#pragma unroll
      for (int row = 0; row < kStripRows; ++row) {  // all loads, then all stores
        const bool has_sum = of_col[i] || smem.of_rows[0][row].k >= 0;
        element[row] = has_sum && row < rows ? c[row * args.ldc] : 0.0F;
      }
#pragma unroll
      for (int row = 0; row < kStripRows; ++row) {
        const bool has_sum = of_col[i] || smem.of_rows[0][row].k >= 0;
        if (has_sum && row < rows) {
          c[row * args.ldc] = std::fma(args.alpha, sum[i][row], element[row]);
        }
      }
    }
  }
#endif
}

}  // namespace tilegate::int8x3
