// The product of the digits: a producer warp has bulk copies bring chunks to a ring in shared
// memory, two warpgroups multiply them on the tensor cores, each 64 rows of the tile, into one
// int32 accumulator per level. Blocks are persistent: they go from tile to tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "decision.cuh"
#include "digits.cuh"
#include "fp32.cuh"
#include "planes.cuh"
#include "tile_order.cuh"

namespace tilegate::int8x3 {

constexpr int kBlockM = 128;
constexpr int kWarpgroup = 128;
constexpr int kConsumers = 2 * kWarpgroup;
constexpr int kNumThreads = kWarpgroup + kConsumers;  // the first warpgroup is the producer's
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
static_assert(kWarpgroup * (kProducerRegisters + 2 * kConsumerRegisters) <= 65536);
static_assert(kConsumers == kFp32Threads && kBlockM == kFp32Tile);

constexpr int kRingBytes = 221184;
constexpr int kMaxStages = 12;

// Tiles of kBlockM×kN results from kProducts products of digits.
template <int kN, int kProducts>
struct Tiles {
  static constexpr int kBlockN = kN;
  static constexpr int kLevels = kProducts == 6 ? 3 : 4;
  static constexpr int kPlaneBytesB = kN * kChunkK;
  static constexpr int kStageBytes = kChunkBytes + kPlanes * kPlaneBytesB;
  static constexpr int kStages = kRingBytes / kStageBytes;
  static_assert(kChunkRows % kN == 0, "a tile's columns are in one chunk");
  static_assert(kStages <= kMaxStages && kStageBytes % 1024 == 0);
  static_assert(kProducts == 6 || kProducts == 8);
};
using Eight = Tiles<64, 8>;  // a fourth accumulator has room beside 64 columns only

// What the integers of a tile are worth: of a warpgroup's rows, and of the tile's columns.
struct Steps {
  float row[kBlockM / 2], col[128];
};

struct MultiplyStorage {
  union {
    std::byte ring[kRingBytes];
    Fp32Storage fp32;
  };
  device::Barrier full[kMaxStages], empty[kMaxStages];
  float sums[kNumThreads / 32][2];
  Steps steps[2];
};

// Beside KernelArgs.
struct MultiplyArgs {
  Planes a, b;
  const std::byte *planes_a = nullptr, *planes_b = nullptr;
  const float *steps_a = nullptr, *steps_b = nullptr;
  const float* widths = nullptr;  // of the split pass's blocks: first A's, then B's
  unsigned widths_a = 0, widths_b = 0;
  float rows_a = 1, rows_b = 1;  // that the widths are of
  Path* decision = nullptr;      // what the device decided is left there
  Path least = Path::kSix;
  float summed = 0.0F;           // k in one sum of FP32, to be as accurate as which
  std::int64_t first_chunk = 0, chunks = 0;  // of K
  bool pairs = false;  // two neighbours of C are an aligned vector
  TileOrder narrow;    // tiles of 64 columns
  Fp32Args wide;       // and of 128
};

template <typename Six>
__host__ __device__ const TileOrder& six_order(const MultiplyArgs& more) {
  return Six::kBlockN == kChunkRows ? more.wide.order : more.narrow;
}

// The same in every block: the widths are added in a fixed order.
__device__ inline Path agree(const MultiplyArgs& more, MultiplyStorage& smem) {
  const unsigned thread = threadIdx.x;
  float sum_a = 0.0F, sum_b = 0.0F;
  for (unsigned i = thread; i < more.widths_a; i += kNumThreads) sum_a += more.widths[i];
  for (unsigned i = thread; i < more.widths_b; i += kNumThreads) {
    sum_b += more.widths[more.widths_a + i];
  }
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    sum_a += __shfl_xor_sync(~0U, sum_a, lanes);
    sum_b += __shfl_xor_sync(~0U, sum_b, lanes);
  }
  if (thread % 32 == 0) {
    smem.sums[thread / 32][0] = sum_a;
    smem.sums[thread / 32][1] = sum_b;
  }
  __syncthreads();  // all warps have added theirs, and the barriers are initialised
  sum_a = sum_b = 0.0F;
  for (int warp = 0; warp < kNumThreads / 32; ++warp) {
    sum_a += smem.sums[warp][0];
    sum_b += smem.sums[warp][1];
  }
  return decide(sum_a / more.rows_a, sum_b / more.rows_b, more.summed, more.least);
}

