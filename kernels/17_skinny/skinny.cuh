// The first kernel of Skinny: one tile of C per block, or one split of its K.
//
// The large operand streams through a ring of k tiles in shared memory; where C has one strip, each
// element is read once. Each warp multiplies an eighth of every k tile (sliced-K); at the end the
// warps' sums are added in order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tilegate/common/fragment.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate::skinny {

// Configuration of a block. Extents are named by length: x is the longer of M and N, s the shorter.
//
//   C(x, s) = sum over k of big(x, k)·small(k, s)

// The index that varies along a row of the large operand in memory.
enum class Along : std::uint8_t { kX, kK };

inline constexpr int kNumWarps = 8;
inline constexpr int kNumThreads = 32 * kNumWarps;
inline constexpr int kMinDepth = 2, kMaxDepth = 10;  // of the ring, in k tiles

// Made from a Tile (plan.hpp); nvcc does not support structs as template arguments here. A block
// computes kBlockS×kBlockX of C in k tiles of kBlockK; a warp has kLanesS lanes along s and the
// others along x; the warps are along k.
template <int kBlockS_, int kBlockX_, int kBlockK_, int kLanesS_, int kBlocksPerSm_,
          Along kBigAlong_, bool kAligned_>
struct Config {
  static constexpr int kBlockS = kBlockS_, kBlockX = kBlockX_, kBlockK = kBlockK_;
  static constexpr int kLanesS = kLanesS_, kBlocksPerSm = kBlocksPerSm_;
  static constexpr Along kBigAlong = kBigAlong_;
  // Whether rows of the large operand begin and end at multiples of 16 bytes. Copies have 16 bytes
  // anyway. Rows that begin anywhere lie shifted in shared memory, by 0 to 3 words: see Shift.
  static constexpr bool kAligned = kAligned_;

  static constexpr int kLanesX = 32 / kLanesS;
  static constexpr int kThreadS = kBlockS / kLanesS, kThreadX = kBlockX / kLanesX;
  static constexpr int kVectorS = std::min(kThreadS, 4),
                       kVectorX = kAligned ? std::min(kThreadX, 4) : 1;
  static constexpr int kWarpK = kBlockK / kNumWarps;
  static_assert(kBlockS % kLanesS == 0 && kBlockX % kLanesX == 0,
                "elements of the tile without a thread");
  static_assert(kThreadS % kVectorS == 0 && kThreadX % kVectorX == 0, "torn vectors");
  static_assert(kWarpK % 4 == 0, "an operand along k is read four elements at a time");

  // A k tile has the large operand's layout in memory. Rows along k are padded by four words, so
  // that vectors of neighbouring rows are in different banks. Shifted rows have four words more.
  static constexpr int kBigRows = kBigAlong == Along::kX ? kBlockK : kBlockX;
  static constexpr int kBigCols = kBigAlong == Along::kX ? kBlockX : kBlockK;
  static constexpr int kBigStride = kBigCols + (kBigAlong == Along::kX && kAligned ? 0 : 4);

  // The small operand has the layout (k, s) in a k tile, transposed or not. With a power of two of
  // columns each thread copies within one column; the padding avoids bank conflicts of transposed
  // copies.
  static constexpr int kSmallCols = static_cast<int>(std::bit_ceil(unsigned{kBlockS}));
  static constexpr int kSmallStride = kBlockS < 4 ? kSmallCols : kSmallCols + 4;

  // Columns of a lane that are summed over the warps at a time. With two lanes along s not all of
  // them, as they exceed the 99 KiB of shared memory per block that some GPUs have.
  static constexpr int kSumS = kLanesS == 1 ? kThreadS : kVectorS;
  static constexpr int kSumCols = kSumS * kLanesS;
  static constexpr int kSumStride = kSumCols < 4 ? kSumCols : kSumCols + 4;
  static_assert(kThreadS % kSumS == 0 && kSumS % kVectorS == 0, "torn sums");
};

template <typename Config>
struct KTile {
  alignas(16) float big[Config::kBigRows][Config::kBigStride];
  alignas(16) float small[Config::kBlockK][Config::kSmallStride];
};

// The warps' results, which overwrite the ring after the main loop.
template <typename Config>
struct WarpSums {
  alignas(16) float sums[kNumWarps][Config::kBlockX][Config::kSumStride];
};

