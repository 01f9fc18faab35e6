// How a warp multiplies its part of a k tile.
//
// s is the inner loop everywhere: accumulators that are neighbours in s lie in both register banks
// by turns, so that an FFMA never finds its three operands in one.
#pragma once

#include <tilegate/common/fragment.cuh>
#include <tilegate/device/device.cuh>

#include "config.cuh"

namespace tilegate::skinny {

// Where a lane's results are in the tile of its block.
template <typename Config>
class Lane {
 public:
  __device__ Lane()
      : x_(static_cast<int>(threadIdx.x) % 32 / Config::kLanesS),
        s_(static_cast<int>(threadIdx.x) % Config::kLanesS * Config::kThreadS) {}

  // Its i-th x. Along x they come in vectors; along k each is a row, and neighbouring lanes take
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

// v ← the kSize words from `smem` on, by one access.
template <int kSize>
__device__ void load_words(float* v, const float* smem) {
  if constexpr (kSize == 4) {
    const auto loaded = device::load_vector<float4>(smem);
    v[0] = loaded.x;
    v[1] = loaded.y;
    v[2] = loaded.z;
    v[3] = loaded.w;
  } else if constexpr (kSize == 2) {
    const auto loaded = device::load_vector<float2>(smem);
    v[0] = loaded.x;
    v[1] = loaded.y;
  } else {
    static_assert(kSize == 1, "the vectors that CUDA's float has");
    v[0] = *smem;
  }
}

// kSize columns from `s` on of row k of the small operand's tile.
template <typename Config, int kSize>
__device__ void load_small(float (&small)[kSize], const KTile<Config>& tile, int k, int s) {
#pragma unroll
  for (int i = 0; i < kSize; i += Config::kVectorS) {
    load_words<Config::kVectorS>(&small[i], &tile.small[k][s + i]);
  }
}

// acc += the k from `first` on that a warp takes of a tile, one after another; the fragments of the
// next k are loaded before this one's are multiplied. The big operand lies along x.
template <typename Config>
__device__ void multiply_along_x(const KTile<Config>& tile, int first, const Lane<Config>& lane,
                                 float (&acc)[Config::kThreadX][Config::kThreadS]) {
  constexpr int kVector = Config::kVectorX;
  // idea:begin Skinny
  float big[2][Config::kThreadX], small[2][Config::kThreadS];
  const auto load = [&](int step) {
#pragma unroll
    for (int i = 0; i < Config::kThreadX; i += kVector) {
      load_words<kVector>(&big[step % 2][i], &tile.big[first + step][lane.x(i)]);
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

// The same where it lies along k: four k of a row at a time, replaced as soon as they are used up.
// They take more registers, and so only eight columns of the small operand are loaded ahead.
template <typename Config>
__device__ void multiply_along_k(const KTile<Config>& tile, int first, const Lane<Config>& lane,
                                 float (&acc)[Config::kThreadX][Config::kThreadS]) {
  constexpr int kThreadX = Config::kThreadX, kThreadS = Config::kThreadS;
  constexpr int kParts = kThreadS % 8 == 0 ? kThreadS / 8 : 1, kPartS = kThreadS / kParts;
  constexpr int kTurns = Config::kWarpK * kParts;
  float quad[kThreadX][4], small[2][kPartS];
  const auto load_quad = [&](int i, int step) {
    load_words<4>(quad[i], &tile.big[lane.x(i)][first + step]);
  };
  const auto load_part = [&](int turn) {
    load_small(small[turn % 2], tile, first + turn / kParts, lane.s() + turn % kParts * kPartS);
  };
#pragma unroll
  for (int i = 0; i < kThreadX; ++i) load_quad(i, 0);
  load_part(0);
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int step = turn / kParts, part = turn % kParts;
    if (turn + 1 < kTurns) load_part(turn + 1);
#pragma unroll
    for (int i = 0; i < kThreadX; ++i) {
#pragma unroll
      for (int j = 0; j < kPartS; ++j) {
        const int s = i % 2 == 0 ? j : kPartS - 1 - j;  // as in multiply_fragments
        acc[i][part * kPartS + s] += quad[i][step % 4] * small[turn % 2][s];
      }
      const bool used_up = step % 4 == 3 && part == kParts - 1;
      if (used_up && step + 1 < Config::kWarpK) load_quad(i, step + 1);
    }
  }
}

template <typename Config>
__device__ void multiply_tile(const KTile<Config>& tile, int first, const Lane<Config>& lane,
                              float (&acc)[Config::kThreadX][Config::kThreadS]) {
  if constexpr (Config::kBigAlong == Along::kX) {
    multiply_along_x<Config>(tile, first, lane, acc);
  } else {
    multiply_along_k<Config>(tile, first, lane, acc);
  }
}

}  // namespace tilegate::skinny