// Goes round the ring: which stage is next, and in which phase its barriers are.
template <int kStages>
struct Ring {
  int stage = 0;
  unsigned phase = 0;

  __device__ void advance() {
    if (++stage < kStages) return;
    stage = 0;
    phase ^= 1;
  }
};

// By one thread.
template <typename T>
__device__ void produce(const MultiplyArgs& more, const TileOrder& order, unsigned tiles,
                        MultiplyStorage& smem) {
  Ring<T::kStages> ring;
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    const TileOrder::Tile tile = order.tile(index);
    const std::int64_t col = std::int64_t{tile.col} * T::kBlockN;
    const std::byte* a =
        more.planes_a + more.a.chunk(tile.product, tile.row, more.first_chunk);
    const std::byte* b =
        more.planes_b + more.b.chunk(tile.product, col / kChunkRows, more.first_chunk) +
        col % kChunkRows * kChunkK;
    for (std::int64_t chunk = 0; chunk < more.chunks; ++chunk) {
      device::barrier_wait(smem.empty[ring.stage], ring.phase ^ 1);
      device::Barrier& full = smem.full[ring.stage];
      std::byte* stage = smem.ring + ring.stage * T::kStageBytes;
      device::barrier_arrive_expect(full, T::kStageBytes);
      device::copy_bulk(stage, a, kChunkBytes, full);
      if constexpr (T::kBlockN == kChunkRows) {
        device::copy_bulk(stage + kChunkBytes, b, kChunkBytes, full);
      } else {
#pragma unroll
        for (int plane = 0; plane < kPlanes; ++plane) {
          device::copy_bulk(stage + kChunkBytes + plane * T::kPlaneBytesB, b + plane * kPlaneBytes,
                            T::kPlaneBytesB, full);
        }
      }
      a += kChunkBytes;
      b += kChunkBytes;
      ring.advance();
    }
  }
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

// Each thread of a warpgroup fetches its share of the steps before the multiplications and passes it
// on after them: loads between the stores of results would wait for memory again and again.
template <typename T>
struct StepShare {
  float row = 0.0F, col = 0.0F;

  __device__ StepShare(const MultiplyArgs& more, const TileOrder::Tile& tile, int warpgroup,
                       int thread) {
    const float* rows = more.steps_a + more.a.own(tile.product) * more.a.rows() +
                        std::int64_t{tile.row} * kBlockM + warpgroup * (kBlockM / 2);
    const float* cols = more.steps_b + more.b.own(tile.product) * more.b.rows() +
                        std::int64_t{tile.col} * T::kBlockN;
    if (thread < kBlockM / 2) row = rows[thread];
    if (thread < T::kBlockN) col = cols[thread];
  }

  __device__ void pass_on(Steps& steps, int warpgroup, int thread) const {
    meet(warpgroup);  // the steps of the tile before have been read
    if (thread < kBlockM / 2) steps.row[thread] = row;
    if (thread < T::kBlockN) steps.col[thread] = col;
    meet(warpgroup);  // these are there
  }

  // Of the threads of a warpgroup.
  static __device__ void meet(int warpgroup) {
    if (warpgroup == 0) {
      device::named_barrier<2>(kWarpgroup);
    } else {
      device::named_barrier<3>(kWarpgroup);
    }
  }
};

// C ← alpha·sum + beta·C for an element, or for it and the next.
__device__ inline void store(const KernelArgs& args, float* c, float sum) {
  *c = args.beta == 0.0F ? args.alpha * sum : args.alpha * sum + args.beta * *c;
}
__device__ inline void store_pair(const KernelArgs& args, float* c, float first, float second) {
  float2 v = make_float2(args.alpha * first, args.alpha * second);
  if (args.beta != 0.0F) {
    const auto old = device::load_vector<float2>(c);
    v = make_float2(v.x + args.beta * old.x, v.y + args.beta * old.y);
  }
  device::store_vector(c, v);
}

