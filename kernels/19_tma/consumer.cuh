// The consumers' half of the main loop: they read fragments from the ring and multiply, and touch
// neither global memory nor, but for the barriers of the ring, each other. Every instruction stands
// where the source puts it, as in interleaved_loop.cuh.
#pragma once

#include <utility>

#include <tilegate/common/fragment.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

#include "ring.cuh"

namespace tilegate::tma {

// A is read as it lies, four k of a row per load: the registers of a row are replaced, once its
// FFMA of the last of the four are done. B is read four columns per load, one k ahead.
template <typename Config>
class Consumer {
  static constexpr int kM = Config::kThreadM, kN = Config::kThreadN;
  static constexpr int kSteps = Config::kSteps;
  using Shared = SharedStorage<Config>;
  static constexpr unsigned kRowA = sizeof(float) * Config::kBlockK;
  static constexpr unsigned kRowB = sizeof(float) * Config::kBlockN;
  static constexpr unsigned kVector = 4 * sizeof(float);
  static constexpr unsigned kPartB = sizeof(float) * Config::kStepN;

 public:
  // acc += the product of so many k tiles.
  __device__ void multiply(int k_tiles, float (&acc)[kM][kN]) {
    rounds_left_ = k_tiles * Config::kRounds;
    if (rounds_left_ == 0) return;
    const auto at = Config::position();
    // Rows of A are 64 bytes; with the swizzle, vector v of row r is at place v ^ (r / 2 % 4). All
    // rows of a thread are a multiple of 8 apart, so that they have the same places.
    read_a_ = device::shared_address(&smem().ring[0].a[at.m][at.m / 2 % 4 * 4]);
    read_b_ = device::shared_address(&smem().ring[0].b[0][at.n]);
    device::barrier_wait(smem().full[0], 0);
#pragma unroll
    for (int i = 0; i < kM - 1; ++i) load_a(i, read_a_);
    load_b(0);
#pragma unroll 1
    for (; rounds_left_ > 0; --rounds_left_) {
      multiply_steps(acc, std::make_integer_sequence<int, kSteps>{});
    }
  }

 private:
  static __device__ Shared& smem() { return device::shared_storage<Shared>(); }

  template <int... k>
  __device__ void multiply_steps(float (&acc)[kM][kN], std::integer_sequence<int, k...>) {
    (multiply_step<k>(acc), ...);  // not a loop: too large for what compilers unroll
  }

  template <int k>
  __device__ void multiply_step(float (&acc)[kM][kN]) {
#pragma unroll
    for (int i = 0; i < kM; ++i) {
      device::ordered::fma_row(acc[i], frag_a_[i][k % 4], frag_b_[k % 2], is_ascending(i),
                               [&](int n) {
                                 const int slot = i * kN + n;
                                 if (k == kSteps - 1 && slot == kN) turn();
                                 load_fragments(k, slot);
                               });
    }
  }

  // After turn() the next step is the next round's first.
  __device__ void load_fragments(int k, int slot) {
    const device::SharedAddress this_four = k < 4 ? read_a_ : read_a_ ^ kVector;
    const device::SharedAddress next_four = k < 4 ? read_a_ ^ kVector : read_a_;
    if (k % 4 == 0 && slot == 1) load_a(kM - 1, this_four);
    if (k % 4 == 3 && slot > kN && slot % kN == 1) load_a(slot / kN - 1, next_four);
    constexpr int kParts = kN / 4, kGap = (kM - 2) * kN / kParts;
    const int after_turn = slot - kN - 3;
    if (after_turn >= 0 && after_turn % kGap == 0 && after_turn / kGap < kParts) {
      load_b_part((k + 1) % kSteps, after_turn / kGap);
    }
  }

  __device__ void load_a(int i, device::SharedAddress four) {
    device::ordered::load_shared(frag_a_[i], four + i * Config::kLanesM * kRowA);
  }
  __device__ void load_b_part(int k, int part) {
    device::ordered::load_shared(&frag_b_[k % 2][4 * part], read_b_ + k * kRowB + part * kPartB);
  }
  __device__ void load_b(int k) {
#pragma unroll
    for (int part = 0; part < kN / 4; ++part) load_b_part(k, part);
  }

  // To the next round, in the last step of this one, once its first row is done: then all that was
  // loaded from the k tile has been used, so that no load of it is on its way any more. In the very
  // last, the loads that follow stay in this k tile; nobody uses them.
  __device__ void turn() {
    if (rounds_left_ == 1) return;
    const bool tile_done = rounds_left_ % Config::kRounds == 1;
    read_a_ ^= 2 * kVector;  // to the other half of the rows, and back
    if (!tile_done) {
      read_b_ += kSteps * kRowB;
      return;
    }
    __syncwarp();  // all lanes have read the k tile before it may be overwritten
    if (threadIdx.x % 32 == 0) device::barrier_arrive(smem().empty[ring_.stage]);
    constexpr unsigned kTile = sizeof(typename Shared::KTile), kRing = Config::kStages * kTile;
    const unsigned step = ring_.stage == Config::kStages - 1 ? kTile - kRing : kTile;
    read_a_ += step;
    read_b_ += step - kSteps * kRowB;
    ring_.advance();
    device::barrier_wait(smem().full[ring_.stage], ring_.phase);
  }

  float frag_a_[kM][4], frag_b_[2][kN];
  Ring<Config::kStages> ring_;
  int rounds_left_ = 0;  // with this one
  device::SharedAddress read_a_, read_b_;
};

}  // namespace tilegate::tma
