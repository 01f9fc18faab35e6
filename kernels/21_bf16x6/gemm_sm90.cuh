// GEMM kernel for compute capability 9.0: multiplies 16-bit numbers on tensor cores, reads and
// writes FP32.
//
// Two producer warpgroups copy tiles of both operands to shared memory, by TMA where it can load
// them, and split one of them, y, into two FP16 halves or three BF16 planes. Two consumer
// warpgroups split the other, x, in registers, 64 rows each, and run wgmma. They add short runs of
// products to FP32 sums, and sums to totals, because tensor cores truncate. Blocks are persistent,
// so that the producer loads the next tile during the epilogue.
//
// x is op(A) and y op(B); or, transposed, x is op(B) and y op(A): that is for C of few rows.
//
// For each work tile, a sample of its rows decides between halves, planes and FP64. Producers
// sample the first tiles that they have copied. For FP64 they pass y on as it is, and consumers
// multiply in FP64 on tensor cores, which takes about as long as FP32 on CUDA cores. Work tiles
// whose sums have failed, because halves overflow or elements are special, are cut short, and
// multiplied again in FP64 after all others of the block.
//
// In order: configuration, shared memory, producer, sample, fragments, main loops, range check,
// epilogue, kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/async/split_k.cuh>
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/opaque.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/common/store_words.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/tensor_map.hpp>
#include <tilegate/device/warp_mma.cuh>
#include <tilegate/stage.hpp>

#include "bf16.cuh"
#include "fp16.cuh"
#include "sample.cuh"

namespace tilegate::bf16x6 {

constexpr int kBlockK = 32;
constexpr int kSliceK = 16;  // k of one wgmma
constexpr int kSlices = kBlockK / kSliceK;
constexpr int kLeastKTiles = 4;  // of a work tile
constexpr int kRowsOfX = 128;
constexpr int kWarpgroup = 128;
constexpr int kProducers = 2 * kWarpgroup, kConsumers = 2 * kWarpgroup;
constexpr int kProducerWarps = kProducers / 32;
constexpr int kNumThreads = kProducers + kConsumers;  // the producers come first
constexpr int kProducerRegisters = 48, kConsumerRegisters = 208;
static_assert(kProducers * kProducerRegisters + kConsumers * kConsumerRegisters <= kRegistersPerSm);
static_assert(kConsumers == kProducers, "a consumer reads the range of a producer");

// kColumns: rows of y in a tile, columns of the accumulators.
template <int kColumns_, bool kXAlongK_, bool kYAlongK_>
struct Config {
  static constexpr int kColumns = kColumns_;
  static constexpr bool kXAlongK = kXAlongK_, kYAlongK = kYAlongK_;  // rows lie along k
  static constexpr int kAhead = kColumns == 128 ? 2 : 4;  // tiles in flight before the split
  static constexpr int kStages = 3;                       // tiles whose y is split
  static constexpr int kStagesOfX = kAhead + kStages;
  // So producers decide for a work tile after consumers have ended the last but one.
  static_assert(kLeastKTiles > kStages && kLeastKTiles >= kAhead);
  static constexpr int kSums = kColumns / 2;  // per consumer thread
  // Of a sum and its total, so many pairs have no registers for the total.
  static constexpr int kTotalsInMemory = kColumns == 128 ? 32 : 0;

  // A plane of y. Along k: (slice, row, 16 k), 32-byte swizzle. Along the rows: (64 rows, k, row),
  // 128-byte swizzle.
  static constexpr int kLineBytes = kYAlongK ? kSliceK * 2 : 128;
  static constexpr int kSliceBytes = kYAlongK ? kColumns * kLineBytes : kSliceK * kLineBytes;
  static constexpr int kPlaneBytes = kBlockK * kColumns * 2;
  static constexpr int kBytesOf64Rows = kBlockK * 128;

  static __device__ int offset_in_plane(int row, int k) {
    if constexpr (kYAlongK) {
      const int segment = k % kSliceK / 8 ^ (row >> 2 & 1);
      return k / kSliceK * kSliceBytes + row * kLineBytes + segment * 16 + k % 8 * 2;
    } else {
      const int segment = row % 64 / 8 ^ k % 8;
      return row / 64 * kBytesOf64Rows + k * kLineBytes + segment * 16 + row % 8 * 2;
    }
  }
  static __device__ device::MatrixDescriptor descriptor(const std::byte* slice) {
    return kYAlongK
               ? device::matrix_descriptor(slice, device::Swizzle::k32Bytes, 16, 8 * kLineBytes)
               : device::matrix_descriptor(slice, device::Swizzle::k128Bytes, kBytesOf64Rows,
                                           8 * kLineBytes);
  }

  // Offset of an element of x in its tile, in floats. Along k: (row, k), else (32 rows, k, row);
  // lines of 128 bytes, in the 128-byte swizzle.
  static __device__ int offset_in_x(int row, int k) {
    if constexpr (kXAlongK) return row * kBlockK + (k ^ (row & 7) << 2);
    return row / 32 * (32 * kBlockK) + k * 32 + (row % 32 ^ (k & 7) << 2);
  }
  // Offset of an element of y that is not split, in floats: (k, row). Rows are permuted so that
  // four k of eight rows are in different banks, where they are loaded and where they are stored.
  static __device__ int offset_in_y(int row, int k) {
    return k * kColumns + (row ^ ((k ^ k >> 2) & 3) << 3);
  }
  // An element of x, four · 4 k and row_8 · 8 rows behind the one with offset `first`, whose row is
  // one of the first eight of 16, and k one of the first four.
  static __device__ const float* in_x(const float* x, int first, int row_8, int four) {
    if constexpr (kXAlongK) return x + (first ^ four * 4) + row_8 * 8 * kBlockK;
    return x + (first ^ row_8 * 8 ^ (four & 1) * 16) + four * 4 * 32;
  }
  // The row of lanes 4·group to 4·group + 3 of a consumer, of eight. Along k even rows come first:
  // so that half a warp loads from all banks.
  static __device__ int row_of_lanes(int group) {
    return kXAlongK ? group % 4 * 2 + group / 4 : group;
  }
  // Loads word i of a slice of a thread's fragment: two elements. `first`: the offset of its first
  // word.
  static __device__ float2 load_pair(const float* x, int first, int slice, int i) {
    const int row = i % 2 * 8, k = slice * kSliceK + i / 2 * 8;
    if constexpr (kXAlongK) {
      return device::load_vector<float2>(x + (first ^ k) + row * kBlockK);
    }
    const float* at = x + k * 32;
    return make_float2(at[first ^ row], at[(first ^ row ^ 4) + 32]);
  }
};

template <typename Config>
struct GemmStorage {
  alignas(1024) std::byte planes[Config::kStages][kPlanes * Config::kPlaneBytes];
  float x[Config::kStagesOfX][kRowsOfX * kBlockK];
  // Tiles of y before the split. A producer warp reads only what it has copied itself.
  float y[Config::kAhead][Config::kColumns * kBlockK];
  // Totals that have no registers, per consumer thread.
  float4 totals[Config::kTotalsInMemory > 0 ? Config::kTotalsInMemory / 4 : 1][kConsumers];
  device::Barrier full[Config::kStages], empty[Config::kStages];
  device::Barrier copied[Config::kAhead][kProducerWarps];  // boxes of each producer warp
  // Of a work tile. Producers are at most kStages k tiles ahead of consumers.
  static constexpr int kWorkTiles = Config::kStages + 1;
  static_assert(kWorkTiles % 2 == 0, "a work tile's slot in range_of_y gives that in decisions");
  // The exchange of a consumer's warp, see store_words: where totals are, if any, until the next
  // sum.
  __device__ float* exchange(int consumer) {
    static_assert(kExchangedWords * sizeof(float) == 32 * sizeof(float4));
    return &totals[0][consumer / 32 * 32].x;
  }
  std::uint32_t range_of_y[kWorkTiles][kProducers];  // per thread: Range::word()
  std::uint32_t range_of_x[kConsumers];
  Distances samples[kProducerWarps];      // of a work tile; the first half is of x
  std::uint32_t largest[kProducerWarps];  // see decision_of
  Decision decisions[2];                  // for a work tile and for the next
  device::Barrier decided[2];
  // Number of the work tile that consumers knew to fail when they released the k tile in a stage,
  // per phase, as producers look at it after they have filled the stage again; and of that whose
  // last k tile it is.
  std::uint32_t fails[2][Config::kStages], last[Config::kStages];
  Level level[2], last_level;    // of the next work tile but one
  unsigned failed[kMostFailed];  // work tiles
  unsigned num_failed;
};

// Kernel parameters beside KernelArgs.
struct GemmParams {
  SplitK split_k;     // tiles of C, and splits of their K
  unsigned work = 0;  // tiles that are not split, and splits
  bool is_transposed = false;
  bool boxes = false;  // TMA can load A and B
  bool float2_c = false;
  // K tiles of a sum that is added to a total: of a tile that is not split, of a split.
  int sum_k_tiles = 0, sum_k_tiles_of_split = 0;
  std::int32_t* decisions = nullptr;  // per tile of C

