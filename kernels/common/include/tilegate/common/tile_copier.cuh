// One thread's share of the asynchronous copies that bring an operand's k tiles to shared memory.
#pragma once

#include <cstdint>

#include <tilegate/common/async_config.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// Tiles of kExtent x and kBlockK k; in shared memory rows of one k, or of one x if they are kept,
// kStride words apart. Outside the operand nothing is read and zeros are written: along k always,
// because Inf·0 would be NaN; along x only with kChecksEdges. Without, the caller keeps the tile
// inside.
template <Feed kFeed, int kExtent, int kBlockK, int kStride, int kNumThreads, bool kChecksEdges>
class TileCopier {
  static constexpr bool kAlongX = kFeed == Feed::kVectors || kFeed == Feed::kWords;
  static constexpr bool kVector = kFeed == Feed::kVectors || kFeed == Feed::kKept;
  static constexpr int kWords = kVector ? 4 : 1;                 // of one copy
  static constexpr int kBytes = sizeof(float);                   // of a word
  static constexpr int kRowWords = kAlongX ? kExtent : kBlockK;  // of the tile in memory
  static constexpr int kAllRows = kAlongX ? kBlockK : kExtent;

  // Vectors: a row's by neighbouring threads. Words: a warp takes 32 neighbours from a row, or as
  // many as it has; if rows run along k, 8 neighbours from each of 4 rows. Together the threads
  // take kRows rows at a time, and from each a thread takes kChunks times kWords words, kChunk
  // apart.
  static constexpr int kWidth = kExtent % 32 == 0 ? 32 : 16;
  static constexpr int kTeams = kNumThreads / kWidth;
  static constexpr int kTeamRows = kTeams < kBlockK ? kTeams : kBlockK;
  static constexpr int kTeamsPerRow = kTeams / kTeamRows;
  static constexpr int kChunk = kVector ? kRowWords : kAlongX ? kWidth : 8;
  static constexpr int kChunks =
      kFeed == Feed::kWords ? kExtent / kWidth / kTeamsPerRow : kRowWords / kChunk;
  static constexpr int kRows = kVector   ? kNumThreads / (kRowWords / kWords)
                               : kAlongX ? kTeamRows
                                         : kNumThreads / kChunk;
  static constexpr int kPasses = (kAllRows + kRows - 1) / kRows;
  static_assert(!kVector || kRows * (kRowWords / kWords) == kNumThreads,
                "a thread would not keep its column");
  static_assert(kFeed != Feed::kWords || kWidth * kChunks * kTeamsPerRow == kExtent, "uncovered x");
  static_assert(!kAlongX || kPasses * kRows == kBlockK, "a k tile is so many passes on");
  static_assert(kChunk * kChunks == kRowWords || kFeed == Feed::kWords, "uncovered k");

 public:
  static constexpr int kCopies = kPasses * kChunks;  // of a thread, for a tile

  // Starts at the tile whose first element is (x, k). The operand has `extent` x, and `k_left` k
  // from there on.
  __device__ __forceinline__ TileCopier(const float* data, std::int64_t ld, std::int64_t extent,
                                        std::int64_t x, std::int64_t k, int k_left) {
    const int thread = static_cast<int>(threadIdx.x);
    int row = 0, col = 0;  // of the thread's first element in the tile as it lies in memory
    if constexpr (kVector) {
      row = thread / (kRowWords / kWords);
      col = thread % (kRowWords / kWords) * kWords;
    } else if constexpr (kAlongX) {
      row = thread / kWidth % kTeamRows;
      col = thread % kWidth + thread / kWidth / kTeamRows * kWidth * kChunks;
    } else {
      row = thread / kChunk;
      col = thread % kChunk;
    }
    const float* tile = kAlongX ? data + k * ld + x : data + x * ld + k;
    next_ = reinterpret_cast<const char*>(tile + row * ld + col);
    bytes_per_pass_ = kBytes * kRows * ld;
    to_ = static_cast<unsigned>(kBytes * place(row, col));
    const std::int64_t x_left = extent - x - (kAlongX ? col : row);
    x_left_ = static_cast<int>(x_left < kExtent ? x_left : kExtent);
    k_left_ = k_left - (kAlongX ? row : col);
  }

  // Copy `index` of kCopies of the tile at `smem`.
  __device__ __forceinline__ void copy(int index, device::SharedAddress smem) const {
    const int row = index / kChunks * kRows, col = index % kChunks * kChunk;  // from the first
    bool inside = (kAlongX ? row : col) < k_left_;
    if constexpr (kChecksEdges) inside = inside && (kAlongX ? col : row) < x_left_;
    if constexpr (kAllRows % kRows != 0) {
      if (first_row() + row >= kAllRows) return;
    }
    const char* from = next_ + index / kChunks * bytes_per_pass_ + kBytes * col;
    device::copy_async<kBytes * kWords>(
        smem + to_ + static_cast<unsigned>(kBytes * place(row, col)),
        reinterpret_cast<const float*>(from), inside);
  }

  // To the next k tile.
  __device__ __forceinline__ void advance() {
    next_ += kAlongX ? kPasses * bytes_per_pass_ : kBytes * kBlockK;
    k_left_ -= kBlockK;
  }

 private:
  // Word of the tile in shared memory; linear in row and column.
  static constexpr __device__ int place(int row, int col) {
    return kFeed == Feed::kTransposed ? col * kStride + row : row * kStride + col;
  }
  static __device__ int first_row() {
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (kVector) return thread / (kRowWords / kWords);
    return kAlongX ? thread / kWidth % kTeamRows : thread / kChunk;
  }

  const char* next_;  // the thread's first element; steps are in bytes, ready to be added
  std::int64_t bytes_per_pass_;
  unsigned to_;          // that element's place in the tile in shared memory, in bytes
  int x_left_, k_left_;  // from that element on; not positive: it is outside
};

}  // namespace tilegate
