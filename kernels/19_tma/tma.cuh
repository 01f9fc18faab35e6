// Tma's kernel, in order: configuration, shared memory, producer, consumers, store.
#pragma once

#include <utility>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/fragment.cuh>
#include <tilegate/common/interleaved/config.cuh>
#include <tilegate/common/lane_layout.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::tma {

// The configuration, from a stage's Tiles:
//
//   kBlockM kBlockN kBlockK  block tile
//   kThreadM kThreadN        results per thread: rows kLanesM apart, vectors of 4 columns
//   kStages                  k tiles in shared memory
//   kBlocksPerSm             limits registers
//   kRegisters, kProducerRegisters  per thread, after setmaxnreg: the sum over all threads is that
//                            of the launch
template <typename Tiles>
struct Config : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kThreadM, Tiles::kThreadN;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kStepN = 4 * kLanesN;  // columns from one vector of a thread to the next
  static constexpr int kWarpM = kLanesM * kThreadM, kWarpN = kLanesN * kThreadN;
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kConsumers = 32 * (kBlockM / kWarpM) * kWarpsN;  // threads
  // The producer is one thread, but setmaxnreg applies to whole warpgroups.
  static constexpr int kProducers = 128;
  static constexpr int kNumThreads = kConsumers + kProducers;
  static constexpr int kSteps = 8;                      // k steps per iteration
  static constexpr int kIterations = kBlockK / kSteps;  // iterations per k tile
  static_assert(kConsumers % 128 == 0, "the producer's warpgroup is not aligned");
  static_assert(kThreadN % 4 == 0, "fragments of B are 128-bit loads");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0,
                "elements of the tile without a thread");
  static_assert(kBlockK == 16, "rows of A's box are not as wide as the swizzle, 64 bytes");
  static_assert(kBlockM <= 256 && kBlockN <= 256, "larger than the largest box");

  // First row and column of a consumer's results in the tile. Permuted lane layout.
  struct Position {
    int m, n;
  };
  static __device__ Position position() {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int lane_m = lane_row<kLanesN, true>(lane), lane_n = lane_column<kLanesN, true>(lane);
    return {warp / kWarpsN * kWarpM + lane_m, warp % kWarpsN * kWarpN + 4 * lane_n};
  }
};

template <typename Config>
struct SharedStorage {
  struct KTile {
    float a[Config::kBlockM][Config::kBlockK];  // swizzled
    float b[Config::kBlockK][Config::kBlockN];
  };
  static constexpr auto kSwizzleOfA = device::Swizzle::k64Bytes;
  static_assert(sizeof(KTile) % 1024 == 0, "the swizzle pattern starts with each k tile");

  alignas(1024) KTile ring[Config::kStages];
  device::Barrier full[Config::kStages], empty[Config::kStages];
  TileCoord tile;  // not in registers, which the main loop needs
};

// Producer, one thread: issues TMA loads of boxes of A and B into the ring.
template <typename Config>
__device__ void produce(const device::TensorMap& a, const device::TensorMap& b,
                        const KernelArgs& args, int k_tiles, SharedStorage<Config>& smem) {
  using KTile = typename SharedStorage<Config>::KTile;
  const TileCoord tile = smem.tile;
  const auto row = static_cast<int>(tile.row) * Config::kBlockM;
  const auto col = static_cast<int>(tile.col) * Config::kBlockN;
  // An operand that the batch shares has one matrix in its map.
  const int batch_a = args.stride_a == 0 ? 0 : static_cast<int>(tile.batch_index);
  const int batch_b = args.stride_b == 0 ? 0 : static_cast<int>(tile.batch_index);
  Pipeline<Config::kStages> pipeline;
  // idea:begin Tma
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    const int k = k_tile * Config::kBlockK;
    pipeline.producer_acquire(smem.empty);
    KTile& to = smem.ring[pipeline.stage];
    device::Barrier& full = pipeline.producer_expect(smem.full, sizeof(KTile));
    device::copy_tensor(to.a, a, k, row, batch_a, full);
    device::copy_tensor(to.b, b, col, k, batch_b, full);
    pipeline.advance();
  }
  // idea:end
}

// Consumers: they read fragments from the ring and multiply. They access no global memory and
// synchronize through the ring's mbarriers only. Every instruction is where the source puts it, as
// in interleaved/mainloop.cuh.
//
// A is not transposed: a load reads four k of a row and overwrites the row's registers after the
// FFMA of the last k. B is read four columns per load, one k ahead.
template <typename Config>
class Consumer {
  static constexpr int kM = Config::kThreadM, kN = Config::kThreadN;
  static constexpr int kSteps = Config::kSteps;
  using Shared = SharedStorage<Config>;
  static constexpr unsigned kRowA = sizeof(float) * Config::kBlockK;
  static constexpr unsigned kRowB = sizeof(float) * Config::kBlockN;
  static constexpr unsigned kVector = 4 * sizeof(float);
  static constexpr unsigned kStepB = sizeof(float) * Config::kStepN;

 public:
  // acc += the products of `k_tiles` k tiles.
  __device__ void multiply(int k_tiles, float (&acc)[kM][kN]) {
    iterations_left_ = k_tiles * Config::kIterations;
    if (iterations_left_ == 0) return;
    const auto at = Config::position();
    // 64-byte swizzle: vector v of row r of A is at position v ^ (r / 2 % 4). The rows of a thread
    // are multiples of 8 apart, so that their positions are the same.
    read_a_ = device::shared_address(&smem().ring[0].a[at.m][at.m / 2 % 4 * 4]);
    read_b_ = device::shared_address(&smem().ring[0].b[0][at.n]);
    pipeline_.consumer_wait(smem().full);
#pragma unroll
    for (int i = 0; i < kM - 1; ++i) load_a(i, read_a_);
    load_b(0);
#pragma unroll 1
    for (; iterations_left_ > 0; --iterations_left_) {
      multiply_steps(acc, std::make_integer_sequence<int, kSteps>{});
    }
  }

