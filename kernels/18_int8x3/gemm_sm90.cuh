// The product of the digits: a producer warp has bulk copies bring chunks to a ring in shared
// memory, two warpgroups multiply them on the tensor cores, each 64 rows of the tile, into one
// int32 accumulator per level, and three more warps store wide tiles. Blocks are persistent: they
// go from tile to tile, and may share the last ones along K.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/flag.cuh>
#include <tilegate/device/warp_mma.cuh>
#include <tilegate/stage.hpp>

#include "digits.cuh"
#include "epilogue.cuh"
#include "layout.cuh"
#include "scheduler.cuh"

namespace tilegate::int8x3 {

// How a warpgroup multiplies what a stage holds: from shared memory, or with the digits of A in
// registers.

// Of 8·n rows of a plane in a stage.
__device__ inline device::MatrixDescriptor plane_descriptor(const std::byte* rows, int plane) {
  return device::matrix_descriptor(rows + plane * kNextPlane, device::Swizzle::k32Bytes, kPiece,
                                   kNextRows);
}

// What a warpgroup multiplies: `a`, `b`: its 64 rows of the stage and the tile's columns. When it
// returns, nobody reads the stage before any more.
template <typename T, bool kInRegisters = T::kBlockN == 128>
struct StageProducts {
  __device__ void multiply(const std::byte* a, const std::byte* b,
                           std::int32_t (&acc)[T::kLevels][T::kBlockN / 2]) {
    device::warpgroup_arrive();
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
    device::warpgroup_commit();
    device::warpgroup_wait<1>();
  }
};

// The same with the digits of A in registers: read from shared memory once, not for each product.
// On an NVIDIA H200 wide tiles take 1 % less time by it, and tiles of 64 columns 4 % more (README).
// The products of each plane of A are a group; the plane is overwritten once those of the stage
// before are done.
template <typename T>
struct StageProducts<T, true> {
  std::uint32_t digits[kPlanes][4]{};

