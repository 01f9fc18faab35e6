// The decision of a kernel: how many products of digits, or FP64. From statistics of all rows, of
// sampled pairs of a row and a column (match.cuh), and of their digits.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/device/device.cuh>

#include "digits.cuh"
#include "layout.cuh"
#include "match.cuh"

namespace tilegate::int8x3 {

// One warp: how the sampled pairs match.
__device__ inline Match match_of_pairs(const float4* pairs) {
  static_assert(kPairs == 32);
  constexpr float kOfPair = 1.0F / kPairs;
  const unsigned pair = threadIdx.x % 32;
  auto sum = device::load_vector<float4>(&pairs[pair].x);
  float equal = (&pairs[kPairs].x)[pair];
  add_lanes<Last::kSum>(sum, 1, 32);
  equal = sum_over_lanes(equal);
  return {sum.x * kOfPair, 1.0F / sum.z, sum.y * kOfPair, sum.w * kOfPair, equal * kOfPair};
}

// One warp: samples digits of an operand, two chunks of each pair's row. `rows`: of all matrices;
// `part`: as in match.cuh. Tails are those of `floats`, if it has any.
constexpr int kSampledChunks = 2, kSampledK = kSampledChunks * kChunkK;
__device__ inline DigitSums sample_digits(const Planes& planes, const std::byte* digits,
                                          const float* steps, const Floats& floats, float rows,
                                          std::int64_t matrices, unsigned part) {
  const unsigned pair = threadIdx.x % 32;
  const std::int64_t matrix = random_of_part(pair, 29 * pair, matrices);
  const auto of_matrix = static_cast<std::int64_t>(rows / static_cast<float>(planes.matrices));
  // A float above 2^24 may be too large.
  const std::int64_t inside = of_matrix < planes.rows() ? of_matrix : planes.rows();
  const std::int64_t row = random_of_part(pair, part, inside);
  const Scale scale = scale_of_step(steps[planes.own(matrix) * planes.rows() + row]);
  // Only the last chunk may be partial.
  const std::int64_t whole = planes.chunks_k > 1 ? planes.chunks_k - 1 : 1;
  RowDigits of_row;
#pragma unroll 1
  for (int i = 0; i < kSampledK / kSegment; ++i) {
    constexpr int kSegments = kChunkK / kSegment;  // of a chunk
    const int segment = i % kSegments;
    const std::int64_t chunk =
        (random_of(pair, whole) + i / kSegments * whole / kSampledChunks) % whole;
    const std::byte* from = digits + planes.chunk(matrix, row / kChunkRows, chunk) +
                            offset_in_chunk(static_cast<int>(row % kChunkRows), segment);
    float v[kSegment]{};
    const std::int64_t first_k = chunk * kChunkK + segment * kSegment;
    const std::int64_t at =
        planes.own(matrix) * floats.stride + row * floats.next_row + first_k * floats.next_k;
#pragma unroll
    for (int j = 0; j < kSegment; ++j) {
      if (first_k + j < floats.k) v[j] = floats.from[at + j * floats.next_k];
    }
    std::uint32_t words[kPlanes][4];
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane) {
      const auto of_plane =
          device::load_vector<float4>(reinterpret_cast<const float*>(from + plane * kNextPlane));
      words[plane][0] = bits_of(of_plane.x);
      words[plane][1] = bits_of(of_plane.y);
      words[plane][2] = bits_of(of_plane.z);
      words[plane][3] = bits_of(of_plane.w);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      of_row.add(words[0][j], words[1][j], words[2][j], tails_of(v + 4 * j, scale));
    }
  }
  // A sum squared has the products of all pairs of its terms.
  static_assert(std::int64_t{kPairs} * kSampledK * (kSampledK - 1) * 128 * 128 < 0x7FFFFFFF);
  const auto products = [](int sum, int squares) { return sum_over_lanes(sum * sum - squares); };
  return {.hi_squares = sum_over_lanes(of_row.hi_squares),
          .mid_squares = sum_over_lanes(of_row.mid_squares),
          .lo_squares = sum_over_lanes(of_row.lo_squares),
          .tail_squares = sum_over_lanes(of_row.tail_squares),
          .rest = sum_over_lanes(of_row.rest),
          .hi_products = products(of_row.hi, of_row.hi_squares),
          .mid_products = products(of_row.mid, of_row.mid_squares),
          .lo_products = products(of_row.lo, of_row.lo_squares),
          .tail_products = products(of_row.tail, of_row.tail_squares)};
}

