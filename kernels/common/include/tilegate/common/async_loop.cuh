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
    const device::SharedAddress tile = ring_ + offset_;
    if (index < CopierA<Config>::kCopies) {
      a_.copy(index, tile);
    } else {
      b_.copy(index - CopierA<Config>::kCopies, tile + Config::kBytesOfA);
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
  device::SharedAddress ring_ =
      device::shared_address(device::shared_storage<typename Config::SharedStorage>().ring);
  unsigned offset_ = 0;  // of this k tile in the ring, in bytes
};

// Starts the copies of the first k tiles.
// idea:begin AsyncCopy
template <typename Config>
__device__ __forceinline__ void fill_ring(RingWriter<Config>& writer) {
#pragma unroll 1
  for (int tile = 0; tile < Config::kStages - 1; ++tile) {
#pragma unroll
    for (int i = 0; i < RingWriter<Config>::kCopies; ++i) writer.copy(i);
    writer.next();
  }
}
// idea:end

// A thread's rows of A: of one k, while those of the next are being read.
template <typename Config>
class FragmentsOfK {
 public:
  static __device__ const float* first(const float* a, const typename Config::Position& at) {
    return a + at.slice * Config::kSliceK * Config::kStrideA + at.m;
  }
  __device__ __forceinline__ void load_first(const float* tile) { load(0, tile); }
  __device__ __forceinline__ void load_next(int k, const float* tile) {
    load((k + 1) % 2, tile + (k + 1) % Config::kSliceK * Config::kStrideA);
  }
  __device__ __forceinline__ void row_is_done(int /*i*/, int /*k*/, const float* /*tile*/) {}
  __device__ __forceinline__ float get(int i, int k) const { return frag_[k % 2][i]; }

 private:
  __device__ __forceinline__ void load(int buffer, const float* row) {
    load_fragment(frag_[buffer], row, [](int part) { return Config::row_step(4 * part); });
  }

  float frag_[2][Config::kFragmentM];
};

// A thread's rows of A where shared memory keeps them: four k of each, replaced in place.
template <typename Config>
class FragmentsOfRows {
 public:
  static __device__ const float* first(const float* a, const typename Config::Position& at) {
    return a + at.m * Config::kStrideA + at.slice * Config::kSliceK;
  }
  __device__ __forceinline__ void load_first(const float* tile) {
#pragma unroll
    for (int i = 0; i < Config::kFragmentM; ++i) load(i, tile);
  }
  __device__ __forceinline__ void load_next(int /*k*/, const float* /*tile*/) {}
  __device__ __forceinline__ void row_is_done(int i, int k, const float* tile) {
    if (k % 4 == 3) load(i, tile + (k + 1) % Config::kSliceK);
  }
  __device__ __forceinline__ float get(int i, int k) const { return frag_[i][k % 4]; }

 private:
  __device__ __forceinline__ void load(int i, const float* from) {
    load_fragment(frag_[i], from + Config::row_step(i) * Config::kStrideA,
                  [](int /*part*/) { return 0; });
  }

  float frag_[Config::kFragmentM][4];
};

template <typename Config>
struct FragmentsOfA {
  using Type = FragmentsOfK<Config>;
};
template <typename Config>
requires Config::kKeepsA struct FragmentsOfA<Config> {
  using Type = FragmentsOfRows<Config>;
};

// acc += A·B over `k_tiles` k tiles.
template <typename Config>
__device__ __forceinline__ void multiply_tiles(
    RingWriter<Config>& writer, int k_tiles, const typename Config::Position& at,
    float (&acc)[Config::kFragmentM][Config::kFragmentN]) {
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
  using A = typename FragmentsOfA<Config>::Type;
  // Where the thread reads in the k tile.
  const float* tile_a = A::first(&smem.ring[0].a[0][0], at);
  const float* tile_b = &smem.ring[0].b[at.slice * Config::kSliceK][at.n];
  int stage = 0;
  A frag_a;
  float frag_b[2][Config::kFragmentN];
  const auto load_b = [&](int k) {
    load_fragment(frag_b[k % 2], tile_b + k % Config::kSliceK * Config::kStrideB,
                  [](int j) { return j * Config::kStepN; });
  };

  device::copy_async_wait<Config::kStages - 2>();
  __syncthreads();  // everyone's copies of the first k tile are done before anyone reads it
  frag_a.load_first(tile_a);
  load_b(0);
#pragma unroll 1
  for (; k_tiles > 0; --k_tiles) {
#pragma unroll
    for (int k = 0; k < Config::kSliceK; ++k) {
      if (k == kLastStep) {
        writer.next();
        constexpr int kWords = sizeof(typename Config::KTile) / sizeof(float);
        constexpr int kLastStage = Config::kStages - 1;
        const int step = stage == kLastStage ? -kLastStage * kWords : kWords;
        stage = stage == kLastStage ? 0 : stage + 1;
        tile_a += step;
        tile_b += step;
        device::copy_async_wait<Config::kStages - 2>();
        // Everyone's copies of the next k tile are done before anyone reads it, and everyone has
        // read this one before the next round's copies overwrite it.
        __syncthreads();
      }
      frag_a.load_next(k, tile_a);
      load_b(k + 1);
      if (k < kLastStep) copy_batch_of_step(k);
#pragma unroll
      for (int i = 0; i < Config::kFragmentM; ++i) {
        device::add_products(acc[i], frag_a.get(i, k), frag_b[k % 2], is_ascending(i));
        frag_a.row_is_done(i, k, tile_a);
      }
    }
  }
}

}  // namespace tilegate