  __device__ void multiply(const std::byte* a, const std::byte* b,
                           std::int32_t (&acc)[T::kLevels][T::kBlockN / 2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
    const std::byte* row = a + offset_in_chunk(warp * 16 + lane % 16, lane / 16);
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane) {
      device::warpgroup_wait<kPlanes - 1>();
      device::warpgroup_results(digits[plane]);
      device::load_matrices(digits[plane], row + plane * kNextPlane);
      device::warpgroup_arrive();
#pragma unroll
      for (int other = 0; other < kPlanes && plane + other < T::kLevels; ++other) {
        device::warpgroup_mma_s8<T::kBlockN>(acc[plane + other], digits[plane],
                                             plane_descriptor(b, other));
      }
      device::warpgroup_commit();
    }
    __syncwarp();  // all lanes have read A's digits, and one releases the stage for them
  }
};

// What blocks have of a tile that they share: each leaves its sums in the workspace and raises its
// flag, and the block that stores the tile gets them through the ring, as chunks come, and adds
// them. They are integers, so that the bits do not depend on how K is shared.

// A block's sums, in vectors of four: first one of each thread, then the next of each.
template <typename T>
constexpr int kSumVectors = T::kLevels* T::kBlockN / 2 / 4;  // of a thread
template <typename T>
constexpr int kSumBytes = kSumVectors<T>* kConsumers * 16;

// A stage brings whole vectors of all threads.
template <typename T>
constexpr int kVectorsInStage = T::kStageBytes / (16 * kConsumers);
static_assert(kSumBytes<Tiles<128, 6>> % Tiles<128, 6>::kStageBytes == 0);

// `thread`: of all that multiply.
template <typename T>
__device__ void leave_sums(const MultiplyArgs& more, int thread,
                           const std::int32_t (&acc)[T::kLevels][T::kBlockN / 2],
                           MultiplyStorage& smem) {
  constexpr int kInLevel = T::kBlockN / 2 / 4;  // vectors
  const std::size_t at = std::size_t{blockIdx.x} * kSumBytes<T>;
  float* to = reinterpret_cast<float*>(more.sums + at) + 4 * thread;
#pragma unroll
  for (int i = 0; i < kSumVectors<T>; ++i) {
    const std::int32_t* sum = acc[i / kInLevel] + i % kInLevel * 4;
    const auto word = [&](int j) { return float_of(static_cast<std::uint32_t>(sum[j])); };
    device::store_vector(to + i * 4 * kConsumers, make_float4(word(0), word(1), word(2), word(3)));
  }
  arrive_of_warp(smem.has_sums);
}

// By a thread that has no part in the multiplications, which need not wait for it.
__device__ inline void tell_of_sums(const MultiplyArgs& more, MultiplyStorage& smem) {
  device::barrier_wait(smem.has_sums, 0);
  device::raise_flag(more.flags + blockIdx.x);
}

// By the producer: those of block `block`.
template <typename T>
__device__ void fetch_sums(const MultiplyArgs& more, unsigned block, Ring<T::kStages>& ring,
                           MultiplyStorage& smem) {
  device::wait_for_flag(more.flags + block);
  const std::byte* from = more.sums + std::size_t{block} * kSumBytes<T>;
  for (int i = 0; i < kSumBytes<T>; i += T::kStageBytes) {
    device::barrier_wait(smem.empty[ring.stage], ring.phase ^ 1);
    device::Barrier& full = smem.full[ring.stage];
    device::barrier_arrive_expect(full, T::kStageBytes);
    device::copy_bulk(smem.ring + ring.stage * T::kStageBytes, from + i, T::kStageBytes, full);
    ring.advance();
  }
}

// `release(stage)`: by a warp that has read it.
template <typename T, typename Release>
__device__ void add_sums(int thread, Ring<T::kStages>& ring, MultiplyStorage& smem,
                         std::int32_t (&acc)[T::kLevels][T::kBlockN / 2], Release release) {
  constexpr int kInLevel = T::kBlockN / 2 / 4;
#pragma unroll
  for (int first = 0; first < kSumVectors<T>; first += kVectorsInStage<T>) {
    device::barrier_wait(smem.full[ring.stage], ring.phase);
    const device::SharedAddress from =
        device::shared_address(smem.ring + ring.stage * T::kStageBytes) + 16 * thread;
#pragma unroll
    for (int i = 0; i < kVectorsInStage<T>; ++i) {
      float v[4];
      device::ordered::load_shared(v, from + i * 16 * kConsumers);
      std::int32_t* sum = acc[(first + i) / kInLevel] + (first + i) % kInLevel * 4;
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[j] += static_cast<std::int32_t>(bits_of(v[j]));
    }
    __syncwarp();  // all lanes have read, and one releases the stage for them
    release(ring.stage);
    ring.advance();
  }
}

// By one thread. A cluster's blocks have the rows of A in common: each fetches its share for all.
template <typename T, unsigned kCluster, bool kStreams>
__device__ void produce(const MultiplyArgs& more, const TileOrder& order, unsigned count,
                        MultiplyStorage& smem) {
  constexpr unsigned kShare = kChunkBytes / kCluster;  // of A
  const unsigned first = kCluster > 1 ? device::cluster_rank() * kShare : 0;
  Ring<T::kStages> ring;
  Piece piece;
  for (unsigned number = 0; find_piece<kCluster, kStreams>(more, order, count, number, piece);
       ++number) {
    const TileOrder::Tile& tile = piece.tile;
    const std::int64_t first_chunk = more.first_chunk + piece.first;
    const std::int64_t col = std::int64_t{tile.col} * T::kBlockN;
    const std::byte* a = more.planes_a + more.a.chunk(tile.product, tile.row, first_chunk) + first;
    const std::byte* b = more.planes_b +
                         more.b.chunk(tile.product, more.b.inside(col / kChunkRows), first_chunk) +
                         col % kChunkRows * kRowBytes;
    for (unsigned chunk = 0; chunk < piece.chunks; ++chunk) {
      device::barrier_wait(smem.empty[ring.stage], ring.phase ^ 1);
      device::Barrier& full = smem.full[ring.stage];
      std::byte* stage = smem.ring + ring.stage * T::kStageBytes;
      device::barrier_arrive_expect(full, T::kStageBytes);
      if constexpr (kCluster == 1) {
        device::copy_bulk(stage, a, kShare, full);
      } else {
        device::copy_bulk_multicast(stage + first, a, kShare, full, (1U << kCluster) - 1);
      }
      device::copy_bulk(stage + kChunkBytes, b, T::kBytesB, full);
      a += kChunkBytes;
      b += kChunkBytes;
      ring.advance();
    }
    if constexpr (kStreams) {
      for (unsigned i = 1; i <= piece.others; ++i) {
        fetch_sums<T>(more, blockIdx.x - i * kCluster, ring, smem);
      }
    }
  }
}

// By a warp that has read a stage: to the producers of the cluster, which all write to it.
template <unsigned kCluster>
__device__ void release(device::Barrier& empty, int thread) {
  const auto lane = static_cast<unsigned>(thread % 32);
  if constexpr (kCluster == 1) {
    if (lane == 0) device::barrier_arrive(empty);
  } else {
    if (lane < kCluster) device::barrier_arrive_remote(empty, lane);
  }
}

// By each of the two warpgroups.
template <typename T, unsigned kCluster, bool kStreams>
__device__ void consume(const KernelArgs& args, const MultiplyArgs& more, const TileOrder& order,
                        unsigned count, MultiplyStorage& smem) {
  Ring<T::kStages> ring;
  Piece piece;
  for (unsigned number = 0; find_piece<kCluster, kStreams>(more, order, count, number, piece);
       ++number) {
    const unsigned of_block = anew<kStreams>(threadIdx.x), warp = of_block / 32;
    const int warpgroup = static_cast<int>(of_block) / kWarpgroup - 1,
              thread = static_cast<int>(of_block) % kWarpgroup;
    if constexpr (kStreams) {  // which keep it while the warps multiply
      __syncwarp();            // the piece before has been read
      if (thread % 32 == 0) smem.pieces[warp] = piece;
    }
    TileEnd<T> end(more, piece.tile, warpgroup, thread);
    std::int32_t acc[T::kLevels][T::kBlockN / 2]{};
    StageProducts<T> products;
    int before = -1;
    for (unsigned left = piece.chunks; left > 0; --left) {
      device::barrier_wait(smem.full[ring.stage], ring.phase);
      const std::byte* stage = smem.ring + ring.stage * T::kStageBytes;
      products.multiply(stage + warpgroup * (kChunkBytes / 2), stage + kChunkBytes, acc);
      if (before >= 0) release<kCluster>(smem.empty[before], thread);
      before = ring.stage;
      ring.advance();
    }
    device::warpgroup_wait<0>();
    release<kCluster>(smem.empty[before], thread);
#pragma unroll
    for (int level = 0; level < T::kLevels; ++level) device::warpgroup_results(acc[level]);
    if constexpr (kStreams) {
      __syncwarp();  // the piece is there
      piece = smem.pieces[warp];
      const int of_all = static_cast<int>(of_block) - kWarpgroup;
      if (piece.is_stored == 0) {
        leave_sums<T>(more, of_all, acc, smem);
        continue;
      }
      for (unsigned i = 0; i < piece.others; ++i) {
        add_sums<T>(of_all, ring, smem, acc,
                    [&](int stage) { release<kCluster>(smem.empty[stage], thread); });
      }
    }
    end.store(args, more, piece.tile, piece.turn, piece.is_last != 0, acc, smem);
  }
}

// By kStorers warps, which tell of sums, too.
template <typename T, unsigned kCluster, bool kStreams>
__device__ void store_tiles(const KernelArgs& args, const MultiplyArgs& more,
                            const TileOrder& order, unsigned count, int thread,
                            MultiplyStorage& smem) {
  Piece piece;
  for (unsigned number = 0; find_piece<kCluster, kStreams>(more, order, count, number, piece);
       ++number) {
    if (piece.is_stored == 0) {
      if (thread == 0) tell_of_sums(more, smem);
    } else if constexpr (T::kIsStaged) {
      store_staged<T>(args, more, piece.tile, piece.turn, piece.is_last != 0, thread, smem);
    }
  }
}

template <typename Six, unsigned kCluster, bool kStreams>
__global__ void __launch_bounds__(kNumThreads, 1) multiply(KernelArgs args, MultiplyArgs more) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<MultiplyStorage>();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kMaxStages; ++stage) {
      device::barrier_init(smem.full[stage], 1);
      // Each warp waits for its own multiplications.
      device::barrier_init(smem.empty[stage], kCluster * kConsumers / 32);
    }
    device::barrier_init(smem.has_steps, kStorers);
    device::barrier_init(smem.has_results, kConsumers / 32);
    device::barrier_init(smem.is_stored, kStorers);
    device::barrier_init(smem.has_sums, kConsumers / 32);
    device::barrier_init_fence();
  }
  device::wait_for_previous_kernel();
  device::launch_dependents();
  const Path path = agree<kNumThreads>(more, smem.sums, [] {
    if constexpr (kCluster == 1) {
      __syncthreads();
    } else {
      device::cluster_sync();
    }
  });
  const auto products = static_cast<unsigned>(args.batch);
  if (threadIdx.x < kWarpgroup) {
    device::reg_dealloc<kProducerRegisters>();
    if (threadIdx.x == 0 && blockIdx.x == 0) *more.decision = path;
    if (threadIdx.x == 0) {
      if (path == Path::kSix) {
        produce<Six, kCluster, kStreams>(more, more.six, products * more.six.count, smem);
      } else if (path == Path::kEight) {
        produce<Eight, kCluster, false>(more, more.eight, products * more.eight.count, smem);
      }
    } else if ((Six::kIsStaged || kStreams) && threadIdx.x >= 32 && path == Path::kSix) {
      store_tiles<Six, kCluster, kStreams>(args, more, more.six, products * more.six.count,
                                           static_cast<int>(threadIdx.x) - 32, smem);
    }
  } else {
    device::reg_alloc<kConsumerRegisters>();
    if (path == Path::kSix) {
      consume<Six, kCluster, kStreams>(args, more, more.six, products * more.six.count, smem);
    } else if (path == Path::kEight) {
      consume<Eight, kCluster, false>(args, more, more.eight, products * more.eight.count, smem);
    } else if (more.first_chunk == 0) {
      multiply_fp32_parts<kCluster>(args, more.fp32, static_cast<int>(threadIdx.x) - kWarpgroup,
                                    smem.fp32);
    }
  }
  if constexpr (kCluster > 1) device::cluster_sync();  // nobody reaches into this block any more
#endif
}

}  // namespace tilegate::int8x3
