// Tma's kernel, in order: configuration, shared memory, producer, consumers, store.
#pragma once

#include <utility>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/fragment.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/interleaved/config.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::tma {

// From the numbers that a stage gives as Tiles, what the kernel needs:
//
//   kBlockM kBlockN kBlockK  the block's tile
//   kThreadM kThreadN        a thread's results: rows kLanesM apart, columns in parts of 4
//   kStages                  k tiles in shared memory
//   kBlocksPerSm             limits registers
//   kRegisters, kProducerRegisters  of a thread, once producers have given back what they do not
//                            need: as many together as all had at first
template <typename Tiles>
struct Config : Tiles {
  using Tiles::kBlockM, Tiles::kBlockN, Tiles::kBlockK, Tiles::kThreadM, Tiles::kThreadN;
  static constexpr int kLanesM = 8, kLanesN = 4;
  static constexpr int kStepN = 4 * kLanesN;  // columns from one part of a thread's to the next
  static constexpr int kWarpM = kLanesM * kThreadM, kWarpN = kLanesN * kThreadN;
  static constexpr int kWarpsN = kBlockN / kWarpN;
  static constexpr int kConsumers = 32 * (kBlockM / kWarpM) * kWarpsN;  // threads
  // And a warpgroup for the producer, though it is one thread: registers change hands by
  // warpgroups.
  static constexpr int kProducers = 128;
  static constexpr int kNumThreads = kConsumers + kProducers;
  static constexpr int kSteps = 8;                  // of k, in a round
  static constexpr int kRounds = kBlockK / kSteps;  // in a k tile
  static_assert(kConsumers % 128 == 0, "the producers' warpgroup follows whole ones");
  static_assert(kThreadN % 4 == 0, "fragments of B are 128-bit loads");
  static_assert(kBlockM % kWarpM == 0 && kBlockN % kWarpN == 0, "uncovered parts of the tile");
  static_assert(kBlockK == 16, "rows of A's box are as wide as its swizzle, 64 bytes");
  static_assert(kBlockM <= 256 && kBlockN <= 256, "the largest box");

  // First row and column of a consumer's results in the tile. Lanes are
  // permuted.
  struct Position {
    int m, n;
  };
  static __device__ Position position() {
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int lane_m = (lane >> 1 & 1) | (lane >> 3 & 1) << 1 | (lane >> 4) << 2;
    const int lane_n = (lane & 1) | (lane >> 2 & 1) << 1;
    return {warp / kWarpsN * kWarpM + lane_m, warp % kWarpsN * kWarpN + 4 * lane_n};
  }
};

template <typename Config>
struct SharedStorage {
  struct KTile {
    float a[Config::kBlockM][Config::kBlockK];  // as in memory, but for the swizzle
    float b[Config::kBlockK][Config::kBlockN];
  };
  static constexpr auto kSwizzleOfA = device::Swizzle::k64Bytes;
  static_assert(sizeof(KTile) % 1024 == 0, "the swizzle pattern starts with each k tile");

  alignas(1024) KTile ring[Config::kStages];
  device::Barrier full[Config::kStages], empty[Config::kStages];
  TileCoord tile;  // of the block: not in registers, which are few
};

// Producer, one thread: issues TMA loads of boxes of A and B into the ring, each when the consumers
// have released its stage.

template <typename Config>
__device__ void produce(const device::TensorMap& a, const device::TensorMap& b,
                        const KernelArgs& args, int k_tiles, SharedStorage<Config>& smem) {
  using KTile = typename SharedStorage<Config>::KTile;
  const TileCoord tile = smem.tile;
  const auto row = static_cast<int>(tile.row) * Config::kBlockM;
  const auto col = static_cast<int>(tile.col) * Config::kBlockN;
  // All products may share an operand, of which the map then has one matrix.
  const int product_a = args.stride_a == 0 ? 0 : static_cast<int>(tile.product);
  const int product_b = args.stride_b == 0 ? 0 : static_cast<int>(tile.product);
  Pipeline<Config::kStages> pipeline;
  // idea:begin Tma
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    const int k = k_tile * Config::kBlockK;
    pipeline.producer_acquire(smem.empty);
    KTile& to = smem.ring[pipeline.stage];
    device::Barrier& full = pipeline.producer_expect(smem.full, sizeof(KTile));
    device::copy_tensor(to.a, a, k, row, product_a, full);
    device::copy_tensor(to.b, b, col, k, product_b, full);
    pipeline.advance();
  }
  // idea:end
}

// Consumers: they read fragments from the ring and multiply. Apart from the barriers of the ring
// they touch neither global memory nor each other. Every instruction stands where the source puts
// it, as in interleaved/mainloop.cuh.

