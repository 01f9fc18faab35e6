// The product of the digits: a producer warp has bulk copies bring chunks to a ring in shared
// memory, two warpgroups multiply them on the tensor cores, each 64 rows of the tile, into one
// int32 accumulator per level, and three more warps store wide tiles. Blocks are persistent: they
// go from tile to tile, and may share the last ones along K.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/plain_product.cuh>
#include <tilegate/common/ring.cuh>
#include <tilegate/common/tile_order.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "agree.cuh"
#include "decision.cuh"
#include "multiply_args.cuh"
#include "pieces.cuh"
#include "planes.cuh"
#include "shared_sums.cuh"
#include "stage_products.cuh"
#include "tile_end.cuh"

namespace tilegate::int8x3 {

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
  device::let_next_kernel_start();
  const Path path = agree<kNumThreads>(more, smem.sums, [] {
    if constexpr (kCluster == 1) {
      __syncthreads();
    } else {
      device::cluster_sync();
    }
  });
  const auto products = static_cast<unsigned>(args.batch);
  if (threadIdx.x < kWarpgroup) {
    device::give_registers<kProducerRegisters>();
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
    device::take_registers<kConsumerRegisters>();
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