  // Of a block's work tiles: how many, and which the n-th is.
  __device__ unsigned num_of_block() const {
    return (work - blockIdx.x + gridDim.x - 1) / gridDim.x;
  }
  __device__ static unsigned index_of_block(unsigned i) { return blockIdx.x + i * gridDim.x; }
};

// An element of a tile.
struct At {
  int row, k;
};

// Steps from k tile to k tile in the order of copies: from copy i of `count` in a work tile to the
// next. The first kSampledTiles are sampled: the first tile and, as the last may be partial, the
// last but one.
inline __device__ int k_tile_step(int i, int count) {
  int step = i == count - 2 ? 2 : 1;
  if (i == 1) step = 3 - count;
  return i == 0 ? count - 2 : step;
}

// The groups of y that a producer thread splits: four elements that lie beside each other in
// memory, the first of group i at at(i, thread). A warp has the groups of its box: along k some
// rows of a slice, (row, 16 k); else four k of all rows, (4 k, row). Before the split, boxes lie
// one behind the other.
template <int kColumns, bool kAlongK>
struct GroupsOfY {
  static constexpr int kRows = kColumns, kCount = kRows * kBlockK / 4 / kProducers;
  static constexpr int kWarpsOfSlice = kProducerWarps / kSlices;
  static constexpr int kRowsOfBox = kAlongK ? kRows / kWarpsOfSlice : kRows;
  static constexpr int kKOfBox = kAlongK ? kSliceK : kBlockK / kProducerWarps;

  // The first element of a warp's box.
  static __device__ At box(int warp) {
    return kAlongK ? At{warp % kWarpsOfSlice * kRowsOfBox, warp / kWarpsOfSlice * kSliceK}
                   : At{0, warp * kKOfBox};
  }
  static __device__ At at(int i, int thread) {
    constexpr int kLanes = (kAlongK ? kKOfBox : kRowsOfBox) / 4;
    const At first = box(thread / 32);
    const int group = i * 32 + thread % 32, across = group / kLanes, along = group % kLanes * 4;
    return kAlongK ? At{first.row + across, first.k + along}
                   : At{first.row + along, first.k + across};
  }
  // Of an element, in floats: (slice, row, 16 k) or (k, row).
  static __device__ int offset(int row, int k) {
    if constexpr (kAlongK) return k / kSliceK * kRows * kSliceK + row * kSliceK + k % kSliceK;
    return k * kRows + row;
  }
};

// The words that a producer thread copies: kLines lines, kStep rows apart where rows lie along k,
// else kStep k apart; and of each line kInLine words, 32 apart. The lanes of a warp copy
// neighbouring words. offset(…): in shared memory, from the first word on.
template <bool kAlongK>
struct WordsOfX {
  static constexpr int kRows = kRowsOfX, kStep = 8, kLines = (kAlongK ? kRows : kBlockK) / kStep,
                       kInLine = kAlongK ? 1 : kRows / 32;
  static_assert(kProducerWarps == kStep, "the words of a thread have one swizzle");

  static __device__ At first(int thread) {
    return kAlongK ? At{thread / 32, thread % 32} : At{thread % 32, thread / 32};
  }
  static __device__ int offset(int line, int in_line) {
    return (line * kStep + in_line * kBlockK) * 32;
  }
};
template <int kColumns, bool kAlongK>
struct WordsOfY {
  using Groups = GroupsOfY<kColumns, kAlongK>;
  static constexpr int kRows = kColumns, kStep = kAlongK ? 32 / Groups::kKOfBox : 1,
                       kLines = kAlongK ? Groups::kRowsOfBox / kStep : Groups::kKOfBox,
                       kInLine = kAlongK ? 1 : kRows / 32;

  static __device__ At first(int thread) {
    const At box = Groups::box(thread / 32);
    const int word = thread % 32;
    return kAlongK ? At{box.row + word / Groups::kKOfBox, box.k + word % Groups::kKOfBox}
                   : At{box.row + word, box.k};
  }
  static __device__ int offset(int line, int in_line) { return (line * kInLine + in_line) * 32; }
};

// A producer thread's copies of an operand in words.
template <typename Words, bool kAlongK>
class WordCopy {
 public:
  // Of op(A) or op(B), in the work tile.
  __device__ WordCopy(const KernelArgs& args, const SplitK::WorkTile& work, bool is_a, int thread)
      : ld_(is_a ? args.lda : args.ldb) {
    const At first = Words::first(thread);
    const std::int64_t row = (is_a ? work.row : work.col) + first.row;
    const std::int64_t k = std::int64_t{work.first_k_tile} * kBlockK + first.k;
    rows_ = at_most((is_a ? args.shape.m : args.shape.n) - row, Words::kRows);
    k_ = static_cast<int>(args.shape.k - k);
    next_ = (is_a ? args.a + work.batch_index * args.stride_a
                  : args.b + work.batch_index * args.stride_b) +
            (kAlongK ? row * ld_ + k : k * ld_ + row);
  }

