// Interleaved main loop and its epilogue: the source says where each instruction stands.
//
// In order: the producer OperandFeed, each thread's share of the loads and stores that bring A or B
// to shared memory; shared memory; the main loop Loop, which calls two feeds; the epilogue
// store_tile.
//
// An iteration is 8 k steps of a thread: its slice of a k tile, or half of a k tile. Between the
// FFMA of each step stand the shared loads of the next step. Between the FFMA of the last step but
// one stand the shared stores of the next k tile. The global loads of the k tile after it stand in
// the same step, or with two halves in the last one: they have nearly an iteration to arrive.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/fragment.cuh>
#include <tilegate/common/interleaved/config.cuh>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// One thread's share of the tiles of A or B, from global memory through registers to shared memory,
// one instruction at a time, so that a loop can spread them between its FFMA.
//
// A tile has kExtent rows of op(A), or columns of op(B), and kBlockK k: elements (x, k). kAlongK:
// (x, k) is at data[x·ld + k] and is stored transposed; otherwise it is at data[k·ld + x]. A row of
// shared memory holds the kExtent elements of one k; a row in global memory is called a line. With
// two halves a thread loads and stores every other line of its share in one iteration, and the
// other lines in the next. With one half, the half is the whole tile.
//
// No vector load of the main loop needs a guard. x is clamped to the operand, and results of
// clamped x are not stored. Only the first k tile may be partial; it is filled up with zeros before
// the loop. After the last tile the loop loads the last one again.
template <typename Config, int kExtent, bool kAlongK, bool kVector>
class OperandFeed {
  static constexpr int kBlockK = Config::kBlockK, kHalves = Config::kHalves;
  static constexpr int kLines = kAlongK ? kExtent : kBlockK;          // rows in global memory
  static constexpr int kVectors = (kAlongK ? kBlockK : kExtent) / 4;  // per line of the tile
  static constexpr int kLineStep = Config::kNumThreads / kVectors;    // between a thread's loads
  static_assert(Config::kNumThreads % kVectors == 0, "threads would straddle lines");
  static_assert(kLines % (kLineStep * kHalves) == 0, "the last load would leave the tile");

 public:
  static constexpr int kLoads = kLines / kLineStep / kHalves;
  static constexpr int kStoresPerLoad = kAlongK ? 4 : 1;
  static constexpr int kStores = kLoads * kStoresPerLoad;
  // A warp's transposed stores are to rows 4 k apart, and must go to different banks. 4 words of
  // padding move rows 4 apart by 16 banks: enough for two vectors per line. With more, `swizzle`
  // moves them.
  static constexpr int kRow = kExtent + (kAlongK ? 4 : 0);
  // Mask that is XORed to x in row k. It is the same for the 8 k steps of an iteration.
  static constexpr __device__ int swizzle(int k) { return kAlongK ? k / 8 * (128 / kBlockK) : 0; }
  static_assert(!kAlongK || kLineStep % 32 == 0, "the swizzle permutes words in groups of 32");
  // Words from one half of the tile to the other, in shared memory.
  static constexpr int kHalfStored = kLineStep * (kAlongK ? 1 : kRow);

  // A move is one store or one load. For each load, first the stores of the data that it brought in
  // the previous iteration, then the load.
  static constexpr int kMovesPerLoad = kStoresPerLoad + 1;
  static constexpr int kMoves = kLoads * kMovesPerLoad;

  // Starts at the tile whose first element is (x, k) of an operand with `extent` x. `origin`:
  // offset of the matrix in the batch; `smem`: the first tile in shared memory.
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

