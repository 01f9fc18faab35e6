// GEMM kernel for compute capability 9.0. A producer warp issues bulk copies of halves into a ring
// of shared-memory stages; two consumer warpgroups run wgmma on them, 64 rows of the tile each.
// After each run of chunks they add the accumulators to FP32 sums in registers, because tensor
// cores truncate: over a long K that would be a bias (Ootomo and Yokota; citation:
// 18_int8x3/README.md). Blocks are persistent.
//
// In order: decision, producer, main loop, consumers, kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/common/fp64_fallback.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "epilogue.cuh"
#include "fp16.cuh"
#include "layout.cuh"

namespace tilegate::fp16x3 {

// The decision: chunks per run, or 0 for FP64; the same in every block. One barrier of all threads,
// which also covers the initialisation of the mbarriers.
__device__ inline int decide_path(const GemmParams& params, GemmStorage& smem) {
  const auto sums = sum_over_groups<kNumThreads, kNumStats>(
      params.stats, params.groups_a, params.groups_b, smem.stats, [] { __syncthreads(); });
  const auto stats = [](const float (&sum)[kNumStats], float rows) {
    return OperandStats{sum[0] / rows, sum[1] / rows, sum[2], sum[3]};
  };
  return decide(stats(sums.a, params.rows_a), stats(sums.b, params.rows_b), params.summed);
}

// Producer, one thread.
__device__ inline void produce(const GemmParams& params, unsigned tiles, GemmStorage& smem) {
  Pipeline<kStages> pipeline;
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    const TileCoord tile = params.scheduler.tile(index);
    const std::byte* a = params.planes_a + params.a.chunk(tile.batch_index, tile.row, 0);
    const std::byte* b = params.planes_b + params.b.chunk(tile.batch_index, tile.col, 0);
    for (std::int64_t chunk = 0; chunk < params.a.chunks_k; ++chunk) {
      pipeline.producer_acquire(smem.empty);
      std::byte* stage = smem.ring + pipeline.stage * kStageBytes;
      device::Barrier& full = pipeline.producer_expect(smem.full, kStageBytes);
      device::copy_bulk(stage, a, kChunkBytes, full);
      device::copy_bulk(stage + kChunkBytes, b, kChunkBytes, full);
      a += kChunkBytes;
      b += kChunkBytes;
      pipeline.advance();
    }
  }
}

// acc ← the products of one stage, added to acc if `adds`. Small products first: the truncation
// error of a tensor core grows with its accumulator. `a`: the warpgroup's rows of plane hi, first
// slice.
__device__ inline void multiply_stage(const std::byte* a, const std::byte* b, bool adds,
                                      float (&acc)[kBlockN / 2]) {
  const auto from = [](const std::byte* operand, int slice, int plane) {
    return device::matrix_descriptor(operand + slice * kSliceBytes + plane * kPlaneBytes,
                                     device::Swizzle::k32Bytes, kSegmentBytes, kGroupBytes);
  };
  // idea:begin Fp16x3
#pragma unroll
  for (int slice = 0; slice < kSlices; ++slice) {
    device::warpgroup_mma_f16<kBlockN>(acc, from(a, slice, 0), from(b, slice, 1),
                                       adds || slice > 0);
    device::warpgroup_mma_f16<kBlockN>(acc, from(a, slice, 1), from(b, slice, 0));
  }
#pragma unroll
  for (int slice = 0; slice < kSlices; ++slice) {
    device::warpgroup_mma_f16<kBlockN>(acc, from(a, slice, 0), from(b, slice, 0));
  }
  // idea:end
}

