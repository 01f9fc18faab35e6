// The main loop with asynchronous copies: shared memory holds a ring of k tiles; while one is
// multiplied, the next ones are on their way. One barrier per k tile.
#pragma once

#include <tilegate/common/async_config.cuh>
#include <tilegate/common/fragment.cuh>
#include <tilegate/common/tile_copier.cuh>
#include <tilegate/device/device.cuh>

namespace tilegate {

template <typename Config>
using CopierA = TileCopier<Config::kFeedA, Config::kBlockM, Config::kBlockK, Config::kStrideA,
                           Config::kNumThreads, Config::kChecksEdges>;
template <typename Config>
using CopierB = TileCopier<Config::kFeedB, Config::kBlockN, Config::kBlockK, Config::kStrideB,
                           Config::kNumThreads, Config::kChecksEdges>;

// Copies k tiles one after another into the ring; past the end of K, zeros.
template <typename Config>
class RingWriter {
 public:
  static constexpr int kCopies = CopierA<Config>::kCopies + CopierB<Config>::kCopies;

  __device__ __forceinline__ RingWriter(const CopierA<Config>& a, const CopierB<Config>& b)
      : a_(a), b_(b) {}

  // Copy `index` of kCopies of this k tile.
  __device__ __forceinline__ void copy(int index) const {
    const device::SharedAddress a = ring_ + offset_;
    if (index < CopierA<Config>::kCopies) {
      a_.copy(index, a);
    } else {
      b_.copy(index - CopierA<Config>::kCopies, a + Config::kBytesOfA);
    }
  }

  // All copies of this k tile are under way; on to the next.
  __device__ __forceinline__ void next() {
    device::copy_async_commit();
    a_.advance();
    b_.advance();
    offset_ = offset_ == kLast ? 0 : offset_ + sizeof(typename Config::KTile);
  }

 private:
  static constexpr unsigned kLast = (Config::kStages - 1) * sizeof(typename Config::KTile);

  CopierA<Config> a_;
  CopierB<Config> b_;
  device::SharedAddress ring_ = device::shared_address(
      device::shared_storage<typename Config::SharedStorage>().ring);
  unsigned offset_ = 0;  // of this k tile in the ring, in bytes
};

// Starts the copies of the first k tiles.
template <typename Config>
__device__ __forceinline__ void fill_ring(RingWriter<Config>& writer) {
#pragma unroll 1
  for (int tile = 0; tile < Config::kStages - 1; ++tile) {
#pragma unroll
    for (int i = 0; i < RingWriter<Config>::kCopies; ++i) writer.copy(i);
    writer.next();
  }
}

// acc += A·B over `k_tiles` k tiles.
template <typename Config>
__device__ __forceinline__ void multiply_tiles(RingWriter<Config>& writer, int k_tiles,
                                               const typename Config::Position& at,
                                               float (&acc)[Config::kFragmentM]
                                                           [Config::kFragmentN]) {
  constexpr int kLastStep = Config::kSliceK - 1;
  constexpr int kBatches = Config::kCopyBatches < kLastStep ? Config::kCopyBatches : kLastStep;
  constexpr int kCopies = RingWriter<Config>::kCopies;
  const auto copy_batch_of_step = [&](int k) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if (i * kBatches / kCopies * kLastStep / kBatches == k) writer.copy(i);
    }
  };

  auto& smem = device::shared_storage<typename Config::SharedStorage>();
  const int k0 = at.slice * Config::kSliceK;
  const float* const first_a = &smem.ring[0].a[k0][at.m];
  const float* const first_b = &smem.ring[0].b[k0][at.n];
  unsigned reading = 0;  // of the k tile in the ring, in words
  float frag_a[2][Config::kFragmentM], frag_b[2][Config::kFragmentN];
  const auto load = [&](int buffer, int k) {
    load_fragment(frag_a[buffer], first_a + reading + k * Config::kStrideA,
                  [](int i) { return i * Config::kStepM; });
    load_fragment(frag_b[buffer], first_b + reading + k * Config::kStrideB,
                  [](int j) { return j * Config::kStepN; });
  };

  device::copy_async_wait<Config::kStages - 2>();
  __syncthreads();  // everyone's copies of the first k tile are done before anyone reads it
  load(0, 0);
#pragma unroll 1
  for (; k_tiles > 0; --k_tiles) {
#pragma unroll
    for (int k = 0; k < kLastStep; ++k) {
      load((k + 1) % 2, k + 1);
      copy_batch_of_step(k);
      multiply_fragments(frag_a[k % 2], frag_b[k % 2], acc);
    }
    writer.next();
    constexpr unsigned kWords = sizeof(typename Config::KTile) / sizeof(float);
    reading = reading == (Config::kStages - 1) * kWords ? 0 : reading + kWords;
    device::copy_async_wait<Config::kStages - 2>();
    // Everyone's copies of the next k tile are done before anyone reads it, and everyone has read
    // this one before the next round's copies overwrite it.
    __syncthreads();
    load(0, 0);
    multiply_fragments(frag_a[1], frag_b[1], acc);
  }
}

}  // namespace tilegate
