// Int8x3 in panels, for a limited workspace: parts of a call that use the same memory in turn.
//
// A panel is a range of the batch, of K, and of the rows and columns of C, and an ordinary call of
// split and GEMM. It has its own scales and its own decision. Panels along K add to C in FP32. An
// operand is split again only where its matrices, its rows or its K change: with all rows of A in
// one panel, each element is split once. What panels cost beside that: launches, waves that are not
// full, and reading C again. The cost model chooses their sizes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan.hpp"

namespace tilegate::int8x3 {
namespace {

// Extents of a panel, and how many matrices of the batch it has. The last panel in each direction
// may be smaller.
struct PanelSize {
  std::int64_t matrices = 1;
  Shape shape;  // but for all of M, N and K, multiples of kChunkRows and kChunkK
};

// A call that is computed in panels.
struct PanelCall {
  const GemmConfig* config;
  Path least;
  Problem problem;
  Device device;
  std::size_t workspace_limit;

  Problem panel(const PanelSize& size) const {
    Problem panel = problem;
    panel.batch = size.matrices;
    panel.shape = size.shape;
    // A panel may begin at any matrix: its alignment is that of the strides, too.
    if (problem.batch > 1) {
      for (const Operand operand : {Operand::kA, Operand::kB, Operand::kC}) {
        panel.offset_bytes[static_cast<std::size_t>(operand)] |=
            problem.stride(operand) % 4 * std::int64_t{sizeof(float)};
      }
    }
    return panel;
  }
  Launches launches(const PanelSize& largest, const PanelSize& size) const;
  Status enqueue(const PanelSize& largest, const KernelArgs& args, Stream stream) const;
  Candidate candidate(const PanelSize& largest) const;
  std::vector<PanelSize> sizes() const;
};

// Launches of a panel. Panels of the same K share digits, and have the same layout of them.
inline Launches PanelCall::launches(const PanelSize& largest, const PanelSize& size) const {
  PanelSize room = largest;
  room.shape.k = size.shape.k;
  const Workspace workspace(panel(room), device, config->uses_mma_sync);
  Launches launches = launches_of(*config, panel(size), device, least,
                                  workspace.for_panel(panel(size)), workspace_limit);
  // cuBLAS computes the whole product.
  launches.params.allowed = squared_error_of(summed_in_fp32(problem));
  launches.params.allowed_of_ten = launches.params.allowed;
  return launches;
}

inline Status PanelCall::enqueue(const PanelSize& largest, const KernelArgs& args,
                                 Stream stream) const {
  using Origin = std::array<std::int64_t, 3>;     // matrix, row or column, k
  Origin split_a{-1, -1, -1}, split_b = split_a;  // whose digits the workspace has
  const Shape& all = problem.shape;
  const auto enqueue_panel = [&](std::int64_t matrix, const Shape& at) {
    const PanelSize size{
        std::min(largest.matrices, problem.batch - matrix),
        {std::min(largest.shape.m, all.m - at.m), std::min(largest.shape.n, all.n - at.n),
         std::min(largest.shape.k, all.k - at.k)}};
    Launches part = launches(largest, size);
    const auto origin = [&](Operand operand, std::int64_t x) {
      return Origin{split_matrices(problem, operand) > 1 ? matrix : 0, x, at.k};
    };
    const Origin a = origin(Operand::kA, at.m), b = origin(Operand::kB, at.n);
    part.splits_a = a != split_a;
    part.splits_b = b != split_b || !part.splits_a;  // one at least: the kernel clears flags, too
    split_a = a;
    split_b = b;
    part.split_blocks = part.workspace.split.blocks(
        (part.splits_a ? part.a.num_groups() : 0) + (part.splits_b ? part.b.num_groups() : 0),
        device.multiprocessors);
    part.adds_to_c = at.k > 0;

    const auto offset = [](std::int64_t row, std::int64_t col, std::int64_t ld, Op op) {
      return op == Op::kN ? row * ld + col : col * ld + row;
    };
    KernelArgs of_panel = args;
    of_panel.shape = size.shape;
    of_panel.batch = size.matrices;
    of_panel.a += matrix * args.stride_a + offset(at.m, at.k, args.lda, problem.op_a);
    of_panel.b += matrix * args.stride_b + offset(at.k, at.n, args.ldb, problem.op_b);
    of_panel.c += matrix * args.stride_c + offset(at.m, at.n, args.ldc, Op::kN);
    if (part.adds_to_c) of_panel.beta = 1.0F;
    if (Status s = enqueue_split(part, of_panel, stream); !s.ok()) return s;
    if (Status s = enqueue_refine(part, of_panel, stream); !s.ok()) return s;
    return config->enqueue(part, of_panel, stream);
  };
  for (std::int64_t matrix = 0; matrix < problem.batch; matrix += largest.matrices) {
    for (Shape at{}; at.k < all.k; at.k += largest.shape.k) {
      for (at.m = 0; at.m < all.m; at.m += largest.shape.m) {
        for (at.n = 0; at.n < all.n; at.n += largest.shape.n) {
          if (Status s = enqueue_panel(matrix, at); !s.ok()) return s;
        }
      }
    }
  }
  return {};
}

// With the expected time of all panels, and their workspace.
inline Candidate PanelCall::candidate(const PanelSize& largest) const {
  constexpr double kBytesPerSecond = 4.3e12;  // of device memory, NVIDIA H200: C is read again
  const auto [m, n, k] = problem.shape;
  const std::int64_t panels_m = ceil_div(m, largest.shape.m),
                     panels_n = ceil_div(n, largest.shape.n),
                     panels_k = ceil_div(k, largest.shape.k);
  std::int64_t panels = 0, chain = 0;
  std::size_t bytes = 0;
  double seconds = static_cast<double>(panels_k - 1) * bytes_of_c(problem) / kBytesPerSecond;
  // In each direction there are panels of full extent, and what is left.
  struct Extents {
    std::int64_t extent, count;
  };
  const auto extents = [](std::int64_t all, std::int64_t of) {
    return std::array{Extents{of, all / of}, Extents{all % of, all % of > 0 ? 1 : 0}};
  };
  for (const auto& matrices : extents(problem.batch, largest.matrices)) {
    for (const auto& depth : extents(k, largest.shape.k)) {
      for (const auto& rows : extents(m, largest.shape.m)) {
        for (const auto& cols : extents(n, largest.shape.n)) {
          const std::int64_t count = matrices.count * depth.count * rows.count * cols.count;
          if (count == 0) continue;
          const PanelSize size{matrices.extent, {rows.extent, cols.extent, depth.extent}};
          const Launches part = launches(largest, size);
          panels += count;
          bytes = std::max(bytes, part.workspace.bytes);
          chain = std::max(chain, rounding_chain(*config, panel(size), part.params));
          seconds += static_cast<double>(count) * gemm_seconds(*config, part, panel(size));
        }
      }
    }
  }
  seconds += split_seconds(problem, kSplitSeconds, static_cast<double>(panels), 1.0,
                           panels_n > 1 ? static_cast<double>(panels_m) : 1.0);
  const std::string matrices =
      problem.batch > 1 ? std::to_string(largest.matrices) + "x" : std::string();
  return {{.configuration = std::string(config->name) + "_panels" + matrices +
                            std::to_string(largest.shape.m) + "x" +
                            std::to_string(largest.shape.n) + "x" + std::to_string(largest.shape.k),
           .rounding_chain = chain + panels_k - 1,
           .operand_error = kOperandError,
           .workspace_bytes = bytes,
           .decides_on_device = true,
           .enqueue = [call = *this, largest](
                          const KernelArgs& args,
                          Stream stream) { return call.enqueue(largest, args, stream); },
           .kernels =
               [call = *this, largest] {
                 return planned_kernels(*call.config, call.panel(largest),
                                        call.launches(largest, largest), call.least);
               }},
          seconds};
}

// Sizes worth an estimate, as large as the limit allows: whole matrices of the batch; or, where not
// even one fits, for some depths and for some numbers of rows the most columns.
inline std::vector<PanelSize> PanelCall::sizes() const {
  // The largest number up to `most` whose panel has room; 0: none has.
  const auto largest = [&](std::int64_t most, auto size_of) {
    std::int64_t fits = 0;
    while (fits < most) {
      const std::int64_t middle = fits + (most - fits + 1) / 2;
      const PanelSize size = size_of(middle);
      if (launches(size, size).workspace.bytes <= workspace_limit) {
        fits = middle;
      } else {
        most = middle - 1;
      }
    }
    return fits;
  };
  const Shape& all = problem.shape;
  if (problem.batch > 1) {
    const std::int64_t matrices = largest(
        problem.batch, [&](std::int64_t number) { return PanelSize{number, problem.shape}; });
    if (matrices > 0) {
      const std::int64_t panels = ceil_div(problem.batch, matrices);
      return {{ceil_div(problem.batch, panels), problem.shape}};
    }
  }
  const auto next = [](std::int64_t parts) { return parts + std::max<std::int64_t>(parts / 2, 1); };
  const std::int64_t tiles_m = ceil_div(all.m, kChunkRows), tiles_n = ceil_div(all.n, kChunkRows),
                     chunks = ceil_div(all.k, kChunkK);
  const std::int64_t clusters = device.multiprocessors / config->cluster;
  const std::int64_t cluster_cols = config->block_n * config->cluster;
  std::vector<PanelSize> sizes;
  for (std::int64_t parts_k = 1; chunks / parts_k >= kLeastK / kChunkK; parts_k = next(parts_k)) {
    const std::int64_t depth = std::min(ceil_div(chunks, parts_k) * kChunkK, all.k);
    Problem panel = problem;
    panel.shape.k = depth;
    if (!can_run(*config, panel, device, least)) continue;
    for (std::int64_t parts_m = 1; parts_m <= tiles_m; parts_m = next(parts_m)) {
      const std::int64_t rows = ceil_div(tiles_m, parts_m);
      const auto size_of = [&](std::int64_t cols) {
        return PanelSize{
            1, {std::min(rows * kChunkRows, all.m), std::min(cols * kChunkRows, all.n), depth}};
      };
      const std::int64_t most = largest(tiles_n, size_of);
      if (most == 0) continue;
      sizes.push_back(size_of(ceil_div(tiles_n, ceil_div(tiles_n, most))));  // of equal width
      // The most columns whose tiles fill whole waves.
      const std::int64_t waves = rows * ceil_div(most * kChunkRows, cluster_cols) / clusters;
      const std::int64_t cols = waves * clusters / rows * cluster_cols / kChunkRows;
      if (cols > 0 && cols < most) sizes.push_back(size_of(cols));
      if (most < tiles_n) continue;
      if (parts_m == 1) return sizes;  // smaller panels cost more
      break;
    }
  }
  return sizes;
}

// The fastest panels of each configuration whose workspace is within the limit.
template <Path kLeast>
std::vector<Candidate> panels(const Problem& problem, const Device& device,
                              std::size_t workspace_limit) {
  if (problem.shape.k < kLeastK || !check_size(problem).ok()) return {};
  std::vector<Candidate> all;
  for (const GemmConfig& config : kGemmConfigs) {
    if (config.splits_k()) continue;
    const PanelCall call{&config, kLeast, problem, device, workspace_limit};
    std::optional<Candidate> fastest;
    for (const PanelSize& size : call.sizes()) {
      Candidate candidate = call.candidate(size);
      if (candidate.choice.workspace_bytes > workspace_limit) continue;
      if (!fastest || candidate.seconds < fastest->seconds) fastest = std::move(candidate);
    }
    if (fastest) all.push_back(*std::move(fastest));
  }
  return all;
}

}  // namespace
}  // namespace tilegate::int8x3