// acc ← the products of a run of `chunks` stages. The next stage's wgmma are issued before those of
// this stage are complete, so that the tensor cores never wait within a run.
__device__ inline void sum_run(int chunks, int warpgroup, bool is_lane_0,
                               Pipeline<kStages>& pipeline, GemmStorage& smem,
                               float (&acc)[kBlockN / 2]) {
  int read = 0;  // the stage that is released next
  for (int chunk = 0; chunk < chunks; ++chunk, pipeline.advance()) {
    pipeline.consumer_wait(smem.full);
    const std::byte* stage = smem.ring + pipeline.stage * kStageBytes;
    device::warpgroup_arrive();
    multiply_stage(stage + warpgroup * (kPlaneBytes / 2), stage + kChunkBytes, chunk > 0, acc);
    device::warpgroup_commit();
    if (chunk > 0) {
      device::warpgroup_wait<1>();
      if (is_lane_0) device::barrier_arrive(smem.empty[read]);
    }
    read = pipeline.stage;
  }
  device::warpgroup_wait<0>();
  device::warpgroup_fence_operand(acc);
  if (is_lane_0) device::barrier_arrive(smem.empty[read]);
}

// total ← the products of a tile, in runs of `run` chunks. Two-level summation: kRunsOfSum runs are
// added to a sum, and these sums to the total, so that errors grow with the lengths of both levels,
// not with their product.
__device__ inline void sum_tile(int chunks, int run, int warpgroup, bool is_lane_0,
                                Pipeline<kStages>& pipeline, GemmStorage& smem,
                                float (&total)[kBlockN / 2]) {
  while (chunks > 0) {
    float sums[kBlockN / 2]{}, acc[kBlockN / 2]{};
    for (int runs = 0; runs < kRunsOfSum && chunks > 0; ++runs, chunks -= run) {
      sum_run(chunks < run ? chunks : run, warpgroup, is_lane_0, pipeline, smem, acc);
#pragma unroll
      for (int i = 0; i < kBlockN / 2; ++i) sums[i] += acc[i];
    }
#pragma unroll
    for (int i = 0; i < kBlockN / 2; ++i) total[i] += sums[i];
  }
}

// Consumer warpgroups: main loop and epilogue of each tile.
__device__ inline void consume(const KernelArgs& args, const GemmParams& params, int run,
                               unsigned tiles, int consumer, GemmStorage& smem) {
  Pipeline<kStages> pipeline;
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    const TileCoord tile = params.scheduler.tile(index);
    const float step = fetch_step(params, tile, consumer);
    float sums[kBlockN / 2]{};
    sum_tile(static_cast<int>(params.a.chunks_k), run, consumer / kWarpgroup, consumer % 32 == 0,
             pipeline, smem, sums);
    publish_step(step, consumer, smem.steps);
    KernelArgs matrix = args;
    matrix.c += tile.batch_index * args.stride_c;
    store_results(matrix, params.float2_c, std::int64_t{tile.row} * kBlockM,
                  std::int64_t{tile.col} * kBlockN, consumer, smem.steps, sums);
  }
}

inline __global__ void __launch_bounds__(kNumThreads, 1)
    multiply(KernelArgs args, GemmParams params) {
  auto& smem = device::shared_storage<GemmStorage>();
  if (threadIdx.x == 0) {
    init_pipeline(smem.full, smem.empty,
                  kConsumers / 32);  // each warp releases stages
    smem.fp64_barriers.init();
    device::barrier_init_fence();
  }
  device::wait_for_previous_kernel();
  device::launch_dependents();
  const int run = decide_path(params, smem);
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    *params.decision = run > 0 ? Path::kThree : Path::kFp64;
  }
  const int thread = static_cast<int>(threadIdx.x);
  if (run == 0) {  // apart from the rest: with a branch in each warpgroup 2560³ took 7 % longer
    if (thread < kWarpgroup) {
      device::reg_dealloc<kProducerRegisters>();
      produce_fp64<kBlockN, 1>(args, params.fp64, thread, smem.fp64, smem.fp64_barriers);
    } else {
      device::reg_alloc<kConsumerRegisters>();
      consume_fp64<kBlockN, 1>(args, params.fp64, thread - kWarpgroup, smem.fp64,
                               smem.fp64_barriers);
    }
    return;
  }
  const unsigned tiles = static_cast<unsigned>(args.batch) * params.scheduler.count;
  if (thread < kWarpgroup) {
    device::reg_dealloc<kProducerRegisters>();
    if (thread == 0) produce(params, tiles, smem);
  } else {
    device::reg_alloc<kConsumerRegisters>();
    consume(args, params, run, tiles, thread - kWarpgroup, smem);
  }
}

}  // namespace tilegate::fp16x3
