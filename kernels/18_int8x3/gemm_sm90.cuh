// GEMM kernel for compute capability 9.0. A producer warp issues bulk copies of digits into a ring
// of shared-memory stages. Two consumer warpgroups run wgmma on them: both on one tile, 64 rows
// each, or in turn (ping-pong, below). A level is the sum of the digit products of equal weight,
// those of planes i of A and j of B with the same i + j; it has an int32 accumulator of its own.
//
// The consumers fold the levels and store the tile to C. Not so with six products in pairs, which
// are clusters of two blocks that share rows of A: there the consumers leave the folded tile in
// shared memory and start the next, and three store warps beside the producer scale it and store it
// to C. The consumers store only the last tile of a block there.
//
// Ping-pong (CUTLASS: KernelTmaWarpSpecializedPingpong), six products: each consumer warpgroup has
// every second tile of the block. While one folds and stores its tile, the other multiplies.
//
// Blocks are persistent; stream-K splits the last tiles along K. With split-K each block computes
// one part of a tile.
//
// In order: scheduler of split-K, one stage of the main loop, partial sums, producer, consumers,
// store warps, kernel; the kernel add_partials of split-K.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <tilegate/common/fp64_fallback.cuh>
#include <tilegate/common/opaque.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/common/stream_k_scheduler.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/flag.cuh>
#include <tilegate/device/warp_mma.cuh>
#include <tilegate/stage.hpp>

#include "decision.cuh"
#include "digits.cuh"
#include "epilogue.cuh"
#include "layout.cuh"

namespace tilegate::int8x3 {

// Split-K: a block computes one part of one tile, and stores partial sums. The parts of a tile are
// neighbours.
class SplitKScheduler {
 public:
  // `count` tiles of `chunks` chunks each, in `parts` parts.
  __device__ SplitKScheduler(const TileScheduler& tiles, unsigned count, const std::int64_t& chunks,
                             unsigned parts)
      : tiles_(tiles), count_(count), parts_(parts), chunks_(static_cast<unsigned>(chunks)) {}

  __device__ bool get(unsigned number, Work& work) const {
    const unsigned tile = blockIdx.x / parts_, part = blockIdx.x % parts_;
    if (number > 0 || tile >= count_) return false;
    const unsigned begin = chunks_ * part / parts_, end = chunks_ * (part + 1) / parts_;
    work = {.tile = tiles_.tile(count_ - 1 - tile),
            .first_chunk = begin,
            .chunks = end - begin,
            .stores_tile = 0,
            .is_last = 1};
    return true;
  }