  // Starts copies of a k tile's words, the first one to smem. Zeros outside the operand. The next
  // copy is of `step` k tiles further.
  __device__ void copy(int step, float* smem) {
    const float* gmem = next_;
    const int across = kAlongK ? rows_ : k_, along = kAlongK ? k_ : rows_;
#pragma unroll
    for (int line = 0; line < Words::kLines; ++line) {
#pragma unroll
      for (int i = 0; i < Words::kInLine; ++i) {
        device::copy_async<4>(smem + Words::offset(line, i), gmem + i * 32,
                              line * Words::kStep < across && i * 32 < along);
      }
      gmem = opaque(gmem + Words::kStep * ld_);
    }
    next_ += step * (kAlongK ? kBlockK : kBlockK * ld_);
    k_ -= step * kBlockK;
  }

 private:
  const float* next_;
  std::int64_t ld_;
  int rows_, k_;  // left, from the first word on
};

// The box of a producer warp: extents in the order of memory.
constexpr std::array<unsigned, 3> kBoxOfX = {32, 16, 1};
template <typename Config>
constexpr std::array<unsigned, 3> box_of_y() {
  using Groups = GroupsOfY<Config::kColumns, Config::kYAlongK>;
  constexpr unsigned kRows = Groups::kRowsOfBox, kK = Groups::kKOfBox;
  return Config::kYAlongK ? std::array<unsigned, 3>{kK, kRows, 1}
                          : std::array<unsigned, 3>{kRows, kK, 1};
}

// The producers. Copies of a tile begin kAhead tiles before its y is split, so that they are in
// flight together. kBoxes: TMA copies both operands, otherwise each thread copies words.
template <typename Config, bool kBoxes>
class Producer {
  using WordsX = WordsOfX<Config::kXAlongK>;
  using WordsY = WordsOfY<Config::kColumns, Config::kYAlongK>;
  using OfY = GroupsOfY<Config::kColumns, Config::kYAlongK>;
  using Storage = GemmStorage<Config>;
  static constexpr int kLookEvery = 8;

 public:
  __device__ explicit Producer(Storage& smem)
      : smem_(smem),
        thread_(static_cast<int>(threadIdx.x)),
        warp_(__shfl_sync(~0U, thread_ / 32, 0)) {}

  __device__ void run(const KernelArgs& args, const GemmParams& params,
                      const device::TensorMap& map_x, const device::TensorMap& map_y) {
    num_first_ = params.num_of_block();
    unsigned num_work = num_first_;
    for (unsigned n = 0;; ++n) {
      // Once there is no more work, the last tiles are split.
      const bool has_work = n < num_work;
      const SplitK::WorkTile work =
          params.split_k.work_tile(has_work ? index_of(n) : blockIdx.x, args.workspace);
      const int copies = has_work ? work.k_tiles : 0;
      const auto copy_tiles = [&](auto copy) {
        const int count = has_work ? copies : Config::kAhead;
#pragma unroll 1
        for (int i = 0; i < count; ++i) {
          if (copied_ >= Config::kAhead && !split(args, params)) break;
          __syncwarp();  // all lanes have read the tile in this place
          if (i < copies) copy(i);
          next_copy();
        }
      };
      if constexpr (kBoxes) {
        const bool x_is_a = !params.is_transposed;
        const Origin x(args, work, x_is_a), y(args, work, !x_is_a);
        int k = work.first_k_tile * kBlockK;
        copy_tiles([&](int i) {
          copy_boxes(map_x, map_y, x, y, k);
          k += k_tile_step(i, copies) * kBlockK;
        });
      } else {
        WordCopy<WordsX, Config::kXAlongK> x(args, work, !params.is_transposed, thread_);
        WordCopy<WordsY, Config::kYAlongK> y(args, work, params.is_transposed, thread_);
        const At first = WordsX::first(thread_);
        const int first_of_x = Config::offset_in_x(first.row, first.k);
        copy_tiles([&](int i) {
          const int step = k_tile_step(i, copies);
          x.copy(step, smem_.x[stage_of_x_] + first_of_x);
          y.copy(step, of_warp_in_y() + thread_ % 32);
        });
      }
      if (has_work) continue;
      if (n > num_first_) return;
      device::named_barrier<4>(kNumThreads);  // consumers have ended all work tiles
      num_work += smem_.num_failed;
      if (n == num_work) return;
      --n;
      copied_ = 0;
      // The last kAhead calls of next_copy had no copies.
      stage_of_x_ = (stage_of_x_ + Config::kStages) % Config::kStagesOfX;
      phase_of_y_ ^= 1;
    }
  }

 private:
  __device__ unsigned index_of(unsigned n) const {
    return n < num_first_ ? GemmParams::index_of_block(n) : smem_.failed[n - num_first_];
  }

  // Where a work tile begins in an operand.
  struct Origin {
    int row, matrix;
    __device__ Origin(const KernelArgs& args, const SplitK::WorkTile& work, bool is_a)
        : row(static_cast<int>(is_a ? work.row : work.col)),
          matrix((is_a ? args.stride_a : args.stride_b) == 0 ? 0
                                                             : static_cast<int>(work.batch_index)) {
    }
  };

  // Starts the copies of the warp's boxes, from k on.
  __device__ void copy_boxes(const device::TensorMap& map_x, const device::TensorMap& map_y,
                             const Origin& of_x, const Origin& of_y, int k) {
    constexpr int kOfX = kRowsOfX * kBlockK / kProducerWarps,
                  kOfY = Config::kColumns * kBlockK / kProducerWarps;  // words
    device::Barrier& copied = smem_.copied[stage_of_y_][warp_];
    device::warp_arrive_expect(copied, sizeof(float) * (kOfX + kOfY));
    float* x = &smem_.x[stage_of_x_][warp_ * kOfX];
    if constexpr (Config::kXAlongK) {
      device::warp_copy_tensor(x, map_x, k, of_x.row + warp_ * 16, of_x.matrix, copied);
    } else {
      device::warp_copy_tensor(x, map_x, of_x.row + warp_ / 2 * 32, k + warp_ % 2 * 16, of_x.matrix,
                               copied);
    }
    float* y = &smem_.y[stage_of_y_][warp_ * kOfY];
    const At at = OfY::box(warp_);
    if constexpr (Config::kYAlongK) {
      device::warp_copy_tensor(y, map_y, k + at.k, of_y.row + at.row, of_y.matrix, copied);
    } else {
      device::warp_copy_tensor(y, map_y, of_y.row + at.row, k + at.k, of_y.matrix, copied);
    }
  }

