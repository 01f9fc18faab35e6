// OuterProduct: for K up to 48, where storing C takes much of the time.
//
// New against AsyncCopy: no tiles of C. A warp keeps a strip of op(B), K×128, in registers. It
// multiplies one row of op(A) after another by it and stores each at once, so that C is stored all
// the time, not at the end of tiles. Lanes store neighbouring words, so C needs no alignment. The
// strip is loaded once, and rows of op(A) come from shared memory. Supports transposed operands and
// batches. What limits it: the stores of C, and for K above 16 the latency of FFMA and of loads
// from shared memory, because registers leave room for few warps. A larger K is cut into pieces of
// 48, which add to C one after another: correct and slow.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/divisor.cuh>
#include <tilegate/common/gpu_model.hpp>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::outer_product {

constexpr int kNumWarps = 8, kNumThreads = 32 * kNumWarps;
constexpr int kMostWidth = 4, kRowsAtATime = 2;  // columns and rows of a thread at a time
constexpr int kMostStrip = 32 * kMostWidth;      // columns of a warp; a thread's are 32 apart
constexpr int kLeastK = 4, kMostK = 48;          // K of a kernel is a multiple of 4

// The strip takes kK · kMostWidth registers.
constexpr int blocks_per_sm(int k) { return k <= 24 ? 2 : 1; }

// Words of a row of op(A) in shared memory: an odd number of vectors, so that neighbouring rows
// begin in different banks.
constexpr __host__ __device__ int row_words(int k) { return k % 8 == 4 ? k : k + 4; }

// Columns of a thread that go through shared memory at a time, where op(B) lies along k. A block's
// take at most 88 KiB.
constexpr __host__ __device__ int columns_at_a_time(int k) { return k <= 20 ? 4 : k <= 40 ? 2 : 1; }

// How C is divided among blocks: `groups` of `strips` strips of 32·`width` columns, and chunks of
// `rows` rows. Each warp multiplies by one strip; kNumWarps / strips warps share it, each with
// other rows.
struct Division {
  int strips, width, rows;
  Divisor groups, chunks;
  bool a_along_k;  // rows of op(A) lie along k
};

// to ← `count` rows of kK words along k, from `from` on; zeros beyond its `rows` rows and `words`
// words. By all threads of a block; completes with copy_async_wait. Of each `of` rows of `from`
// only the first kRun are copied.
template <int kK, int kRun = 1>
__device__ void copy_rows(const float* from, std::int64_t ld, bool along_k, int rows, int words,
                          int count, float* to, int of = 1) {
  const auto copy = [&](int to_row, int word) {
    const int row = to_row / kRun * of + to_row % kRun;
    const bool inside = row < rows && word < words;
    const std::int64_t at = along_k ? row * ld + word : word * ld + row;
    device::copy_async<4>(to + to_row * row_words(kK) + word, inside ? from + at : from, inside);
  };
  const auto thread = static_cast<int>(threadIdx.x);
  if (along_k) {  // neighbouring threads copy neighbouring words in memory
    constexpr int kWords = kK > 16 ? 32 : kK > 8 ? 16 : kK > 4 ? 8 : 4;
    for (int word = thread % kWords; word < kK; word += kWords) {
#pragma unroll 4
      for (int row = thread / kWords; row < count; row += kNumThreads / kWords) copy(row, word);
    }
  } else {
    for (int word = thread / 32; word < kK; word += kNumThreads / 32) {
      for (int row = thread % 32; row < count; row += 32) copy(row, word);
    }
  }
  device::copy_async_commit();
}

// The strip of a warp.
struct Strip {
  int begin;    // its first column in the block
  int columns;  // of them in C; none if at most 0

  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ int first() const { return begin + lane(); }     // column of the thread
  __device__ int inside() const { return columns - lane(); }  // columns from there on
};

