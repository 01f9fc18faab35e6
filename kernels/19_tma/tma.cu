// Tma: one warp has the copy engine bring boxes of A and B to a ring in shared memory, the other
// warps do nothing but read them and multiply.
//
// New against AsyncCopy: no thread computes addresses of global memory, and no barrier stops all
// threads of a block; each stage of the ring has two mbarriers instead, one that says that it is
// full, one that it is empty. What limits it: issue slots, and whole tiles. Boxes need A and B
// 16-byte aligned, pointers and rows; others take a kernel with the tiles and copies of AsyncCopy.
// No transposed operands: the copy engine does not transpose. Needs compute capability 9.0.
#include <cstdint>
#include <vector>

#include <tilegate/common/async_multiply.cuh>
#include <tilegate/common/async_plan.cuh>
#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/instruction_order.cuh>
#include <tilegate/common/interleaved_plan.cuh>
#include <tilegate/common/interleaved_tiles.cuh>
#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "consumer.cuh"
#include "maps.hpp"
#include "producer.cuh"
#include "ring.cuh"

namespace tilegate::tma {

// The costs were fitted to timings at 1024³ to 8192³ on an NVIDIA H200 (driver 580.159.04, CUDA
// 13.0), four per tile.

// For large C.
struct Tiles128x256 {
  static constexpr const char* kName = "128x256x16";
  static constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 16;
  static constexpr int kThreadM = 8, kThreadN = 16;
  static constexpr int kStages = 4, kBlocksPerSm = 1;
  static constexpr int kRegisters = 232, kProducerRegisters = 40;
  static constexpr cost::BlockCost kCost = {56.5, 4.8};
};

// For smaller C: four times as many tiles.
struct Tiles64x128 : Tiles128x256 {
  static constexpr const char* kName = "64x128x16";
  static constexpr int kBlockM = 64, kBlockN = 128, kThreadN = 8;
  static constexpr int kBlocksPerSm = 2;
  static constexpr int kRegisters = 208;
  static constexpr cost::BlockCost kCost = {52.4, 3.5, {0.93, 1.0, 1.0, 1.0}};
};

// For operands that no box can be copied of.
struct TilesOfWords {
  static constexpr const char* kName = "64x64x32s4";
  static constexpr int kBlockM = 64, kBlockN = 64, kBlockK = 32;
  static constexpr int kWarpM = 64, kWarpN = 32, kSlices = 4;
  static constexpr int kStages = 3, kVectorBatches = 2, kWordBatches = 4;
  static constexpr int kBlocksPerSm = 2;
  static constexpr bool kDealtLanes = true, kChecksEdges = true, kSwapsNeighbours = true;
  static constexpr cost::BlockCost kVectorCost = {51.5, 1.3}, kWordCost = {46.9, 2.2};
};

// Among the arguments of the kernel.
struct Output {
  TileWalk walk;
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
    smem.place = output.walk.place(blockIdx.x);
    for (int stage = 0; stage < Config::kStages; ++stage) {
      device::barrier_init(smem.full[stage], 1);
      device::barrier_init(smem.empty[stage], Config::kConsumers / 32);
    }
    device::barrier_init_fence();
  }
  device::wait_for_previous_kernel();
  device::let_next_kernel_start();
  __syncthreads();  // the barriers are made, and the place is stored, before anyone uses them
  const auto k_tiles = static_cast<int>(ceil_div(args.shape.k, Config::kBlockK));
  // idea:begin Tma
  if (threadIdx.x >= Config::kConsumers) {
    device::give_registers<Config::kProducerRegisters>();
    if (threadIdx.x == Config::kConsumers) produce<Config>(a, b, args, k_tiles, smem);
    return;
  }
  device::take_registers<Config::kRegisters>();
  float acc[Config::kThreadM][Config::kThreadN]{};
  Consumer<Config>().multiply(k_tiles, acc);
  // idea:end
  const KernelArgs to = interleaved::from_tile<Config>(args, smem.place);
  if (output.vectors) {
    store<Config, true>(to, acc);
  } else {
    store<Config, false>(to, acc);
  }
}