  // The warp's part of the oldest tile in flight. Once it is split, the next tile takes its place.
  __device__ float* of_warp_in_y() { return &smem_.y[stage_of_y_][warp_ * (OfY::kCount * 32 * 4)]; }
  // The thread's group i of it.
  __device__ float* own_of_y(int i) { return of_warp_in_y() + (i * 32 + thread_ % 32) * 4; }

  __device__ void next_copy() {
    if constexpr (!kBoxes) device::copy_async_commit();
    ++copied_;
    if (++stage_of_x_ == Config::kStagesOfX) stage_of_x_ = 0;
    if (++stage_of_y_ == Config::kAhead) {
      stage_of_y_ = 0;
      phase_of_y_ ^= 1;
    }
  }

  // Splits y of the oldest tile in flight, or copies it. Then the consumers may read the tile. Or
  // returns false, if its work tile fails: it ends with the tiles in flight.
  __device__ bool split(const KernelArgs& args, const GemmParams& params) {
    if (until_look_ == 0) {
      if (left_ == 0) {
        begin_work(args, params);
      } else if (fails()) {
        until_look_ = Config::kAhead;
        left_ = 0;
        return false;
      }
      look_later();
    }
    if (arrived_ > 0) {
      --arrived_;
    } else if constexpr (kBoxes) {
      device::barrier_wait(smem_.copied[stage_of_y_][warp_], phase_of_y_);
    } else {
      device::copy_async_wait<Config::kAhead - 1>();
      __syncwarp();  // the words of all lanes have arrived
    }
    pipeline_.producer_acquire(smem_.empty);
    std::byte* stage = smem_.planes[pipeline_.stage];
    if (path_ == Path::kThree) {
      store_halves(stage);
    } else if (path_ == Path::kSix) {
      store_planes(stage);
    } else {
      copy_y(reinterpret_cast<float*>(stage));
    }
    if (--until_look_ == 0 && left_ == 0) end_work();
    device::fence_async_proxy();
    device::barrier_arrive(smem_.full[pipeline_.stage]);
    pipeline_.advance();
    return true;
  }

  // Whether more of the work tile would be copied, but consumers have found that it fails: what
  // they noted when they released the stage that was acquired last. Looked up every kLookEvery k
  // tiles.
  __device__ bool fails() const {
    const bool wraps = pipeline_.stage == 0;
    const int stage = (wraps ? Config::kStages : pipeline_.stage) - 1;
    return left_ > Config::kAhead &&
           smem_.fails[pipeline_.phase ^ (wraps ? 0U : 1U)][stage] == split_;
  }
  __device__ void look_later() {
    until_look_ = left_ < kLookEvery ? left_ : kLookEvery;
    left_ -= until_look_;
  }

  __device__ void store_halves(std::byte* halves) {
    float4 all[OfY::kCount];  // loaded before the first store, behind which no load may go
#pragma unroll
    for (int i = 0; i < OfY::kCount; ++i) all[i] = device::load_vector<float4>(own_of_y(i));
#pragma unroll
    for (int i = 0; i < OfY::kCount; ++i) {
      const float4& v = all[i];
      const HalfSplit low(v.x * scale_, v.y * scale_), high(v.z * scale_, v.w * scale_);
      const At at = OfY::at(i, thread_);
      std::byte* to = halves + Config::offset_in_plane(at.row, at.k);
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        device::store_vector(reinterpret_cast<float*>(to + half * Config::kPlaneBytes),
                             make_float2(float_of(low.half[half]), float_of(high.half[half])));
      }
    }
  }