// strip ← the thread's columns of op(B), which has `words` along k, from `b` on; zeros outside.
// `exchange`: in shared memory.
template <int kK, bool kAlongK>
__device__ void load_strip(const float* b, std::int64_t ldb, int columns, int words,
                           const Division& division, const Strip& of_warp, float* exchange,
                           float (&strip)[kK][kMostWidth]) {
  if constexpr (!kAlongK) {
    const auto load = [&](auto has) {
      const float* from = b + of_warp.first();
#pragma unroll
      for (int k = 0; k < kK; ++k, from += ldb) {
#pragma unroll
        for (int i = 0; i < kMostWidth; ++i) {
          strip[k][i] = k < words && has(i) ? from[32 * i] : 0.0F;
        }
      }
    };
    // Strips of 128 columns need no check.
    if (of_warp.columns == kMostStrip) {
      load([](int) { return true; });
    } else {
      load([&](int i) { return 32 * i < of_warp.inside(); });
    }
  } else {
    constexpr int kTogether = columns_at_a_time(kK), kRun = 32 * kTogether;
    const int strip_of_warp = static_cast<int>(threadIdx.x) / 32 / (kNumWarps / division.strips);
    const float* const row = exchange + (strip_of_warp * kRun + Strip::lane()) * row_words(kK);
#pragma unroll
    for (int i = 0; i < kMostWidth; i += kTogether) {
      if (i >= division.width) break;
      copy_rows<kK, kRun>(b + 32 * i * ldb, ldb, true, columns - 32 * i, words,
                          kRun * division.strips, exchange, 32 * division.width);
      device::copy_async_wait<0>();
      __syncthreads();  // the columns have arrived
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
#pragma unroll
        for (int k = 0; k < kK; k += 4) {
          const auto v = device::load_vector<float4>(row + 32 * j * row_words(kK) + k);
          strip[k][i + j] = v.x, strip[k + 1][i + j] = v.y;
          strip[k + 2][i + j] = v.z, strip[k + 3][i + j] = v.w;
        }
      }
      __syncthreads();  // all threads have read them
    }
  }
}

// C ← alpha·op(A)·op(B) + beta·C for kRows rows and kWidth columns of a thread: rows are `step`
// apart, of op(A) from `a` on, of C from `c` on. `inside`: the thread's columns below are inside C.
template <int kK, int kWidth, int kRows>
__device__ void multiply_rows(const KernelArgs& args, const float* a, int step,
                              const float (&strip)[kK][kMostWidth], float* c, int inside) {
  // idea:begin OuterProduct
  float sums[kRows][kWidth]{};
#pragma unroll
  for (int k = 0; k < kK; k += 4) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const auto v = device::load_vector<float4>(a + i * step * row_words(kK) + k);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        sums[i][j] += v.x * strip[k][j];
        sums[i][j] += v.y * strip[k + 1][j];
        sums[i][j] += v.z * strip[k + 2][j];
        sums[i][j] += v.w * strip[k + 3][j];
      }
    }
  }
  // idea:end
  float old[kRows][kWidth]{};
  if (args.beta != 0.0F) {
    // All loads before the first store: the compiler must assume that they alias.
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        if (32 * j < inside) old[i][j] = c[i * step * args.ldc + 32 * j];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      if (32 * j >= inside) continue;
      c[i * step * args.ldc + 32 * j] = args.beta == 0.0F
                                            ? args.alpha * sums[i][j]
                                            : args.alpha * sums[i][j] + args.beta * old[i][j];
    }
  }
}

// The same for all rows of a thread, of which there are `left`.
template <int kK, int kWidth>
__device__ void multiply_all(const KernelArgs& args, const float* a, int step, int left,
                             const float (&strip)[kK][kMostWidth], float* c, int inside) {
#pragma unroll 1
  for (; left >= kRowsAtATime; left -= kRowsAtATime) {
    multiply_rows<kK, kWidth, kRowsAtATime>(args, a, step, strip, c, inside);
    a += kRowsAtATime * step * row_words(kK), c += kRowsAtATime * step * args.ldc;
  }
  static_assert(kRowsAtATime == 2, "what is left is one row");
  if (left > 0) multiply_rows<kK, kWidth, 1>(args, a, step, strip, c, inside);
}

