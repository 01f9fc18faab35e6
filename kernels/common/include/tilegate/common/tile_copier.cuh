// One thread's share of the asynchronous copies that bring an operand's k tiles to shared memory.
#pragma once

#include <cstdint>

#include <tilegate/common/async_config.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// Tiles of kExtent x and kBlockK k; in shared memory rows of one k, kStride words apart. Outside
// the operand nothing is read and zeros are written: along k always, because Inf·0 would be NaN;
// along x only with kChecksEdges, or if they are vectors, for which it costs nothing. Without, the
// caller keeps the tile inside.
template <Feed kFeed, int kExtent, int kBlockK, int kStride, int kNumThreads, bool kChecksEdges>
class TileCopier {
  static constexpr bool kAlongX = kFeed != Feed::kTransposed;
  static constexpr int kWords = kFeed == Feed::kVectors ? 4 : 1;  // of one copy

  // A warp takes from a row of memory 32 neighbouring vectors, or words, or as many as the tile
  // has; if rows run along k, 8 words from each of 4 rows. Together the threads take kRows rows at
  // a time, and from each a thread takes kChunks words that are kChunk apart.
  static constexpr int kWidth = kExtent % 32 == 0 ? 32 : 16;
  static constexpr int kTeams = kNumThreads / kWidth;
  static constexpr int kWordRows = kTeams < kBlockK ? kTeams : kBlockK;
  static constexpr int kChunk = kAlongX ? kWidth : 8;
  static constexpr int kChunks = kFeed == Feed::kVectors ? 1
                                 : kFeed == Feed::kWords ? kExtent / kWidth / (kTeams / kWordRows)
                                                         : kBlockK / kChunk;
  static constexpr int kRows = kFeed == Feed::kVectors ? kNumThreads / (kExtent / kWords)
                               : kFeed == Feed::kWords ? kWordRows
                                                       : kNumThreads / kChunk;
  static constexpr int kAllRows = kAlongX ? kBlockK : kExtent;
  static constexpr int kPasses = (kAllRows + kRows - 1) / kRows;
  static_assert(kFeed != Feed::kVectors || kRows * (kExtent / kWords) == kNumThreads,
                "a thread would not keep its column");
  static_assert(kFeed != Feed::kWords || kWidth * kChunks * (kTeams / kWordRows) == kExtent,
                "uncovered x");
  static_assert(kAlongX || kBlockK % kChunk == 0, "uncovered k");
  static_assert(!kAlongX || kAllRows % kRows == 0, "rows past the k tile would be copied");

 public:
  static constexpr int kCopies = kPasses * kChunks;  // of a thread, for a tile

  // Starts at the tile whose first element is (x, k). The operand has `extent` x, and `k_left` k
  // from there on.
  __device__ __forceinline__ TileCopier(const float* data, std::int64_t ld, std::int64_t extent,
                                        std::int64_t x, std::int64_t k, int k_left) {
    const int thread = static_cast<int>(threadIdx.x);
    int row = 0, col = 0;  // of the thread's first element in the tile as it lies in memory
    if constexpr (kFeed == Feed::kVectors) {
      constexpr int kPerRow = kExtent / kWords;
      row = thread / kPerRow;
      col = thread % kPerRow * kWords;
    } else if constexpr (kFeed == Feed::kWords) {
      row = thread / kWidth % kWordRows;
      col = thread % kWidth + thread / kWidth / kWordRows * kWidth * kChunks;
    } else {
      row = thread / kChunk;
      col = thread % kChunk;
    }
    const float* tile = kAlongX ? data + k * ld + x : data + x * ld + k;
    next_ = reinterpret_cast<const char*>(tile + row * ld + col);
    bytes_per_pass_ = 4 * kRows * ld;
    bytes_per_tile_ = kAlongX ? 4 * kBlockK * ld : 4 * kBlockK;
    to_ = 4 * static_cast<unsigned>(kAlongX ? row * kStride + col : col * kStride + row);
    const std::int64_t x_left = extent - x - (kAlongX ? col : row);
    x_left_ = static_cast<int>(x_left < kExtent ? x_left : kExtent);
    k_left_ = k_left - (kAlongX ? row : col);
    if (kFeed == Feed::kVectors && x_left_ <= 0) k_left_ = 0;
  }

  // Copy `index` of kCopies of the tile at `smem`.
  __device__ __forceinline__ void copy(int index, device::SharedAddress smem) const {
    const int row = index / kChunks * kRows, col = index % kChunks * kChunk;  // from the first
    const int x = kAlongX ? col : row, k = kAlongX ? row : col;
    bool inside = k < k_left_;
    if constexpr (kChecksEdges && kFeed != Feed::kVectors) inside = inside && x < x_left_;
    if (!kAlongX && kAllRows % kRows != 0) {
      if (static_cast<int>(threadIdx.x) / kChunk + row >= kAllRows) return;
    }
    const char* from = next_ + index / kChunks * bytes_per_pass_ + 4 * col;
    device::copy_async<4 * kWords>(smem + to_ + 4 * static_cast<unsigned>(k * kStride + x),
                                   reinterpret_cast<const float*>(from), inside);
  }

  // To the next k tile.
  __device__ __forceinline__ void advance() {
    next_ += bytes_per_tile_;
    k_left_ -= kBlockK;
  }

 private:
  const char* next_;  // the thread's first element; steps are in bytes, ready to be added
  std::int64_t bytes_per_pass_, bytes_per_tile_;
  unsigned to_;  // that element's place in the tile in shared memory, in bytes
  int x_left_, k_left_;  // from that element on; not positive: it is outside
};

}  // namespace tilegate