// Shared memory of a block in bytes: a ring of `depth` k tiles, or the warps' results.
template <typename Config>
constexpr std::size_t shared_bytes(int depth) {
  return std::max(static_cast<std::size_t>(depth) * sizeof(KTile<Config>),
                  sizeof(WarpSums<Config>));
}

// Kernel parameter: op(A), op(B) and C by role. Strides in elements.
struct Task {
  std::int64_t x, s, k;
  const float* big;
  std::int64_t ld_big;
  const float* small;
  std::int64_t ld_small;
  bool small_along_k;  // rows of the small operand lie along k, otherwise along s
  float alpha, beta;
  float* c;  // first split of the first matrix
  std::int64_t stride_x, stride_s;
  std::int64_t split_c;  // stride from one split's C to the next
  std::int64_t batch_stride_big, batch_stride_small, batch_stride_c;  // strides of the batch
  int k_splits;
  int depth;
};

// Words from the last multiple of 16 bytes to p.
inline __device__ int words_past_vector(const float* p) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) / sizeof(float) % 4);
}

// How far rows of the large operand lie shifted in its tile.
template <typename Config>
class Shift {
 public:
  // `first`: the tile's first element.
  __device__ Shift(const float* first, std::int64_t ld)
      : first_(words_past_vector(first)), step_(static_cast<int>(ld % 4)) {}
  __device__ int of_row(int row) const { return Config::kAligned ? 0 : (first_ + row * step_) % 4; }

 private:
  int first_, step_;
};

// Copies to the ring: each thread issues the same asynchronous copies for every k tile, but for the
// start of shifted rows. Outside the operand zeros are written and nothing is read.

// State of a thread's copies.
struct CopyPosition {
  const float* next;         // source of the first copy
  device::SharedAddress to;  // its destination, relative to the k tile
  int k;                     // its k, relative to the k tile; kNever: outside the operand
  int rows;                  // rows of the operand from the first copy on, if rows are not k

  static constexpr int kNever = 1 << 30;
};

// The same of rows that begin anywhere.
struct ShiftedPosition : CopyPosition {
  int before;  // words of each copy that lie before the row
  int end;     // words from the first copy to the row's end or the tile's, if rows are along x
};

// Copies tiles of kRows×kCols, kWidth columns per copy; k is the row, or with kAlongK the column.
// Element (row, col) goes to word row·kRowWords + col·kColWords. Neighbouring threads copy
// neighbouring columns.
template <int kRows, int kCols, int kWidth, bool kAlongK, int kRowWords, int kColWords>
struct TileCopies {
  static constexpr int kPerRow = kCols / kWidth;
  static constexpr int kRowStep = kNumThreads / kPerRow;             // rows from copy to copy
  static constexpr int kCopies = (kRows + kRowStep - 1) / kRowStep;  // per thread
  static constexpr int kThreads = std::min(kNumThreads, kRows* kPerRow);
  static constexpr int kBlockK = kAlongK ? kCols : kRows;
  static_assert(kWidth == 1 || kColWords == 1, "only single words can be transposed");
  static_assert(kNumThreads % kPerRow == 0, "threads would straddle rows");
  static_assert(kCopies == 1 || kRows % kRowStep == 0, "the last copy would leave the tile");

  // `first`: the first tile; `left`: x or s of the operand from there on.
  static __device__ CopyPosition start(const float* first, std::int64_t ld, std::int64_t left,
                                       bool /*is_begin*/ = false) {
    const int row = static_cast<int>(threadIdx.x) / kPerRow;
    const int col = static_cast<int>(threadIdx.x) % kPerRow * kWidth;
    const int inside = static_cast<int>(min(left, std::int64_t{kAlongK ? kRows : kCols}));
    CopyPosition at{.next = first + row * ld + col,
                    .to = 4U * (row * kRowWords + col * kColWords),
                    .k = col,
                    .rows = inside - row};
    if (!kAlongK) at.k = col < inside ? row : CopyPosition::kNever;
    return at;
  }