// A block computes a chunk of rows in a group of columns. blockIdx.x counts groups first.
template <int kK, bool kBAlongK>
__global__ void __launch_bounds__(kNumThreads, blocks_per_sm(kK))
    multiply(KernelArgs args, Division division) {
  const unsigned of_batch = division.groups.quotient(blockIdx.x),
                 group = division.groups.remainder(blockIdx.x, of_batch),
                 matrix = division.chunks.quotient(of_batch),
                 chunk = division.chunks.remainder(of_batch, matrix);
  const auto rest = [](std::int64_t extent, std::int64_t first, int most) {
    return static_cast<int>(min(extent - first, std::int64_t{most}));
  };
  const std::int64_t m = args.shape.m, n = args.shape.n;
  const auto k = static_cast<int>(args.shape.k);
  const int strips = division.strips, step = kNumWarps / strips;  // rows of the block at a time
  const int strip_columns = 32 * division.width;
  const std::int64_t first = std::int64_t{chunk} * division.rows;
  const std::int64_t column = std::int64_t{group} * strips * strip_columns;
  const int rows = rest(m, first, division.rows), columns = rest(n, column, strips * strip_columns);
  const float* a = args.a + matrix * args.stride_a + first * (division.a_along_k ? args.lda : 1);
  const float* b = args.b + matrix * args.stride_b + column * (kBAlongK ? args.ldb : 1);
  // Warps of one strip are neighbours: of one or two strips each scheduler has as many warps.
  const int warp = static_cast<int>(threadIdx.x) / 32, row = warp % step,
            begin = warp / step * strip_columns;
  const Strip of_warp{begin, min(columns - begin, strip_columns)};
  float* const rows_of_a = &device::shared_storage<float>();
  float* const exchange = rows_of_a + division.rows * row_words(kK);

  float* const c =
      args.c + matrix * args.stride_c + (first + row) * args.ldc + column + of_warp.first();
  device::wait_for_previous_kernel(a, b, c);
  device::launch_dependents();
  copy_rows<kK>(a, args.lda, division.a_along_k, rows, k, division.rows, rows_of_a);
  float strip[kK][kMostWidth];
  load_strip<kK, kBAlongK>(b, args.ldb, columns, k, division, of_warp, exchange, strip);
  device::copy_async_wait<0>();
  __syncthreads();  // all rows have arrived
  const int inside = of_warp.inside(), left = (rows - row + step - 1) / step;
  const float* const from = rows_of_a + row * row_words(kK);
  if (of_warp.columns > 96) {
    multiply_all<kK, 4>(args, from, step, left, strip, c, inside);
  } else if (of_warp.columns > 64) {
    multiply_all<kK, 3>(args, from, step, left, strip, c, inside);
  } else if (of_warp.columns > 32) {
    multiply_all<kK, 2>(args, from, step, left, strip, c, inside);
  } else if (of_warp.columns > 0) {
    multiply_all<kK, 1>(args, from, step, left, strip, c, inside);
  }
}

// A kernel, for K up to `k` and one layout of op(B).
struct Kernel {
  int k;
  bool b_along_k;
  void (*run)(KernelArgs, Division);
};
constexpr int kNumDepths = kMostK / kLeastK;
template <int... kDepths>
constexpr auto kernels_for(std::integer_sequence<int, kDepths...>) {
  return std::array{
      Kernel{(kDepths + 1) * kLeastK, false, multiply<(kDepths + 1) * kLeastK, false>}...,
      Kernel{(kDepths + 1) * kLeastK, true, multiply<(kDepths + 1) * kLeastK, true>}...};
}
constexpr auto kKernels = kernels_for(std::make_integer_sequence<int, kNumDepths>{});

// Shared memory of a block in bytes: rows of op(A), and columns of op(B) that lie along k.
constexpr std::size_t shared_bytes(const Kernel& kernel, int strips, std::int64_t rows) {
  const int columns = kernel.b_along_k ? columns_at_a_time(kernel.k) * 32 * strips : 0;
  return sizeof(float) * static_cast<std::size_t>((rows + columns) * row_words(kernel.k));
}
constexpr std::size_t kLeastShared = std::size_t{99} << 10;  // of a block, from 8.0 on
static_assert(std::ranges::all_of(kKernels, [](const Kernel& kernel) {
  return shared_bytes(kernel, kNumWarps, kNumWarps) <= kLeastShared;
}));