  // Loads a half of the first tile, which has `k_valid` k; zeros beyond.
  __device__ void load_first(int half, int k_valid) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int k = kAlongK ? col_ : line_ + lines_to(half, i);
      const int valid = kAlongK ? k_valid - k : k < k_valid ? cols_left_ : 0;
      registers_[i] = read(at_[i] + (half == 0 ? 0 : step_[i]), valid);
    }
  }

  // Moves from the first tile to the second. Without a second tile, loads go to the operand's first
  // vector and are not used.
  __device__ void advance_to_second(int k_valid, bool has_second) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      at_[i] = has_second ? at_[i] + (kAlongK ? k_valid / kUnit : k_valid * ld_) : 0;
      if (kHalves == 2 && !has_second) step_[i] = 0;
    }
  }

  // Loads the next half; then moves to the half after it if `advances`. Without `loads` there is no
  // next half: words are not loaded; vectors are, without a guard, and are not used.
  __device__ void load(bool loads, bool advances) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) load_one(i, loads, advances);
  }

  __device__ void store() {
#pragma unroll
    for (int i = 0; i < kStores; ++i) store_one(i);
  }

  // Move number `move` of kMoves.
  __device__ void move(int move, bool loads, bool advances) {
    if (move % kMovesPerLoad == kMovesPerLoad - 1) {
      load_one(move / kMovesPerLoad, loads, advances);
    } else {
      store_one(move / kMovesPerLoad * kStoresPerLoad + move % kMovesPerLoad);
    }
  }

  // Load number i of a half.
  __device__ void load_one(int i, bool loads, bool advances) {
    const Offset tile = kAlongK ? kBlockK / kUnit : static_cast<Offset>(kBlockK * ld_);
    const Offset step = kHalves == 1 ? tile : step_[i];
    if constexpr (kVector) {
      device::ordered::load_global(registers_[i], data_, at_[i]);
      device::ordered::add(at_[i], advances ? step : 0);
    } else {
      if (loads) registers_[i] = read(at_[i], kAlongK ? 4 : cols_left_);
      if (advances) at_[i] += step;
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

  // Moves the address of stores by `bytes`.
  __device__ void shift(unsigned bytes) { to_ += bytes; }

 private:
  // Offsets in vectors: 32 bits reach 64 GB and take half the registers of a pointer. Without
  // vectors, in elements.
  using Offset = std::conditional_t<kVector, unsigned, std::int64_t>;
  static constexpr int kUnit = kVector ? 4 : 1;

  // Lines from the thread's first line to load i of a half.
  static constexpr __device__ int lines_to(int half, int i) {
    return (i * kHalves + half) * kLineStep;
  }

  __device__ float4 read(Offset at, int valid) const {
    return load4<kVector>(data_ + std::int64_t{at} * kUnit, 0, valid);
  }

  const float* data_;
  Offset ld_;
  Offset at_[kLoads];    // next load
  Offset step_[kLoads];  // with two halves: from the next load to the one after it
  int line_, col_, cols_left_;
  device::SharedAddress to_;  // next store
  float4 registers_[kLoads];
};

}  // namespace tilegate

namespace tilegate::interleaved {

template <typename Config, typename Layout>
using FeedA = OperandFeed<Config, Config::kBlockM, Layout::kAAlongK, Layout::kVector>;
template <typename Config, typename Layout>
using FeedB = OperandFeed<Config, Config::kBlockN, Layout::kBAlongK, Layout::kVector>;

template <typename Config, typename Layout>
struct SharedStorage {
  struct Stage {
    alignas(16) float a[Config::kBlockK][FeedA<Config, Layout>::kRow];
    alignas(16) float b[Config::kBlockK][FeedB<Config, Layout>::kRow];
  };
  union {
    Stage stages[2];
    // After the main loop: four rows of each thread's results, (slice, word, thread).
    float sums[Config::kSlices][4 * Config::kThreadN][Config::kSliceThreads];
  };
  TileCoord tile;  // not in registers, which the main loop needs
};

template <typename Config, typename Layout>
class Loop {
  static constexpr int kSteps = Config::kSteps, kHalves = Config::kHalves;
  static constexpr int kM = Config::kThreadM, kN = Config::kThreadN;
  using Shared = SharedStorage<Config, Layout>;
  using A = FeedA<Config, Layout>;
  using B = FeedB<Config, Layout>;

 public:
  __device__ Loop(const KernelArgs& args, const TileCoord& tile, const KTiles<Config>& tiles)
      : Loop(args, tile, tiles, device::shared_storage<Shared>()) {}

  // acc += op(A)·op(B) over the tiles.
  __device__ void multiply(float (&acc)[kM][kN]) {
    if (iterations_left_ <= 0) return;
    fill();
#pragma unroll
    for (int q = 0; q < kM / 4 - 1; ++q) load_a(q, 0);
#pragma unroll
    for (int q = 0; q < kN / 4; ++q) load_b(q, 0);
#pragma unroll 1
    for (; iterations_left_ > 0; --iterations_left_) {
      multiply_steps(acc, std::make_integer_sequence<int, kSteps>{});
    }
  }