 private:
  const TileScheduler& tiles_;
  unsigned count_, parts_, chunks_;
};

// The scheduler of a kernel, and the last argument of its constructor.
template <unsigned kCluster, Decomposition kDecomposition>
using SchedulerOf =
    std::conditional_t<kDecomposition == Decomposition::kSplitK, SplitKScheduler,
                       Scheduler<kCluster, kDecomposition == Decomposition::kStreamK>>;
template <Decomposition kDecomposition>
__device__ const auto& parts_of(const GemmParams& params) {
  if constexpr (kDecomposition == Decomposition::kSplitK) {
    return params.parts_per_tile;
  } else {
    return params.stream_k;
  }
}

// Main loop: one stage

// wgmma descriptor of 8·n rows of a plane in a stage.
__device__ inline device::MatrixDescriptor plane_descriptor(const std::byte* rows, int plane) {
  return device::matrix_descriptor(rows + plane * kNextPlane, device::Swizzle::k32Bytes, kSegment,
                                   kNextRows);
}

// The same of tails.
__device__ inline device::MatrixDescriptor tails_descriptor(const std::byte* rows) {
  return device::matrix_descriptor(rows, device::Swizzle::k32Bytes, kSegment, kNextTailRows);
}

// acc += the digit products of a stage, for 64 rows of a warpgroup and the tile's columns. On
// return, the wgmma of the previous stage are complete.
//
// Tiles of 64 columns, and ping-pong's of 64 rows, take this one, with the digits of A in shared
// memory: six products in the configurations 128x64, 128x64splitk and 64x128pingpong, eight and ten
// products in all. Tiles of 128×128, six products in the other configurations, take the
// specialization below.
template <typename T, bool kInRegisters = T::kBlockN == 128 && !T::kIsPingpong>
struct StageMma {
  __device__ void mma_stage(const std::byte* stage, int warpgroup,
                            std::int32_t (&acc)[T::kLevels][T::kBlockN / 2]) {
    const std::byte* a = stage + T::first_row(warpgroup) * kRowBytes;
    const std::byte* b = stage + T::kBytesA;
    device::warpgroup_arrive();
    // idea:begin Int8x3
#pragma unroll
    for (int level = 0; level < T::kLevels; ++level) {
#pragma unroll
      for (int plane = 0; plane < kPlanes; ++plane) {
        const int other = level - plane;
        if (other < 0 || other >= kPlanes) continue;
        device::warpgroup_mma_s8<T::kBlockN>(acc[level], plane_descriptor(a, plane),
                                             plane_descriptor(b, other));
      }
    }
    // idea:end
    if constexpr (T::kHasTails) {
      const std::byte* tails_a = stage + T::kTailsA + warpgroup * (kTailChunkBytes / 2);
      device::warpgroup_mma_s8<T::kBlockN>(acc[3], plane_descriptor(a, 0),
                                           tails_descriptor(stage + T::kTailsB));
      device::warpgroup_mma_s8<T::kBlockN>(acc[3], tails_descriptor(tails_a),
                                           plane_descriptor(b, 0));
    }
    device::warpgroup_commit();
    device::warpgroup_wait<1>();
  }
};

// The same for tiles of 128×128, with the digits of A in registers: shared memory is read once,
// not for each product. On an NVIDIA H200 these tiles take 1 % less time, tiles of 64 columns would
// take 4 % more (EXPERIMENTS.md). Each plane of A is one wgmma group. Before its registers are
// overwritten, the group that read them in the previous stage is complete.
template <typename T>
struct StageMma<T, true> {
  std::uint32_t digits[kPlanes][4]{};

  __device__ void mma_stage(const std::byte* stage, int warpgroup,
                            std::int32_t (&acc)[T::kLevels][T::kBlockN / 2]) {
    const std::byte* a = stage + T::first_row(warpgroup) * kRowBytes;
    const std::byte* b = stage + T::kBytesA;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
    const std::byte* row = a + offset_in_chunk(warp * 16 + lane % 16, lane / 16);
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane) {
      device::warpgroup_wait<kPlanes - 1>();
      device::warpgroup_fence_operand(digits[plane]);
      device::load_matrices(digits[plane], row + plane * kNextPlane);
      device::warpgroup_arrive();
#pragma unroll
      for (int other = 0; other < kPlanes && plane + other < T::kLevels; ++other) {
        device::warpgroup_mma_s8<T::kBlockN>(acc[plane + other], digits[plane],
                                             plane_descriptor(b, other));
      }
      device::warpgroup_commit();
    }
    // All lanes have read A's digits before one releases the stage. That follows the next mma_stage
    // or, after the last one, the wait for all wgmma: these have read B then.
    __syncwarp();
  }
};

// Stream-K fix-up: a block without the last chunk of a tile stores its partial sums in the
// workspace and raises its flag. The block with the last chunk loads them through the ring, like
// chunks, and adds them. They are integers, so that the bits do not depend on the split of K.

// Partial sums of a block, in the layout (vector, thread, 4 words).
template <typename T>
constexpr int kPartialVectors = T::kLevels * T::kBlockN / 2 / 4;  // per thread
template <typename T>
constexpr int kPartialBytes = kPartialVectors<T> * kConsumers * 16;

// Vectors of each thread in a stage of the ring.
template <typename T>
constexpr int kVectorsPerStage = T::kStageBytes / (16 * kConsumers);

// Consumers. `thread`: index among both warpgroups.
template <typename T>
__device__ void store_partial(const GemmParams& params, int thread,
                              const std::int32_t (&acc)[T::kLevels][T::kBlockN / 2],
                              GemmStorage& smem) {
  constexpr int kInLevel = T::kBlockN / 2 / 4;  // vectors
  const std::size_t at = std::size_t{blockIdx.x} * kPartialBytes<T>;
  float* to = reinterpret_cast<float*>(params.partials + at) + 4 * thread;
#pragma unroll
  for (int i = 0; i < kPartialVectors<T>; ++i) {
    const std::int32_t* sum = acc[i / kInLevel] + i % kInLevel * 4;
    const auto word = [&](int j) { return float_of(static_cast<std::uint32_t>(sum[j])); };
    device::store_vector(to + i * 4 * kConsumers, make_float4(word(0), word(1), word(2), word(3)));
  }
  warp_arrive(smem.partial_ready);
}