// Most rows of a chunk: as many blocks fit as registers allow, or one.
std::int64_t most_rows(const Kernel& kernel, int strips, const Device& device) {
  const std::size_t columns = shared_bytes(kernel, strips, 0), row = shared_bytes(kernel, 0, 1);
  const auto rows_in = [&](std::size_t bytes) {
    return static_cast<std::int64_t>(bytes < columns ? 0 : (bytes - columns) / row);
  };
  const auto blocks = static_cast<std::size_t>(blocks_per_sm(kernel.k));
  const std::int64_t shared = rows_in(shared_bytes_per_sm(device) / blocks - kReservedSharedBytes);
  return shared >= kNumWarps ? shared : rows_in(shared_bytes_per_block(device));
}

// A problem's blocks.
struct Partition {
  const Kernel* kernel;
  int strips, width;      // see Division
  std::int64_t rows;      // of a chunk
  std::int64_t groups;    // of columns
  std::int64_t chunks;    // of rows
  std::int64_t pieces;    // of K
  std::int64_t matrices;  // of the batch

  double blocks() const {
    return static_cast<double>(groups) * static_cast<double>(chunks) *
           static_cast<double>(matrices);
  }
};

const Kernel& kernel_of(const Problem& problem) {
  const std::int64_t depth = ceil_div(problem.shape.k, kLeastK);
  const auto index = static_cast<std::size_t>(std::clamp<std::int64_t>(depth, 1, kNumDepths) - 1);
  return kKernels[problem.op_b == Op::kT ? kNumDepths + index : index];
}

// Blocks of `strips` strips, `blocks` of them at a time on each multiprocessor, in whole waves.
// Strips are as narrow as their number allows.
Partition divided(const Kernel& kernel, int strips, int blocks, const Problem& problem,
                  const Device& device) {
  const std::int64_t groups = ceil_div(problem.shape.n, std::int64_t{strips} * kMostStrip);
  const std::int64_t width =
      std::max(ceil_div(problem.shape.n, groups * strips * 32), std::int64_t{1});
  const std::int64_t most = most_rows(kernel, strips, device);
  const double wide = static_cast<double>(groups) * static_cast<double>(problem.batch);
  const double slots = static_cast<double>(device.multiprocessors) * blocks;
  const double waves =
      std::ceil(wide * static_cast<double>(ceil_div(problem.shape.m, most)) / slots);
  const auto chunks = std::max(static_cast<std::int64_t>(waves * slots / wide), std::int64_t{1});
  const std::int64_t rows =
      std::clamp(ceil_div(problem.shape.m, chunks), std::int64_t{kNumWarps / strips}, most);
  return {.kernel = &kernel,
          .strips = strips,
          .width = static_cast<int>(width),
          .rows = rows,
          .groups = groups,
          .chunks = ceil_div(problem.shape.m, rows),
          .pieces = std::max(ceil_div(problem.shape.k, kernel.k), std::int64_t{1}),
          .matrices = problem.batch};
}

// Strips times rows of the busiest multiprocessor. An exchange takes as long as so many.
double strip_rows(const Partition& partition, const Device& device) {
  constexpr double kExchange = 1.2;  // for each k of a strip
  constexpr double kNarrow = 2.5;    // columns of a thread that take as long as the rest of a row
  const double exchange = partition.kernel->b_along_k ? kExchange * partition.kernel->k : 0.0;
  return std::ceil(partition.blocks() / device.multiprocessors) * partition.strips *
         (partition.width + kNarrow) / (kMostWidth + kNarrow) *
         (static_cast<double>(partition.rows) + exchange);
}

// The widest blocks that take at most 8 % more than the least. Narrow ones take less where less of
// a block lies outside C, more multiprocessors have one, or less is exchanged.
Partition fastest(const Kernel& kernel, int blocks, const Problem& problem, const Device& device) {
  constexpr double kMore = 1.08;
  Partition best = divided(kernel, 1, blocks, problem, device);
  double least = strip_rows(best, device);
  for (int strips = 2; strips <= kNumWarps && strips * 16 < problem.shape.n; strips *= 2) {
    const Partition wider = divided(kernel, strips, blocks, problem, device);
    const double rows = strip_rows(wider, device);
    if (rows <= kMore * least) best = wider;
    least = std::min(least, rows);
  }
  return best;
}