 private:
  __device__ Loop(const KernelArgs& args, const TileCoord& tile, const KTiles<Config>& tiles,
                  Shared& smem)
      : feed_a_(args.a, tile.batch_index * args.stride_a, args.lda, static_cast<int>(args.shape.m),
                static_cast<int>(tile.row) * Config::kBlockM, tiles.first_k(),
                device::shared_address(smem.stages[0].a)),
        feed_b_(args.b, tile.batch_index * args.stride_b, args.ldb, static_cast<int>(args.shape.n),
                static_cast<int>(tile.col) * Config::kBlockN, tiles.first_k(),
                device::shared_address(smem.stages[0].b)),
        iterations_left_((tiles.end - tiles.begin) * kHalves),
        first_size_(tiles.begin == 0 ? tiles.first_size : Config::kBlockK) {
    const auto at = Config::position();
    const int k = Config::slice() * kSteps;
    read_a_ = device::shared_address(&smem.stages[0].a[k][at.m ^ A::swizzle(k)]);
    read_b_ = device::shared_address(&smem.stages[0].b[k][at.n ^ B::swizzle(k)]);
    half_a_ = 4U * static_cast<unsigned>(kSteps * A::kRow + (at.m ^ A::swizzle(kSteps)) - at.m);
    half_b_ = 4U * static_cast<unsigned>(kSteps * B::kRow + (at.n ^ B::swizzle(kSteps)) - at.n);
  }

  // Stores the first tile and starts the loads of the next half.
  __device__ void fill() {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      feed_a_.load_first(half, first_size_);
      feed_b_.load_first(half, first_size_);
      feed_a_.store();
      feed_b_.store();
      shift_stores(half == kHalves - 1, to_other_stage_);
    }
    const bool has_second = iterations_left_ > kHalves, has_third = iterations_left_ > kHalves + 1;
    feed_a_.advance_to_second(first_size_, has_second);
    feed_b_.advance_to_second(first_size_, has_second);
    feed_a_.load(has_second, has_third);
    feed_b_.load(has_second, has_third);
    __syncthreads();  // the first tile is stored before any thread reads it
  }

  // The last iteration stores and loads data that is not used.
  template <int... k>
  __device__ void multiply_steps(float (&acc)[kM][kN], std::integer_sequence<int, k...>) {
    (multiply_step<k>(acc), ...);  // not a loop: too large for compilers to unroll
  }

  template <int k>
  __device__ void multiply_step(float (&acc)[kM][kN]) {
    // idea:begin Interleaved
#pragma unroll
    for (int i = 0; i < kM; ++i) {
      // With two halves the serpentine begins with the last column; otherwise ptxas (CUDA 13.0)
      // puts two operands of 49 FFMA into one register bank.
      const bool ascending = is_ascending(i + kHalves - 1);
      device::ordered::fma_row(acc[i], frag_a_[i], frag_b_[k % 2], ascending, [&](int n) {
        if (k == kSteps - 1 && i == 1 && n == 0) next_iteration();
        if (n == 1) load_fragments(k, i);
        move_tiles(k, i * kN + n);
      });
    }
    // idea:end
  }

  // Row i of a step. Four elements of A are loaded in place after their last use, the last four of
  // them in the next step; B's fragment is double-buffered. After next_iteration() the next step is
  // the first one of the next iteration.
  __device__ void load_fragments(int k, int i) {
    constexpr int kRowsPerB = 4 * kM / kN;  // rows from one load of B to the next
    static_assert(kRowsPerB * kN == 4 * kM, "loads of B are not whole rows apart");
    const int next = (k + 1) % kSteps;
    if (i == 0) load_a(kM / 4 - 1, k);
    if (i > 0 && i % 4 == 0) load_a(i / 4 - 1, next);
    if (i >= 2 && (i - 2) % kRowsPerB == 0) load_b((i - 2) / kRowsPerB, next);
  }

  __device__ void load_a(int q, int k) {
    device::ordered::load_shared(&frag_a_[4 * q],
                                 read_a_ + 4 * (k * A::kRow + q * Config::kPartStepM));
  }
  __device__ void load_b(int q, int k) {
    device::ordered::load_shared(&frag_b_[k % 2][4 * q],
                                 read_b_ + 4 * (k * B::kRow + q * Config::kPartStepN));
  }

  // Shared stores and global loads of an iteration: in the last step but one; with two halves the
  // loads are in the last step.
  __device__ void move_tiles(int k, int slot) {
    const bool loads = iterations_left_ > kHalves + 1, advances = iterations_left_ > kHalves + 2;
    if (kHalves == 1 && k == kSteps - 2) {
      spread<A::kMoves, B::kMoves>(slot, [&](auto& feed, int i) { feed.move(i, loads, advances); });
    }
    if (kHalves == 2 && k == kSteps - 2) {
      spread<A::kStores, B::kStores>(slot, [](auto& feed, int i) { feed.store_one(i); });
    }
    if (kHalves == 2 && k == kSteps - 1) {
      spread<A::kLoads, B::kLoads>(slot,
                                   [&](auto& feed, int i) { feed.load_one(i, loads, advances); });
    }
  }

