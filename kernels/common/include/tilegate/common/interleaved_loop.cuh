// The interleaved main loop: every instruction stands where the source puts it. Between the FFMA of
// each k step, evenly spread, are the shared loads of the next one; in the last step but one also
// the stores of the next tile, and there or in the last step the global loads of the tile after it,
// which have nearly a whole round to arrive.
//
// A round is 8 k steps of a thread: its slice of a k tile, or a half of it.
#pragma once

#include <cstdint>
#include <utility>

#include <tilegate/common/fragment.cuh>
#include <tilegate/common/interleaved_tiles.cuh>
#include <tilegate/common/operand_feed.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

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
    // After the loop: of each slice, four rows of each thread's results.
    float sums[Config::kSlices][4 * Config::kThreadN][Config::kSliceThreads];
  };
  TileWalk::Place place;  // of the block's tile: not in registers, which the loop needs
};

template <typename Config, typename Layout>
class Loop {
  static constexpr int kSteps = Config::kSteps, kHalves = Config::kHalves;
  static constexpr int kM = Config::kThreadM, kN = Config::kThreadN;
  using Shared = SharedStorage<Config, Layout>;
  using A = FeedA<Config, Layout>;
  using B = FeedB<Config, Layout>;

 public:
  __device__ Loop(const KernelArgs& args, const TileWalk::Place& place, const KTiles<Config>& tiles)
      : Loop(args, place, tiles, device::shared_storage<Shared>()) {}

  // acc += op(A)·op(B) over the tiles.
  __device__ void multiply(float (&acc)[kM][kN]) {
    if (rounds_left_ <= 0) return;
    fill();
#pragma unroll
    for (int q = 0; q < kM / 4 - 1; ++q) load_a(q, 0);
#pragma unroll
    for (int q = 0; q < kN / 4; ++q) load_b(q, 0);
#pragma unroll 1
    for (; rounds_left_ > 0; --rounds_left_) {
      multiply_steps(acc, std::make_integer_sequence<int, kSteps>{});
    }
  }

 private:
  __device__ Loop(const KernelArgs& args, const TileWalk::Place& place, const KTiles<Config>& tiles,
                  Shared& smem)
      : feed_a_(args.a, place.product * args.stride_a, args.lda, static_cast<int>(args.shape.m),
                static_cast<int>(place.row) * Config::kBlockM, tiles.first_k(),
                device::shared_address(smem.stages[0].a)),
        feed_b_(args.b, place.product * args.stride_b, args.ldb, static_cast<int>(args.shape.n),
                static_cast<int>(place.col) * Config::kBlockN, tiles.first_k(),
                device::shared_address(smem.stages[0].b)),
        rounds_left_((tiles.end - tiles.begin) * kHalves),
        first_size_(tiles.begin == 0 ? tiles.first_size : Config::kBlockK) {
    const auto at = Config::position();
    const int k = Config::slice() * kSteps;
    read_a_ = device::shared_address(&smem.stages[0].a[k][at.m ^ A::swizzle(k)]);
    read_b_ = device::shared_address(&smem.stages[0].b[k][at.n ^ B::swizzle(k)]);
    half_a_ = 4U * static_cast<unsigned>(kSteps * A::kRow + (at.m ^ A::swizzle(kSteps)) - at.m);
    half_b_ = 4U * static_cast<unsigned>(kSteps * B::kRow + (at.n ^ B::swizzle(kSteps)) - at.n);
  }

  // Stores the first tile; the half after it is on its way.
  __device__ void fill() {
#pragma unroll
    for (int half = 0; half < kHalves; ++half) {
      feed_a_.load_first(half, first_size_);
      feed_b_.load_first(half, first_size_);
      feed_a_.store();
      feed_b_.store();
      shift_stores(half == kHalves - 1, to_other_stage_);
    }
    const bool has_second = rounds_left_ > kHalves, has_third = rounds_left_ > kHalves + 1;
    feed_a_.leave_first(first_size_, has_second);
    feed_b_.leave_first(first_size_, has_second);
    feed_a_.load(has_second, has_third);
    feed_b_.load(has_second, has_third);
    __syncthreads();  // the first tile is stored before anyone reads it
  }