  __device__ void store_planes(std::byte* planes) {
#pragma unroll
    for (int i = 0; i < OfY::kCount; ++i) {
      const auto v = device::load_vector<float4>(own_of_y(i));
      const Split low(v.x, v.y), high(v.z, v.w);
      range_.add(v.x, v.y, low);
      range_.add(v.z, v.w, high);
      const At at = OfY::at(i, thread_);
      std::byte* to = planes + Config::offset_in_plane(at.row, at.k);
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) {
        device::store_vector(reinterpret_cast<float*>(to + p * Config::kPlaneBytes),
                             make_float2(float_of(low.plane[p]), float_of(high.plane[p])));
      }
    }
  }

  __device__ void copy_y(float* y) {
#pragma unroll
    for (int i = 0; i < OfY::kCount; ++i) {
      const At at = OfY::at(i, thread_);
      const auto v = device::load_vector<float4>(own_of_y(i));
      if constexpr (Config::kYAlongK) {
        y[Config::offset_in_y(at.row, at.k)] = v.x;
        y[Config::offset_in_y(at.row, at.k + 1)] = v.y;
        y[Config::offset_in_y(at.row, at.k + 2)] = v.z;
        y[Config::offset_in_y(at.row, at.k + 3)] = v.w;
      } else {
        device::store_vector(y + Config::offset_in_y(at.row, at.k), v);
      }
    }
  }

  // The next work tile to split: decides. Its first tiles are those in flight.
  __device__ void begin_work(const KernelArgs& args, const GemmParams& params) {
    const bool is_again = split_ >= num_first_;
    const unsigned index = index_of(split_++);
    const SplitK::WorkTile work = params.split_k.work_tile(index, args.workspace);
    left_ = work.k_tiles;
    Decision decision{.path = Path::kFp64};
    if (!is_again) decision = sample(args, params, work);
    path_ = decision.path;
    scale_ = decision.scale_y;
    if (thread_ == 0) {
      smem_.decisions[slot_ & 1] = decision;
      device::barrier_arrive(smem_.decided[slot_ & 1]);
      if (work.first_k_tile == 0) {
        params.decisions[params.split_k.tile_of(index)] = static_cast<std::int32_t>(path_);
      }
    }
  }

  __device__ Decision sample(const KernelArgs& args, const GemmParams& params,
                             const SplitK::WorkTile& work) {
    if constexpr (kBoxes) {
      for (int i = 0; i < kSampledTiles; ++i) {
        const int stage = stage_of_tile(stage_of_y_, i, Config::kAhead);
        device::barrier_wait(smem_.copied[stage][warp_],
                             phase_of_y_ ^ (stage < stage_of_y_ ? 1U : 0U));
      }
      store_largest();  // while other warps wait for their boxes
    } else {
      device::copy_async_wait<Config::kAhead - kSampledTiles>();
    }
    arrived_ = kSampledTiles;
    device::named_barrier<3>(kProducers);  // those of all warps have arrived
    if constexpr (!kBoxes) store_largest();
    const bool is_x = thread_ < kRowsOfX, is_a = is_x != params.is_transposed;
    const std::int64_t rows = is_a ? args.shape.m - work.row : args.shape.n - work.col;
    // With 64 rows of y two threads share a row, and each samples half of it.
    const int in_operand = thread_ % kRowsOfX;
    const int row = is_x ? in_operand : in_operand % Config::kColumns,
              part = is_x ? 0 : in_operand / Config::kColumns;
    SampledRow sampled;
    if (row < rows) {
      sampled = is_x ? sample_row([&](int i) { return sample_x(row, i); })
                     : sample_row([&](int i) { return sample_y(row, part, i); });
    }
    const Distances distances = of_warp(sampled);
    if (thread_ % 32 == 0) smem_.samples[warp_] = distances;
    device::named_barrier<3>(kProducers);  // all samples are stored
    Distances x, y;
    std::uint32_t largest = 0;
#pragma unroll
    for (int warp = 0; warp < kProducerWarps / 2; ++warp) {
      x.add(smem_.samples[warp]);
      y.add(smem_.samples[kProducerWarps / 2 + warp]);
    }
#pragma unroll
    for (int warp = 0; warp < kProducerWarps; ++warp) {
      largest = larger_of_pairs(largest, smem_.largest[warp]);
    }
    return decision_of(x, y, largest, work.k_tiles, smem_.level[slot_ & 1]);
  }

  // Stores the largest magnitudes of the warp's own boxes of the k tiles that are sampled, or of as
  // many words. One loop for both operands, because instruction fetch takes most of the time.
  __device__ void store_largest() {
    constexpr int kVectors = kRowsOfX * kBlockK / kProducers / 4;
    // With 64 rows of y the sample already has all of y.
    constexpr int kTiles = Config::kColumns == kRowsOfX ? 2 * kSampledTiles : kSampledTiles;
    const int first = (warp_ * kVectors * 32 + thread_ % 32) * 4;
    float of_x = 0.0F, of_y = 0.0F;
#pragma unroll 1
    for (int i = 0; i < kTiles; ++i) {
      const bool is_x = i < kSampledTiles;
      const float* tile =
          is_x ? smem_.x[stage_of_x_in_flight(i)]
               : smem_.y[stage_of_tile(stage_of_y_, i - kSampledTiles, Config::kAhead)];
      float4 most{};
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        const auto v = device::load_vector<float4>(tile + first + j * 32 * 4);
        most = make_float4(std::fmax(most.x, std::fabs(v.x)), std::fmax(most.y, std::fabs(v.y)),
                           std::fmax(most.z, std::fabs(v.z)), std::fmax(most.w, std::fabs(v.w)));
      }
      const float largest = std::fmax(std::fmax(most.x, most.y), std::fmax(most.z, most.w));
      if (is_x) {
        of_x = std::fmax(of_x, largest);
      } else {
        of_y = std::fmax(of_y, largest);
      }
    }
    const std::uint32_t x = __reduce_max_sync(~0U, bits_of(of_x)),
                        y = kTiles > kSampledTiles ? __reduce_max_sync(~0U, bits_of(of_y)) : 0;
    if (thread_ % 32 == 0) smem_.largest[warp_] = (x & 0xFFFF'0000U) | y >> 16;
  }

  // Group i of a row's sample: half of each of the first kSampledTiles k tiles of the work tile, in
  // groups of four k. Rows differ in them, so that all k are in the sample of some.
  __device__ float4 sample_x(int row, int i) const {
    const float* x = smem_.x[stage_of_x_in_flight(i / kGroups)];
    const int k = k_of_group(row, 0, i);
    if constexpr (Config::kXAlongK) {
      return device::load_vector<float4>(x + Config::offset_in_x(row, k));
    }
    return make_float4(x[Config::offset_in_x(row, k)], x[Config::offset_in_x(row, k + 1)],
                       x[Config::offset_in_x(row, k + 2)], x[Config::offset_in_x(row, k + 3)]);
  }
  __device__ float4 sample_y(int row, int part, int i) const {
    const float* y = smem_.y[stage_of_tile(stage_of_y_, i / kGroups, Config::kAhead)] +
                     OfY::offset(row, k_of_group(row, part, i));
    if constexpr (Config::kYAlongK) return device::load_vector<float4>(y);
    constexpr int kNext = Config::kColumns;
    return make_float4(y[0], y[kNext], y[2 * kNext], y[3 * kNext]);
  }
  static constexpr int kGroups = kSampled / 4 / kSampledTiles;  // of a row in a tile
  // The first k of group i of a part of a row, one of two. Without bank conflicts where rows lie
  // along k.
  static __device__ int k_of_group(int row, int part, int i) {
    return ((part * kGroups + i % kGroups) ^ (row >> 1 & 7)) * 4;
  }
  // The stage of x of tile i in flight.
  __device__ int stage_of_x_in_flight(int i) const {
    return stage_of_tile(stage_of_x_ - Config::kAhead + Config::kStagesOfX, i, Config::kStagesOfX);
  }
  // The stage of tile i behind the one in stage `first`, which may be one round further.
  static __device__ int stage_of_tile(int first, int i, int stages) {
    return first + i < stages ? first + i : first + i - stages;
  }

  __device__ void end_work() {
    if (thread_ == 0) smem_.last[pipeline_.stage] = split_;
    smem_.range_of_y[slot_][thread_] = range_.word();
    if (++slot_ == Storage::kWorkTiles) slot_ = 0;
    range_ = {};
  }

  Storage& smem_;
  int thread_, warp_;
  Pipeline<Config::kStages> pipeline_;
  unsigned copied_ = 0;  // tiles
  int arrived_ = 0;      // of those in flight, so many have been waited for
  int stage_of_x_ = 0, stage_of_y_ = 0;
  unsigned phase_of_y_ = 1;  // of `copied` of the oldest tile, once kAhead are in flight
  unsigned num_first_;       // work tiles; further ones are those of them that failed
  unsigned split_ = 0;       // work tiles that have been split, or are: the number of the last
  // Of the last work tile: k tiles until the next look and after it, its place in range_of_y, the
  // decision, y's scale.
  int until_look_ = 0, left_ = 0, slot_ = 0;
  Path path_ = Path::kSix;
  float scale_ = 1.0F;
  Range range_;  // of its y
};

// A consumer thread's fragments of x: per slice and plane, or half, its part of 64×16 elements,
// rows row_of_lanes(t / 4) of the warp's 16 and 8 further, k of t % 4 · 2 and the next, and 8
// further.
template <int kParts>
using Fragments = std::uint32_t[kSlices][kParts][4];

// Calls split(slice, i, first, second) for word i of each slice.
template <typename Config, typename F>
__device__ void for_pairs_of_x(const GemmStorage<Config>& smem, int stage, int consumer, F split) {
  const float* x = smem.x[stage];
  const int first = Config::offset_in_x(
      consumer / 32 * 16 + Config::row_of_lanes(consumer % 32 / 4), consumer % 4 * 2);
#pragma unroll
  for (int slice = 0; slice < kSlices; ++slice) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 v = Config::load_pair(x, first, slice, i);
      split(slice, i, v.x, v.y);
    }
  }
}

// A consumer's main loop.
template <typename Config>
class Consumer {
  static constexpr int kSums = Config::kSums;
  // Totals beyond these are in shared memory.
  static constexpr int kTotalsInRegisters = kSums - Config::kTotalsInMemory;
  static constexpr auto kMajorOfY = Config::kYAlongK ? device::Major::kK : device::Major::kMN;
  using Storage = GemmStorage<Config>;
  using Sums = float[kSums];
  using Totals = float[kTotalsInRegisters];

