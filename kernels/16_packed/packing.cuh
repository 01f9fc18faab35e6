// Plan of packing: which operands, expected time, launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tilegate/common/async/plan.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "pack.cuh"

namespace tilegate::packed {

constexpr double kPackSeconds = 2.5e-6, kPackBandwidth = 4.3e12;  // bytes read and written per s

// Packing of one operand.
struct Packing {
  Job job;
  std::int64_t end = 0;  // x that tiles may read

  bool needed() const { return job.matrices > 0; }
  std::size_t bytes() const {
    return sizeof(float) * static_cast<std::size_t>(job.matrices * job.packed_stride);
  }
};

// An operand is not packed if its rows lie along x, allow vectors, and fill a tile of `block` x.
inline Packing packing_of(const Problem& problem, Operand operand, int block) {
  const bool along_k = operand == Operand::kA ? problem.op_a == Op::kN : problem.op_b == Op::kT;
  const std::int64_t x = operand == Operand::kA ? problem.shape.m : problem.shape.n;
  const std::int64_t k = problem.shape.k;
  Packing packing;
  packing.end = std::max<std::int64_t>(ceil_div(x, 4) * 4, block);
  if (k == 0 || (!along_k && x >= block && allows_vectors(problem, operand))) return packing;
  const std::int64_t ld = std::max<std::int64_t>(ceil_div(x, kLine) * kLine, block);
  const auto [rows, cols] = problem.extent(operand);
  packing.job = {
      .transposes = along_k,
      .rows = rows,
      .cols = cols,
      .packed_ld = ld,
      .packed_stride = k * ld,
      .matrices = problem.batch > 1 && problem.stride(operand) == 0 ? 1 : problem.batch,
      // Tiles of the packed operand, padding included, as the operand lies in memory.
      .raster = RasterAlongN({.m = along_k ? ld : k, .n = along_k ? k : ld}, kTile, kTile)};
  return packing;
}

// Its kernel, if the operand is packed, and how the multiplication's tiles lie in it.
inline void add_packing(const Packing& packing, const Problem& problem, Operand operand,
                        std::vector<PlannedKernel>& kernels) {
  const bool of_a = operand == Operand::kA;
  const std::string name = of_a ? "a" : "b";
  if (!packing.needed()) {
    kernels.push_back({.name = name + " as it is"});
    return;
  }
  kernels.push_back(
      {.name = "pack " + name + (packing.job.transposes ? " transposed" : ""),
       .parameters = {of_a ? parameter::rows(kTile) : parameter::columns(kTile),
                      of_a ? parameter::rows(kLine) : parameter::columns(kLine),
                      parameter::depth(kTile), parameter::count("products", packing.job.matrices),
                      parameter::each("batch shares it", problem.batch > packing.job.matrices)}});
}

// Whether a CUDA grid has enough blocks for the tiles to pack.
inline bool can_pack(const Problem& problem) {
  const auto [m, n, k] = problem.shape;
  const double tiles_k = static_cast<double>(ceil_div(k, kTile));
  const double tiles_x = static_cast<double>(ceil_div(m, kTile)) +
                         static_cast<double>(ceil_div(n, kTile)) + 4.0;  // of padding
  return tiles_x * tiles_k * static_cast<double>(problem.batch) <= static_cast<double>(kMaxBlocks);
}

// Packing of both operands.
struct Packings {
  Packing a, b;

  std::size_t bytes() const { return a.bytes() + b.bytes(); }
  bool packs() const { return a.needed() || b.needed(); }
  double seconds() const {
    return packs() ? kPackSeconds + 2.0 * static_cast<double>(bytes()) / kPackBandwidth : 0.0;
  }
};

// Enqueues the packing kernel; changes `args` to the operands of the second kernel.
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
    stride = packing.job.matrices == 1 ? 0 : packing.job.packed_stride;
  };
  replace(packings.a, jobs.source[0], args.a, args.lda, args.stride_a);
  replace(packings.b, jobs.source[1], args.b, args.ldb, args.stride_b);
  args.workspace = workspace;
  if (args.shape.k == 0) {  // nothing is read, but addresses must be aligned
    args.a = args.b = nullptr;
    args.lda = args.ldb = args.stride_a = args.stride_b = 0;
  }
  return packings.packs() ? enqueue_pack(jobs, stream) : Status();
}

}  // namespace tilegate::packed