  // Calls f(feed, i) for i < kOfA with A's feed, then for i < kOfB with B's, spread over a step's
  // FFMA.
  template <int kOfA, int kOfB, typename F>
  __device__ void spread(int slot, F f) {
    constexpr int kGap = Config::kSpread ? kM * kN / (kOfA + kOfB + 1) : 1;
    static_assert(kGap > 0, "more moves than FFMA");
    const int i = slot / kGap;
    if (slot % kGap != kGap / 2 || i >= kOfA + kOfB) return;
    if (i < kOfA) {
      f(feed_a_, i);
    } else {
      f(feed_b_, i - kOfA);
    }
  }

  // Moves to the next iteration, in the last step of this one.
  __device__ void next_iteration() {
    // This iteration's stores are complete before any thread reads them, and its reads before any
    // thread overwrites them.
    __syncthreads();
    const bool stage_done = kHalves == 1 || second_half_;
    read_a_ += bytes_to_next_half(stage_done, to_other_stage_, half_a_);
    read_b_ += bytes_to_next_half(stage_done, to_other_stage_, half_b_);
    shift_stores(stage_done, 0U - to_other_stage_);
    if (stage_done) to_other_stage_ = 0U - to_other_stage_;
    second_half_ = kHalves == 2 && !second_half_;
  }

  __device__ void shift_stores(bool stage_done, unsigned to_other_stage) {
    feed_a_.shift(bytes_to_next_half(stage_done, to_other_stage, 4 * A::kHalfStored));
    feed_b_.shift(bytes_to_next_half(stage_done, to_other_stage, 4 * B::kHalfStored));
  }

  // From one half to the next: to the first half of the other stage after this stage's last.
  // `half`: bytes from half 0 to half 1.
  static __device__ unsigned bytes_to_next_half(bool stage_done, unsigned to_other_stage,
                                                unsigned half) {
    return stage_done ? to_other_stage - (kHalves - 1) * half : half;
  }

  A feed_a_;
  B feed_b_;
  float frag_a_[kM], frag_b_[2][kN];
  int iterations_left_;  // iterations, this one included
  int first_size_;
  bool second_half_ = false;                                  // this iteration's
  device::SharedAddress read_a_, read_b_;                     // fragments of this iteration
  unsigned half_a_, half_b_;                                  // bytes from half 0 to half 1
  unsigned to_other_stage_ = sizeof(typename Shared::Stage);  // bytes from the stage that is read
};

// Epilogue: C ← alpha·acc + beta·C for the tile at `to`. The slices are summed in order through
// shared memory, four rows of each thread at a time.
template <typename Config, typename Layout>
__device__ void store_tile(const KernelArgs& to,
                           const float (&acc)[Config::kThreadM][Config::kThreadN]) {
  constexpr int kN = Config::kThreadN, kSlices = Config::kSlices;
  const auto at = Config::position();
  if constexpr (kSlices == 1) {
    store_thread_tiles<Layout::kVector>(to, at.m, at.n, Config::kPartStepM, Config::kPartStepN,
                                        acc);
  } else {
    static_assert(kN % kSlices == 0, "each slice sums the same number of vectors");
    auto& sums = device::shared_storage<SharedStorage<Config, Layout>>().sums;
    const int slice = Config::slice();
    const int thread = static_cast<int>(threadIdx.x) % Config::kSliceThreads;
#pragma unroll
    for (int part = 0; part < Config::kThreadM / 4; ++part) {
      __syncthreads();  // the tiles, or the previous rows, have been read before they are
                        // overwritten
#pragma unroll
      for (int word = 0; word < 4 * kN; ++word) {
        sums[slice][word][thread] = acc[4 * part + word / kN][word % kN];
      }
      __syncthreads();  // all slices are stored before any thread adds them
#pragma unroll
      for (int vector = 0; vector < kN; vector += kSlices) {
        float sum[4];
        const int word = 4 * (vector + slice);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sum[i] = sums[0][word + i][thread];
#pragma unroll
          for (int s = 1; s < kSlices; ++s) sum[i] += sums[s][word + i][thread];
        }
        store4<Layout::kVector>(to, at.m + part * Config::kPartStepM + word / kN,
                                at.n + word % kN / 4 * Config::kPartStepN,
                                make_float4(sum[0], sum[1], sum[2], sum[3]));
      }
    }
  }
}

}  // namespace tilegate::interleaved