 public:
  __device__ explicit Consumer(Storage& smem)
      : smem_(smem), consumer_(static_cast<int>(threadIdx.x) - kProducers) {}

  // Of the next work tile.
  __device__ Decision next_decision() {
    device::barrier_wait(smem_.decided[decisions_ & 1], decisions_ >> 1 & 1);
    const Decision decision = smem_.decisions[decisions_ & 1];
    ++decisions_;
    return decision;
  }

  // sums ← the products of a work tile.
  __device__ void multiply_planes(int k_tiles, int sum_k_tiles, float lost, Range& range,
                                  Sums& sums) {
    multiply(
        k_tiles, sum_k_tiles, lost,
        [&](int of_sum) { add_products_of_planes(of_sum, range, sums); }, sums);
  }
  __device__ void multiply_halves(int k_tiles, int sum_k_tiles, float lost, float scale,
                                  Sums& sums) {
    multiply(
        k_tiles, sum_k_tiles, lost,
        [&](int of_sum) { add_products_of_halves(of_sum, scale, sums); }, sums);
  }

  // sums ← the products of a work tile in FP64, rounded once.
  __device__ void multiply_fp64(int k_tiles, Sums& sums) {
    double acc[kSums / 4][4]{};
    const int lane = consumer_ % 32, row = consumer_ / 32 * 16 + Config::row_of_lanes(lane / 4);
    const int first_of_x = Config::offset_in_x(row, lane % 4);
    // Offsets of y at k lane % 4 and rows lane / 4 + 8·i: those of other k and rows differ by a
    // constant.
    int first_of_y[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) first_of_y[i] = Config::offset_in_y(8 * i + lane / 4, lane % 4);
#pragma unroll 1
    for (; k_tiles > 0; --k_tiles) {
      pipeline_.consumer_wait(smem_.full);
      const float* x = smem_.x[stage_of_x_];
      const auto* y = reinterpret_cast<const float*>(smem_.planes[pipeline_.stage]);
#pragma unroll(Config::kColumns == 64 ? kSlices : 1)  // with 128 columns accumulators would spill
      for (int slice = 0; slice < kSlices; ++slice) {
        double of_x[8];
#pragma unroll
        for (int i = 0; i < 8; ++i)
          of_x[i] = *Config::in_x(x, first_of_x, i % 2, slice * 4 + i / 2);
#pragma unroll
        for (int j = 0; j < kSums / 4; ++j) {
          double of_y[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            of_y[i] = y[first_of_y[(j ^ i) & 3] + (slice * kSliceK + 4 * i) * Config::kColumns +
                        j / 4 * 32];
          }
          device::mma_f64(acc[j], of_x, of_y);
        }
      }
      release_tile();
    }
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] = static_cast<float>(acc[i / 4][i % 4]);
  }

  // Ends a work tile. `failed`: on this path.
  __device__ void end_tile(unsigned index, Path path, bool failed) {
    if (consumer_ != 0) return;
    if (failed) {
      smem_.failed[smem_.num_failed++] = index;
      const Level level = path == Path::kThree ? kNoHalves : kOnlyFp64;
      smem_.last_level = level > smem_.last_level ? level : smem_.last_level;
    }
    smem_.level[(decisions_ - 1) & 1] = smem_.last_level;
  }

  // Whether the work tile must be multiplied in FP64: a sum is NaN or Inf, also because halves have
  // overflowed, or so small that products may be missing which planes have lost. The same in all
  // consumers.
  __device__ bool fails(int k, const Range& range, const Sums& sums) {
    const auto& range_of_y = smem_.range_of_y[slot_];
    skip_range();
    const bool may_lose = Range::may_lose(range.word()) || Range::may_lose(range_of_y[consumer_]);
    const bool special = is_special(sums);
    if (!any_of(special || may_lose)) return false;
    smem_.range_of_x[consumer_] = range.word();
    if (any_of(special)) return true;  // and all ranges are stored
    float x = 0.0F, y = 0.0F;
#pragma unroll 1
    for (int thread = 0; thread < kConsumers; ++thread) {
      x = std::fmax(x, Range::largest_of(smem_.range_of_x[thread]));
      y = std::fmax(y, Range::largest_of(range_of_y[thread]));
    }
    const float least = least_safe_sum(x, y, k);
    bool is_small = false;
#pragma unroll
    for (int i = 0; i < kSums; ++i) is_small = is_small || !(std::fabs(sums[i]) >= least);
    return any_of(is_small);
  }

  // To the next work tile's range of y.
  __device__ void skip_range() {
    if (++slot_ == Storage::kWorkTiles) slot_ = 0;
  }

 private:
  // Whether one is NaN or Inf.
  static __device__ bool is_special(const Sums& sums) {
    float special = 0.0F;  // then NaN
#pragma unroll
    for (int i = 0; i < kSums; ++i) special += 0.0F * sums[i];
    return special != special;
  }

  // The same, of one row and one column of each of the thread's: where x or y has overflowed, all
  // sums of a row or of a column are.
  static __device__ bool has_special_line(const Sums& sums) {
    float special[4] = {0.0F * sums[2]};
#pragma unroll
    for (int i = 0; i < kSums; i += 4) {
      special[i / 4 % 2] += 0.0F * sums[i];
      special[2 + i / 4 % 2] += 0.0F * sums[i + 1];
    }
    const float any = (special[0] + special[1]) + (special[2] + special[3]);
    return any != any;
  }

  // Whether a consumer votes for it.
  static __device__ bool any_of(bool vote) {
    const bool any = device::named_barrier_or<2>(kConsumers, vote);
    return __shfl_sync(~0U, any ? 1 : 0, 0) != 0;  // for nvcc: the same in all lanes
  }

  // In two levels: sums of `sum_k_tiles` k tiles, at least two sums, are added to totals.
  // add_products(k_tiles) adds those of the next k tiles to sums. `lost`: how much truncation takes
  // from them, relative to them. After 1, 2, 4 … sums the consumers test whether the work tile
  // fails. Then they skip its other k tiles.
  template <typename AddProducts>
  __device__ void multiply(int k_tiles, int sum_k_tiles, float lost, AddProducts add_products,
                           Sums& sums) {
    static_assert(kLeastKTiles > 2, "so a work tile has two sums or more, and totals");
    Totals totals{};
    for (unsigned border = 1;; ++border) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) sums[i] = 0.0F;
      add_products(k_tiles < sum_k_tiles ? k_tiles : sum_k_tiles);
      k_tiles -= sum_k_tiles;
      if (k_tiles <= 0) break;
      add_to_totals(border == 1, sums, totals);
      const bool is_due = (border & (border - 1)) == 0;
      if (!is_due || !any_of(has_special_line(sums))) continue;
      skip_tiles();
      break;
    }
    add_totals(totals, lost, sums);
  }

  // The work tile fails: tells producers, who end it early.
  __device__ void skip_tiles() {
    for (bool is_last = false; !is_last;) {
      pipeline_.consumer_wait(smem_.full);
      is_last = smem_.last[pipeline_.stage] == decisions_;
      if (consumer_ == 0) smem_.fails[pipeline_.phase][pipeline_.stage] = decisions_;
      release_tile();
    }
  }

  // sums += the products of the next k tiles. Those of a k tile are a run, small products first.
  __device__ void add_products_of_planes(int k_tiles, Range& range, Sums& sums) {
    float acc[kSums]{};
#pragma unroll 1
    for (; k_tiles > 0; --k_tiles) {
      pipeline_.consumer_wait(smem_.full);
      Fragments<kPlanes> x;
      for_pairs_of_x<Config>(smem_, stage_of_x_, consumer_,
                             [&](int slice, int i, float first, float second) {
                               const Split split(first, second);
                               range.add(first, second, split);
#pragma unroll
                               for (int p = 0; p < kPlanes; ++p) x[slice][p][i] = split.plane[p];
                             });
      const auto mma = [&](int slice, int plane_x, int plane_y, bool adds) {
        multiply_parts<kPlanes>(slice, x[slice][plane_x], plane_y, adds, acc);
      };
      device::warpgroup_arrive();
      // idea:begin Bf16x6
#pragma unroll
      for (int slice = 0; slice < kSlices; ++slice) {
        mma(slice, 0, 2, slice > 0);
        mma(slice, 1, 1, true);
        mma(slice, 2, 0, true);
        mma(slice, 0, 1, true);
        mma(slice, 1, 0, true);
      }
#pragma unroll
      for (int slice = 0; slice < kSlices; ++slice) mma(slice, 0, 0, true);
      // idea:end
      device::warpgroup_commit();
      wait_and_add(acc, sums);
      release_tile<kPlanes>(x);
    }
  }

  // The same by halves.
  __device__ void add_products_of_halves(int k_tiles, float scale, Sums& sums) {
    float acc[kSums]{};
#pragma unroll 1
    for (; k_tiles > 0; --k_tiles) {
      pipeline_.consumer_wait(smem_.full);
      Fragments<kHalves> x;
      for_pairs_of_x<Config>(smem_, stage_of_x_, consumer_,
                             [&](int slice, int i, float first, float second) {
                               const HalfSplit split(first * scale, second * scale);
#pragma unroll
                               for (int h = 0; h < kHalves; ++h) x[slice][h][i] = split.half[h];
                             });
      const auto mma = [&](int slice, int half_x, int half_y, bool adds) {
        multiply_parts<kHalves>(slice, x[slice][half_x], half_y, adds, acc);
      };
      device::warpgroup_arrive();
#pragma unroll
      for (int slice = 0; slice < kSlices; ++slice) {
        mma(slice, 0, 1, slice > 0);
        mma(slice, 1, 0, true);
      }
#pragma unroll
      for (int slice = 0; slice < kSlices; ++slice) mma(slice, 0, 0, true);
      device::warpgroup_commit();
      wait_and_add(acc, sums);
      release_tile<kHalves>(x);
    }
  }

  // acc ← a slice of one part of x times one of y, plus acc if `adds`. kParts: planes or halves.
  template <int kParts>
  __device__ void multiply_parts(int slice, const std::uint32_t (&x)[4], int part_y, bool adds,
                                 Sums& acc) {
    const device::MatrixDescriptor y = Config::descriptor(
        smem_.planes[pipeline_.stage] + part_y * Config::kPlaneBytes + slice * Config::kSliceBytes);
    if constexpr (kParts == kPlanes) {
      device::warpgroup_mma_bf16<Config::kColumns, kMajorOfY>(acc, x, y, adds);
    } else {
      device::warpgroup_mma_f16<Config::kColumns, kMajorOfY>(acc, x, y, adds);
    }
  }

  // Adds the accumulators of a run to sums.
  __device__ static void wait_and_add(Sums& acc, Sums& sums) {
    device::warpgroup_wait<0>();
    device::warpgroup_fence_operand(acc);
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] += acc[i];
  }

  // Releases the k tile, whose fragments are `x`.
  template <int kParts>
  __device__ void release_tile(Fragments<kParts>& x) {
    for (auto& slice : x) {
      for (auto& of_part : slice) device::warpgroup_fence_operand(of_part);
    }
    release_tile();
  }
  __device__ void release_tile() {
    __syncwarp();  // all lanes have read the tile before one releases it
    if (consumer_ % 32 == 0) device::barrier_arrive(smem_.empty[pipeline_.stage]);
    pipeline_.advance();
    if (++stage_of_x_ == Config::kStagesOfX) stage_of_x_ = 0;
  }

  // The total of sums[kTotalsInRegisters + i] and of the next three.
  __device__ float4& total_in_memory(int i) { return smem_.totals[i / 4][consumer_]; }

  // totals += sums; totals = sums where these are the first.
  __device__ void add_to_totals(bool are_first, const Sums& sums, Totals& totals) {
#pragma unroll
    for (int i = 0; i < kTotalsInRegisters; ++i) totals[i] += sums[i];
#pragma unroll
    for (int i = 0; i < Config::kTotalsInMemory; i += 4) {
      float4& total = total_in_memory(i);
      const float4 old = are_first ? float4{} : total;
      const float* v = &sums[kTotalsInRegisters + i];
      total = make_float4(old.x + v[0], old.y + v[1], old.z + v[2], old.w + v[3]);
    }
  }

  // sums += totals, and what both have lost.
  __device__ void add_totals(const Totals& totals, float lost, Sums& sums) {
    const auto add = [&](float total, float& sum) {
      sum = std::fmaf(lost, total, std::fmaf(lost, sum, sum)) + total;
    };
#pragma unroll
    for (int i = 0; i < kTotalsInRegisters; ++i) add(totals[i], sums[i]);
#pragma unroll
    for (int i = 0; i < Config::kTotalsInMemory; i += 4) {
      const float4 total = total_in_memory(i);
      float* v = &sums[kTotalsInRegisters + i];
      add(total.x, v[0]);
      add(total.y, v[1]);
      add(total.z, v[2]);
      add(total.w, v[3]);
    }
  }

  Storage& smem_;
  int consumer_;
  Pipeline<Config::kStages> pipeline_;
  int stage_of_x_ = 0;
  int slot_ = 0;            // in range_of_y
  unsigned decisions_ = 0;  // the number of the work tile
};

