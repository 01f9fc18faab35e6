// The product of the halves: a producer warp has bulk copies bring chunks to a ring in shared
// memory, two warpgroups multiply them on the tensor cores, each 64 rows of the tile. Every 32 of K
// they add what the tensor cores have summed to sums of their own: the tensor cores cut off what
// they add, and over a long K that would be a bias. Blocks are persistent: they go from tile to
// tile.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <tilegate/common/agreed_sums.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/plain_product.cuh>
#include <tilegate/common/ring.cuh>
#include <tilegate/common/store_pair.cuh>
#include <tilegate/common/tile_order.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "halves.cuh"
#include "planes.cuh"

namespace tilegate::fp16x3 {

constexpr int kBlockM = 128, kBlockN = 128;
constexpr int kWarpgroup = 128;
constexpr int kConsumers = 2 * kWarpgroup;
constexpr int kNumThreads = kWarpgroup + kConsumers;  // the first warpgroup is the producer's
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
static_assert(kWarpgroup * (kProducerRegisters + 2 * kConsumerRegisters) <= 65536);
static_assert(kConsumers == kFp32Threads && kBlockM == kFp32Tile && kBlockN == kFp32Tile);
static_assert(kBlockM == kChunkRows && kBlockN == kChunkRows, "a tile's operands are one chunk");

constexpr int kStageBytes = 2 * kChunkBytes;
constexpr int kStages = 6;

// Which products a call took: three of halves, or FP32.
enum class Path : std::int32_t { kHalves = 3, kFp32 = 32 };

// What one unit of a tile's rows, and of its columns, is worth.
struct Steps {
  float row[kBlockM], col[kBlockN];
};

struct MultiplyStorage {
  union {
    std::byte ring[kStages * kStageBytes];
    Fp32Storage fp32;
  };
  device::Barrier full[kStages], empty[kStages];
  float counted[kNumThreads / 32][2];
  Steps steps;
};

// Beside KernelArgs.
struct MultiplyArgs {
  Planes a, b;
  const std::byte *planes_a = nullptr, *planes_b = nullptr;
  const float *steps_a = nullptr, *steps_b = nullptr;
  const float* counted = nullptr;  // of the split pass's blocks: first A's, then B's
  unsigned blocks_a = 0, blocks_b = 0;
  float rows_a = 1, rows_b = 1;  // that these are of
  Path* decision = nullptr;      // what the device decided is left there
  bool pairs = false;            // two neighbours of C are an aligned vector
  Fp32Args tiles;
};

// Sums of fewer products, on average, are more accurate in FP32: on an NVIDIA H200 its relative
// error (Frobenius norm) is some 1.7e-8 · √products, that of halves up to 3e-7.
constexpr float kLeastProducts = 96.0F;

// Of that many elements that count in a row of op(A), and in a column of op(B), on average; Inf
// where some row cannot be scaled.
__host__ __device__ inline Path decide(float counted_a, float counted_b, float k) {
  const float products = counted_a * counted_b / k;
  return products >= kLeastProducts && products < INFINITY ? Path::kHalves : Path::kFp32;
}

__device__ inline Path agree(const MultiplyArgs& more, float k, MultiplyStorage& smem) {
  // Meets once: the barriers are initialised, too.
  const AgreedSums counted = agreed_sums<kNumThreads>(more.counted, more.blocks_a, more.blocks_b,
                                                      smem.counted, [] { __syncthreads(); });
  return decide(counted.a / more.rows_a, counted.b / more.rows_b, k);
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

// acc ← the products of one stage. `a`: the warpgroup's rows of plane hi of the first slice.
__device__ inline void multiply_stage(const std::byte* a, const std::byte* b,
                                      float (&acc)[kBlockN / 2]) {
#pragma unroll
  for (int slice = 0; slice < kSlices; ++slice) {
    device::MatrixDescriptor from_a[kPlanes], from_b[kPlanes];
#pragma unroll
    for (int plane = 0; plane < kPlanes; ++plane) {
      const int at = slice * kSliceBytes + plane * kPlaneBytes;
      from_a[plane] =
          device::matrix_descriptor(a + at, device::Swizzle::k32Bytes, kPieceBytes, kGroupBytes);
      from_b[plane] =
          device::matrix_descriptor(b + at, device::Swizzle::k32Bytes, kPieceBytes, kGroupBytes);
    }
    device::warpgroup_mma_f16<kBlockN>(acc, from_a[0], from_b[1], slice > 0);
    device::warpgroup_mma_f16<kBlockN>(acc, from_a[1], from_b[0]);
    device::warpgroup_mma_f16<kBlockN>(acc, from_a[0], from_b[0]);
  }
}

// sums ← the products of a tile: a run is a stage.
__device__ inline void sum_tile(const MultiplyArgs& more, int warpgroup, bool is_lane_0,
                                Ring<kStages>& ring, MultiplyStorage& smem,
                                float (&sums)[kBlockN / 2]) {
  float acc[kBlockN / 2]{};
  for (std::int64_t chunk = 0; chunk < more.a.chunks_k; ++chunk, ring.advance()) {
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

// Each consumer fetches a step before the multiplications, the first 128 of a row, the others of a
// column, and passes it on after them.
__device__ inline float fetch_step(const MultiplyArgs& more, const TileOrder::Tile& tile,
                                   int consumer) {
  if (consumer < kBlockM) {
    return more.steps_a[more.a.own(tile.product) * more.a.rows() +
                        std::int64_t{tile.row} * kBlockM + consumer];
  }
  return more.steps_b[more.b.own(tile.product) * more.b.rows() + std::int64_t{tile.col} * kBlockN +
                      consumer - kBlockM];
}

__device__ inline void pass_on_step(float step, int consumer, Steps& steps) {
  device::named_barrier<1>(kConsumers);  // the steps of the tile before have been read
  (consumer < kBlockM ? steps.row[consumer] : steps.col[consumer - kBlockM]) = step;
  device::named_barrier<1>(kConsumers);  // these are there
}

// A warpgroup's results: thread t has pairs of columns of the rows t / 4 and t / 4 + 8 of each 16.
// `args`: of the tile's product.
__device__ inline void store_results(const KernelArgs& args, bool pairs, std::int64_t tile_row,
                                     std::int64_t tile_col, int consumer, const Steps& steps,
                                     const float (&sums)[kBlockN / 2]) {
  const int in_row = consumer / 32 * 16 + consumer % 32 / 4, in_col = consumer % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = tile_row + in_row + 8 * half;
    if (row >= args.shape.m) continue;
    const float step_row = steps.row[in_row + 8 * half];
#pragma unroll
    for (int group = 0; group < kBlockN / 8; ++group) {
      const int at = 8 * group + in_col;
      const std::int64_t col = tile_col + at;
      const float first = sums[4 * group + 2 * half] * step_row * steps.col[at];
      const float second = sums[4 * group + 2 * half + 1] * step_row * steps.col[at + 1];
      if (pairs && col < args.shape.n) {
        store_pair(args, args.c + row * args.ldc + col, first, second);
      } else {
        if (col < args.shape.n) store_element(args, row, col, first);
        if (col + 1 < args.shape.n) store_element(args, row, col + 1, second);
      }
    }
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
  const Path path = agree(more, static_cast<float>(args.shape.k), smem);
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
