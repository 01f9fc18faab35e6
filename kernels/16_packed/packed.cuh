// Packed: operands are packed into the layout that is fastest to multiply.
//
// New against AsyncCopy: a first kernel copies an operand whose rows lie along k, or that allows no
// vectors, to the workspace, in aligned rows of one k; the second kernel then needs 16-byte copies
// only. This pays where each word is read often enough: packing takes time in proportion to M·K and
// K·N, multiplying in proportion to M·N·K. What limits it: the pass over the operands, and the
// workspace for their copies.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tilegate/common/async/mainloop.cuh>
#include <tilegate/common/async/plan.cuh>
#include <tilegate/common/instruction_order.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "packing.cuh"

namespace tilegate::packed {

// The costs were fitted to 105 to 173 timings of each kernel, packing included, on an NVIDIA H200
// (driver 580.159.04, CUDA 13.0), with errors of 3 to 5 % (root mean square of the logarithm).
struct Tiles128x128 {
  static constexpr const char* kName = "128x128x16";
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 16;
  static constexpr int kWarpM = 64, kWarpN = 32, kSlices = 1;
  static constexpr int kStages = 3, kVectorBatches = 2;
  static constexpr int kBlocksPerSm = 2;
  static constexpr bool kPermutedLanes = false, kChecksEdges = false, kSwapsNeighbours = true;
  static constexpr cost::BlockCost kVectorCost = {56.9, 4.4};
};

struct Tiles128x64 : Tiles128x128 {
  static constexpr const char* kName = "128x64x16";
  static constexpr int kBlockN = 64;
  static constexpr int kBlocksPerSm = 4;
  static constexpr bool kPermutedLanes = true;
  static constexpr cost::BlockCost kVectorCost = {54.8, 3.5};
};

// Two slices of K: eight warps per multiprocessor even with one block.
struct Tiles64x64s2 : Tiles128x64 {
  static constexpr const char* kName = "64x64x16s2";
  static constexpr int kBlockM = 64, kSlices = 2, kStages = 3;
  static constexpr cost::BlockCost kVectorCost = {54.6, 2.6, {0.92, 0.95, 0.97, 1.0}};
};

struct Tiles64x64s4 : Tiles64x64s2 {
  static constexpr const char* kName = "64x64x32s4";
  static constexpr int kBlockK = 32, kSlices = 4, kStages = 3;
  static constexpr int kBlocksPerSm = 2;
  static constexpr cost::BlockCost kVectorCost = {54.3, 2.6};
};

// `Order` becomes part of the symbol.
template <typename Config, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args, SplitK split_k) {
  compute_block<Config>(args, split_k);
}

template <typename Tiles>
constexpr AsyncKernel kernel() {
  using Config = AsyncConfig<Tiles, Feed::kVectors, Feed::kVectors>;
  return async_kernel<Config>(sgemm<Config, SourceOrder>);
}

inline Candidate candidate(const AsyncKernel& kernel, const Problem& problem, const Device& device,
                           const async_plan::Partition& partition, const Packings& packings) {
  const SplitK split_k =
      async_plan::split_k_of(kernel, problem, partition, packings.a.end, packings.b.end);
  Candidate result = async_plan::candidate(kernel, problem, device, partition, split_k,
                                           /*is_first=*/!packings.packs());
  result.parts.pack = packings.seconds();
  result.seconds += packings.seconds();
  result.choice.workspace_bytes += packings.bytes();
  result.choice.enqueue = [packings, multiply = std::move(result.choice.enqueue)](
                              const KernelArgs& args, Stream stream) {
    KernelArgs packed = args;
    const Status status = enqueue_packing(packings, packed, stream);
    return status.ok() ? multiply(packed, stream) : status;
  };
  result.choice.kernels = [packings, problem, multiply = std::move(result.choice.kernels)] {
    std::vector<PlannedKernel> kernels = multiply();
    add_packing(packings.a, problem, Operand::kA, kernels);
    add_packing(packings.b, problem, Operand::kB, kernels);
    return kernels;
  };
  return result;
}

// Candidates of a stage with these kernels.
inline std::vector<Candidate> candidates(std::span<const AsyncKernel> kernels,
                                         const Problem& problem, const Device& device) {
  std::vector<Candidate> all;
  for (const AsyncKernel& kernel : kernels) {
    if (!async_plan::fits(kernel, problem, device) || !can_pack(problem)) continue;
    const Packings packings{packing_of(problem, Operand::kA, kernel.block_m),
                            packing_of(problem, Operand::kB, kernel.block_n)};
    for (const async_plan::Partition& partition :
         async_plan::partitions_of(kernel, problem, device)) {
      all.push_back(candidate(kernel, problem, device, partition, packings));
    }
  }
  if (all.empty()) all.push_back({.choice = {.status = async_plan::no_kernel()}});
  return all;
}

inline constexpr std::int64_t kTileSizes[] = {4, 16, 64, 128};

template <const auto& kKernels>
constexpr Stage make_stage(std::string_view name, std::string_view idea) {
  return {.name = name,
          .idea = idea,
          .requirements = {.compute_capability = 80, .not_on_simt = {}},
          .takes_transposed = true,
          .takes_batches = true,
          .tile_sizes = kTileSizes,
          .candidates = [](const Problem& problem,
                           const Device& device) { return candidates(kKernels, problem, device); },
          .setup = [] { return async_plan::allow_shared_memory(kKernels); }};
}

}  // namespace tilegate::packed