  // Copies the k tile at `at`, which has `k_left` k, to `tile`; moves `at` to the next.
  static __device__ void copy(CopyPosition& at, std::int64_t ld, device::SharedAddress tile,
                              int k_left) {
    const int rows = !kAlongK ? k_left - at.k : at.k < k_left ? at.rows : 0;
    if (kThreads == kNumThreads || static_cast<int>(threadIdx.x) < kThreads) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        device::copy_async<4 * kWidth>(tile + at.to + 4U * i * kRowStep * kRowWords,
                                       at.next + i * kRowStep * ld, i * kRowStep < rows);
      }
    }
    at.next += kAlongK ? kBlockK : kBlockK * ld;
  }
};

// Copies of rows that begin anywhere: 16 bytes each, from the last multiple of 16 bytes on. So rows
// of the tile, kRows of kRowWords words, begin with up to 3 words that lie before it in memory.
// `next`, k and col are those of a copy's first word. Words outside the operand's rows are not
// read. This issues copies kFirst … kFirst + kPerRow - 1 of each row; the last four words of a row
// are copied only if it is shifted.
template <int kRows, int kRowWords, bool kAlongK, int kFirst, int kPerRow>
struct ShiftedCopies {
  static constexpr int kRowStep = kNumThreads / kPerRow;             // rows from copy to copy
  static constexpr int kCopies = (kRows + kRowStep - 1) / kRowStep;  // per thread
  static constexpr int kThreads = std::min(kNumThreads, kRows* kPerRow);
  static constexpr int kCols = kRowWords - 4, kBlockK = kAlongK ? kCols : kRows;
  static_assert(kCopies == 1 || (kRows % kRowStep == 0 && kRowStep % 4 == 0),
                "rows of a thread have one shift");

  static __device__ ShiftedPosition start(const float* first, std::int64_t ld, std::int64_t left,
                                          bool is_begin) {
    const int row = static_cast<int>(threadIdx.x) / kPerRow;
    const int to_col = 4 * (kFirst + static_cast<int>(threadIdx.x) % kPerRow);
    const float* const begin = first + row * ld;
    const int shift = words_past_vector(begin), col = to_col - shift;
    const int inside = static_cast<int>(min(left, std::int64_t{kAlongK ? kRows : kRowWords}));
    const bool is_needed = col < kCols && (kAlongK || col < inside);
    return {{.next = begin + col,
             .to = 4U * (row * kRowWords + to_col),
             .k = !is_needed ? CopyPosition::kNever
                  : kAlongK  ? col
                             : row,
             .rows = inside - row},
            is_begin && to_col == 0 ? shift : 0,
            inside - col};
  }

  static __device__ void copy(ShiftedPosition& at, std::int64_t ld, device::SharedAddress tile,
                              int k_left) {
    const int rows = !kAlongK ? k_left - at.k : at.k < k_left ? at.rows : 0;
    if (kThreads == kNumThreads || static_cast<int>(threadIdx.x) < kThreads) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const int row = i * kRowStep;
        const float* const from = at.next + row * ld;
        const device::SharedAddress to = tile + at.to + 4U * row * kRowWords;
        const int words = row < rows ? min(kAlongK ? k_left - at.k : at.end, 4) : 0;
        if (at.before == 0) {
          device::copy_async_part(to, from, words);
        } else {  // cp.async cannot leave out the first words
#pragma unroll
          for (int word = 0; word < 4; ++word) {
            device::copy_async<4>(to + 4U * word, from + word, at.before <= word && word < words);
          }
        }
      }
    }
    if (kAlongK) at.before = 0;
    at.next += kAlongK ? kBlockK : kBlockK * ld;
  }
};

// All copies of such a tile. `is_begin`: it has the first words of the operand's rows.
template <int kRows, int kRowWords, bool kAlongK>
struct ShiftedTileCopies {
  static constexpr int kPerRow = kRowWords / 4 - 1;
  using Most = ShiftedCopies<kRows, kRowWords, kAlongK, 0, kPerRow>;
  using Last = ShiftedCopies<kRows, kRowWords, kAlongK, kPerRow, 1>;
  struct Position {
    ShiftedPosition most, last;
  };

