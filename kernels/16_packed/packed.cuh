// Packed: operands are brought into the form that is fastest to multiply before they are
// multiplied.
//
// New against AsyncCopy: a first kernel copies an operand whose rows run along k, or that allows no
// vectors, to the workspace, in aligned rows of one k; the second multiplies with 16-byte copies
// alone, whatever form the operands had. That is worth it where each word is read often enough:
// packing takes time in proportion to the operands, M·K and K·N, and multiplying to M·N·K. What
// limits it: the pass over the operands, and the workspace for their copies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tilegate/common/async_multiply.cuh>
#include <tilegate/common/async_plan.cuh>
#include <tilegate/common/instruction_order.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "pack.cuh"

namespace tilegate::packed {

// The costs were fitted to 24 to 36 timings of each kernel, with what packing took, on an NVIDIA
// H200 (driver 580.159.04, CUDA 13.0); errors of 2 to 9 % (root mean square of the logarithm).
struct Tiles128x128 {
  static constexpr const char* kName = "128x128x16";
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 16;
  static constexpr int kWarpM = 64, kWarpN = 32, kSlices = 1;
  static constexpr int kStages = 3, kVectorBatches = 2;
  static constexpr int kBlocksPerSm = 2;
  static constexpr bool kDealtLanes = false, kChecksEdges = false, kSwapsNeighbours = true;
  static constexpr cost::BlockCost kVectorCost = {55.9, 5.0};
};

struct Tiles128x64 : Tiles128x128 {
  static constexpr const char* kName = "128x64x16";
  static constexpr int kBlockN = 64;
  static constexpr int kBlocksPerSm = 4;
  static constexpr bool kDealtLanes = true;
  static constexpr cost::BlockCost kVectorCost = {53.3, 3.2};
};

// Two slices of K: eight warps per multiprocessor even where there is one block for it.
struct Tiles64x64s2 : Tiles128x64 {
  static constexpr const char* kName = "64x64x16s2";
  static constexpr int kBlockM = 64, kSlices = 2, kStages = 3;
  static constexpr cost::BlockCost kVectorCost = {51.2, 1.7, {0.95, 0.8, 0.8, 1.0}};
};

struct Tiles64x64s4 : Tiles64x64s2 {
  static constexpr const char* kName = "64x64x32s4";
  static constexpr int kBlockK = 32, kSlices = 4, kStages = 3;
  static constexpr int kBlocksPerSm = 2;
  static constexpr cost::BlockCost kVectorCost = {51.5, 1.8};
};

// `Order` is there to be part of the symbol.
template <typename Config, typename Order>
__global__ void __launch_bounds__(Config::kNumThreads, Config::kBlocksPerSm)
    sgemm(KernelArgs args, KSplit split) {
  multiply_part<Config>(args, split);
}

template <typename Tiles>
constexpr AsyncKernel kernel() {
  using Config = AsyncConfig<Tiles, Feed::kVectors, Feed::kVectors>;
  return async_kernel<Config>(sgemm<Config, SourceOrder>);
}

constexpr double kPackSeconds = 2.5e-6, kPackBandwidth = 4.3e12;  // bytes read and written per s

// What happens to one operand before it is multiplied by tiles of `block` x.
struct Packing {
  Job job;
  std::int64_t end = 0;  // of the x that tiles may read

