// GEMM of FP32 operands on FP64 tensor cores, the fallback of rungs that split operands. Compute
// capability 9.0, where FP64 tensor cores do as many multiply-adds per clock as CUDA cores do in
// FP32.
//
// A product of two FP32 numbers is exact in FP64, and each block rounds its sum to FP32 once. So it
// is accurate for any operands, NaN and Inf included.
//
// A block computes tiles of 128 rows, and 128 or 64 columns. A producer warpgroup copies tiles of
// both operands to shared memory; two consumer warpgroups convert elements to FP64 and run
// mma.sync. The callers are kernels with these warpgroups, which call run_fp64_producer
// and run_fp64_consumers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/fp32_fallback.cuh>
#include <tilegate/common/opaque.cuh>
#include <tilegate/common/pipeline.cuh>
#include <tilegate/common/split_operands.cuh>
#include <tilegate/common/stream_k_scheduler.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/device/flag.cuh>
#include <tilegate/device/warp_mma.cuh>
#include <tilegate/stage.hpp>

namespace tilegate {

constexpr int kFp64Tile = 128;  // rows, and at most so many columns
constexpr int kFp64K = 32;
constexpr int kFp64Producers = 128, kFp64Consumers = 256;
constexpr int kFp64Stages = 5;
constexpr int kFp64InFlight = 1;  // stages whose copies are in flight while the next one's start

// A tile of `rows` rows of an operand in shared memory: along k, (row, 32 k), else (k, row). Lines
// are padded so that four k of eight rows are in different banks.
constexpr int kFp64PitchAlongK = kFp64K + 4;
template <int kRows>
constexpr int kFp64PitchAcrossK = kRows + 8;
constexpr int kFp64TileWords = kFp64Tile * kFp64PitchAlongK;
static_assert(kFp64K * kFp64PitchAcrossK<kFp64Tile> <= kFp64TileWords);

// A warp's results on their way to a C without float2: 16 rows, padded so that float2 of four rows
// are in different banks.
constexpr int kFp64ResultPitch = kFp64Tile / 2 + 8;
using Fp64Results = float[16][kFp64ResultPitch];

struct alignas(16) Fp64Storage {
  float a[kFp64Stages][kFp64TileWords], b[kFp64Stages][kFp64TileWords];
  alignas(8) Fp64Results results[kFp64Consumers / 32];
};
struct Fp64Barriers {
  device::Barrier full[kFp64Stages], empty[kFp64Stages];

  // One thread.
  __device__ void init() {
    for (int stage = 0; stage < kFp64Stages; ++stage) {
      device::barrier_init(full[stage], kFp64Producers);
      device::barrier_init(empty[stage], kFp64Consumers / 32);
    }
  }
};

constexpr std::size_t kFp64PartialBytes = sizeof(float) * kFp64Tile * kFp64Tile;  // of a block

// An operand: rows of op(A), or columns of op(B).
struct Fp64Operand {
  bool along_k = false;  // its rows lie along k
  bool vectors = false;  // it allows 128-bit accesses
};

// Parameters beside KernelArgs.
struct Fp64Args {
  Fp64Operand a, b;
  bool float2_c = false;
  int columns = kFp64Tile;  // of a tile
  TileScheduler scheduler;  // the tiles of a cluster count as one tile
  std::int64_t k_tiles = 0;
  StreamKTiles stream_k{};
  float* partials = nullptr;  // kFp64PartialBytes per block
  unsigned* flags = nullptr;  // one per block: its partial sums are ready
};

template <unsigned kCluster>
__device__ Scheduler<kCluster, true> fp64_scheduler(const KernelArgs& args,
                                                    const Fp64Args& params) {
  return {params.scheduler, static_cast<unsigned>(args.batch) * params.scheduler.count,
          params.k_tiles, params.stream_k};
}

// A producer thread's copies of an operand: kTurns groups of kWords per tile of kRows rows.
// Neighbouring threads copy neighbouring groups of a line, a row along k or a k across all rows.
// What follows from kernel parameters is computed again for each tile: a producer has few
// registers.
template <int kRows>
class Fp64Copy {
 public:
  // Of a matrix of `rows` rows: from row `tile` · kRows and k `first_k` on.
  __device__ Fp64Copy(const float* matrix, const std::int64_t& ld, const Fp64Operand& operand,
                      unsigned tile, std::int64_t rows, std::int64_t first_k, std::int64_t k,
                      int thread)
      : ld_(ld), operand_(operand) {
    const std::int64_t row = std::int64_t{tile} * kRows;
    const int log_groups = log_groups_of_line(), line = thread >> log_groups,
              in_line = (thread - (line << log_groups)) * (operand.vectors ? 4 : 1);
    const int rows_left = at_most(rows - row, kRows), k_left = static_cast<int>(k - first_k);
    to_ = line * pitch() + in_line;
    from_ =
        matrix + (operand.along_k ? row * ld + first_k : first_k * ld + row) + line * ld + in_line;
    across_ = (operand.along_k ? rows_left : k_left) - line;
    along_ = (operand.along_k ? k_left : rows_left) - in_line;
  }