  static __device__ Position start(const float* first, std::int64_t ld, std::int64_t left,
                                   bool is_begin) {
    return {Most::start(first, ld, left, is_begin), Last::start(first, ld, left, is_begin)};
  }
  static __device__ void copy(Position& at, std::int64_t ld, device::SharedAddress tile,
                              int k_left) {
    Most::copy(at.most, ld, tile, k_left);
    Last::copy(at.last, ld, tile, k_left);
  }
};

// The large operand in its layout in memory.
template <typename C, bool kAlongK = C::kBigAlong == Along::kK>
using BigCopies =
    std::conditional_t<C::kAligned,
                       TileCopies<C::kBigRows, C::kBigCols, 4, kAlongK, C::kBigStride, 1>,
                       ShiftedTileCopies<C::kBigRows, C::kBigStride, kAlongK>>;

// The small operand to (k, s).
template <typename C>
using SmallCopiesAlongK = TileCopies<C::kSmallCols, C::kBlockK, 1, true, 1, C::kSmallStride>;
template <typename C>
using SmallCopiesAlongS = TileCopies<C::kBlockK, C::kSmallCols, 1, false, C::kSmallStride, 1>;

// The multiplication of a warp's slice of a k tile. s is the inner loop: accumulators that are
// neighbours in s alternate between both register banks, so that the three operands of an FFMA are
// never in one bank.

// Rows and columns of a lane's results in the tile.
template <typename Config>
class Lane {
 public:
  __device__ Lane()
      : x_(static_cast<int>(threadIdx.x) % 32 / Config::kLanesS),
        s_(static_cast<int>(threadIdx.x) % Config::kLanesS * Config::kThreadS) {}

  // Its i-th x. With rows along x, x come in vectors; with rows along k, neighbouring lanes have
  // neighbouring rows.
  __device__ int x(int i) const {
    constexpr int kVector = Config::kVectorX;
    if constexpr (Config::kBigAlong == Along::kK) return x_ + i * Config::kLanesX;
    return (i / kVector * Config::kLanesX + x_) * kVector + i % kVector;
  }
  __device__ int s() const { return s_; }  // the first

 private:
  int x_, s_;
};

// v ← kSize words at `from`, by one access.
template <int kSize>
__device__ void load_words(float* v, const float* from) {
  if constexpr (kSize == 4) {
    const auto loaded = device::load_vector<float4>(from);
    v[0] = loaded.x;
    v[1] = loaded.y;
    v[2] = loaded.z;
    v[3] = loaded.w;
  } else if constexpr (kSize == 2) {
    const auto loaded = device::load_vector<float2>(from);
    v[0] = loaded.x;
    v[1] = loaded.y;
  } else {
    static_assert(kSize == 1, "CUDA has float, float2 and float4");
    v[0] = *from;
  }
}

// v ← words shift … shift + 3 of v and `next`, for a shift of 0 to 3. Registers cannot be indexed
// at run time, so it selects twice: by 0 or 2 words, then by 0 or 1.
inline __device__ void shift_words(float (&v)[4], const float (&next)[4], int shift) {
  const float by_two[5] = {shift & 2 ? v[2] : v[0], shift & 2 ? v[3] : v[1],
                           shift & 2 ? next[0] : v[2], shift & 2 ? next[1] : v[3],
                           shift & 2 ? next[2] : next[0]};
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = shift & 1 ? by_two[i + 1] : by_two[i];
}

// small ← kSize columns from `s` on of row k of the small operand's tile.
template <typename Config, int kSize>
__device__ void load_small(float (&small)[kSize], const KTile<Config>& tile, int k, int s) {
#pragma unroll
  for (int i = 0; i < kSize; i += Config::kVectorS) {
    load_words<Config::kVectorS>(&small[i], &tile.small[k][s + i]);
  }
}

// acc += the products of the warp's slice of a k tile, from k `first` on; the fragments of the next
// k are loaded before those of this k are multiplied. Rows of the large operand lie along x.
template <typename Config>
__device__ void multiply_along_x(const KTile<Config>& tile, const Shift<Config>& shift, int first,
                                 const Lane<Config>& lane,
                                 float (&acc)[Config::kThreadX][Config::kThreadS]) {
  constexpr int kVector = Config::kVectorX;
  // idea:begin Skinny
  float big[2][Config::kThreadX], small[2][Config::kThreadS];
  const auto load = [&](int step) {
#pragma unroll
    for (int i = 0; i < Config::kThreadX; i += kVector) {
      load_words<kVector>(&big[step % 2][i],
                          &tile.big[first + step][shift.of_row(first + step) + lane.x(i)]);
    }
    load_small(small[step % 2], tile, first + step, lane.s());
  };
  load(0);
#pragma unroll
  for (int step = 0; step < Config::kWarpK; ++step) {
    if (step + 1 < Config::kWarpK) load(step + 1);
    multiply_fragments(big[step % 2], small[step % 2], acc);
  }
  // idea:end
}