  bool needed() const { return job.products > 0; }
  std::size_t bytes() const {
    return sizeof(float) * static_cast<std::size_t>(job.products * job.packed_stride);
  }
};

// An operand stays where it is if its rows run along x, consist of vectors, and fill a tile.
inline Packing packing_of(const Problem& problem, Operand operand, int block) {
  const bool along_k = operand == Operand::kA ? problem.op_a == Op::kN : problem.op_b == Op::kT;
  const std::int64_t x = operand == Operand::kA ? problem.shape.m : problem.shape.n;
  const std::int64_t k = problem.shape.k;
  Packing packing;
  packing.end = std::max<std::int64_t>(ceil_div(x, 4) * 4, block);
  if (k == 0 || (!along_k && x >= block && allows_vectors(problem, operand))) return packing;
  const std::int64_t ld = std::max<std::int64_t>(ceil_div(x, kLine) * kLine, block);
  const std::int64_t tiles_x = ceil_div(ld, kTile), tiles_k = ceil_div(k, kTile);
  const auto [rows, cols] = problem.extent(operand);
  packing.job = {.transposes = along_k,
                 .rows = rows,
                 .cols = cols,
                 .packed_ld = ld,
                 .packed_stride = k * ld,
                 .products = problem.batch > 1 && problem.stride(operand) == 0 ? 1 : problem.batch,
                 .tiles_cols = Divisor(static_cast<std::uint32_t>(along_k ? tiles_k : tiles_x)),
                 .tiles = Divisor(static_cast<std::uint32_t>(tiles_x * tiles_k))};
  return packing;
}

// Whether the grid of the first kernel is large enough, and its tiles can be counted.
inline bool can_pack(const Problem& problem) {
  const auto [m, n, k] = problem.shape;
  const double tiles_k = static_cast<double>(ceil_div(k, kTile));
  const double tiles_x = static_cast<double>(ceil_div(m, kTile)) +
                         static_cast<double>(ceil_div(n, kTile)) + 4.0;  // of padding
  return tiles_x * tiles_k * static_cast<double>(problem.batch) <=
         static_cast<double>(async_plan::kMaxBlocks);
}

// Of both operands.
struct Packings {
  Packing a, b;

  std::size_t bytes() const { return a.bytes() + b.bytes(); }
  bool packs() const { return a.needed() || b.needed(); }
  double seconds() const {
    return packs() ? kPackSeconds + 2.0 * static_cast<double>(bytes()) / kPackBandwidth : 0.0;
  }
};

// Enqueues the first kernel; what the second one gets is in `args` afterwards.
inline Status enqueue_packing(const Packings& packings, KernelArgs& args, Stream stream) {
  Jobs jobs{.job = {packings.a.job, packings.b.job},
            .source = {{args.a, args.lda, args.stride_a}, {args.b, args.ldb, args.stride_b}},
            .blocks_of_first = static_cast<unsigned>(packings.a.job.blocks())};
  auto* workspace = static_cast<std::byte*>(args.workspace);
  const auto replace = [&](const Packing& packing, Source& source, const float*& data,
                           std::int64_t& ld, std::int64_t& stride) {
    if (!packing.needed()) return;
    source.to = reinterpret_cast<float*>(workspace);
    workspace += packing.bytes();
    data = source.to;
    ld = packing.job.packed_ld;
    stride = packing.job.products == 1 ? 0 : packing.job.packed_stride;
  };
  replace(packings.a, jobs.source[0], args.a, args.lda, args.stride_a);
  replace(packings.b, jobs.source[1], args.b, args.ldb, args.stride_b);
  args.workspace = workspace;
  if (args.shape.k == 0) {  // nothing is read, but the addresses of vectors have to be aligned
    args.a = args.b = nullptr;
    args.lda = args.ldb = args.stride_a = args.stride_b = 0;
  }
  return packings.packs() ? enqueue_pack(jobs, stream) : Status();
}

inline Candidate candidate(const AsyncKernel& kernel, const Problem& problem, const Device& device,
                           const async_plan::Way& way, const Packings& packings) {
  const KSplit split = async_plan::split_of(kernel, problem, way, packings.a.end, packings.b.end);
  Candidate result =
      async_plan::candidate(kernel, problem, device, way, split, /*is_first=*/!packings.packs());
  result.parts.pack = packings.seconds();
  result.seconds += packings.seconds();
  result.choice.workspace_bytes += packings.bytes();
  result.choice.enqueue = [packings, multiply = std::move(result.choice.enqueue)](
                              const KernelArgs& args, Stream stream) {
    KernelArgs packed = args;
    if (Status s = enqueue_packing(packings, packed, stream); !s.ok()) return s;
    return multiply(packed, stream);
  };
  return result;
}

// Of a stage with these kernels.
inline std::vector<Candidate> candidates(std::span<const AsyncKernel> kernels,
                                         const Problem& problem, const Device& device) {
  std::vector<Candidate> all;
  for (const AsyncKernel& kernel : kernels) {
    if (!async_plan::fits(kernel, problem, device) || !can_pack(problem)) continue;
    const Packings packings{packing_of(problem, Operand::kA, kernel.block_m),
                            packing_of(problem, Operand::kB, kernel.block_n)};
    for (const async_plan::Way& way : async_plan::ways_of(kernel, problem, device)) {
      all.push_back(candidate(kernel, problem, device, way, packings));
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