// One block per multiprocessor: op(B) is loaded less often, and blocks of the next launch may
// start. For many rows two, where they hide the latency of FFMA or of loads of C.
Partition partition_of(const Problem& problem, const Device& device) {
  constexpr double kMany = 170.0;
  const Kernel& kernel = kernel_of(problem);
  const Partition one = fastest(kernel, 1, problem, device);
  const bool hides_latency = kernel.k > 16 || problem.beta != 0.0F;
  if (!hides_latency || strip_rows(one, device) < kMany) return one;
  return fastest(kernel, blocks_per_sm(kernel.k), problem, device);
}

// "12x1024": K up to 12, 1024 columns of a block.
std::string name_of(const Partition& partition) {
  return std::to_string(partition.kernel->k) + "x" +
         std::to_string(partition.strips * partition.width * 32);
}

// A piece of K is summed, and multiplied by alpha; each piece is added to C.
std::int64_t rounding_chain(const Partition& partition, const Shape& shape) {
  return std::min(shape.k, std::int64_t{partition.kernel->k}) + 1 + partition.pieces;
}

std::vector<PlannedKernel> planned_kernels(const Partition& partition, const Problem& problem) {
  const Kernel& kernel = *partition.kernel;
  const std::int64_t rows = std::min(partition.rows, problem.shape.m);
  const std::int64_t at_a_time = std::int64_t{kRowsAtATime} * kNumWarps / partition.strips;
  const std::int64_t last_strip = (problem.shape.n - 1) % (32 * partition.width) / 32 + 1;
  std::vector parameters = {parameter::columns(32),
                            parameter::each("columns of a thread", partition.width),
                            parameter::each("columns of a thread, last strip", last_strip),
                            parameter::each("words of the last vector", problem.shape.k % kLeastK),
                            parameter::each("a along k", problem.op_a == Op::kN),
                            parameter::each("strips of a block", partition.strips),
                            parameter::tiles("rows of a block", rows, at_a_time)};
  if (kernel.k == kMostK) parameters.push_back(parameter::depth(kMostK));
  return {{.name = std::to_string(kernel.k) + " k" + (kernel.b_along_k ? ", b along k" : ""),
           .parameters = std::move(parameters)}};
}

// Seconds to load C, for beta and for each further piece of K.
double load_seconds(const Partition& partition, const Problem& problem, const Device& device) {
  constexpr double kBandwidth = 4.6e12, kColdBandwidth = 1.8e12;
  const double c = sizeof(float) * static_cast<double>(problem.shape.m) *
                   static_cast<double>(problem.shape.n) * static_cast<double>(problem.batch);
  const auto loads = static_cast<double>(partition.pieces - (problem.beta == 0.0F ? 1 : 0));
  return loads * c / (c < kH200.warm_operand_bytes ? kBandwidth : kColdBandwidth) *
         kH200.multiprocessors / device.multiprocessors;
}

// Expected times, fitted to 291 timings (NVIDIA H200, driver 580.159.04, CUDA 13.0) with an error
// of 8 % (root mean square of the logarithm).
Parts parts(const Partition& partition, const Problem& problem, const Device& device) {
  constexpr double kRow = 8.0e-9, kRowOfK = 0.744e-9;  // of a strip; and for each k
  constexpr double kBandwidth = 3.5e12, kOperandBandwidth = 3.8e12;
  const auto [m, n, k] = problem.shape;
  const auto batch = static_cast<double>(problem.batch);
  const double elements = static_cast<double>(m) * static_cast<double>(n) * batch;
  const double operands =
      sizeof(float) * static_cast<double>(m + n) * static_cast<double>(k) * batch;
  const auto pieces = static_cast<double>(partition.pieces);
  const double in_blocks = partition.blocks() * partition.strips * partition.width * 32 *
                           static_cast<double>(partition.rows);
  return {
      .waves = partition.blocks() /
               (static_cast<double>(device.multiprocessors) * blocks_per_sm(partition.kernel->k)),
      .tiles = elements / in_blocks,
      .multiply = pieces * strip_rows(partition, device) * (kRow + kRowOfK * partition.kernel->k),
      .move = (pieces * sizeof(float) * elements / kBandwidth + operands / kOperandBandwidth) *
              kH200.multiprocessors / device.multiprocessors};
}