// The same with rows along k: four k of a row per load, replaced after their last use. These take
// more registers, so that only eight columns of the small operand are loaded ahead.
template <typename Config>
__device__ void multiply_along_k(const KTile<Config>& tile, const Shift<Config>& shift, int first,
                                 const Lane<Config>& lane,
                                 float (&acc)[Config::kThreadX][Config::kThreadS]) {
  constexpr int kThreadX = Config::kThreadX, kThreadS = Config::kThreadS;
  constexpr int kGroups = kThreadS % 8 == 0 ? kThreadS / 8 : 1, kGroupS = kThreadS / kGroups;
  constexpr int kLoads = Config::kWarpK * kGroups;
  // The lane's rows are a multiple of 4 apart, and have one shift.
  const int shifted = shift.of_row(lane.x(0));
  float quad[kThreadX][4], small[2][kGroupS];
  const auto load_quad = [&](int i, int step) {
    const float* from = &tile.big[lane.x(i)][first + step];
    if constexpr (Config::kAligned) {
      load_words<4>(quad[i], from);
    } else if constexpr (Config::kLanesX == 32) {
      float next[4];
      load_words<4>(quad[i], from);
      load_words<4>(next, from + 4);
      shift_words(quad[i], next, shifted);
    } else {
      // Of 16 rows words have 2-way bank conflicts, of 32 4-way.
#pragma unroll
      for (int j = 0; j < 4; ++j) quad[i][j] = from[shifted + j];
    }
  };
  const auto load_group = [&](int i) {
    load_small(small[i % 2], tile, first + i / kGroups, lane.s() + i % kGroups * kGroupS);
  };
#pragma unroll
  for (int i = 0; i < kThreadX; ++i) load_quad(i, 0);
  load_group(0);
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    const int step = load / kGroups, group = load % kGroups;
    if (load + 1 < kLoads) load_group(load + 1);
#pragma unroll
    for (int i = 0; i < kThreadX; ++i) {
#pragma unroll
      for (int j = 0; j < kGroupS; ++j) {
        const int s = i % 2 == 0 ? j : kGroupS - 1 - j;  // serpentine, as in multiply_fragments
        acc[i][group * kGroupS + s] += quad[i][step % 4] * small[load % 2][s];
      }
      const bool used_up = step % 4 == 3 && group == kGroups - 1;
      if (used_up && step + 1 < Config::kWarpK) load_quad(i, step + 1);
    }
  }
}

template <typename Config>
__device__ void multiply_tile(const KTile<Config>& tile, const Shift<Config>& shift, int first,
                              const Lane<Config>& lane,
                              float (&acc)[Config::kThreadX][Config::kThreadS]) {
  if constexpr (Config::kBigAlong == Along::kX) {
    multiply_along_x<Config>(tile, shift, first, lane, acc);
  } else {
    multiply_along_k<Config>(tile, shift, first, lane, acc);
  }
}

// The work of a block. blockIdx.x counts strips of the short extent first, because they share the
// large operand; then tiles of the long extent, splits of K, and the batch.
template <typename Config>
struct BlockTile {
  unsigned strip, tile, split, batch_index;

  __device__ explicit BlockTile(const Task& task) {
    const auto strips = static_cast<unsigned>(ceil_div(task.s, Config::kBlockS));
    const auto tiles = static_cast<unsigned>(ceil_div(task.x, Config::kBlockX));
    const auto k_splits = static_cast<unsigned>(task.k_splits);
    strip = blockIdx.x % strips;
    tile = blockIdx.x / strips % tiles;
    split = blockIdx.x / strips / tiles % k_splits;
    batch_index = blockIdx.x / strips / tiles / k_splits;
  }