// Store warp, one thread: raises the flag, so that consumers need not wait for their stores.
__device__ inline void signal_partial(const GemmParams& params, GemmStorage& smem) {
  device::barrier_wait(smem.partial_ready, 0);
  device::raise_flag(params.flags + blockIdx.x);
}

// Producer: loads the partial sums of block `block` into stages.
template <typename T>
__device__ void load_partial(const GemmParams& params, unsigned block,
                             Pipeline<T::kStages>& pipeline, GemmStorage& smem) {
  static_assert(kPartialBytes<T> % T::kStageBytes == 0, "whole stages");
  device::wait_for_flag(params.flags + block);
  const std::byte* from = params.partials + std::size_t{block} * kPartialBytes<T>;
  for (int i = 0; i < kPartialBytes<T>; i += T::kStageBytes) {
    pipeline.producer_acquire(smem.empty);
    device::Barrier& full = pipeline.producer_expect(smem.full, T::kStageBytes);
    device::copy_bulk(smem.ring + pipeline.stage * T::kStageBytes, from + i, T::kStageBytes, full);
    pipeline.advance();
  }
}

// Consumers: acc += partial sums. `release_stage(stage)`: consumer_release of the warp.
template <typename T, typename Release>
__device__ void accumulate_partial(int thread, Pipeline<T::kStages>& pipeline, GemmStorage& smem,
                                   std::int32_t (&acc)[T::kLevels][T::kBlockN / 2],
                                   Release release_stage) {
  constexpr int kInLevel = T::kBlockN / 2 / 4;
#pragma unroll
  for (int first = 0; first < kPartialVectors<T>; first += kVectorsPerStage<T>) {
    pipeline.consumer_wait(smem.full);
    const device::SharedAddress from =
        device::shared_address(smem.ring + pipeline.stage * T::kStageBytes) + 16 * thread;
#pragma unroll
    for (int i = 0; i < kVectorsPerStage<T>; ++i) {
      float v[4];
      device::ordered::load_shared(v, from + i * 16 * kConsumers);
      std::int32_t* sum = acc[(first + i) / kInLevel] + (first + i) % kInLevel * 4;
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[j] += static_cast<std::int32_t>(bits_of(v[j]));
    }
    __syncwarp();  // all lanes have read before one releases the stage
    release_stage(pipeline.stage);
    pipeline.advance();
  }
}