  // Starts the copies of the next tile; zeros outside the operand.
  __device__ void copy(float* tile) {
    if (operand_.vectors) {
      copy<4>(tile);
    } else {
      copy<1>(tile);
    }
  }

 private:
  // Groups of a line: a power of two, because a division takes many instructions.
  __device__ int log_groups_of_line() const {
    static_assert(kFp64K == 32 && (kRows == 128 || kRows == 64));
    const unsigned log_words = operand_.along_k ? 5 : kRows == 128 ? 7 : 6;
    return static_cast<int>(opaque(log_words - (operand_.vectors ? 2 : 0)));
  }
  __device__ int pitch() const {
    return operand_.along_k ? kFp64PitchAlongK : kFp64PitchAcrossK<kRows>;
  }

  template <int kWords>
  __device__ void copy(float* tile) {
    constexpr int kTurns = kRows * kFp64K / kWords / kFp64Producers;
    const int lines = kFp64Producers >> log_groups_of_line();  // of a turn
    const float* from = from_;
    float* to = tile + to_;
    int left = along_ > 0 ? across_ : 0;
#pragma unroll(kWords == 4 ? 4 : 2)
    for (int i = 0; i < kTurns; ++i) {
      device::copy_async<4 * kWords>(to, from, left > 0);
      from += lines * ld_;
      to += lines * pitch();
      left -= lines;
    }
    if (operand_.along_k) {
      from_ += kFp64K;
      along_ -= kFp64K;
    } else {
      from_ = from;
      across_ -= kFp64K;
    }
  }

  const float* from_;
  int to_;              // of the first group in a tile, in words
  int across_, along_;  // lines, and words of a line, from the thread's first group on
  const std::int64_t& ld_;
  const Fp64Operand& operand_;
};

template <int kColumns, unsigned kCluster>
__device__ void produce_fp64(const KernelArgs& args, const Fp64Args& params, int thread,
                             Fp64Storage& smem, Fp64Barriers& barriers) {
  Pipeline<kFp64Stages> pipeline, copied;
  const auto scheduler = fp64_scheduler<kCluster>(args, params);
  int in_flight = 0;
  Work work;
  for (unsigned number = 0; scheduler.get(number, work); ++number) {
    const std::int64_t first_k = std::int64_t{work.first_chunk} * kFp64K;
    const std::int64_t batch_index = work.tile.batch_index;
    Fp64Copy<kFp64Tile> a(args.a + batch_index * args.stride_a, args.lda, params.a, work.tile.row,
                          args.shape.m, first_k, args.shape.k, thread);
    Fp64Copy<kColumns> b(args.b + batch_index * args.stride_b, args.ldb, params.b, work.tile.col,
                         args.shape.n, first_k, args.shape.k, thread);
#pragma unroll 1
    for (unsigned k_tiles = work.chunks; k_tiles > 0; --k_tiles) {
      pipeline.producer_acquire(barriers.empty);
      a.copy(smem.a[pipeline.stage]);
      b.copy(smem.b[pipeline.stage]);
      device::copy_async_commit();
      pipeline.advance();
      if (++in_flight <= kFp64InFlight) continue;
      --in_flight;
      device::copy_async_wait<kFp64InFlight>();
      device::barrier_arrive(barriers.full[copied.stage]);
      copied.advance();
    }
  }
  device::copy_async_wait<0>();
  for (; in_flight > 0; --in_flight) {
    device::barrier_arrive(barriers.full[copied.stage]);
    copied.advance();
  }
}

// Calls function.operator()<columns of a tile>(). In pairs these are always 128: a second tile size
// made their main loop 1 % slower.
template <unsigned kCluster, typename Function>
__device__ void with_fp64_columns(const Fp64Args& params, Function function) {
  if constexpr (kCluster == 1) {
    if (params.columns != kFp64Tile) return function.template operator()<kFp64Tile / 2>();
  }
  function.template operator()<kFp64Tile>();
}

// Producer warpgroup. `thread`: index in it.
template <unsigned kCluster>
__device__ void run_fp64_producer(const KernelArgs& args, const Fp64Args& params, int thread,
                                  Fp64Storage& smem, Fp64Barriers& barriers) {
  with_fp64_columns<kCluster>(params, [&]<int kColumns>() {
    produce_fp64<kColumns, kCluster>(args, params, thread, smem, barriers);
  });
}

// Sums of a consumer thread. A warp has 32 rows and half of the columns, in blocks of 16×8.
constexpr int kFp64Rows = 2;  // blocks of a warp
template <int kColumns>
constexpr int kFp64Columns = kColumns / 2 / 8;
template <int kColumns>
using Fp64Sums = double[kFp64Rows][kFp64Columns<kColumns>][4];

// Loads elements of the tile of an operand, from row lane / 4 and k lane % 4 of a warp's part on.
struct Fp64Fragments {
  int first, next_8, next_k;  // words: of the first element; to 8 rows below, to 4 k behind