// A is read as it lies, four k of a row per load: the registers of a row are replaced, once its
// FFMA of the last of the four are done. B is read four columns per load, one k ahead.
template <typename Config>
class Consumer {
  static constexpr int kM = Config::kThreadM, kN = Config::kThreadN;
  static constexpr int kSteps = Config::kSteps;
  using Shared = SharedStorage<Config>;
  static constexpr unsigned kRowA = sizeof(float) * Config::kBlockK;
  static constexpr unsigned kRowB = sizeof(float) * Config::kBlockN;
  static constexpr unsigned kVector = 4 * sizeof(float);
  static constexpr unsigned kPartB = sizeof(float) * Config::kStepN;

 public:
  // acc += the product of so many k tiles.
  __device__ void multiply(int k_tiles, float (&acc)[kM][kN]) {
    rounds_left_ = k_tiles * Config::kRounds;
    if (rounds_left_ == 0) return;
    const auto at = Config::position();
    // Rows of A are 64 bytes; with the swizzle, vector v of row r is at place v ^ (r / 2 % 4). All
    // rows of a thread are a multiple of 8 apart, so that they have the same places.
    read_a_ = device::shared_address(&smem().ring[0].a[at.m][at.m / 2 % 4 * 4]);
    read_b_ = device::shared_address(&smem().ring[0].b[0][at.n]);
    pipeline_.consumer_wait(smem().full);
#pragma unroll
    for (int i = 0; i < kM - 1; ++i) load_a(i, read_a_);
    load_b(0);
#pragma unroll 1
    for (; rounds_left_ > 0; --rounds_left_) {
      multiply_steps(acc, std::make_integer_sequence<int, kSteps>{});
    }
  }

 private:
  static __device__ Shared& smem() { return device::shared_storage<Shared>(); }

  template <int... k>
  __device__ void multiply_steps(float (&acc)[kM][kN], std::integer_sequence<int, k...>) {
    (multiply_step<k>(acc), ...);  // not a loop: too large for what compilers unroll
  }

  template <int k>
  __device__ void multiply_step(float (&acc)[kM][kN]) {
#pragma unroll
    for (int i = 0; i < kM; ++i) {
      device::ordered::fma_row(acc[i], frag_a_[i][k % 4], frag_b_[k % 2], is_ascending(i),
                               [&](int n) {
                                 const int slot = i * kN + n;
                                 if (k == kSteps - 1 && slot == kN) next_round();
                                 load_fragments(k, slot);
                               });
    }
  }

  // After next_round() the next step is the next round's first.
  __device__ void load_fragments(int k, int slot) {
    const device::SharedAddress this_four = k < 4 ? read_a_ : read_a_ ^ kVector;
    const device::SharedAddress next_four = k < 4 ? read_a_ ^ kVector : read_a_;
    if (k % 4 == 0 && slot == 1) load_a(kM - 1, this_four);
    if (k % 4 == 3 && slot > kN && slot % kN == 1) load_a(slot / kN - 1, next_four);
    constexpr int kParts = kN / 4, kGap = (kM - 2) * kN / kParts;
    const int after_turn = slot - kN - 3;
    if (after_turn >= 0 && after_turn % kGap == 0 && after_turn / kGap < kParts) {
      load_b_part((k + 1) % kSteps, after_turn / kGap);
    }
  }

  __device__ void load_a(int i, device::SharedAddress four) {
    device::ordered::load_shared(frag_a_[i], four + i * Config::kLanesM * kRowA);
  }
  __device__ void load_b_part(int k, int part) {
    device::ordered::load_shared(&frag_b_[k % 2][4 * part], read_b_ + k * kRowB + part * kPartB);
  }
  __device__ void load_b(int k) {
#pragma unroll
    for (int part = 0; part < kN / 4; ++part) load_b_part(k, part);
  }

  // Goes to the next round, in the last step of this one, after its first row: then all fragments
  // of the k tile have been used, and no load of it is in flight. In the last round the loads that
  // follow stay in this k tile; their results are not used.
  __device__ void next_round() {
    if (rounds_left_ == 1) return;
    const bool tile_done = rounds_left_ % Config::kRounds == 1;
    read_a_ ^= 2 * kVector;  // to the other half of the rows, and back
    if (!tile_done) {
      read_b_ += kSteps * kRowB;
      return;
    }
    __syncwarp();  // all lanes have read the k tile before it may be overwritten
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
  int rounds_left_ = 0;  // with this one
  device::SharedAddress read_a_, read_b_;
};

// Among the arguments of the kernel.
struct Output {
  TileScheduler scheduler;
  bool vectors;  // rows of C consist of whole vectors
};

// C ← alpha·acc + beta·C in the consumer's part of the tile.
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

// `Order` is there to be part of the symbol.
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
  __syncthreads();  // the barriers are made, and the place is stored, before anyone uses them
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