// Loads of C follow the products, so that nothing hides them. Launches of few blocks run beside the
// launches before and after. Times kLess, because other rungs' expected times are too short for
// such K.
double seconds(const Partition& partition, const Problem& problem, const Device& device,
               const Parts& parts) {
  constexpr double kStart = 0.69e-6, kStartOfBlocks = 0.44e-6, kStartOfK = 0.02e-6, kLess = 0.92;
  const double busy = std::min(partition.blocks() / device.multiprocessors, 1.0);
  const double start = kStart + kStartOfBlocks * busy * busy + kStartOfK * partition.kernel->k;
  const auto pieces = static_cast<double>(partition.pieces);
  const double seconds = pieces * start + std::max(parts.multiply, parts.move) +
                         load_seconds(partition, problem, device);
  return partition.pieces == 1 ? kLess * seconds : seconds;
}

std::vector<Candidate> candidates(const Problem& problem, const Device& device) {
  const Partition partition = partition_of(problem, device);
  if (partition.blocks() > static_cast<double>(kMaxBlocks)) {
    return {
        {.choice = {.status = Status::unsupported("C needs more blocks than a CUDA grid has")}}};
  }
  const auto blocks = static_cast<std::int64_t>(partition.blocks());
  const Kernel& kernel = *partition.kernel;
  const Division division{.strips = partition.strips,
                          .width = partition.width,
                          .rows = static_cast<int>(partition.rows),
                          .groups = Divisor(static_cast<std::uint32_t>(partition.groups)),
                          .chunks = Divisor(static_cast<std::uint32_t>(partition.chunks)),
                          .a_along_k = problem.op_a == Op::kN};
  const device::LaunchConfig config{
      .kernel = "outer_product",
      .blocks = blocks,
      .threads_x = kNumThreads,
      .shared_bytes = shared_bytes(kernel, partition.strips, partition.rows),
      .overlaps_previous = device.compute_capability >= 90 &&
                           cost::spreads_evenly(blocks, blocks_per_sm(kernel.k), device)};
  const auto enqueue = [=, run = kernel.run, b_along_k = kernel.b_along_k,
                        most = std::int64_t{kernel.k}](const KernelArgs& args, Stream stream) {
    for (std::int64_t k = 0; k == 0 || k < args.shape.k; k += most) {
      KernelArgs piece = args;
      piece.shape.k = std::min(args.shape.k - k, most);
      piece.a += k * (division.a_along_k ? 1 : args.lda);
      piece.b += k * (b_along_k ? 1 : args.ldb);
      piece.beta = k == 0 ? args.beta : 1.0F;
      device::LaunchConfig launched = config;
      launched.adds_to_c = k > 0;
      Status status = device::launch(launched, stream, run, piece, division);
      if (!status.ok()) return status;
    }
    return Status();
  };
  const Parts expected = parts(partition, problem, device);
  return {{.choice = {.configuration = name_of(partition),
                      .rounding_chain = rounding_chain(partition, problem.shape),
                      .enqueue = enqueue,
                      .kernels = [=] { return planned_kernels(partition, problem); }},
           .seconds = seconds(partition, problem, device, expected),
           .parts = expected}};
}

// Opts in to more than 48 KiB of shared memory per block.
Status setup() {
  const std::size_t bytes = shared_bytes_per_block(device::current());
  for (const Kernel& kernel : kKernels) {
    if (Status s = device::allow_shared_memory(kernel.run, bytes); !s.ok()) return s;
  }
  return {};
}

constexpr std::int64_t kTileSizes[] = {4, 8, 32, 48, 128};

extern const Stage stage;
const Stage stage{
    .name = "OuterProduct",
    .idea =
        "for small K: rows times a strip of op(B) in registers, so that C is stored all the time",
    .requirements = {.compute_capability = 80, .not_on_simt = {}},
    .restrictions = {.most_m = kMaxBlocks, .most_n = kMaxBlocks},
    .takes_transposed = true,
    .takes_batches = true,
    .tile_sizes = kTileSizes,
    .candidates = candidates,
    .setup = setup,
};

}  // namespace tilegate::outer_product
