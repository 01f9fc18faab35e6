// The product of the digits: a producer warp has bulk copies bring chunks to a ring in shared
// memory, two warpgroups multiply them on the tensor cores, each 64 rows of the tile, into one
// int32 accumulator per level. Blocks are persistent: they go from tile to tile.
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
#include "planes.cuh"
#include "results.cuh"

namespace tilegate::int8x3 {

// All threads of the block, or of its cluster: without one, a cluster's barrier would wait longer.
__device__ inline void meet_cluster(unsigned cluster) {
  if (cluster > 1) {
    device::cluster_sync();
  } else {
    __syncthreads();
  }
}

// Calls visit(tile) for each tile of a block, in turn. The blocks of a cluster have tiles below
// each other; the last may lie outside C.
template <typename Visit>
__device__ void for_each_tile(const MultiplyArgs& more, const TileOrder& order, unsigned count,
                              Visit visit) {
  const unsigned rank = device::cluster_rank();
  for (unsigned i = blockIdx.x / more.cluster; i < count; i += gridDim.x / more.cluster) {
    TileOrder::Tile tile = order.tile(i);
    tile.row = tile.row * more.cluster + rank;
    visit(tile);
  }
}

// By one thread. A cluster's blocks have the columns of B in common: each fetches its share for
// all.
template <typename T>
__device__ void produce(const MultiplyArgs& more, const TileOrder& order, unsigned count,
                        MultiplyStorage& smem) {
  constexpr int kPieces = T::kBlockN == kChunkRows ? 1 : kPlanes;  // of B that lie together
  constexpr int kPieceBytes = kPlanes * T::kPlaneBytesB / kPieces;
  const unsigned share = kPieceBytes / more.cluster;
  const unsigned first = device::cluster_rank() * share;
  const auto all = static_cast<std::uint16_t>((1U << more.cluster) - 1);
  Ring<T::kStages> ring;
  for_each_tile(more, order, count, [&](const TileOrder::Tile& tile) {
    const std::int64_t col = std::int64_t{tile.col} * T::kBlockN;
    const std::byte* a =
        more.planes_a + more.a.chunk(tile.product, more.a.inside(tile.row), more.first_chunk);
    const std::byte* b = more.planes_b +
                         more.b.chunk(tile.product, col / kChunkRows, more.first_chunk) +
                         col % kChunkRows * kChunkK;
    for (std::int64_t chunk = 0; chunk < more.chunks; ++chunk) {
      device::barrier_wait(smem.empty[ring.stage], ring.phase ^ 1);
      device::Barrier& full = smem.full[ring.stage];
      std::byte* stage = smem.ring + ring.stage * T::kStageBytes;
      device::barrier_arrive_expect(full, T::kStageBytes);
      device::copy_bulk(stage, a, kChunkBytes, full);
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) {
        std::byte* to = stage + kChunkBytes + piece * kPieceBytes + first;
        const std::byte* from = b + piece * kPlaneBytes + first;
        if (more.cluster == 1) {
          device::copy_bulk(to, from, share, full);
        } else {
          device::copy_bulk_multicast(to, from, share, full, all);
        }
      }
      a += kChunkBytes;
      b += kChunkBytes;
      ring.advance();
    }
  });
}

// acc += the products of one stage; `a`: the warpgroup's rows of plane hi.
template <typename T>
__device__ void multiply_stage(const std::byte* a, const std::byte* b,
                               std::int32_t (&acc)[T::kLevels][T::kBlockN / 2]) {
  device::MatrixDescriptor from_a[kPlanes], from_b[kPlanes];
#pragma unroll
  for (int plane = 0; plane < kPlanes; ++plane) {
    from_a[plane] = device::matrix_descriptor(a + plane * kPlaneBytes, device::Swizzle::k32Bytes,
                                              kPiece, kGroupBytes);
    from_b[plane] = device::matrix_descriptor(b + plane * T::kPlaneBytesB,
                                              device::Swizzle::k32Bytes, kPiece, kGroupBytes);
  }
#pragma unroll
  for (int level = 0; level < T::kLevels; ++level) {
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane) {
      const int other = level - plane;
      if (other < 0 || other >= kPlanes) continue;
      device::warpgroup_mma_s8<T::kBlockN>(acc[level], from_a[plane], from_b[other]);
    }
  }
}

