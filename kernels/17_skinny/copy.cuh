// How the tiles of an operand get into the ring: each thread starts the same asynchronous copies
// for every k tile. Outside the operand nothing is read and zeros arrive.
#pragma once

#include <cstdint>

#include <tilegate/device/device.cuh>

#include "config.cuh"

namespace tilegate::skinny {

// Where a thread's copies are; the rest of what they need is the same for all threads.
struct CopyPosition {
  const float* next;         // of the first copy
  device::SharedAddress to;  // of the first copy, from the start of a k tile
  int k;                     // of the first copy, from the tile's first; kNever: none is inside
  int rows;                  // of the operand from the first copy on, where k does not count them

  static constexpr int kNever = 1 << 30;
};

// Copies of kRows×kCols tiles as they are stored, kWidth columns each; k runs along the rows or
// (kAlongK) along the columns. Element (row, col) goes to word row·kRowWords + col·kColWords.
// Neighbouring threads copy neighbouring columns.
template <int kRows, int kCols, int kWidth, bool kAlongK, int kRowWords, int kColWords>
struct TileCopies {
  static constexpr int kPerRow = kCols / kWidth;
  static constexpr int kRowStep = kNumThreads / kPerRow;             // from a copy to the next
  static constexpr int kCopies = (kRows + kRowStep - 1) / kRowStep;  // of one thread
  static constexpr int kThreads = std::min(kNumThreads, kRows* kPerRow);
  static constexpr int kBlockK = kAlongK ? kCols : kRows;
  static_assert(kWidth == 1 || kColWords == 1, "only single words can be transposed");
  static_assert(kNumThreads % kPerRow == 0, "threads would straddle rows");
  static_assert(kCopies == 1 || kRows % kRowStep == 0, "the last copy would leave the tile");

  // The first tile starts at `first`; from there on `left` of the extent that is not k is inside.
  static __device__ CopyPosition start(const float* first, std::int64_t ld, std::int64_t left) {
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

  // The k tile at `at`, of whose k `k_left` are inside, to `tile`; then on to the next.
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

// The big operand as it lies in memory.
template <typename C>
using BigCopies = TileCopies<C::kBigRows, C::kBigCols, C::kVector ? 4 : 1,
                             C::kBigAlong == Along::kK, C::kBigStride, 1>;

// The small one as [k][s].
template <typename C>
using SmallCopiesAlongK = TileCopies<C::kSmallCols, C::kBlockK, 1, true, 1, C::kSmallStride>;
template <typename C>
using SmallCopiesAlongS = TileCopies<C::kBlockK, C::kSmallCols, 1, false, C::kSmallStride, 1>;

}  // namespace tilegate::skinny
