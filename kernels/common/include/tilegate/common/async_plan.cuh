// Plans for the kernels with asynchronous copies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tilegate/common/async_ways.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/k_split.cuh>
#include <tilegate/common/shared_memory.hpp>
#include <tilegate/common/split_sums.cuh>
#include <tilegate/common/vector_access.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::async_plan {

inline std::string name_of(const AsyncKernel& kernel, const Way& way) {
  if (way.split_tiles() == 0) return kernel.name;
  return kernel.name + std::string(way.whole == 0 ? "_split" : "_tail") + std::to_string(way.parts);
}

// A slice sums its share of the k of a tile, or of a part of one; the slices are added, then the
// parts, then alpha and C come. Of zeros past the end of K no addition rounds.
inline std::int64_t rounding_chain(const AsyncKernel& kernel, const Shape& shape, const Way& way) {
  const auto slices_of = [&](std::int64_t k_tiles) {
    return k_tiles * (kernel.block_k / kernel.slices) + kernel.slices - 1;
  };
  const std::int64_t whole = way.whole > 0 ? slices_of(way.k_tiles) : 0;
  const std::int64_t split =
      way.split_tiles() > 0 ? slices_of(way.longest_part()) + way.parts - 1 : 0;
  return std::min(shape.k, std::max(whole, split)) + 2;
}

// Tiles of a kernel that checks no edges may read `end_m` rows of op(A) and `end_n` columns of
// op(B).
inline KSplit split_of(const AsyncKernel& kernel, const Problem& problem, const Way& way,
                       std::int64_t end_m, std::int64_t end_n) {
  const auto columns = static_cast<std::uint32_t>(ceil_div(problem.shape.n, kernel.block_n));
  const auto tiles = static_cast<std::uint32_t>(way.tiles / problem.batch);
  return {.block_m = kernel.block_m,
          .block_n = kernel.block_n,
          .end_m = kernel.checks_edges ? KSplit::kReachesOut : end_m,
          .end_n = kernel.checks_edges ? KSplit::kReachesOut : end_n,
          .columns = Divisor(columns),
          .tiles = Divisor(tiles),
          .whole = static_cast<unsigned>(way.whole),
          .parts = Divisor(static_cast<std::uint32_t>(way.parts)),
          .k_tiles = static_cast<int>(way.k_tiles),
          .vectors = allows_vectors(problem, Operand::kC)};
}

inline Status enqueue(const AsyncKernel& kernel, const KernelArgs& args, const KSplit& split,
                      const Way& way, bool overlaps, Stream stream) {
  const Status status = device::launch({.kernel = kernel.name,
                                        .blocks = way.blocks(),
                                        .threads_x = kernel.num_threads,
                                        .shared_bytes = kernel.shared_bytes,
                                        .overlaps_previous = overlaps},
                                       stream, kernel.run, args, split);
  if (!status.ok() || way.split_tiles() == 0) return status;
  return split_sums::enqueue(args, split, way.split_tiles(), stream);
}

// `is_first`: no other kernel of the plan goes before.
inline Candidate candidate(const AsyncKernel& kernel, const Problem& problem, const Device& device,
                           const Way& way, const KSplit& split, bool is_first = true) {
  const bool overlaps = device.compute_capability >= 90 && way.split_tiles() == 0 && is_first;
  Choice choice{.configuration = name_of(kernel, way),
                .rounding_chain = rounding_chain(kernel, problem.shape, way),
                .workspace_bytes = partial_bytes(kernel, way),
                .enqueue = [=](const KernelArgs& args, Stream stream) {
                  return enqueue(kernel, args, split, way, overlaps, stream);
                }};
  return {std::move(choice), seconds(kernel, problem, device, way),
          parts(kernel, problem, device, way)};
}

inline Status no_kernel() {
  return Status::unsupported("C needs more blocks than a CUDA grid has, or K is above " +
                             std::to_string(kMaxK));
}

// Those of the kernels that can do the problem. Kernels of one tile stand together, the quickest
// first: the others are not asked.
inline std::vector<Candidate> candidates(std::span<const AsyncKernel> kernels,
                                         const Problem& problem, const Device& device) {
  std::vector<Candidate> all;
  std::string_view tile;
  for (const AsyncKernel& kernel : kernels) {
    if (kernel.name == tile || !takes(kernel, problem) || !fits(kernel, problem, device)) continue;
    tile = kernel.name;
    for (const Way& way : ways_of(kernel, problem, device)) {
      const KSplit split = split_of(kernel, problem, way, problem.shape.m, problem.shape.n);
      all.push_back(candidate(kernel, problem, device, way, split));
    }
  }
  if (all.empty()) all.push_back({.choice = {.status = no_kernel()}});
  return all;
}

// More than 48 KiB of shared memory needs leave.
inline Status allow_shared_memory(std::span<const AsyncKernel> kernels) {
  for (const AsyncKernel& kernel : kernels) {
    if (kernel.shared_bytes > shared_bytes_per_block(device::current())) continue;
    if (Status s = device::allow_shared_memory(kernel.run, kernel.shared_bytes); !s.ok()) return s;
  }
  return {};
}

}  // namespace tilegate::async_plan
