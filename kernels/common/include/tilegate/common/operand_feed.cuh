// One thread's share of the tiles of A or B, on their way from global memory through registers to
// shared memory, one instruction at a time, so that a loop can spread them between its FFMA.
#pragma once

#include <cstdint>
#include <type_traits>

#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

// A tile is kExtent rows of op(A), or columns of op(B), and kBlockK steps along k: elements (x, k).
// kAlongK: neighbours in k are neighbours in memory, (x, k) is at data[x·ld + k] and is stored
// transposed; otherwise it is at data[k·ld + x]. In shared memory a row holds the kExtent elements
// of one k. With two halves a thread loads and stores every other line of its share in a round of
// the loop, and the others in the next one.
//
// No load of the loop needs a guard: x outside is clamped to the last x inside, whose results
// nobody stores; the k tile that may be partial is the first one, which is filled with zeros; and
// beyond the last tile the last one is loaded again.
template <typename Config, int kExtent, bool kAlongK, bool kVector>
class OperandFeed {
  static constexpr int kBlockK = Config::kBlockK, kHalves = Config::kHalves;
  static constexpr int kLines = kAlongK ? kExtent : kBlockK;  // of memory; a tile's part of each is
  static constexpr int kVectors = (kAlongK ? kBlockK : kExtent) / 4;  // so many vectors
  static constexpr int kLineStep = Config::kNumThreads / kVectors;    // between a thread's loads
  static_assert(Config::kNumThreads % kVectors == 0, "threads would straddle lines");
  static_assert(kLines % (kLineStep * kHalves) == 0, "the last load would leave the tile");

 public:
  static constexpr int kLoads = kLines / kLineStep / kHalves;
  static constexpr int kStoresPerLoad = kAlongK ? 4 : 1;
  static constexpr int kStores = kLoads * kStoresPerLoad;
  // Stores of 4 rows apart fall into different banks: padding moves the k of a vector from those of
  // the next by 16 banks, and more than two vectors a line are spread by `swizzle`.
  static constexpr int kRow = kExtent + (kAlongK ? 4 : 0);
  // What is XORed to x in row k. The same for the 8 steps that a thread multiplies in a round.
  static constexpr __device__ int swizzle(int k) { return kAlongK ? k / 8 * (128 / kBlockK) : 0; }
  static_assert(!kAlongK || kLineStep % 32 == 0, "the swizzle permutes words in groups of 32");
  // From a half of the tile to the other, words: of what is stored in a round.
  static constexpr int kHalfStored = kLineStep * (kAlongK ? 1 : kRow);

  // For each load: its stores, and then the load that follows it.
  static constexpr int kMovesPerLoad = kStoresPerLoad + 1;
  static constexpr int kMoves = kLoads * kMovesPerLoad;