  __device__ Fp64Fragments(bool along_k, int pitch_across_k, int row, int k)
      : first(along_k ? row * kFp64PitchAlongK + k : k * pitch_across_k + row),
        next_8(along_k ? 8 * kFp64PitchAlongK : 8),
        next_k(along_k ? 4 : 4 * pitch_across_k) {}

  __device__ double load(const float* tile, int row_8, int four) const {
    return tile[first + row_8 * next_8 + four * next_k];
  }
};

// acc += the products of a stage; if kHasHalf and `is_half`, of its first 16 k only.
template <int kColumns, bool kHasHalf>
__device__ void multiply_fp64_stage(const float* a, const float* b, const Fp64Fragments& of_a,
                                    const Fp64Fragments& of_b, bool is_half,
                                    Fp64Sums<kColumns>& acc) {
#pragma unroll
  for (int slice = 0; slice < kFp64K / 16; ++slice) {
    if (kHasHalf && is_half && slice > 0) break;
    double x[kFp64Rows][8];
#pragma unroll
    for (int row = 0; row < kFp64Rows; ++row) {
#pragma unroll
      for (int i = 0; i < 8; ++i) x[row][i] = of_a.load(a, 2 * row + i % 2, slice * 4 + i / 2);
    }
#pragma unroll
    for (int col = 0; col < kFp64Columns<kColumns>; ++col) {
      double y[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) y[i] = of_b.load(b, col, slice * 4 + i);
#pragma unroll
      for (int row = 0; row < kFp64Rows; ++row) device::mma_f64(acc[row][col], x[row], y);
    }
  }
}

// Stream-K's fixup. Partial sums of a block: (block of 16×8, thread, 4).
template <int kColumns>
__device__ float* fp64_partial(const Fp64Args& params, unsigned block, int thread, int row,
                               int col) {
  return params.partials + std::size_t{block} * (kFp64PartialBytes / sizeof(float)) +
         ((row * kFp64Columns<kColumns> + col) * kFp64Consumers + thread) * 4;
}

template <int kColumns>
__device__ void store_fp64_partial(const Fp64Args& params, int thread,
                                   const Fp64Sums<kColumns>& acc) {
#pragma unroll
  for (int row = 0; row < kFp64Rows; ++row) {
#pragma unroll
    for (int col = 0; col < kFp64Columns<kColumns>; ++col) {
      const double* v = acc[row][col];
      device::store_vector(fp64_partial<kColumns>(params, blockIdx.x, thread, row, col),
                           make_float4(static_cast<float>(v[0]), static_cast<float>(v[1]),
                                       static_cast<float>(v[2]), static_cast<float>(v[3])));
    }
  }
  device::named_barrier<1>(kFp64Consumers);  // all threads have stored before one raises the flag
  if (thread == 0) device::raise_flag(params.flags + blockIdx.x);
}

// acc += the partial sums of the `count` previous clusters.
template <int kColumns, unsigned kCluster>
__device__ void add_fp64_partials(const Fp64Args& params, unsigned count, int thread,
                                  Fp64Sums<kColumns>& acc) {
  const auto index = static_cast<unsigned>(thread);
  if (index < count) device::wait_for_flag(params.flags + blockIdx.x - (index + 1) * kCluster);
  device::named_barrier<1>(kFp64Consumers);  // each flag has been waited for by one thread
#pragma unroll 2
  for (unsigned i = 1; i <= count; ++i) {
#pragma unroll
    for (int row = 0; row < kFp64Rows; ++row) {
#pragma unroll
      for (int col = 0; col < kFp64Columns<kColumns>; ++col) {
        const auto v = device::load_vector<float4>(
            fp64_partial<kColumns>(params, blockIdx.x - i * kCluster, thread, row, col));
        double* sums = acc[row][col];
        sums[0] += v.x, sums[1] += v.y, sums[2] += v.z, sums[3] += v.w;
      }
    }
  }
}

// One warp: stores 16 rows and kColumns columns to C, from `c` on. `rows`, `cols`: of C from `c`
// on, may be 0 or less. A store has 32 neighbouring words.
template <int kColumns>
__device__ void store_fp64_words(const KernelArgs& args, float* c, int rows, int cols, int lane,
                                 const Fp64Results& results) {
  constexpr int kStores = kColumns / 32, kInFlight = 4;  // rows of a C that is read
  c += lane;
#pragma unroll 1
  for (int first = 0; first < 16; first += kInFlight) {
    float sum[kInFlight][kStores];
    const auto for_all = [&](auto use) {
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) {
#pragma unroll
        for (int j = 0; j < kStores; ++j) {
          const int row = first + i, col = 32 * j + lane;
          use(sum[i][j], results[row][col], c + i * args.ldc + 32 * j, row < rows && col < cols);
        }
      }
    };
    for_all([&](float& of, float result, const float* old, bool inside) {
      of = args.alpha * result;
      if (args.beta != 0.0F && inside) of += args.beta * *old;
    });
    for_all([&](float of, float, float* to, bool inside) {
      if (inside) *to = of;
    });
    c += kInFlight * args.ldc;
  }
}