  // The last round stores once more and loads once more what nobody uses.
  template <int... k>
  __device__ void multiply_steps(float (&acc)[kM][kN], std::integer_sequence<int, k...>) {
    (multiply_step<k>(acc), ...);  // not a loop: too large for what compilers unroll
  }

  template <int k>
  __device__ void multiply_step(float (&acc)[kM][kN]) {
#pragma unroll
    for (int i = 0; i < kM; ++i) {
      // With two halves the serpentine begins with the last column; in the other order ptxas (CUDA
      // 13.0) puts the other two operands of 49 FFMA into one bank of registers.
      const bool ascending = is_ascending(i + kHalves - 1);
      device::ordered::fma_row(acc[i], frag_a_[i], frag_b_[k % 2], ascending, [&](int n) {
        if (k == kSteps - 1 && i == 1 && n == 0) turn();
        if (n == 1) load_fragments(k, i);
        move_tiles(k, i * kN + n);
      });
    }
  }

  // In row i of a step. Four elements of A are loaded in place once they are used up, the last four
  // of them in the next step; B's have a second set of registers. After turn() the next step is the
  // next round's first.
  __device__ void load_fragments(int k, int i) {
    constexpr int kRowsPerB = 4 * kM / kN;  // from a load of B to the next
    static_assert(kRowsPerB * kN == 4 * kM, "the loads of B would not be a whole row apart");
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

  // The stores and global loads of a round, in the last step but one; with two halves the loads are
  // in the last step.
  __device__ void move_tiles(int k, int slot) {
    const bool exists = rounds_left_ > kHalves + 1, more = rounds_left_ > kHalves + 2;
    if (kHalves == 1 && k == kSteps - 2) {
      spread<A::kMoves, B::kMoves>(slot, [&](auto& feed, int i) { feed.move(i, exists, more); });
    }
    if (kHalves == 2 && k == kSteps - 2) {
      spread<A::kStores, B::kStores>(slot, [](auto& feed, int i) { feed.store_one(i); });
    }
    if (kHalves == 2 && k == kSteps - 1) {
      spread<A::kLoads, B::kLoads>(slot,
                                   [&](auto& feed, int i) { feed.load_one(i, exists, more); });
    }
  }

  // f(feed, i) for i < kOfA of A's feed, then for i < kOfB of B's, spread over a step.
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

  // To the next round, in the last step of this one.
  __device__ void turn() {
    // What this round stored is there before anyone reads it, and what it read has been read before
    // anyone overwrites it.
    __syncthreads();
    const bool stage_done = kHalves == 1 || second_half_;
    read_a_ += next_half(stage_done, to_other_stage_, half_a_);
    read_b_ += next_half(stage_done, to_other_stage_, half_b_);
    shift_stores(stage_done, 0U - to_other_stage_);
    if (stage_done) to_other_stage_ = 0U - to_other_stage_;
    second_half_ = kHalves == 2 && !second_half_;
  }

  __device__ void shift_stores(bool stage_done, unsigned to_other_stage) {
    feed_a_.shift(next_half(stage_done, to_other_stage, 4 * A::kHalfStored));
    feed_b_.shift(next_half(stage_done, to_other_stage, 4 * B::kHalfStored));
  }

  // Bytes from one half to the next, the first of the other stage where this one is done.
  static __device__ unsigned next_half(bool stage_done, unsigned to_other_stage, unsigned half) {
    return stage_done ? to_other_stage - (kHalves - 1) * half : half;
  }

  A feed_a_;
  B feed_b_;
  float frag_a_[kM], frag_b_[2][kN];
  int rounds_left_;  // with this one
  int first_size_;
  bool second_half_ = false;                                  // in this round
  device::SharedAddress read_a_, read_b_;                     // of this round
  unsigned half_a_, half_b_;                                  // from half 0 to half 1, bytes
  unsigned to_other_stage_ = sizeof(typename Shared::Stage);  // from the one that is read
};

}  // namespace tilegate::interleaved
