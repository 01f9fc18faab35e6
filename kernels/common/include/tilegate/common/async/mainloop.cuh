// Main loop with asynchronous copies (cp.async): shared memory holds a ring of k tiles; while one
// is multiplied, copies of the next ones are in flight. One barrier per k tile.
#pragma once

#include <cstdint>

#include <tilegate/common/async/config.cuh>
#include <tilegate/common/async/epilogue.cuh>
#include <tilegate/common/async/split_k.cuh>
#include <tilegate/common/fragment.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// One thread's share of the copies of an operand's k tiles.
//
// Tiles have kExtent x and kBlockK k. In shared memory a row holds one k, or with kKept one x; rows
// are kStride words apart. Outside the operand zeros are written and nothing is read: along k
// always, because Inf·0 would be NaN; along x only with kChecksEdges, else tiles must lie inside.
template <Feed kFeed, int kExtent, int kBlockK, int kStride, int kNumThreads, bool kChecksEdges>
class TileCopier {
  static constexpr bool kAlongX = kFeed == Feed::kVectors || kFeed == Feed::kWords;
  static constexpr bool kVector = kFeed == Feed::kVectors || kFeed == Feed::kKept;
  static constexpr int kWords = kVector ? 4 : 1;                 // per copy
  static constexpr int kBytes = sizeof(float);                   // per word
  static constexpr int kRowWords = kAlongX ? kExtent : kBlockK;  // of the tile in global memory
  static constexpr int kAllRows = kAlongX ? kBlockK : kExtent;

  // Vectors: neighbouring threads copy neighbours of a row. Words: a warp copies 32 neighbours of a
  // row, or all it has; if rows lie along k, 8 neighbours of each of 4 rows. All threads together
  // copy kRows rows per pass; a thread copies kChunks times kWords words of a row, kChunk apart.
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
                "a thread's column changes from pass to pass");
  static_assert(kFeed != Feed::kWords || kWidth * kChunks * kTeamsPerRow == kExtent, "uncovered x");
  static_assert(!kAlongX || kPasses * kRows == kBlockK, "passes do not divide a k tile");
  static_assert(kChunk * kChunks == kRowWords || kFeed == Feed::kWords, "uncovered k");

 public:
  static constexpr int kCopies = kPasses * kChunks;  // per thread and tile

  // Starts at the tile whose first element is (x, k). The operand has `extent` x, and `k_left` k
  // from the tile on.
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
    to_ = static_cast<unsigned>(kBytes * smem_index(row, col));
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
        smem + to_ + static_cast<unsigned>(kBytes * smem_index(row, col)),
        reinterpret_cast<const float*>(from), inside);
  }

  // Moves to the next k tile.
  __device__ __forceinline__ void advance() {
    next_ += kAlongX ? kPasses * bytes_per_pass_ : kBytes * kBlockK;
    k_left_ -= kBlockK;
  }

  // The source of the thread's first copy of the next k tile.
  __device__ __forceinline__ const char* next() const { return next_; }

 private:
  // Index of an element in shared memory, in words; linear in row and column.
  static constexpr __device__ int smem_index(int row, int col) {
    return kFeed == Feed::kTransposed ? col * kStride + row : row * kStride + col;
  }
  static __device__ int first_row() {
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (kVector) return thread / (kRowWords / kWords);
    return kAlongX ? thread / kWidth % kTeamRows : thread / kChunk;
  }

  const char* next_;  // the thread's first element; strides are in bytes
  std::int64_t bytes_per_pass_;
  unsigned to_;          // offset of that element in the shared-memory tile, in bytes
  int x_left_, k_left_;  // from that element on; not positive: outside
};

template <typename Config>
using CopierA = TileCopier<Config::kFeedA, Config::kBlockM, Config::kBlockK, Config::kStrideA,
                           Config::kNumThreads, Config::kChecksEdges>;
template <typename Config>
using CopierB = TileCopier<Config::kFeedB, Config::kBlockN, Config::kBlockK, Config::kStrideB,
                           Config::kNumThreads, Config::kChecksEdges>;

// Copies k tile after k tile into the ring; zeros past the end of K.
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

  // Commits the copies of this k tile and moves to the next.
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

// A thread's fragment of A for one k, double-buffered.
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

// A thread's fragment of A with kKept: four k of each row, replaced in place.
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
  requires Config::kKeepsA
struct FragmentsOfA<Config> {
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
  // The thread's first elements in the k tile.
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
  __syncthreads();  // all threads' copies of the first k tile are done before any thread reads it
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
        // All threads' copies of the next k tile are done before any thread reads it, and all
        // threads have read this k tile before the next iteration's copies overwrite it.
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

// The kernel: main loop and epilogue of a block's work.
template <typename Config>
__device__ __forceinline__ void compute_block(const KernelArgs& args, const SplitK& split_k) {
  auto& smem = device::shared_storage<typename Config::SharedStorage>();
  const auto at = Config::position();
  float acc[Config::kFragmentM][Config::kFragmentN]{};
  {
    const SplitK::WorkTile work = split_k.work_tile(blockIdx.x, args.workspace);
    if (threadIdx.x == 0) smem.work = work;
    const std::int64_t k = std::int64_t{work.first_k_tile} * Config::kBlockK;
    const std::int64_t k_end = k + std::int64_t{work.k_tiles} * Config::kBlockK;
    const auto k_left = static_cast<int>((k_end < args.shape.k ? k_end : args.shape.k) - k);

    const CopierA<Config> a(args.a + work.batch_index * args.stride_a, args.lda, args.shape.m,
                            work.row, k, k_left);
    const CopierB<Config> b(args.b + work.batch_index * args.stride_b, args.ldb, args.shape.n,
                            work.col, k, k_left);
    device::wait_for_previous_kernel(a.next(), b.next());  // which may still write A, B and C
    device::launch_dependents();
    RingWriter<Config> writer(a, b);
    fill_ring(writer);
    multiply_tiles<Config>(writer, work.k_tiles, at, acc);
  }
  stage_results<Config>(at, acc);

  const SplitK::WorkTile& work = smem.work;
  if (work.partial != nullptr) {
    store_partial<Config>(work.partial);
  } else {
    KernelArgs target = args;
    target.c += work.batch_index * args.stride_c + work.row * args.ldc + work.col;
    target.shape.m -= work.row;
    target.shape.n -= work.col;
    store_results<Config>(target, work.own_row, work.own_col, split_k.vectors);
  }
}

}  // namespace tilegate