// Stores the sums of a warp, from `row` and `col` of the tile on.
template <int kColumns>
__device__ void store_fp64(const KernelArgs& args, bool float2_c, const TileCoord& tile, int row,
                           int col, int lane, const Fp64Sums<kColumns>& acc, Fp64Results& results) {
  const std::int64_t first_row = std::int64_t{tile.row} * kFp64Tile + row,
                     first_col = std::int64_t{tile.col} * kColumns + col;
  float* of_warp = args.c + tile.batch_index * args.stride_c + first_row * args.ldc + first_col;
  const int rows = at_most(args.shape.m - first_row, kFp64Tile),
            cols = at_most(args.shape.n - first_col, kFp64Tile);
  const int in_row = lane / 4, in_col = lane % 4 * 2;
  const auto pair_of = [&](int row_8, int col_8) {
    const double* sums = &acc[row_8 / 2][col_8][row_8 % 2 * 2];
    return make_float2(static_cast<float>(sums[0]), static_cast<float>(sums[1]));
  };
  if (!float2_c) {
#pragma unroll
    for (int row_16 = 0; row_16 < kFp64Rows; ++row_16) {
      __syncwarp();  // all lanes have read the previous rows
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int col_8 = 0; col_8 < kFp64Columns<kColumns>; ++col_8) {
          device::store_vector(&results[half * 8 + in_row][8 * col_8 + in_col],
                               pair_of(2 * row_16 + half, col_8));
        }
      }
      __syncwarp();  // all rows are stored before any lane reads them
      store_fp64_words<kColumns / 2>(args, of_warp + 16 * row_16 * args.ldc, rows - 16 * row_16,
                                     cols, lane, results);
    }
    return;
  }