  __device__ std::int64_t s() const { return std::int64_t{strip} * Config::kBlockS; }  // the first
  __device__ std::int64_t x() const { return std::int64_t{tile} * Config::kBlockX; }

  // The split's range of k: whole k tiles, as evenly as possible.
  __device__ std::int64_t k_begin(const Task& task) const { return k_boundary(task, split); }
  __device__ std::int64_t k_end(const Task& task) const {
    return min(k_boundary(task, split + 1), task.k);
  }

 private:
  static __device__ std::int64_t k_boundary(const Task& task, unsigned split) {
    return ceil_div(task.k, Config::kBlockK) * split / task.k_splits * Config::kBlockK;
  }
};

// C(x, s) ← alpha·sum + beta·C(x, s); with beta == 0, C is not read.
inline __device__ void store(const Task& task, float* c, std::int64_t x, std::int64_t s,
                             float sum) {
  c += x * task.stride_x + s * task.stride_s;
  *c = task.beta == 0.0F ? task.alpha * sum : task.alpha * sum + task.beta * *c;
}

// Stores a vector of sums with neighbours swapped. Vectors in registers are aligned, so that an
// accumulator and the small operand's element of the same s would be in one register bank. Swapped,
// they are in different banks.
template <int kSize>
__device__ void store_swapped(float* smem, const float* v) {
  if constexpr (kSize == 4) {
    device::store_vector(smem, make_float4(v[1], v[0], v[3], v[2]));
  } else if constexpr (kSize == 2) {
    device::store_vector(smem, make_float2(v[1], v[0]));
  } else {
    *smem = v[0];
  }
}

// C ← alpha·(sum over the warps, in order) + beta·C.
template <typename Config>
__device__ void store_tile(const Task& task, const BlockTile<Config>& block_tile,
                           const Lane<Config>& lane,
                           const float (&acc)[Config::kThreadX][Config::kThreadS]) {
  constexpr int kVector = Config::kVectorS, kThreadS = Config::kThreadS, kSumS = Config::kSumS;
  auto& sums = device::shared_storage<WarpSums<Config>>().sums;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float* const c =
      task.c + block_tile.batch_index * task.batch_stride_c + block_tile.split * task.split_c;
  // Neighbouring threads store neighbouring words of C.
  const bool x_first = task.stride_x == 1;
#pragma unroll
  for (int first = 0; first < kThreadS; first += kSumS) {  // of the lane's columns
    __syncthreads();  // the last k tile, or the last sums, have been read before they are
                      // overwritten
#pragma unroll
    for (int i = 0; i < Config::kThreadX; ++i) {
#pragma unroll
      for (int s = 0; s < kSumS; s += kVector) {
        store_swapped<kVector>(&sums[warp][lane.x(i)][lane.s() / kThreadS * kSumS + s],
                               &acc[i][first + s]);
      }
    }
    __syncthreads();  // all sums are stored before any thread adds them
    constexpr int kVectors = Config::kSumCols / kVector;
    for (int e = static_cast<int>(threadIdx.x); e < kVectors * Config::kBlockX; e += kNumThreads) {
      const int x = x_first ? e % Config::kBlockX : e / kVectors;
      const int col = (x_first ? e / Config::kBlockX : e % kVectors) * kVector;
      float sum[kVector];
      load_words<kVector>(sum, &sums[0][x][col]);
#pragma unroll
      for (int w = 1; w < kNumWarps; ++w) {
        float next[kVector];
        load_words<kVector>(next, &sums[w][x][col]);
#pragma unroll
        for (int j = 0; j < kVector; ++j) sum[j] += next[j];
      }
      const std::int64_t to_x = block_tile.x() + x;
      const std::int64_t to_s = block_tile.s() + col / kSumS * kThreadS + first + col % kSumS;
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        if (to_x >= task.x || to_s + j >= task.s) continue;
        store(task, c, to_x, to_s + j, sum[kVector == 1 ? j : j ^ 1]);
      }
    }
  }
}

