// Skinny's kernels, and their expected time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <tilegate/common/gpu_model.hpp>
#include <tilegate/common/instruction_order.cuh>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device.hpp>
#include <tilegate/stage.hpp>

#include "gemv.cuh"
#include "partial_sums.cuh"
#include "skinny.cuh"

namespace tilegate::skinny {

// Tile of a block, s×x, and k tile; see Config.
struct Tile {
  int s, x, k;
  int lanes_s = 1;
  int blocks_per_sm = 1;
};

// Few tiles, because most others are within a few per cent (README.md). Up to s = 16 the large
// operand's k tile must be large, 16 or 32 KiB; from 24 on the results per thread matter, 8×12 and
// 8×16. The narrow ones are for small x.
inline constexpr std::array kTiles = {
    Tile{.s = 1, .x = 32, .k = 128},
    Tile{.s = 4, .x = 64, .k = 64},
    Tile{.s = 8, .x = 128, .k = 64},
    Tile{.s = 16, .x = 64, .k = 64, .blocks_per_sm = 2},
    Tile{.s = 16, .x = 128, .k = 64},
    Tile{.s = 24, .x = 128, .k = 64, .lanes_s = 2},
    Tile{.s = 32, .x = 64, .k = 64, .lanes_s = 2, .blocks_per_sm = 2},
    Tile{.s = 32, .x = 128, .k = 64, .lanes_s = 2},
};
using TilesAlongX = std::make_index_sequence<kTiles.size()>;
using TilesAlongK = std::index_sequence<1, 2, 3, 4, 5, 6, 7>;
// For shifted rows: 32×64 needs more registers than two blocks have.
using ShiftedTiles = std::index_sequence<1, 2, 3, 4, 5, 7>;
inline constexpr std::array<std::int64_t, 7> kTileSizes = {4, 8, 16, 24, 32, 64, 128};

// Wavefronts of shared memory per FFMA of a warp. Lanes have different words of the large operand,
// in vectors if its rows are aligned; of shifted rows along k each word takes two wavefronts. All
// lanes load the same vectors of the small operand; each takes two.
constexpr double wavefronts(const Tile& tile, Along along, bool aligned) {
  const double thread_x = tile.x * tile.lanes_s / 32.0,
               thread_s = double{1} * tile.s / tile.lanes_s;
  const double small = thread_s < 4 ? 1.0 : thread_s / 2;
  const double per_word = aligned ? 1.0 / tile.lanes_s : along == Along::kX ? 1.0 : 2.0;
  return (thread_x * per_word + small) / (thread_x * thread_s);
}

// A kernel: a tile, for one layout of the large operand.
struct Kernel {
  Tile tile;
  Along along;
  bool aligned;  // see Config
  void (*run)(Task);
  std::size_t (*shared_bytes)(int depth);
  int tile_additions, last_additions;  // on the longest way: per k tile, and after the k tiles
  int tiles_at_a_time = 0;             // of a matrix-vector product; other kernels have a ring
};

template <std::size_t kIndex, Along kAlong, bool kAligned>
constexpr Kernel kernel() {
  constexpr const Tile& kTile = kTiles[kIndex];
  using C = Config<kTile.s, kTile.x, kTile.k, kTile.lanes_s, kTile.blocks_per_sm, kAlong, kAligned>;
  // Below s = 4 the order does not matter: the loop waits for memory.
  using Order = std::conditional_t<(kTile.s < 4), CompilerOrder, SourceOrder>;
  return {kTile, kAlong, kAligned, multiply<C, Order>, shared_bytes<C>, C::kWarpK, kNumWarps - 1};
}

template <Along kAlong, typename C>
constexpr Kernel gemv_kernel() {
  return {{.s = 1, .x = C::kBlockX, .k = C::kBlockK, .blocks_per_sm = kGemvBlocksPerSm},
          kAlong,
          C::kWidth == 4,
          gemv<C>,
          [](int) { return sizeof(typename C::SharedStorage); },
          C::kTileAdditions,
          C::kLastAdditions,
          C::kTilesAtATime};
}

template <std::size_t... kAlongX, std::size_t... kAlongK, std::size_t... kShifted>
constexpr auto all_kernels(std::index_sequence<kAlongX...> /*of kTiles*/,
                           std::index_sequence<kAlongK...> /*of kTiles*/,
                           std::index_sequence<kShifted...> /*of kTiles*/) {
  return std::array{
      gemv_kernel<Along::kX, GemvAlongX<4, 2>>(), gemv_kernel<Along::kX, GemvAlongX<4, 8>>(),
      gemv_kernel<Along::kX, GemvAlongX<1, 8>>(), gemv_kernel<Along::kX, GemvAlongX<1, 32>>(),
      gemv_kernel<Along::kK, GemvAlongK<4, 1>>(), gemv_kernel<Along::kK, GemvAlongK<4, 2>>(),
      gemv_kernel<Along::kK, GemvAlongK<4, 4>>(), gemv_kernel<Along::kK, GemvAlongK<4, 8>>(),
      gemv_kernel<Along::kK, GemvAlongK<1, 1>>(), gemv_kernel<Along::kK, GemvAlongK<1, 2>>(),
      gemv_kernel<Along::kK, GemvAlongK<1, 4>>(), gemv_kernel<Along::kK, GemvAlongK<1, 8>>(),
      kernel<kAlongX, Along::kX, true>()...,      kernel<kAlongK, Along::kK, true>()...,
      kernel<kShifted, Along::kX, false>()...,    kernel<kShifted, Along::kK, false>()...};
}
inline constexpr auto kKernels = all_kernels(TilesAlongX{}, TilesAlongK{}, ShiftedTiles{});

// Depth of the ring: as many k tiles as fit beside the multiprocessor's other blocks; at least two,
// even if fewer blocks fit then.
constexpr int ring_depth(const Kernel& kernel, const Device& device) {
  const std::size_t room =
      shared_bytes_per_sm(device) / kernel.tile.blocks_per_sm - kReservedSharedBytes;
  int depth = kMaxDepth;
  while (depth > kMinDepth && kernel.shared_bytes(depth) > room) --depth;
  return depth;
}

// Roles of the operands in a problem.
struct Roles {
  bool short_is_m;
  std::int64_t s, x;
  Along along;         // of the large operand
  bool aligned;        // its rows begin and end at multiples of 16 bytes
  bool small_along_k;  // as in Task
};

inline Roles roles_of(const Problem& problem) {
  const Shape& shape = problem.shape;
  if (shape.m <= shape.n) {
    return {.short_is_m = true,
            .s = shape.m,
            .x = shape.n,
            .along = problem.op_b == Op::kN ? Along::kX : Along::kK,
            .aligned = allows_vectors(problem, Operand::kB),
            .small_along_k = problem.op_a == Op::kN};
  }
  return {.short_is_m = false,
          .s = shape.n,
          .x = shape.m,
          .along = problem.op_a == Op::kN ? Along::kK : Along::kX,
          .aligned = allows_vectors(problem, Operand::kA),
          .small_along_k = problem.op_b == Op::kT};
}

// The kernel's parameter; with more than one split the results are partial sums.
inline Task make_task(const KernelArgs& args, const Roles& roles, int k_splits, int depth) {
  const bool rows = roles.short_is_m;
  Task task{.x = roles.x,
            .s = roles.s,
            .k = args.shape.k,
            .big = rows ? args.b : args.a,
            .ld_big = rows ? args.ldb : args.lda,
            .small = rows ? args.a : args.b,
            .ld_small = rows ? args.lda : args.ldb,
            .small_along_k = roles.small_along_k,
            .alpha = args.alpha,
            .beta = args.beta,
            .c = args.c,
            .stride_x = rows ? 1 : args.ldc,
            .stride_s = rows ? args.ldc : 1,
            .split_c = 0,
            .batch_stride_big = rows ? args.stride_b : args.stride_a,
            .batch_stride_small = rows ? args.stride_a : args.stride_b,
            .batch_stride_c = args.stride_c,
            .k_splits = k_splits,
            .depth = depth};
  if (k_splits > 1) {
    task.alpha = 1.0F;
    task.beta = 0.0F;
    task.c = static_cast<float*>(args.workspace);
    (rows ? task.stride_s : task.stride_x) = args.shape.n;
    task.split_c = partial_sums::elements(args.shape);
    task.batch_stride_c = k_splits * task.split_c;
  }
  return task;
}

// Expected time of a configuration.
//
// The constants were fitted to 354 timings with aligned rows, and to 573 with shifted rows
// (NVIDIA H200, driver 580.159.04, CUDA 13.0, operands warm), with errors of 9 and 10 % (root mean
// square of the logarithm). Fits to two thirds of the problems had errors of 11 and 10 % on the
// others. Rates are per multiprocessor, and used for other GPUs, too.

// What the time of the first kernel depends on.
struct Work {
  double bytes;              // of all operands
  std::int64_t blocks;       // of the grid
  std::int64_t block_tiles;  // k tiles of the block that has most
  double tile_bytes;         // of the large operand, per k tile
  double tile_ffma;          // FFMA of warps, per k tile
  double results;            // elements of a tile
  double column_results;     // of these inside C, if C's columns are short
  double wavefronts;         // of shared memory, per FFMA of a warp
  int blocks_per_sm;
  int k_splits;
  Along along;
  bool aligned;  // see Config
};

// The second kernel: its start, and the time per split.
inline double add_seconds(int k_splits) {
  return k_splits == 1 ? 0.0 : 1.41e-6 + 0.01e-6 * k_splits;
}

// What depends on the layout of the large operand.
struct Rates {
  double memory, copies;  // bytes per second of a multiprocessor: all busy, or only one
  double start;           // seconds of the kernel
  double cycles, cycles_per_wavefront;  // per FFMA of a warp; the minimum is 0.25
};
constexpr Rates rates_of(Along along, bool aligned) {
  const bool x = along == Along::kX;
  if (aligned) {
    return {x ? 31.2e9 : 26e9, 56.8e9, 0.16e-6, x ? 0.352 : 0.41, x ? 0.704 : 0.21};
  }
  return {x ? 21.5e9 : 19.4e9, 26.9e9, 0.0, x ? 0.268 : 0.229, x ? 1.498 : 1.261};
}

// What the time of one row or column depends on.
struct GemvWork {
  double bytes;              // of all operands
  std::int64_t blocks;       // of the grid
  std::int64_t block_steps;  // loads of a thread, one after the other; k tiles of a ring
  int k_splits;
  bool has_ring;   // multiply, not gemv
  bool is_narrow;  // a block reads only 8 words of a row
  Along along;
  bool aligned;   // see Config
  bool overlaps;  // the previous launch
};

// Fitted to 632 timings of 68 problems, all configurations of each, with errors of 11 %; of kernels
// with a ring 6 %.
inline Candidate predicted(Choice choice, const GemvWork& work, const Device& device) {
  constexpr double kAdd = 1.6e-6, kGap = 0.96e-6;
  constexpr double kWarm = 8.7e12, kCold = 5e12, kColdRing = 9.5e12;  // bytes per second
  constexpr double kNarrow = 0.65;
  const bool x = work.along == Along::kX;
  const double block = work.has_ring ? 1e-6 : 0.93e-6;
  const double step = work.has_ring ? 0.26e-6
                      : x           ? (work.aligned ? 0.405e-6 : 0.425e-6)
                                    : (work.aligned ? 0.3e-6 : 0.32e-6);
  const double multiprocessors = std::max(device.multiprocessors, 1);
  const double on_one = static_cast<double>(work.blocks) / multiprocessors;
  const double waves = work.has_ring ? std::ceil(on_one) : std::max(on_one / kGemvBlocksPerSm, 1.0);
  const bool is_cold = work.bytes > kH200.warm_operand_bytes;
  const double rate = (work.has_ring ? kColdRing
                       : is_cold     ? kCold
                                     : kWarm) *
                      (work.is_narrow ? kNarrow : 1.0) * multiprocessors / kH200.multiprocessors;
  const double move = work.has_ring && !is_cold ? 0.0 : work.bytes / rate;
  const double add = work.k_splits == 1 ? 0.0 : kAdd;
  const double seconds = move + waves * (block + step * static_cast<double>(work.block_steps)) +
                         add + (work.overlaps ? 0.0 : kGap);
  return {std::move(choice), seconds, {.waves = waves, .move = move, .add = add}};
}

inline Candidate predicted(Choice choice, const Work& work, const Device& device) {
  const Rates rates = rates_of(work.along, work.aligned);
  constexpr double kResult = 0.89e-9;        // adds the warps' sums
  constexpr double kColumnResult = 0.53e-9;  // more, for stores along short columns of C
  // Factors: of the time of the main loop, for one block where two fit; of the time to issue FFMA,
  // for operands that L2 does not keep; of all, by 200 later problems.
  constexpr double kAlone = 1.12, kCold = 1.09, kLater = 1.06;

  const int multiprocessors = std::max(device.multiprocessors, 1);
  const auto busiest = static_cast<double>(ceil_div(work.blocks, multiprocessors));
  const double tiles = busiest * static_cast<double>(work.block_tiles);
  const double issue = tiles * work.tile_ffma *
                       (rates.cycles + rates.cycles_per_wavefront * work.wavefronts) / kH200.clock *
                       (work.bytes > kH200.warm_operand_bytes ? kCold : 1.0);
  const double main_loop = (busiest < work.blocks_per_sm ? kAlone : 1.0) *
                           std::max({work.bytes / (rates.memory * multiprocessors),
                                     tiles * work.tile_bytes / rates.copies, issue});
  const double results = busiest * (work.results * kResult + work.column_results * kColumnResult);
  const double seconds = kLater * (rates.start + main_loop + results + add_seconds(work.k_splits));
  const double slots = static_cast<double>(multiprocessors) * work.blocks_per_sm;
  const Parts parts{.waves = static_cast<double>(work.blocks) / slots,
                    .multiply = issue,
                    .move = work.bytes / (rates.memory * multiprocessors),
                    .add = add_seconds(work.k_splits)};
  return {std::move(choice), seconds, parts};
}

}  // namespace tilegate::skinny