// Where a work tile's results go: to C, or to a partial sum. `args.shape` becomes what is left of
// it from the tile on.
__device__ inline KernelArgs output_of(KernelArgs args, const SplitK& split_k,
                                       const SplitK::WorkTile& work) {
  if (work.partial != nullptr) {
    args.alpha = 1.0F;
    args.beta = 0.0F;
    args.c = work.partial;
    args.ldc = split_k.block_n;
    args.shape.m = split_k.block_m;
    args.shape.n = split_k.block_n;
  } else {
    args.c += work.batch_index * args.stride_c + work.row * args.ldc + work.col;
    args.shape.m = at_most(args.shape.m - work.row, split_k.block_m);
    args.shape.n = at_most(args.shape.n - work.col, split_k.block_n);
  }
  return args;
}

// Stores a consumer thread's sums. In the accumulator layout of wgmma it has pairs of columns of
// two rows, those of its fragments. `exchange`: the warp's, see store_words.
template <typename Config>
__device__ void store_sums(const KernelArgs& out, bool is_transposed, bool float2_c, int consumer,
                           const float (&sums)[Config::kSums], float* exchange) {
  const int of_warp = consumer / 32 * 16,
            in_row = of_warp + Config::row_of_lanes(consumer % 32 / 4), in_col = consumer % 4 * 2;
  const auto rows = static_cast<int>(is_transposed ? out.shape.n : out.shape.m);
  const auto cols = static_cast<int>(is_transposed ? out.shape.m : out.shape.n) - in_col;
  const std::int64_t next_row = is_transposed ? 1 : out.ldc, next_col = is_transposed ? out.ldc : 1;
  const auto for_pairs = [&](auto store_pair) {
#pragma unroll
    for (int row_8 = 0; row_8 < 2; ++row_8) {
      float* c = out.c + (in_row + 8 * row_8) * next_row + in_col * next_col;
      const int left = in_row + 8 * row_8 < rows ? cols : 0;
#pragma unroll
      for (int at = 0; at < Config::kColumns; at += 8, c += 8 * next_col) {
        if (at < left) store_pair(c, &sums[at / 2 + 2 * row_8], at + 1 < left);
      }
    }
  };
  if (is_transposed) {
    for_pairs([&](float* c, const float* pair, bool both) {
      store(out, c, pair[0]);
      if (both) store(out, c + next_col, pair[1]);
    });
  } else if (!float2_c) {
    const int lane = static_cast<int>(opaque(static_cast<unsigned>(consumer) % 32));
#pragma unroll
    for (int row_8 = 0; row_8 < 2; ++row_8) {
      const int first = of_warp + 8 * row_8;
#pragma unroll
      for (int at = 0; at < Config::kColumns; at += 16) {
        const float* v = &sums[at / 2 + 2 * row_8];
        store_words(out, out.c + first * out.ldc + at, rows - first,
                    static_cast<int>(out.shape.n) - at, lane, Config::row_of_lanes(lane / 4),
                    make_float2(v[0], v[1]), make_float2(v[4], v[5]), exchange);
      }
    }
  } else if (out.beta == 0.0F) {
    for_pairs([&](float* c, const float* pair, bool) {
      device::store_vector(c, make_float2(out.alpha * pair[0], out.alpha * pair[1]));
    });
  } else {
    for_pairs([&](float* c, const float* pair, bool) { store_float2(out, c, pair[0], pair[1]); });
  }
}