// Waits until at most `pending` of the thread's groups of copies are in flight; above 4 rounded
// down to 8 or 4.
inline __device__ void wait_for_copies(int pending) {
  if (pending >= 8) {
    device::copy_async_wait<8>();
  } else if (pending >= 4) {
    device::copy_async_wait<4>();
  } else if (pending == 3) {
    device::copy_async_wait<3>();
  } else if (pending == 2) {
    device::copy_async_wait<2>();
  } else if (pending == 1) {
    device::copy_async_wait<1>();
  } else {
    device::copy_async_wait<0>();
  }
}

// `Order` becomes part of the symbol.
template <typename Config, typename Order>
__global__ void __launch_bounds__(kNumThreads, Config::kBlocksPerSm) multiply(Task task) {
  KTile<Config>* const ring = &device::shared_storage<KTile<Config>>();  // task.depth of them
  const BlockTile<Config> block_tile(task);
  const Lane<Config> lane;
  const int warp_k = static_cast<int>(threadIdx.x) / 32 * Config::kWarpK;

  using Big = BigCopies<Config>;
  using SmallAlongK = SmallCopiesAlongK<Config>;
  using SmallAlongS = SmallCopiesAlongS<Config>;
  constexpr bool kBigAlongX = Config::kBigAlong == Along::kX;
  const std::int64_t k_begin = block_tile.k_begin(task);
  const auto k_count = static_cast<int>(block_tile.k_end(task) - k_begin);
  const std::int64_t ld_big = task.ld_big, ld_small = task.ld_small;
  const float* const big =
      task.big + block_tile.batch_index * task.batch_stride_big +
      (kBigAlongX ? k_begin * ld_big + block_tile.x() : block_tile.x() * ld_big + k_begin);
  const float* const small = task.small + block_tile.batch_index * task.batch_stride_small +
                             (task.small_along_k ? block_tile.s() * ld_small + k_begin
                                                 : k_begin * ld_small + block_tile.s());
  auto big_at = Big::start(big, ld_big, task.x - block_tile.x(),
                           kBigAlongX ? block_tile.tile == 0 : k_begin == 0);
  const Shift<Config> shift(big, ld_big);
  CopyPosition small_at = task.small_along_k
                              ? SmallAlongK::start(small, ld_small, task.s - block_tile.s())
                              : SmallAlongS::start(small, ld_small, task.s - block_tile.s());

  constexpr int kBlockK = Config::kBlockK;
  constexpr auto kTileBytes = static_cast<unsigned>(sizeof(KTile<Config>));
  constexpr auto kSmallOffset = static_cast<unsigned>(sizeof(KTile<Config>::big));
  const device::SharedAddress ring_begin = device::shared_address(ring);
  // Copies the next k tile, which has `left` k; after the last one commits an empty group.
  const auto copy = [&](int slot, int left) {
    if (left > 0) {
      const device::SharedAddress to = ring_begin + slot * kTileBytes;
      Big::copy(big_at, ld_big, to, left);
      if (task.small_along_k) {
        SmallAlongK::copy(small_at, ld_small, to + kSmallOffset, left);
      } else {
        SmallAlongS::copy(small_at, ld_small, to + kSmallOffset, left);
      }
    }
    device::copy_async_commit();
  };

  if constexpr (Config::kAligned) {
    device::wait_for_previous_kernel(big_at.next, small_at.next);
  } else {
    device::wait_for_previous_kernel(big_at.most.next, big_at.last.next, small_at.next);
  }
  device::launch_dependents();
  const int depth = task.depth, k_ahead = (depth - 1) * kBlockK;
#pragma unroll 1
  for (int slot = 0; slot < depth - 1; ++slot) copy(slot, k_count - slot * kBlockK);
  float acc[Config::kThreadX][Config::kThreadS]{};
  int slot = 0;
#pragma unroll 1
  for (int k_left = k_count; k_left > 0; k_left -= kBlockK) {
    wait_for_copies(depth - 2);
    // All threads' copies to this slot are complete before any thread reads it, and all threads
    // have read the previous slot before the next copies overwrite it.
    __syncthreads();
    copy(slot == 0 ? depth - 1 : slot - 1, k_left - k_ahead);
    multiply_tile<Config>(ring[slot], shift, warp_k, lane, acc);
    slot = slot + 1 == depth ? 0 : slot + 1;
  }
  store_tile<Config>(task, block_tile, lane, acc);
}

}  // namespace tilegate::skinny