// Producer, one thread. Blocks of a cluster share rows of A: each loads 1/kCluster of them and
// multicasts it.
template <typename T, unsigned kCluster, Decomposition kDecomposition>
__device__ void produce(const GemmParams& params, const TileScheduler& tiles, unsigned count,
                        GemmStorage& smem) {
  constexpr unsigned kShare = T::kBytesA / kCluster;  // bytes of A per block
  constexpr unsigned kTailShare = kTailChunkBytes / kCluster;
  const unsigned rank = kCluster > 1 ? device::cluster_rank() : 0;
  const unsigned first = rank * kShare;
  // Multicasts a block's share of A.
  const auto copy_share = [](std::byte* to, const std::byte* from, unsigned bytes,
                             device::Barrier& full) {
    if constexpr (kCluster == 1) {
      device::copy_bulk(to, from, bytes, full);
    } else {
      device::copy_bulk_multicast(to, from, bytes, full, (1U << kCluster) - 1);
    }
  };
  Pipeline<T::kStages> pipeline;
  const SchedulerOf<kCluster, kDecomposition> scheduler(tiles, count, params.chunks,
                                                        parts_of<kDecomposition>(params));
  Work work;
  for (unsigned number = 0; scheduler.get(number, work); ++number) {
    const TileCoord& tile = work.tile;
    const std::int64_t first_chunk = params.first_chunk + work.first_chunk;
    const std::int64_t row = std::int64_t{tile.row} * T::kBlockM,
                       col = std::int64_t{tile.col} * T::kBlockN;
    const std::int64_t chunk_a = params.a.chunk(tile.batch_index, row / kChunkRows, first_chunk);
    const std::int64_t chunk_b =
        params.b.chunk(tile.batch_index, params.b.inside(col / kChunkRows), first_chunk);
    const std::byte* a = params.planes_a + chunk_a + row % kChunkRows * kRowBytes + first;
    const std::byte* b = params.planes_b + chunk_b + col % kChunkRows * kRowBytes;
    const std::byte *tails_a = nullptr, *tails_b = nullptr;
    if constexpr (T::kHasTails) {
      tails_a = params.tails_a + chunk_a / kPlanes + rank * kTailShare;
      tails_b = params.tails_b + chunk_b / kPlanes + col % kChunkRows * kTailRowBytes;
    }
    for (unsigned chunk = 0; chunk < work.chunks; ++chunk) {
      pipeline.producer_acquire(smem.empty);
      std::byte* stage = smem.ring + pipeline.stage * T::kStageBytes;
      device::Barrier& full = pipeline.producer_expect(smem.full, T::kStageBytes);
      copy_share(stage + first, a, kShare, full);
      device::copy_bulk(stage + T::kBytesA, b, T::kBytesB, full);
      a += kChunkBytes;
      b += kChunkBytes;
      if constexpr (T::kHasTails) {
        copy_share(stage + T::kTailsA + rank * kTailShare, tails_a, kTailShare, full);
        device::copy_bulk(stage + T::kTailsB, tails_b, T::kBlockN * kTailRowBytes, full);
        tails_a += kTailChunkBytes;
        tails_b += kTailChunkBytes;
      }
      pipeline.advance();
    }
    if constexpr (kDecomposition == Decomposition::kStreamK) {
      for (unsigned i = 1; i <= work.num_partials; ++i) {
        load_partial<T>(params, blockIdx.x - i * kCluster, pipeline, smem);
      }
    }
  }
}

// Consumer release: tells every producer of the cluster that this warp is done with the stage.
template <typename T, unsigned kCluster>
__device__ void consumer_release(device::Barrier& empty, int thread) {
  const auto lane = static_cast<unsigned>(thread % 32);
  if constexpr (T::kIsPingpong) {  // as if for two warps: `empty` expects both warpgroups
    if (lane < 2) device::barrier_arrive(empty);
  } else if constexpr (kCluster == 1) {
    if (lane == 0) device::barrier_arrive(empty);
  } else {
    if (lane < kCluster) device::barrier_arrive_remote(empty, lane);
  }
}