template <typename Config>
__device__ void consume(const KernelArgs& args, const GemmParams& params,
                        GemmStorage<Config>& smem) {
  Consumer<Config> consumer(smem);
  const int thread = static_cast<int>(threadIdx.x) - kProducers;
  const unsigned num_first = params.num_of_block();
  unsigned num_work = num_first;
  // Shuffles tell nvcc that all lanes have the same.
  for (unsigned n = 0;; ++n) {
    if (n == num_work) {
      if (n > num_first) return;
      device::named_barrier<4>(kNumThreads);  // what has failed is stored
      num_work += __shfl_sync(~0U, smem.num_failed, 0);
      if (n == num_work) return;
    }
    const unsigned index = n < num_first ? GemmParams::index_of_block(n)
                                         : __shfl_sync(~0U, smem.failed[n - num_first], 0);
    const SplitK::WorkTile work = params.split_k.work_tile(index, args.workspace);
    const Decision decision = consumer.next_decision();
    const int of_sum =
        index < params.split_k.whole ? params.sum_k_tiles : params.sum_k_tiles_of_split;
    float sums[Config::kSums];
    Range range;
    if (decision.path == Path::kThree) {
      consumer.multiply_halves(work.k_tiles, of_sum, decision.lost, decision.scale_x, sums);
#pragma unroll
      for (float& sum : sums) sum *= decision.unscale;
    } else if (decision.path == Path::kSix) {
      consumer.multiply_planes(work.k_tiles, of_sum, decision.lost, range, sums);
    } else {
      consumer.multiply_fp64(work.k_tiles, sums);
    }
    const KernelArgs out = output_of(args, params.split_k, work);
    const std::int64_t first_k = std::int64_t{work.first_k_tile} * kBlockK;
    const int k = at_most(args.shape.k - first_k, work.k_tiles * kBlockK);
    if (decision.path == Path::kFp64) consumer.skip_range();
    const bool fails = decision.path != Path::kFp64 && consumer.fails(k, range, sums);
    if (!fails) {
      store_sums<Config>(out, params.is_transposed, params.float2_c || work.partial != nullptr,
                         thread, sums, smem.exchange(thread));
    }
    consumer.end_tile(index, decision.path, fails);
  }
}

template <typename Config>
__global__ void __launch_bounds__(kNumThreads, 1)
    multiply(KernelArgs args, GemmParams params, const __grid_constant__ device::TensorMap map_x,
             const __grid_constant__ device::TensorMap map_y) {
  auto& smem = device::shared_storage<GemmStorage<Config>>();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Config::kStages; ++stage) {
      device::barrier_init(smem.full[stage], kProducers);
      device::barrier_init(smem.empty[stage], kConsumers / 32);
    }
    for (auto& of_tile : smem.copied) {
      for (device::Barrier& copied : of_tile) device::barrier_init(copied, 1);
    }
    for (device::Barrier& decided : smem.decided) device::barrier_init(decided, 1);
    for (int stage = 0; stage < Config::kStages; ++stage) {
      smem.fails[0][stage] = smem.fails[1][stage] = smem.last[stage] = 0;
    }
    for (Level& level : smem.level) level = kAllPaths;
    smem.last_level = kAllPaths;
    smem.num_failed = 0;
    device::barrier_init_fence();
    if (params.boxes) {
      device::prefetch_tensor(map_x);
      device::prefetch_tensor(map_y);
    }
  }
  device::wait_for_previous_kernel();
  device::launch_dependents();
  __syncthreads();  // the mbarriers are initialised
  if (threadIdx.x < kProducers) {
    device::reg_dealloc<kProducerRegisters>();
    if (params.boxes) {
      Producer<Config, true>(smem).run(args, params, map_x, map_y);
    } else {
      Producer<Config, false>(smem).run(args, params, map_x, map_y);
    }
  } else {
    device::reg_alloc<kConsumerRegisters>();
    consume<Config>(args, params, smem);
  }
}

}  // namespace tilegate::bf16x6