#pragma unroll
  for (int row_8 = 0; row_8 < 2 * kFp64Rows; ++row_8) {
    if (8 * row_8 + in_row >= rows) continue;
    float* of_lane = of_warp + (8 * row_8 + in_row) * args.ldc + in_col;
#pragma unroll
    for (int col_8 = 0; col_8 < kFp64Columns<kColumns>; ++col_8) {
      if (8 * col_8 + in_col >= cols) continue;
      const float2 pair = pair_of(row_8, col_8);
      store_float2(args, of_lane + 8 * col_8, pair.x, pair.y);
    }
  }
}

template <int kColumns, unsigned kCluster>
__device__ void consume_fp64(const KernelArgs& args, const Fp64Args& params, int thread,
                             Fp64Storage& smem, Fp64Barriers& barriers) {
  Pipeline<kFp64Stages> pipeline;
  const auto scheduler = fp64_scheduler<kCluster>(args, params);
  const int lane = thread % 32, warp = thread / 32;
  const int row = warp / 2 * 16 * kFp64Rows, col = warp % 2 * 8 * kFp64Columns<kColumns>;
  const Fp64Fragments of_a(params.a.along_k, kFp64PitchAcrossK<kFp64Tile>, row + lane / 4,
                           lane % 4),
      of_b(params.b.along_k, kFp64PitchAcrossK<kColumns>, col + lane / 4, lane % 4);
  Work work;
  for (unsigned number = 0; scheduler.get(number, work); ++number) {
    Fp64Sums<kColumns> acc{};
    std::int64_t k = args.shape.k - std::int64_t{work.first_chunk} * kFp64K;  // left
#pragma unroll 1
    for (unsigned k_tiles = work.chunks; k_tiles > 0; --k_tiles) {
      pipeline.consumer_wait(barriers.full);
      // In pairs the branch costs more than it saves: 3000³ takes 2 % longer with it.
      multiply_fp64_stage<kColumns, kCluster == 1>(smem.a[pipeline.stage], smem.b[pipeline.stage],
                                                   of_a, of_b, k <= kFp64K / 2, acc);
      k -= kFp64K;
      __syncwarp();  // all lanes have read the stage before one releases it
      if (lane == 0) device::barrier_arrive(barriers.empty[pipeline.stage]);
      pipeline.advance();
    }
    if (work.stores_tile == 0) {
      store_fp64_partial<kColumns>(params, thread, acc);
      continue;
    }
    if (work.num_partials > 0) {
      add_fp64_partials<kColumns, kCluster>(params, work.num_partials, thread, acc);
    }
    store_fp64<kColumns>(args, params.float2_c, work.tile, row, col,
                         static_cast<int>(opaque(static_cast<unsigned>(lane))), acc,
                         smem.results[warp]);
  }
}

// Consumer warpgroups: all tiles of the batch, over all of K. A kernel that is launched once per
// part of K calls this in the first launch only. `thread`: index among the consumers.
template <unsigned kCluster>
__device__ void run_fp64_consumers(const KernelArgs& args, const Fp64Args& params, int thread,
                                   Fp64Storage& smem, Fp64Barriers& barriers) {
  with_fp64_columns<kCluster>(params, [&]<int kColumns>() {
    consume_fp64<kColumns, kCluster>(args, params, thread, smem, barriers);
  });
}

// Plans.

// How many of `most` clusters share `tiles` tiles.
inline std::int64_t fp64_clusters(std::int64_t tiles, std::int64_t k_tiles, std::int64_t most) {
  if (tiles >= most) return most;
  // At most so many share a tile, because one of them adds all partial sums.
  constexpr std::int64_t kMostOfTile = 32, kLeastKTiles = 4;
  // What adding partial sums costs, in time of so many k: per tile, and per part.
  constexpr std::int64_t kTileK = 32, kPartK = 12;
  std::int64_t best = tiles, least = k_tiles * kFp64K;
  for (std::int64_t parts = 2; parts <= std::min(kMostOfTile, k_tiles / kLeastKTiles); ++parts) {
    const std::int64_t clusters = std::min(tiles * parts, most);
    const std::int64_t time =
        ceil_div(tiles * k_tiles, clusters) * kFp64K + kTileK + (parts - 1) * kPartK;
    if (time >= least) continue;
    least = time;
    best = clusters;
  }
  return best;
}