// Consumer warpgroups: main loop, fix-up, epilogue.
template <typename T, unsigned kCluster, Decomposition kDecomposition>
__device__ void consume(const KernelArgs& args, const GemmParams& params,
                        const TileScheduler& tiles, unsigned count, GemmStorage& smem) {
  constexpr bool kStreamK = kDecomposition == Decomposition::kStreamK;
  static_assert(!T::kIsPingpong ||
                (kCluster == 1 && kDecomposition == Decomposition::kDataParallel));
  Pipeline<T::kStages> pipeline;
  const SchedulerOf<kCluster, kDecomposition> scheduler(tiles, count, params.chunks,
                                                        parts_of<kDecomposition>(params));
  Work work;
  for (unsigned number = 0; scheduler.get(number, work); ++number) {
    const unsigned thread_idx = kStreamK ? opaque(threadIdx.x) : threadIdx.x,
                   warp = thread_idx / 32;
    const int warpgroup = static_cast<int>(thread_idx) / kWarpgroup - 1,
              thread = static_cast<int>(thread_idx) % kWarpgroup;
    if constexpr (T::kIsPingpong) {
      if (static_cast<int>(number % 2) != warpgroup) {
        pipeline.skip(work.chunks);
        continue;
      }
      // Until the other warpgroup has waited for all stages of the previous tile. A wait further
      // ahead might take an earlier phase of a stage, of the same parity, for this tile's.
      if (number > 0) device::barrier_wait(smem.turn[warpgroup], (number - 1) / 2 % 2);
    }
    if constexpr (kStreamK) {  // shared memory holds the work during the main loop
      __syncwarp();            // all lanes have read the previous work
      if (thread % 32 == 0) smem.work[warp] = work;
    }
    TileEpilogue<T> epilogue(params, work.tile, warpgroup, thread);
    std::int32_t acc[T::kLevels][T::kBlockN / 2]{};
    StageMma<T> stage_mma;
    int previous_stage = -1;
    for (unsigned left = work.chunks; left > 0; --left) {
      pipeline.consumer_wait(smem.full);
      const std::byte* stage = smem.ring + pipeline.stage * T::kStageBytes;
      stage_mma.mma_stage(stage, warpgroup, acc);
      if (previous_stage >= 0) consumer_release<T, kCluster>(smem.empty[previous_stage], thread);
      previous_stage = pipeline.stage;
      pipeline.advance();
    }
    if constexpr (T::kIsPingpong) warp_arrive(smem.turn[1 - warpgroup]);
    device::warpgroup_wait<0>();
    consumer_release<T, kCluster>(smem.empty[previous_stage], thread);
#pragma unroll
    for (int level = 0; level < T::kLevels; ++level) device::warpgroup_fence_operand(acc[level]);
    if constexpr (kDecomposition == Decomposition::kSplitK) {
      store_partial<T>(params, static_cast<int>(thread_idx) - kWarpgroup, acc, smem);
      continue;
    }
    if constexpr (kStreamK) {
      __syncwarp();  // the work is stored before any lane reads it
      work = smem.work[warp];
      const int consumer_thread = static_cast<int>(thread_idx) - kWarpgroup;
      if (work.stores_tile == 0) {
        store_partial<T>(params, consumer_thread, acc, smem);
        continue;
      }
      for (unsigned i = 0; i < work.num_partials; ++i) {
        accumulate_partial<T>(consumer_thread, pipeline, smem, acc, [&](int stage) {
          consumer_release<T, kCluster>(smem.empty[stage], thread);
        });
      }
    }
    epilogue.store(args, params, work.tile, work.index, work.is_last != 0, acc, smem);
  }
}

// Store warps: store staged tiles to C, and raise the flag when the block's partial sums are ready.
template <typename T, unsigned kCluster, Decomposition kDecomposition>
__device__ void store_tiles(const KernelArgs& args, const GemmParams& params,
                            const TileScheduler& tiles, unsigned count, int thread,
                            GemmStorage& smem) {
  const SchedulerOf<kCluster, kDecomposition> scheduler(tiles, count, params.chunks,
                                                        parts_of<kDecomposition>(params));
  Work work;
  for (unsigned number = 0; scheduler.get(number, work); ++number) {
    if (work.stores_tile == 0) {
      if (thread == 0) signal_partial(params, smem);
    } else if constexpr (T::kIsStaged) {
      store_staged_tile<T>(args, params, work.tile, work.index, work.is_last != 0, thread, smem);
    }
  }
}