  // Tiles from (x, k) on of an operand with `extent` rows of op(A) or columns of op(B), to a tile
  // in shared memory at `smem`.
  __device__ OperandFeed(const float* data, std::int64_t origin, std::int64_t ld, int extent, int x,
                         std::int64_t k, device::SharedAddress smem)
      : data_(data), ld_(static_cast<Offset>(ld / kUnit)) {
    const int thread = static_cast<int>(threadIdx.x);
    line_ = thread / kVectors;
    col_ = thread % kVectors * 4;
    cols_left_ = extent - x - col_;
    const auto offset = [&](int line) {
      return origin + (kAlongK
                           ? min(x + line, extent - 1) * ld + k + col_
                           : (k + line) * ld + (kVector ? min(x + col_, extent - 4) : x + col_));
    };
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const std::int64_t first = offset(line_ + lines_to(0, i));
      const std::int64_t second = offset(line_ + lines_to(1, i));
      at_[i] = static_cast<Offset>(first / kUnit);
      if constexpr (kHalves == 2) step_[i] = static_cast<Offset>((second - first) / kUnit);
    }
    const int to = kAlongK ? col_ * kRow + (line_ ^ swizzle(col_)) : line_ * kRow + col_;
    to_ = smem + 4 * static_cast<unsigned>(to);
  }

  // Loads a half of the first tile, of which `k_valid` steps exist; the others are zeros.
  __device__ void load_first(int half, int k_valid) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int k = kAlongK ? col_ : line_ + lines_to(half, i);
      const int valid = kAlongK ? k_valid - k : k < k_valid ? cols_left_ : 0;
      registers_[i] = read(at_[i] + (half == 0 ? 0 : step_[i]), valid);
    }
  }

  // From the first tile to the second. Without one, loads go to the operand's first vector, which
  // exists, and are not used.
  __device__ void leave_first(int k_valid, bool has_second) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      at_[i] = has_second ? at_[i] + (kAlongK ? k_valid / kUnit : k_valid * ld_) : 0;
      if (kHalves == 2 && !has_second) step_[i] = 0;
    }
  }

  // Loads the half that is next, if it `exists`, and goes to the one that follows it, if `more`.
  __device__ void load(bool exists, bool more) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) load_one(i, exists, more);
  }

  __device__ void store() {
#pragma unroll
    for (int i = 0; i < kStores; ++i) store_one(i);
  }

  // Stores what was loaded, and loads what follows it, in kMoves instructions.
  __device__ void move(int move, bool exists, bool more) {
    if (move % kMovesPerLoad == kMovesPerLoad - 1) {
      load_one(move / kMovesPerLoad, exists, more);
    } else {
      store_one(move / kMovesPerLoad * kStoresPerLoad + move % kMovesPerLoad);
    }
  }

  // Load number i of a half.
  __device__ void load_one(int i, bool exists, bool more) {
    const Offset tile = kAlongK ? kBlockK / kUnit : static_cast<Offset>(kBlockK * ld_);
    const Offset step = kHalves == 1 ? tile : step_[i];
    if constexpr (kVector) {
      device::ordered::load_global(registers_[i], data_, at_[i]);
      device::ordered::add(at_[i], more ? step : 0);
    } else {
      if (exists) registers_[i] = read(at_[i], kAlongK ? 4 : cols_left_);
      if (more) at_[i] += step;
    }
    if constexpr (kHalves == 2) step_[i] = tile - step;
  }

  // Store number `store` of a half.
  __device__ void store_one(int store) {
    const int i = store / kStoresPerLoad, word = store % kStoresPerLoad;
    const float4& v = registers_[i];
    if constexpr (kAlongK) {
      const float value = word == 0 ? v.x : word == 1 ? v.y : word == 2 ? v.z : v.w;
      device::ordered::store_shared(to_ + 4 * (word * kRow + lines_to(0, i)), value);
    } else {
      device::ordered::store_shared(to_ + 4 * (lines_to(0, i) * kRow), v);
    }
  }

  // Stores go `bytes` further on from now on.
  __device__ void shift(unsigned bytes) { to_ += bytes; }

 private:
  // Counted in vectors, 32 bits reach 64 GB and take half the registers of a pointer; without
  // vectors, elements.
  using Offset = std::conditional_t<kVector, unsigned, std::int64_t>;
  static constexpr int kUnit = kVector ? 4 : 1;

  // From a thread's first line to that of load number i of a half.
  static constexpr __device__ int lines_to(int half, int i) {
    return (i * kHalves + half) * kLineStep;
  }

  __device__ float4 read(Offset at, int valid) const {
    return load4<kVector>(data_ + std::int64_t{at} * kUnit, 0, valid);
  }

  const float* data_;
  Offset ld_;
  Offset at_[kLoads];    // of the next load
  Offset step_[kLoads];  // with two halves: from there to the load after it
  int line_, col_, cols_left_;
  device::SharedAddress to_;  // of the next store
  float4 registers_[kLoads];
};

}  // namespace tilegate
