// Interleaved: every instruction of the main loop is where the source puts it.
//
// New against InstructionOrder: not only the FFMA keep the order of the source. Loads and stores
// are spread between them, one at a time (common/interleaved/mainloop.cuh). So A's fragment can be
// replaced in place, a thread can hold 16×8 results, and one block of 128×256 per multiprocessor is
// enough. Supports transposed operands and batches. What limits it: the number of tiles is no
// multiple of the number of multiprocessors.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/instruction_order.cuh>
#include <tilegate/common/interleaved/mainloop.cuh>
#include <tilegate/common/interleaved/plan.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::interleaved {

// One tile per block. `Order` is unused: SourceOrder is struct cutlass, and ptxas keeps the
// source's order in kernels whose symbol contains that name.
template <typename Config, typename Layout, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args, TileScheduler scheduler) {
  device::wait_for_previous_kernel();
  device::launch_dependents();
  auto& smem = device::shared_storage<SharedStorage<Config, Layout>>();
  const TileCoord tile = scheduler.tile(blockIdx.x);
  if (threadIdx.x == 0) smem.tile = tile;
  float acc[Config::kThreadM][Config::kThreadN]{};
  Loop<Config, Layout>(args, tile, KTiles<Config>::all(args.shape.k)).multiply(acc);
  __syncthreads();  // smem.tile is stored before any thread reads it
  store_tile<Config, Layout>(from_tile<Config>(args, smem.tile), acc);
}

// The kernel of a tile for a layout of the operands; nullptr where the tile does not take it.
template <typename Config>
constexpr auto kernel_for = []<typename Layout>(Layout) -> KernelOf<KernelArgs, TileScheduler> {
  if constexpr (Config::template kTakes<Layout>) {
    return {sgemm<Config, Layout, typename Config::Order>, sizeof(SharedStorage<Config, Layout>)};
  }
  return {};
};

// The plan: appends one tile's launch, with the time that the cost model expects.
template <typename Tiles>
void add_candidate(const Problem& problem, const Device& device, std::vector<Candidate>& list) {
  using Config = InterleavedTiles<Tiles>;
  const auto instance = with_layout(problem, kernel_for<Config>);
  const auto kernel = instance.kernel;
  const std::int64_t tiles = count_tiles<Config>(problem);
  if (kernel == nullptr || tiles == 0) return;
  const std::int64_t k_tiles = ceil_div(problem.shape.k, Config::kBlockK);
  const device::LaunchConfig launch{
      .kernel = "interleaved",
      .blocks = tiles,
      .threads_x = Config::kNumThreads,
      .shared_bytes = instance.shared_bytes,
      .overlaps_previous = device.compute_capability >= 90 &&
                           cost::spreads_evenly(tiles, Config::kBlocksPerSm, device)};
  Choice choice{.configuration = Config::kName,
                .rounding_chain = rounding_chain<Config>(problem.shape, k_tiles)};
  choice.enqueue = [=](const KernelArgs& args, Stream stream) {
    return device::launch(launch, stream, kernel, args, scheduler_of<Config>(args.shape));
  };
  choice.kernels = [=] { return std::vector{planned_kernel<Config>(problem, k_tiles)}; };
  Parts parts = cost::parts(problem, device, block_seconds<Config>(tiles, k_tiles, device),
                            allows_counted_vectors(problem), 0.0);
  describe_blocks<Config>(problem, device, tiles, tiles, parts);
  list.push_back({std::move(choice), cost::total(parts, launch.overlaps_previous), parts});
}

// All tiles that take the problem. `pick` (core/stage.cpp) takes tuned ones first, then the least
// seconds.
template <typename... Tiles>
std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  std::vector<Candidate> list;
  if (Status s = check_extents(problem); !s.ok()) return {{.choice = {.status = s}}};
  (add_candidate<Tiles>(problem, device, list), ...);
  if (list.empty()) return {{.choice = {.status = too_many_tiles()}}};
  return list;
}

template <typename... Tiles>
Status setup() {
  Status status;
  ((status = allow_shared_memory(kernel_for<InterleavedTiles<Tiles>>)).ok() && ...);
  return status;
}

template <typename... Tiles>
constexpr Stage make_stage(std::string_view name) {
  return {.name = name,
          .idea = "loads and stores spread between the FFMA, in the order of the source",
          .takes_transposed = true,
          .takes_batches = true,
          .tile_sizes = kTileSizes,
          .candidates = candidates<Tiles...>,
          .setup = setup<Tiles...>};
}

}  // namespace tilegate::interleaved