template <typename Six, unsigned kCluster, Decomposition kDecomposition>
__global__ void __launch_bounds__(kNumThreads, 1) multiply(KernelArgs args, GemmParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  // Setup: barriers, then the decision.
  auto& smem = device::shared_storage<GemmStorage>();
  if (threadIdx.x == 0) {
    init_pipeline(smem.full, smem.empty, kCluster * kConsumers / 32);  // each warp releases stages
    smem.fp64_barriers.init();
    device::barrier_init(smem.steps_ready, kStoreWarps);
    device::barrier_init(smem.results_ready, kConsumers / 32);
    device::barrier_init(smem.is_stored, kStoreWarps);
    device::barrier_init(smem.partial_ready, kConsumers / 32);
    for (device::Barrier& turn : smem.turn) device::barrier_init(turn, kWarpgroup / 32);
    device::barrier_init_fence();
  }
  device::wait_for_previous_kernel();
  device::launch_dependents();
  const auto sync = [] {
    if constexpr (kCluster == 1) {
      __syncthreads();
    } else {
      device::cluster_sync();
    }
  };
  // Where ten products are allowed, `refine` has decided. If it decided for FP64, and has set
  // outliers apart, this kernel decides again, without them.
  Path path = params.allows_ten ? *params.refined : Path::kFp64;
  const bool decides_without_outliers =
      params.allows_outliers && path == Path::kFp64 && *params.are_apart != 0;
  const bool decides_first = !params.allows_ten;  // and `path` has no meaning yet
  if (decides_without_outliers || decides_first) {
    path = decide_path<kNumThreads>(params, decides_without_outliers, smem.sums, sync);
  } else {
    sync();  // the barriers are initialized
  }
  const auto matrices = static_cast<unsigned>(args.batch);
  const auto tiles_of_six = [&] { return matrices * params.six.count; };
  const auto tiles_of_eight = [&] { return matrices * params.eight.count; };  // and of ten
  constexpr bool kStreamK = kDecomposition == Decomposition::kStreamK;
  // Of eight and of ten products: stream-K is for six alone.
  constexpr auto kOfEightOrTen = kStreamK ? Decomposition::kDataParallel : kDecomposition;
  if (threadIdx.x < kWarpgroup) {  // producer warp and store warps
    device::reg_dealloc<kProducerRegisters>();
    if (threadIdx.x == 0 && blockIdx.x == 0) {
      *params.decision = path;
      if (params.allows_outliers) {
        *params.without_outliers = decides_without_outliers && path != Path::kFp64 ? 1 : 0;
      }
    }
    if (path == Path::kFp64) {
      if (params.first_chunk == 0) {  // see the consumers
        run_fp64_producer<kCluster>(args, params.fp64, static_cast<int>(threadIdx.x), smem.fp64,
                                    smem.fp64_barriers);
      }
    } else if (threadIdx.x == 0) {
      if (path == Path::kSix) {
        produce<Six, kCluster, kDecomposition>(params, params.six, tiles_of_six(), smem);
      } else if (path == Path::kEight) {
        produce<Eight, kCluster, kOfEightOrTen>(params, params.eight, tiles_of_eight(), smem);
      } else if (path == Path::kTen) {
        produce<Ten, kCluster, kOfEightOrTen>(params, params.eight, tiles_of_eight(), smem);
      }
    } else if ((Six::kIsStaged || kStreamK) && threadIdx.x >= 32 && path == Path::kSix) {
      store_tiles<Six, kCluster, kDecomposition>(args, params, params.six, tiles_of_six(),
                                                 static_cast<int>(threadIdx.x) - 32, smem);
    }
  } else {  // consumer warpgroups
    device::reg_alloc<kConsumerRegisters>();
    // ptxas places the code of the last branch first. Code near the kernel's start was measured to
    // be faster, so that the most frequent decisions come last (EXPERIMENTS.md, the order of
    // branches).
    if (path == Path::kTen) {
      consume<Ten, kCluster, kOfEightOrTen>(args, params, params.eight, tiles_of_eight(), smem);
    } else if (path == Path::kFp64) {
      // All of K in the first of several launches; the later ones have nothing to do.
      if (params.first_chunk == 0) {
        run_fp64_consumers<kCluster>(args, params.fp64, static_cast<int>(threadIdx.x) - kWarpgroup,
                                     smem.fp64, smem.fp64_barriers);
      }
    } else if (path == Path::kEight) {
      consume<Eight, kCluster, kOfEightOrTen>(args, params, params.eight, tiles_of_eight(), smem);
    } else {
      consume<Six, kCluster, kDecomposition>(args, params, params.six, tiles_of_six(), smem);
    }
  }
  if constexpr (kCluster > 1)
    device::cluster_sync();  // no block accesses this one's memory any more
#endif
}

// Split-K: the kernel add_partials adds the partial sums of each tile, folds them and stores the
// tile to C. They are integers, so that the bits are those of whole tiles.

// What a warpgroup stores at a time: 64 rows, eight columns. A thread has one vector of each level.
template <typename T>
struct EightColumns {
  static constexpr int kLevels = T::kLevels, kBlockN = 8;
  static constexpr bool kHasTails = T::kHasTails;
};

// Warpgroups of a block; each adds the partial sums of every fourth part.
constexpr unsigned kAdders = 4;
constexpr unsigned kAddBlocks = 64 / 4;  // per tile of 64 columns: half its rows, eight columns
struct AddStorage {
  float sums[kAdders - 1][4][kWarpgroup][4];  // of the other warpgroups: [][level][thread][]
  alignas(8) float exchange[kWarpgroup / 32][kExchangedWords];
};

