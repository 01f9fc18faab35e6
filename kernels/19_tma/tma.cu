// Tma: warp specialization. One producer warp issues TMA loads of boxes of A and B into a ring in
// shared memory; consumer warps multiply.
//
// New against AsyncCopy: no thread computes addresses of global memory, and no barrier stops all
// threads of a block; each stage of the ring has two mbarriers instead, full and empty. What limits
// it: issue slots, and whole tiles. TMA needs pointers and rows of A and B aligned to 16 bytes;
// other operands take a kernel with the tiles and copies of AsyncCopy. No transposed operands: TMA
// does not transpose. Needs compute capability 9.0.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <tilegate/common/async/mainloop.cuh>
#include <tilegate/common/async/plan.cuh>
#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/instruction_order.cuh>
#include <tilegate/common/interleaved/config.cuh>
#include <tilegate/common/interleaved/plan.cuh>
#include <tilegate/common/operand_map.hpp>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/tensor_map.hpp>
#include <tilegate/stage.hpp>

#include "tma.cuh"

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

// For operands that TMA cannot load.
struct TilesOfWords {
  static constexpr const char* kName = "64x64x32s4";
  static constexpr int kBlockM = 64, kBlockN = 64, kBlockK = 32;
  static constexpr int kWarpM = 64, kWarpN = 32, kSlices = 4;
  static constexpr int kStages = 3, kVectorBatches = 2, kWordBatches = 4;
  static constexpr int kBlocksPerSm = 2;
  static constexpr bool kPermutedLanes = true, kChecksEdges = true, kSwapsNeighbours = true;
  static constexpr cost::BlockCost kVectorCost = {51.5, 1.3}, kWordCost = {46.9, 2.2};
};

// With K = 0 nothing is copied, and A and B may be null.
template <typename Config>
Status make_maps(const Problem& problem, OperandMaps* maps) {
  if (problem.shape.k == 0) return {};
  if (Status s = make_operand_map(problem, Operand::kA, {Config::kBlockK, Config::kBlockM, 1},
                                  SharedStorage<Config>::kSwizzleOfA, &maps->a);
      !s.ok()) {
    return s;
  }
  return make_operand_map(problem, Operand::kB, {Config::kBlockN, Config::kBlockK, 1},
                          device::Swizzle::kNone, &maps->b);
}

template <typename Config, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm_of_words(KernelArgs args, SplitK split_k) {
  compute_block<Config>(args, split_k);
}

template <typename Config>
PlannedKernel planned_kernel(const Shape& shape, bool vectors) {
  const TileScheduler scheduler = interleaved::scheduler_of<Config>(shape);
  return {.name = Config::kName + std::string(vectors ? " boxes to vectors" : " boxes to words"),
          .parameters = {parameter::rows(Config::kBlockM), parameter::columns(Config::kBlockN),
                         parameter::depth(Config::kBlockK),
                         parameter::ring("k tiles of a block", ceil_div(shape.k, Config::kBlockK),
                                         Config::kStages),
                         scheduling(scheduler), columns_of_groups(scheduler)}};
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
  OperandMaps planned{};
  const Status status = make_maps<Config>(problem, &planned);
  list.push_back(
      {{.status = status,
        .configuration = Config::kName,
        .rounding_chain = serial_rounding_chain(problem.shape),
        .enqueue =
            [=](const KernelArgs& args, Stream stream) {
              OperandMaps maps = planned;
              if (Status s = set_addresses(args, &maps); !s.ok()) return s;
              return device::launch(launch, stream, sgemm<Config, SourceOrder>, args, maps.a,
                                    maps.b,
                                    Output{interleaved::scheduler_of<Config>(args.shape), vectors});
            },
        .kernels = [=] { return std::vector{planned_kernel<Config>(problem.shape, vectors)}; }},
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
    .idea = "warp specialization: a producer warp issues TMA loads",
    .requirements = {.compute_capability = 90, .not_on_simt = {}},
    .takes_batches = true,
    .tile_sizes = kTileSizes,
    .candidates = candidates,
    .setup = setup,
};

}  // namespace tilegate::tma