// Columns of a tile. Not in pairs, for a C of less than a wave of tiles of 128 columns: 64. Then
// fewer blocks share a tile, and their partial sums are half as large. But tiles of 64 columns take
// 2 to 3 % longer per k, so that this does not pay for many k tiles.
inline int fp64_columns(const Problem& problem, const Device& device, unsigned cluster) {
  constexpr std::int64_t kMostKTiles = 45;  // per multiprocessor
  const auto [m, n, k] = problem.shape;
  const std::int64_t tiles = problem.batch * ceil_div(m, kFp64Tile) * ceil_div(n, kFp64Tile);
  return cluster == 1 && tiles < device.multiprocessors &&
                 tiles * ceil_div(k, kFp64K) < kMostKTiles * device.multiprocessors
             ? kFp64Tile / 2
             : kFp64Tile;
}

// The k tiles of the last waves, shared by so many clusters. A cluster may have a single k tile of
// a tile: it takes about as long as adding partial sums.
inline StreamKTiles fp64_stream_k(std::int64_t tiles, std::int64_t clusters, std::int64_t k_tiles) {
  return {static_cast<unsigned>(tiles), static_cast<unsigned>(clusters),
          static_cast<unsigned>(k_tiles), 1};
}

// Without stream-K. Tiles have `columns` columns. `cluster`: blocks per cluster, whose tiles are
// neighbours in a row.
inline Fp64Args fp64_args(const Problem& problem, int columns, unsigned cluster) {
  const auto operand = [&](Operand of) {
    return Fp64Operand{is_along_k(problem, of), allows_vectors(problem, of)};
  };
  Fp64Args args{operand(Operand::kA),
                operand(Operand::kB),
                allows_float2_of_c(problem),
                columns,
                TileScheduler(problem.shape, kFp64Tile, columns * static_cast<int>(cluster)),
                ceil_div(problem.shape.k, kFp64K)};
  args.stream_k.full_waves = std::numeric_limits<unsigned>::max();
  return args;
}

// Appends the kernel, and the copies of each operand. `clusters`: of the grid, of `cluster` blocks
// each; `decision`: see Choice::decides_on_device.
inline void add_planned_fp64(const Problem& problem, const Fp64Args& params, unsigned cluster,
                             std::int64_t clusters, int decision,
                             std::vector<PlannedKernel>& kernels) {
  const std::int64_t tiles = problem.batch * params.scheduler.count;
  const std::string tile = params.columns == kFp64Tile ? "fp64" : "fp64 of 64 columns";
  PlannedKernel multiply{
      .name =
          tile + " to " + (params.float2_c ? "float2" : "words") + (cluster > 1 ? " in pairs" : ""),
      .parameters = {parameter::rows(kFp64Tile), parameter::columns(params.columns),
                     scheduling(params.scheduler), columns_of_groups(params.scheduler),
                     parameter::count("tiles of a block", ceil_div(tiles, clusters))},
      .decision = decision};
  if (const unsigned shared = params.stream_k.count; shared > 0) {
    multiply.parameters.push_back(parameter::count("shared tiles", shared));
    multiply.parameters.push_back(
        parameter::tiles("k tiles among clusters", shared * params.k_tiles, clusters));
  }
  kernels.push_back(std::move(multiply));
  const auto add_copies = [&](const Fp64Operand& of, const Parameter& rows, std::string name) {
    name += std::string(of.along_k ? " along k" : "") + (of.vectors ? " in vectors" : "");
    kernels.push_back({.name = std::move(name),
                       .parameters = {rows, parameter::depth(kFp64K)},
                       .decision = decision});
  };
  add_copies(params.a, parameter::rows(kFp64Tile), "fp64 a");
  add_copies(params.b, parameter::columns(params.columns), tile + " b");
}

// Rounding chain: the sum of products, those of other blocks, alpha and beta.
constexpr std::int64_t kFp64RoundingChain = 4;

}  // namespace tilegate