template <int kLevels>
__device__ void add_vector(std::int32_t (&sums)[kLevels][4], int level, const float4& v) {
  sums[level][0] += static_cast<std::int32_t>(bits_of(v.x));
  sums[level][1] += static_cast<std::int32_t>(bits_of(v.y));
  sums[level][2] += static_cast<std::int32_t>(bits_of(v.z));
  sums[level][3] += static_cast<std::int32_t>(bits_of(v.w));
}

// A block adds eight columns of one consumer warpgroup, in its layout of threads: each of four
// warpgroups every fourth part. The first adds these four sums and stores C.
template <typename T>
__device__ void add_partials_of(const KernelArgs& args, const GemmParams& params,
                                const TileScheduler& tiles, AddStorage& smem) {
  static_assert(kAddBlocks == T::kBlockN / 4);
  const unsigned adder = threadIdx.x / kWarpgroup;
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  const unsigned number = blockIdx.x / kAddBlocks, group = blockIdx.x % kAddBlocks / 2,
                 warpgroup = blockIdx.x % 2;
  const std::byte* partials =
      params.partials + (std::size_t{number} * params.parts_per_tile + adder) * kPartialBytes<T>;
  const float* from = reinterpret_cast<const float*>(partials) +
                      4 * (group * kConsumers + warpgroup * kWarpgroup + thread);
  std::int32_t sums[T::kLevels][4]{};
#pragma unroll 4
  for (unsigned part = adder; part < params.parts_per_tile; part += kAdders) {
#pragma unroll
    for (int level = 0; level < T::kLevels; ++level) {
      const float* of_level = from + level * (T::kBlockN / 2) * kConsumers;
      add_vector(sums, level, device::load_vector<float4>(of_level));
    }
    from += kAdders * (kPartialBytes<T> / 4);
  }
  if (adder > 0) {
#pragma unroll
    for (int level = 0; level < T::kLevels; ++level) {
      const auto word = [&](int i) { return float_of(static_cast<std::uint32_t>(sums[level][i])); };
      device::store_vector(smem.sums[adder - 1][level][thread],
                           make_float4(word(0), word(1), word(2), word(3)));
    }
  }
  __syncthreads();
  if (adder > 0) return;
#pragma unroll
  for (int level = 0; level < T::kLevels; ++level) {
#pragma unroll
    for (unsigned other = 0; other < kAdders - 1; ++other) {
      add_vector(sums, level, device::load_vector<float4>(smem.sums[other][level][thread]));
    }
  }
  const unsigned count = gridDim.x / kAddBlocks;
  const TileCoord tile = tiles.tile(count - 1 - number);
  const std::int64_t row = std::int64_t{tile.row} * kBlockM + warpgroup * (kBlockM / 2),
                     col = std::int64_t{tile.col} * T::kBlockN + 8 * group;
  const float* step_rows = params.steps_a + params.a.own(tile.batch_index) * params.a.rows() + row;
  const float* step_cols = params.steps_b + params.b.own(tile.batch_index) * params.b.rows() +
                           params.b.inside(col / kChunkRows) * kChunkRows + col % kChunkRows;
  KernelArgs matrix = args;
  matrix.c += tile.batch_index * args.stride_c;
  store_results<EightColumns<T>>(matrix, params.float2_c, row, col, thread, step_rows, step_cols,
                                 sums, smem.exchange[thread / 32]);
}

inline __global__ void __launch_bounds__(kAdders* kWarpgroup)
    add_partials(KernelArgs args, GemmParams params) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<AddStorage>();
  device::wait_for_previous_kernel();
  device::launch_dependents();
  const Path path = *params.decision;
  if (path == Path::kSix) {
    add_partials_of<Tiles<64, 6>>(args, params, params.six, smem);
  } else if (path == Path::kEight) {
    add_partials_of<Eight>(args, params, params.eight, smem);
  } else if (path == Path::kTen) {
    add_partials_of<Ten>(args, params, params.eight, smem);
  }
#endif
}

}  // namespace tilegate::int8x3