// By a warp that has read a stage: to the producers of the cluster, which all write to it.
__device__ inline void release(device::Barrier& empty, unsigned cluster, int thread) {
  const auto lane = static_cast<unsigned>(thread % 32);
  if (cluster == 1) {
    if (lane == 0) device::barrier_arrive(empty);
  } else if (lane < cluster) {
    device::barrier_arrive_remote(empty, lane);
  }
}

// By each of the two warpgroups.
template <typename T>
__device__ void consume(const KernelArgs& args, const MultiplyArgs& more, const TileOrder& order,
                        unsigned count, int warpgroup, int thread, MultiplyStorage& smem) {
  Ring<T::kStages> ring;
  for_each_tile(more, order, count, [&](const TileOrder::Tile& tile) {
    const StepShare<T> share(more, tile, warpgroup, thread);
    std::int32_t acc[T::kLevels][T::kBlockN / 2]{};
    int before = 0;
    for (std::int64_t chunk = 0; chunk < more.chunks; ++chunk) {
      device::barrier_wait(smem.full[ring.stage], ring.phase);
      const std::byte* stage = smem.ring + ring.stage * T::kStageBytes;
      device::warpgroup_arrive();
      multiply_stage<T>(stage + warpgroup * (kPlaneBytes / 2), stage + kChunkBytes, acc);
      device::warpgroup_commit();
      device::warpgroup_wait<1>();
      // The stage before has been read by this warp.
      if (chunk > 0) release(smem.empty[before], more.cluster, thread);
      before = ring.stage;
      ring.advance();
    }
    device::warpgroup_wait<0>();
    release(smem.empty[before], more.cluster, thread);
#pragma unroll
    for (int level = 0; level < T::kLevels; ++level) device::warpgroup_results(acc[level]);
    share.pass_on(smem.steps[warpgroup], warpgroup, thread);
    KernelArgs product = args;
    product.c += tile.product * args.stride_c;
    store_results<T>(product, more.pairs,
                     std::int64_t{tile.row} * kBlockM + warpgroup * (kBlockM / 2),
                     std::int64_t{tile.col} * T::kBlockN, thread, smem.steps[warpgroup].row,
                     smem.steps[warpgroup].col, acc);
  });
}

template <typename Six>
__global__ void __launch_bounds__(kNumThreads, 1) multiply(KernelArgs args, MultiplyArgs more) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
  auto& smem = device::shared_storage<MultiplyStorage>();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kMaxStages; ++stage) {
      device::barrier_init(smem.full[stage], 1);
      // Each warp waits for its own multiplications.
      device::barrier_init(smem.empty[stage], more.cluster * kConsumers / 32);
    }
    device::barrier_init_fence();
  }
  device::wait_for_previous_kernel();
  device::let_next_kernel_start();
  const Path path = agree<kNumThreads>(more, smem.sums, [&] { meet_cluster(more.cluster); });
  const auto products = static_cast<unsigned>(args.batch);
  if (threadIdx.x < kWarpgroup) {
    device::give_registers<kProducerRegisters>();
    if (threadIdx.x == 0 && blockIdx.x == 0) *more.decision = path;
    if (threadIdx.x != 0) {
    } else if (path == Path::kSix) {
      produce<Six>(more, more.six, products * more.six.count, smem);
    } else if (path == Path::kEight) {
      produce<Eight>(more, more.eight, products * more.eight.count, smem);
    }
  } else {
    device::take_registers<kConsumerRegisters>();
    const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup - 1;
    if (path == Path::kSix) {
      consume<Six>(args, more, more.six, products * more.six.count, warpgroup, thread, smem);
    } else if (path == Path::kEight) {
      consume<Eight>(args, more, more.eight, products * more.eight.count, warpgroup, thread, smem);
    } else if (more.first_chunk == 0) {
      const unsigned tiles = products * more.fp32.order.count;
      for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
        multiply_fp32(args, more.fp32, index, warpgroup * kWarpgroup + thread, smem.fp32);
      }
    }
  }
  if (more.cluster > 1) device::cluster_sync();  // nobody reaches into this block's memory any more
#endif
}

}  // namespace tilegate::int8x3
