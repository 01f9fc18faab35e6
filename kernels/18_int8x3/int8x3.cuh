// Int8x3: FP32 operands as three digits of 8 bits, multiplied exactly on the tensor cores.
//
// New against the rungs before: no FFMA. A first kernel scales each row of op(A) and column of
// op(B) and splits it into signed digits (split_jobs.cuh); a second multiplies the digits, six
// products of the nine, into int32 accumulators, and folds them into FP32 once (multiply.cuh). The
// device decides from what the first kernel saw whether six products are as accurate as FP32, or
// eight are, or neither; then it multiplies in FP32 (plain_product.cuh). What limits it: the power
// that the tensor cores take. Needs compute capability 9.0, and no other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tilegate/common/grid.cuh>
#include <tilegate/common/plain_product.cuh>
#include <tilegate/common/split_plan.hpp>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "launches.cuh"

namespace tilegate::int8x3 {

// Below it few operands are narrow enough for digits to be as accurate as FP32.
constexpr std::int64_t kLeastK = 128;

constexpr std::int64_t kMaxExtent = std::int64_t{1} << 33;
constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;

// On an NVIDIA H200, where six products are taken.
template <typename Six>
double seconds(const MultiplyArgs& more, const Problem& problem, const Device& device) {
  const double tiles =
      static_cast<double>(more.six.count * more.cluster) * static_cast<double>(problem.batch);
  const double per_chunk = Six::kBlockN == kChunkRows ? 0.45e-6 : 0.26e-6;
  const double multiply = std::ceil(tiles / device.multiprocessors) *
                          (static_cast<double>(more.a.chunks_k) * per_chunk + 3e-6);
  return multiply + split_seconds(problem, 2.4e-12);
}

template <typename Six>
Launches launches_of(const Problem& problem, const Device& device, Path least) {
  const Workspace workspace(problem, device);
  const int rows = workspace.form.rows;
  Launches launches{workspace, job_of(problem, Operand::kA, workspace.a, rows),
                    job_of(problem, Operand::kB, workspace.b, rows),
                    multiply_args<Six>(problem, device, workspace, least), 0};
  const MultiplyArgs& more = launches.more;
  launches.blocks = more.cluster * std::min<std::int64_t>(problem.batch * more.six.count,
                                                          device.multiprocessors / more.cluster);
  return launches;
}

template <typename Six>
Candidate candidate(const char* name, const Problem& problem, const Device& device, Path least) {
  const Launches launches = launches_of<Six>(problem, device, least);
  return {{.configuration = name,
           .rounding_chain = fp32_rounding_chain(problem.shape.k),
           .operand_error = kOperandError,
           .workspace_bytes = launches.workspace.bytes,
           .decides_on_device = true,
           .enqueue =
               [launches](const KernelArgs& args, Stream stream) {
                 if (Status s = enqueue_split(launches, args, stream); !s.ok()) return s;
                 return enqueue_multiply<Six>(launches, args, stream);
               }},
          seconds<Six>(launches.more, problem, device)};
}

// Tiles of 64 columns are the smallest. The split pass has up to 16 blocks for a chunk's rows;
// where rows are long, up to 64.
inline bool fits(const Problem& problem) {
  const auto [m, n, k] = problem.shape;
  const auto tiles = [](std::int64_t extent, int tile) {
    return static_cast<double>(ceil_div(extent, tile));
  };
  const double split_blocks = k > SplitForm::kShortRowsK ? 8.0 * kMaxSplitCluster : 16.0;
  const double blocks =
      static_cast<double>(problem.batch) *
      std::max(tiles(m, kBlockM) * tiles(n, 64) * (TileOrder::kGroupRows / kBlockM),
               (tiles(m, kChunkRows) + tiles(n, kChunkRows)) * split_blocks);
  return blocks <= static_cast<double>(kMaxBlocks);
}

// With at least so many products.
template <Path kLeast>
std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  if (std::max(problem.shape.m, problem.shape.n) > kMaxExtent) {
    return {{{.status = Status::unsupported("M or N is above " + std::to_string(kMaxExtent))}}};
  }
  if (!fits(problem)) {
    return {{{.status = Status::unsupported("C needs more tiles than a CUDA grid has blocks")}}};
  }
  if (problem.shape.k < kLeastK) return {plain_candidate(problem)};
  return {candidate<Tiles<128, 6>>("128x128", problem, device, kLeast),
          candidate<Tiles<64, 6>>("128x64", problem, device, kLeast)};
}

inline Status setup() {
  for (auto* kernel : {multiply<Tiles<128, 6>>, multiply<Tiles<64, 6>>}) {
    if (Status s = device::allow_shared_memory(kernel, sizeof(MultiplyStorage)); !s.ok()) return s;
  }
  if (Status s = device::allow_shared_memory(plain, sizeof(Fp32Storage)); !s.ok()) return s;
  constexpr std::size_t kFew = sizeof(ShortStorage<FewRows>),
                        kShort = sizeof(ShortStorage<ShortRows>);
  if (Status s = device::allow_shared_memory(split_short<FewRows>, kFew); !s.ok()) return s;
  return device::allow_shared_memory(split_short<ShortRows>, kShort);
}

inline constexpr std::int64_t kTileSizes[] = {8, 32, 64, 128};

template <Path kLeast>
constexpr Stage make_stage(std::string_view name, std::string_view idea) {
  return {.name = name,
          .idea = idea,
          .requirements = {.compute_capability = 90, .no_later = true, .not_on_simt = {}},
          .math = Math::fp32_split,
          .takes_transposed = true,
          .takes_batches = true,
          .tile_sizes = kTileSizes,
          .candidates = candidates<kLeast>,
          .setup = setup};
}

}  // namespace tilegate::int8x3