template <typename Config, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm_of_words(KernelArgs args, KSplit split) {
  multiply_part<Config>(args, split);
}

template <typename Tiles>
void add_candidate(const Problem& problem, const Device& device, std::vector<Candidate>& list) {
  using Config = tma::Config<Tiles>;
  const std::int64_t tiles = interleaved::count_tiles<Config>(problem);
  if (tiles == 0) return;
  const std::int64_t k_tiles = ceil_div(problem.shape.k, Config::kBlockK);
  const bool vectors = allows_vectors(problem, Operand::kC);
  const device::LaunchConfig launch{.kernel = Config::kName,
                                    .blocks = tiles,
                                    .threads_x = Config::kNumThreads,
                                    .shared_bytes = sizeof(SharedStorage<Config>),
                                    .overlaps_previous = true};
  const double flop =
      2.0 * Config::kBlockM * Config::kBlockN * Config::kBlockK * static_cast<double>(k_tiles);
  const double seconds = cost::block_seconds(static_cast<double>(tiles), {.flop = flop},
                                             Config::kCost, Config::kBlocksPerSm, device);
  Parts parts = cost::parts(problem, device, seconds, true, 0.0);
  interleaved::describe_blocks<Config>(problem, device, tiles, tiles, parts);
  Maps planned{};
  const Status status = make_maps<Config>(problem, &planned);
  list.push_back({{.status = status,
                   .configuration = Config::kName,
                   .rounding_chain = serial_rounding_chain(problem.shape),
                   .enqueue =
                       [=](const KernelArgs& args, Stream stream) {
                         Maps maps = planned;
                         if (Status s = set_addresses(args, &maps); !s.ok()) return s;
                         return device::launch(
                             launch, stream, sgemm<Config, SourceOrder>, args, maps.a, maps.b,
                             Output{interleaved::walk_of<Config>(args.shape), vectors});
                       }},
                  cost::total(parts, true),
                  parts});
}

using ConfigOfWords = AsyncConfig<TilesOfWords, Feed::kTransposed, Feed::kWords>;
constexpr AsyncKernel kKernelOfWords[] = {
    async_kernel<ConfigOfWords>(sgemm_of_words<ConfigOfWords, SourceOrder>)};

std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  std::vector<Candidate> list;
  if (!allows_boxes(problem, Operand::kA) || !allows_boxes(problem, Operand::kB)) {
    return async_plan::candidates(kKernelOfWords, problem, device);
  }
  if (Status s = interleaved::check_extents(problem); !s.ok()) return {{.choice = {.status = s}}};
  add_candidate<Tiles128x256>(problem, device, list);
  add_candidate<Tiles64x128>(problem, device, list);
  if (list.empty()) return {{.choice = {.status = interleaved::too_many_tiles()}}};
  return list;
}

template <typename Tiles>
Status allow_ring() {
  using Config = tma::Config<Tiles>;
  return device::allow_shared_memory(sgemm<Config, SourceOrder>, sizeof(SharedStorage<Config>));
}

Status setup() {
  if (Status s = allow_ring<Tiles128x256>(); !s.ok()) return s;
  if (Status s = allow_ring<Tiles64x128>(); !s.ok()) return s;
  return async_plan::allow_shared_memory(kKernelOfWords);
}

constexpr std::int64_t kTileSizes[] = {4, 16, 32, 64, 128, 256};

extern const Stage stage;
const Stage stage{
    .name = "Tma",
    .idea = "a warp that has boxes copied, and others that only multiply",
    .requirements = {.compute_capability = 90, .not_on_simt = {}},
    .takes_batches = true,
    .tile_sizes = kTileSizes,
    .candidates = candidates,
    .setup = setup,
};

}  // namespace tilegate::tma