// A warpgroup's results: thread t has pairs of columns of the rows t / 4 and t / 4 + 8 of each 16.
// `row`: of C, the first of the warpgroup's.
template <typename T>
__device__ void store_results(const KernelArgs& args, bool pairs, std::int64_t row,
                              std::int64_t col, int thread, const Steps& steps,
                              std::int32_t (&acc)[T::kLevels][T::kBlockN / 2]) {
  const int in_row = thread / 32 * 16 + thread % 32 / 4, in_col = thread % 4 * 2;
  const std::int64_t left = args.shape.n - col - in_col;
  const int cols = left < T::kBlockN ? static_cast<int>(left) : T::kBlockN;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (row + in_row + 8 * half >= args.shape.m) continue;
    float* c = args.c + (row + in_row + 8 * half) * args.ldc + col + in_col;
    const float step_row = steps.row[in_row + 8 * half];
#pragma unroll
    for (int group = 0; group < T::kBlockN / 8; ++group) {
      float sum[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        std::int32_t level[T::kLevels];
#pragma unroll
        for (int j = 0; j < T::kLevels; ++j) level[j] = acc[j][4 * group + 2 * half + i];
        sum[i] = fold(level) * step_row * steps.col[8 * group + in_col + i];
      }
      if (8 * group >= cols) continue;
      if (pairs) {
        store_pair(args, c + 8 * group, sum[0], sum[1]);
      } else {
        store(args, c + 8 * group, sum[0]);
        if (8 * group + 1 < cols) store(args, c + 8 * group + 1, sum[1]);
      }
    }
  }
}

// By each of the two warpgroups.
template <typename T>
__device__ void consume(const KernelArgs& args, const MultiplyArgs& more, const TileOrder& order,
                        unsigned tiles, int warpgroup, int thread, MultiplyStorage& smem) {
  Ring<T::kStages> ring;
  for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
    const TileOrder::Tile tile = order.tile(index);
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
      if (chunk > 0 && thread % 32 == 0) device::barrier_arrive(smem.empty[before]);
      before = ring.stage;
      ring.advance();
    }
    device::warpgroup_wait<0>();
    if (thread % 32 == 0) device::barrier_arrive(smem.empty[before]);
#pragma unroll
    for (int level = 0; level < T::kLevels; ++level) device::warpgroup_results(acc[level]);
    share.pass_on(smem.steps[warpgroup], warpgroup, thread);
    KernelArgs product = args;
    product.c += tile.product * args.stride_c;
    store_results<T>(product, more.pairs,
                     std::int64_t{tile.row} * kBlockM + warpgroup * (kBlockM / 2),
                     std::int64_t{tile.col} * T::kBlockN, thread, smem.steps[warpgroup], acc);
  }
}

template <typename Six>
__global__ void __launch_bounds__(kNumThreads, 1) multiply(KernelArgs args, MultiplyArgs more) {
  auto& smem = device::shared_storage<MultiplyStorage>();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kMaxStages; ++stage) {
      device::barrier_init(smem.full[stage], 1);
      device::barrier_init(smem.empty[stage], kConsumers / 32);  // each warp waits for its own
    }
    device::barrier_init_fence();
  }
  device::wait_for_previous_kernel();
  device::let_next_kernel_start();
  const Path path = agree(more, smem);
  const TileOrder& order = six_order<Six>(more);
  const auto products = static_cast<unsigned>(args.batch);
  if (threadIdx.x < kWarpgroup) {
    device::give_registers<kProducerRegisters>();
    if (threadIdx.x != 0) return;
    if (blockIdx.x == 0) *more.decision = path;
    if (path == Path::kSix) {
      produce<Six>(more, order, products * order.count, smem);
    } else if (path == Path::kEight) {
      produce<Eight>(more, more.narrow, products * more.narrow.count, smem);
    }
  } else {
    device::take_registers<kConsumerRegisters>();
    const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const int warpgroup = static_cast<int>(threadIdx.x) / kWarpgroup - 1;
    if (path == Path::kSix) {
      consume<Six>(args, more, order, products * order.count, warpgroup, thread, smem);
    } else if (path == Path::kEight) {
      consume<Eight>(args, more, more.narrow, products * more.narrow.count, warpgroup, thread,
                     smem);
    } else if (more.first_chunk == 0) {
      const unsigned tiles = products * more.wide.order.count;
      for (unsigned index = blockIdx.x; index < tiles; index += gridDim.x) {
        multiply_fp32(args, more.wide, index, warpgroup * kWarpgroup + thread, smem.fp32);
      }
    }
  }
}

}  // namespace tilegate::int8x3
