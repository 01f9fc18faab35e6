// Plans of rungs that split operands: which problems they can do, the arguments of split kernels,
// and their expected time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/problem.hpp>

namespace tilegate {

// Of a batch that shares an operand, that is split once.
inline std::int64_t split_products(const Problem& problem, Operand operand) {
  return problem.batch > 1 && problem.stride(operand) == 0 ? 1 : problem.batch;
}

inline std::int64_t split_extent(const Problem& problem, Operand operand) {
  return operand == Operand::kA ? problem.shape.m : problem.shape.n;
}

template <typename Chunks>
Chunks split_chunks(const Problem& problem, Operand operand) {
  return {split_extent(problem, operand), problem.shape.k, split_products(problem, operand)};
}

// `rows`: of a group.
template <typename Chunks>
SplitJob<Chunks> split_job(const Problem& problem, Operand operand, const Chunks& chunks,
                           int rows) {
  return {.planes = chunks,
          .along_k = is_along_k(problem, operand),
          .vectors = allows_vectors(problem, operand),
          .rows = split_extent(problem, operand),
          .k = problem.shape.k,
          .groups = Divisor(static_cast<std::uint32_t>(chunks.rows() / rows))};
}

// Parts of a workspace start there.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// Whether two neighbours of C are an aligned vector.
inline bool allows_pairs_of_c(const Problem& problem) {
  return problem.shape.n % 2 == 0 && problem.ldc % 2 == 0 && problem.offset_bytes[2] % 8 == 0 &&
         (problem.batch == 1 || problem.stride_c % 2 == 0);
}

// So that the bytes of a workspace can be counted: 2^34 rows at most, four bytes per element. A
// chunk of rows of each operand would take 100 GB.
constexpr std::int64_t kMaxSplitK = (std::int64_t{1} << 27) - 1;

// Whether grids are large enough. `block_n`: columns of the smallest tile, of kChunkRows rows;
// `split_blocks`: of the kernel that splits, for the rows of a chunk.
inline Status check_split_size(const Problem& problem, int block_n, double split_blocks) {
  constexpr std::int64_t kMaxExtent = std::int64_t{1} << 33;
  const auto [m, n, k] = problem.shape;
  if (std::max(m, n) > kMaxExtent) {
    return Status::unsupported("M or N is above " + std::to_string(kMaxExtent));
  }
  if (k > kMaxSplitK) return Status::unsupported("K is above " + std::to_string(kMaxSplitK));
  const auto tiles = [](std::int64_t extent, int tile) {
    return static_cast<double>(ceil_div(extent, tile));
  };
  const double blocks = static_cast<double>(problem.batch) *
                        std::max(tiles(m, kChunkRows) * tiles(n, block_n) *
                                     (PersistentTileScheduler::kGroupRows / kChunkRows),
                                 (tiles(m, kChunkRows) + tiles(n, kChunkRows)) * split_blocks);
  if (blocks <= static_cast<double>(kMaxBlocks)) return {};
  return Status::unsupported("C needs more tiles than a CUDA grid has blocks");
}

// Of the kernel that splits A and B, with both launches, on an NVIDIA H200. `per_element`: seconds,
// of operands that are read as vectors.
inline double split_seconds(const Problem& problem, double per_element) {
  constexpr double kLaunches = 2.7e-6, kPerWord = 3.5e-12;
  double seconds = kLaunches;
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    const auto [rows, cols] = problem.extent(operand);
    const double elements = static_cast<double>(rows) * static_cast<double>(cols) *
                            static_cast<double>(split_products(problem, operand));
    seconds += elements * (per_element + (allows_vectors(problem, operand) ? 0.0 : kPerWord));
  }
  return seconds;
}

}  // namespace tilegate