// One warp: from the digits of both operands. Without outliers no tails are sampled: the floats
// have the outliers.
__device__ inline DigitSquares sample_squares(const GemmParams& params, float k,
                                              bool without_outliers) {
  const std::int64_t matrices =
      params.a.matrices > params.b.matrices ? params.a.matrices : params.b.matrices;
  const unsigned pair = threadIdx.x % 32;
  const Floats none{};
  const DigitSums a = sample_digits(params.a, params.planes_a, params.steps_a,
                                    without_outliers ? none : params.floats_a, params.rows_a,
                                    matrices, pair),
                  b = sample_digits(params.b, params.planes_b, params.steps_b,
                                    without_outliers ? none : params.floats_b, params.rows_b,
                                    matrices, 37 * pair + 11);
  return squares_of(a, b, kPairs, kSampledK, k, params.allowed / squared_error_of(1.0F));
}

// The decision, the same in all blocks: each reduces the same numbers in the same order.
// `without_outliers`: of the elements without them. `sync`: a barrier of kThreads threads.
template <int kThreads, typename Sync>
__device__ Path decide_path(const GemmParams& params, bool without_outliers,
                            DecisionSums<kThreads>& smem, Sync sync) {
  const GroupWidths& of = without_outliers ? params.widths_without_outliers : params.widths;
  constexpr unsigned kRowWarps = kThreads / 32 - 1;  // the last one has the pairs
  static_assert(kRowWarps <= 16, "half a warp reduces the sums of all warps");
  const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  if (warp < kRowWarps) {
    // Not one loop: a choice of the sum would keep both in local memory.
    const auto sum_of = [&](unsigned begin, unsigned end) {
      float4 sum{};
      for (unsigned i = begin + thread; i < end; i += 32 * kRowWarps) {
        add_widths(sum, device::load_vector<float4>(of.widths + std::int64_t{i} * kNumWidths));
      }
      return sum;
    };
    float4 of_a = sum_of(0, of.of_a), of_b = sum_of(of.of_a, of.of_a + of.of_b);
    add_lanes(of_a, 1, 32);
    add_lanes(of_b, 1, 32);
    if (lane == 0) {
      smem.rows[warp][0] = of_a;
      smem.rows[warp][1] = of_b;
    }
  } else {
    const float4* pairs = without_outliers ? params.pairs_without_outliers : params.pairs;
    const Match match = pairs != nullptr ? match_of_pairs(pairs) : Match{};
    if (lane == 0) smem.match = match;
  }
  sync();  // all warps have stored their sums
  float4 sum{};
  if (lane % 16 < kRowWarps) sum = smem.rows[lane % 16][lane / 16];
  add_lanes(sum, 1, 16);
  const auto of_lane = [&](int from, float rows) {
    return Widths{__shfl_sync(~0U, sum.x, from) / rows, __shfl_sync(~0U, sum.y, from) / rows,
                  __shfl_sync(~0U, sum.z, from), __shfl_sync(~0U, sum.w, from)};
  };
  const Widths widths_a = of_lane(0, params.rows_a), widths_b = of_lane(16, params.rows_b);
  const Match match = smem.match;
  const bool are_short = !without_outliers && widths_a.last == 0.0F && widths_b.last == 0.0F;
  const auto k = static_cast<float>(params.a.chunks_k * kChunkK);
  const auto decide_with = [&](const DigitSquares& digits) {
    const Path path =
        decide(widths_a, widths_b, match, digits, are_short, k, params.allowed,
               params.allowed_of_ten, params.least, params.allows_ten, without_outliers);
    // To the compiler, what comes from one lane is the same in all. Branches on the path then take
    // fewer registers, and need no convergence before each wgmma.
    return static_cast<Path>(__shfl_sync(~0U, static_cast<std::int32_t>(path), 0));
  };
  // First as if digits were as good as can be. If they may not be, each warp samples them. Where
  // this is not for six or eight products, other blocks of `refine` may be overwriting the digits.
  const Path path = decide_with({});
  const bool samples =
      (path == Path::kSix || path == Path::kEight) && (are_short || match.equal > kFewValues);
  return samples ? decide_with(sample_squares(params, k, without_outliers)) : path;
}

}  // namespace tilegate::int8x3
