// The product of the halves: a producer warp has bulk copies bring chunks to a ring in shared
// memory, two warpgroups multiply them on the tensor cores, each 64 rows of the tile. Every 32 of K
// they add what the tensor cores have summed to sums of their own: the tensor cores cut off what
// they add, and over a long K that would be a bias. Blocks are persistent: they go from tile to
// tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/agreed_sums.cuh>
#include <tilegate/common/plain_product.cuh>
#include <tilegate/common/ring.cuh>
#include <tilegate/common/tile_order.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "decision.cuh"
#include "multiply_args.cuh"
#include "planes.cuh"
#include "results.cuh"

namespace tilegate::fp16x3 {

// The same in every block. All threads meet once: the barriers are initialised, too.
__device__ inline Path agree(const MultiplyArgs& more, MultiplyStorage& smem) {
  const auto sums = agreed_sums<kNumThreads, kSeenNumbers>(more.seen, more.groups_a, more.groups_b,
                                                           smem.seen, [] { __syncthreads(); });
  return decide({sums.a[0] / more.rows_a, sums.a[1] / more.rows_a},
                {sums.b[0] / more.rows_b, sums.b[1] / more.rows_b}, more.summed);
}

// By one thread.
__device__ inline void produce(const MultiplyArgs& more, unsigned tiles, MultiplyStorage& smem) {
  Ring<kStages> ring;
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    const TileOrder::Tile tile = more.tiles.order.tile(index);
    const std::byte* a = more.planes_a + more.a.chunk(tile.product, tile.row, 0);
    const std::byte* b = more.planes_b + more.b.chunk(tile.product, tile.col, 0);
    for (std::int64_t chunk = 0; chunk < more.a.chunks_k; ++chunk) {
      device::barrier_wait(smem.empty[ring.stage], ring.phase ^ 1);
      device::Barrier& full = smem.full[ring.stage];
      std::byte* stage = smem.ring + ring.stage * kStageBytes;
      device::barrier_arrive_expect(full, kStageBytes);
      device::copy_bulk(stage, a, kChunkBytes, full);
      device::copy_bulk(stage + kChunkBytes, b, kChunkBytes, full);
      a += kChunkBytes;
      b += kChunkBytes;
      ring.advance();
    }
  }
}

// acc ← the products of one stage, the small ones first: what tensor cores cut off is as large as
// the sum so far. `a`: the warpgroup's rows of plane hi of the first slice.
__device__ inline void multiply_stage(const std::byte* a, const std::byte* b,
                                      float (&acc)[kBlockN / 2]) {
  const auto from = [](const std::byte* operand, int slice, int plane) {
    return device::matrix_descriptor(operand + slice * kSliceBytes + plane * kPlaneBytes,
                                     device::Swizzle::k32Bytes, kPieceBytes, kGroupBytes);
  };
#pragma unroll
  for (int slice = 0; slice < kSlices; ++slice) {
    device::warpgroup_mma_f16<kBlockN>(acc, from(a, slice, 0), from(b, slice, 1), slice > 0);
    device::warpgroup_mma_f16<kBlockN>(acc, from(a, slice, 1), from(b, slice, 0));
  }
#pragma unroll
  for (int slice = 0; slice < kSlices; ++slice) {
    device::warpgroup_mma_f16<kBlockN>(acc, from(a, slice, 0), from(b, slice, 0));
  }
}

// sums ← the products of `runs` stages, each of which is a run.
__device__ inline void sum_runs(int runs, int warpgroup, bool is_lane_0, Ring<kStages>& ring,
                                MultiplyStorage& smem, float (&sums)[kBlockN / 2]) {
#pragma unroll
  for (float& sum : sums) sum = 0.0F;
  float acc[kBlockN / 2]{};
  for (; runs > 0; --runs, ring.advance()) {
    device::barrier_wait(smem.full[ring.stage], ring.phase);
    const std::byte* stage = smem.ring + ring.stage * kStageBytes;
    device::warpgroup_arrive();
    multiply_stage(stage + warpgroup * (kPlaneBytes / 2), stage + kChunkBytes, acc);
    device::warpgroup_commit();
    device::warpgroup_wait<0>();
    device::warpgroup_results(acc);
    if (is_lane_0) device::barrier_arrive(smem.empty[ring.stage]);
#pragma unroll
    for (int i = 0; i < kBlockN / 2; ++i) sums[i] += acc[i];
  }
}

// total ← the products of a tile: the sum of sums of kRuns runs, whose errors grow with kRuns and
// with how many sums there are, not with their product.
__device__ inline void sum_tile(const MultiplyArgs& more, int warpgroup, bool is_lane_0,
                                Ring<kStages>& ring, MultiplyStorage& smem,
                                float (&total)[kBlockN / 2]) {
  for (std::int64_t left = more.a.chunks_k; left > 0; left -= kRuns) {
    float sums[kBlockN / 2];
    sum_runs(left < kRuns ? static_cast<int>(left) : kRuns, warpgroup, is_lane_0, ring, smem, sums);
#pragma unroll
    for (int i = 0; i < kBlockN / 2; ++i) total[i] += sums[i];
  }
}

// By each of the consumers.
__device__ inline void consume(const KernelArgs& args, const MultiplyArgs& more, unsigned tiles,
                               int consumer, MultiplyStorage& smem) {
  Ring<kStages> ring;
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    const TileOrder::Tile tile = more.tiles.order.tile(index);
    const float step = fetch_step(more, tile, consumer);
    float sums[kBlockN / 2]{};
    sum_tile(more, consumer / kWarpgroup, consumer % 32 == 0, ring, smem, sums);
    pass_on_step(step, consumer, smem.steps);
    KernelArgs product = args;
    product.c += tile.product * args.stride_c;
    store_results(product, more.pairs, std::int64_t{tile.row} * kBlockM,
                  std::int64_t{tile.col} * kBlockN, consumer, smem.steps, sums);
  }
}

inline __global__ void __launch_bounds__(kNumThreads, 1)
    multiply(KernelArgs args, MultiplyArgs more) {
  auto& smem = device::shared_storage<MultiplyStorage>();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      device::barrier_init(smem.full[stage], 1);
      device::barrier_init(smem.empty[stage], kConsumers / 32);  // each warp waits for its own
    }
    device::barrier_init_fence();
  }
  device::wait_for_previous_kernel();
  device::let_next_kernel_start();
  const Path path = agree(more, smem);
  const unsigned tiles = static_cast<unsigned>(args.batch) * more.tiles.order.count;
  if (threadIdx.x < kWarpgroup) {
    device::give_registers<kProducerRegisters>();
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) *more.decision = path;
    if (path == Path::kHalves) produce(more, tiles, smem);
  } else {
    device::take_registers<kConsumerRegisters>();
    const int consumer = static_cast<int>(threadIdx.x) - kWarpgroup;
    if (path == Path::kHalves) {
      consume(args, more, tiles, consumer, smem);
    } else {
      for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
        multiply_fp32(args, more.tiles, index, consumer, smem.fp32);
      }
    }
  }
}

}  // namespace tilegate::fp16x3
