// The main loop with asynchronous copies: shared memory holds a ring of k tiles; while one is
// multiplied, the next ones are on their way. One barrier per k tile.
#pragma once

#include <cstdint>

#include <tilegate/common/async/config.cuh>
#include <tilegate/common/async/epilogue.cuh>
#include <tilegate/common/async/split_k.cuh>
#include <tilegate/common/fragment.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

// One thread's share of the asynchronous copies that bring an operand's k tiles to shared memory.

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

  // To the next k tile.
  __device__ __forceinline__ void advance() {
    next_ += kAlongX ? kPasses * bytes_per_pass_ : kBytes * kBlockK;
    k_left_ -= kBlockK;
  }

 private:
  // Word of the tile in shared memory; linear in row and column.
  static constexpr __device__ int smem_index(int row, int col) {
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

// The block of a kernel with asynchronous copies: its part of a tile, from the operands to C.

template <typename Config>
__device__ __forceinline__ void compute_block(const KernelArgs& args, const KSplit& split) {
  auto& smem = device::shared_storage<typename Config::SharedStorage>();
  const auto at = Config::position();
  float acc[Config::kFragmentM][Config::kFragmentN]{};
  {
    const KSplit::Part part = split.part(blockIdx.x, args.workspace);
    if (threadIdx.x == 0) smem.part = part;
    const std::int64_t k = std::int64_t{part.first_k_tile} * Config::kBlockK;
    const std::int64_t k_end = k + std::int64_t{part.k_tiles} * Config::kBlockK;
    const auto k_left = static_cast<int>((k_end < args.shape.k ? k_end : args.shape.k) - k);

    device::wait_for_previous_kernel();  // which may still write A, B and C
    device::launch_dependents();

    const CopierA<Config> a(args.a + part.product * args.stride_a, args.lda, args.shape.m, part.row,
                            k, k_left);
    const CopierB<Config> b(args.b + part.product * args.stride_b, args.ldb, args.shape.n, part.col,
                            k, k_left);
    RingWriter<Config> writer(a, b);
    fill_ring(writer);
    multiply_tiles<Config>(writer, part.k_tiles, at, acc);
  }
  stage_results<Config>(at, acc);

  const KSplit::Part& part = smem.part;
  if (part.partial != nullptr) {
    store_partial<Config>(part.partial);
  } else {
    KernelArgs target = args;
    target.c += part.product * args.stride_c + part.row * args.ldc + part.col;
    target.shape.m -= part.row;
    target.shape.n -= part.col;
    store_results<Config>(target, part.own_row, part.own_col, split.vectors);
  }
}

}  // namespace tilegate