 private:
  static __device__ Shared& smem() { return device::shared_storage<Shared>(); }

  template <int... k>
  __device__ void multiply_steps(float (&acc)[kM][kN], std::integer_sequence<int, k...>) {
    (multiply_step<k>(acc), ...);  // not a loop: too large for compilers to unroll
  }

  template <int k>
  __device__ void multiply_step(float (&acc)[kM][kN]) {
#pragma unroll
    for (int i = 0; i < kM; ++i) {
      device::ordered::fma_row(acc[i], frag_a_[i][k % 4], frag_b_[k % 2], is_ascending(i),
                               [&](int n) {
                                 const int slot = i * kN + n;
                                 if (k == kSteps - 1 && slot == kN) next_iteration();
                                 load_fragments(k, slot);
                               });
    }
  }

  // After next_iteration() the next step is the first of the next iteration.
  __device__ void load_fragments(int k, int slot) {
    const device::SharedAddress this_four = k < 4 ? read_a_ : read_a_ ^ kVector;
    const device::SharedAddress next_four = k < 4 ? read_a_ ^ kVector : read_a_;
    if (k % 4 == 0 && slot == 1) load_a(kM - 1, this_four);
    if (k % 4 == 3 && slot > kN && slot % kN == 1) load_a(slot / kN - 1, next_four);
    constexpr int kVectors = kN / 4, kGap = (kM - 2) * kN / kVectors;
    const int since_advance = slot - kN - 3;
    if (since_advance >= 0 && since_advance % kGap == 0 && since_advance / kGap < kVectors) {
      load_b_vector((k + 1) % kSteps, since_advance / kGap);
    }
  }

  __device__ void load_a(int i, device::SharedAddress four) {
    device::ordered::load_shared(frag_a_[i], four + i * Config::kLanesM * kRowA);
  }
  __device__ void load_b_vector(int k, int i) {
    device::ordered::load_shared(&frag_b_[k % 2][4 * i], read_b_ + k * kRowB + i * kStepB);
  }
  __device__ void load_b(int k) {
#pragma unroll
    for (int i = 0; i < kN / 4; ++i) load_b_vector(k, i);
  }

  // Moves to the next iteration, in the last step of this one, after its first row: then all
  // fragments of the k tile have been used, and no load of it is in flight. In the last iteration
  // the loads that follow stay in this k tile; their results are not used.
  __device__ void next_iteration() {
    if (iterations_left_ == 1) return;
    const bool tile_done = iterations_left_ % Config::kIterations == 1;
    read_a_ ^= 2 * kVector;  // the other half of the rows
    if (!tile_done) {
      read_b_ += kSteps * kRowB;
      return;
    }
    __syncwarp();  // all lanes have read the k tile before one releases it
    if (threadIdx.x % 32 == 0) device::barrier_arrive(smem().empty[pipeline_.stage]);
    constexpr unsigned kTile = sizeof(typename Shared::KTile), kRing = Config::kStages * kTile;
    const unsigned step = pipeline_.stage == Config::kStages - 1 ? kTile - kRing : kTile;
    read_a_ += step;
    read_b_ += step - kSteps * kRowB;
    pipeline_.advance();
    pipeline_.consumer_wait(smem().full);
  }

  float frag_a_[kM][4], frag_b_[2][kN];
  Pipeline<Config::kStages> pipeline_;
  int iterations_left_ = 0;  // iterations, this one included
  device::SharedAddress read_a_, read_b_;
};

// Kernel parameter.
struct Output {
  TileScheduler scheduler;
  bool vectors;  // C allows 128-bit accesses
};

// Epilogue of a consumer: C ← alpha·acc + beta·C.
template <typename Config, bool kVector>
__device__ void store(const KernelArgs& to,
                      const float (&acc)[Config::kThreadM][Config::kThreadN]) {
  const auto at = Config::position();
#pragma unroll
  for (int i = 0; i < Config::kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < Config::kThreadN; j += 4) {
      store4<kVector>(to, at.m + i * Config::kLanesM, at.n + j / 4 * Config::kStepN,
                      make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]));
    }
  }
}

// `Order` becomes part of the symbol.
template <typename Config, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args, const __grid_constant__ device::TensorMap a,
          const __grid_constant__ device::TensorMap b, Output output) {
  auto& smem = device::shared_storage<SharedStorage<Config>>();
  if (threadIdx.x == 0) {
    smem.tile = output.scheduler.tile(blockIdx.x);
    init_pipeline(smem.full, smem.empty, Config::kConsumers / 32);
    device::barrier_init_fence();
  }
  device::wait_for_previous_kernel();
  device::launch_dependents();
  __syncthreads();  // barriers are initialised and smem.tile is stored before any thread uses them
  const auto k_tiles = static_cast<int>(ceil_div(args.shape.k, Config::kBlockK));
  // idea:begin Tma
  if (threadIdx.x >= Config::kConsumers) {
    device::reg_dealloc<Config::kProducerRegisters>();
    if (threadIdx.x == Config::kConsumers) produce<Config>(a, b, args, k_tiles, smem);
    return;
  }
  device::reg_alloc<Config::kRegisters>();
  float acc[Config::kThreadM][Config::kThreadN]{};
  Consumer<Config>().multiply(k_tiles, acc);
  // idea:end
  const KernelArgs to = interleaved::from_tile<Config>(args, smem.tile);
  if (output.vectors) {
    store<Config, true>(to, acc);
  } else {
    store<Config, false>(to, acc);
  }
}

}  // namespace tilegate::tma
