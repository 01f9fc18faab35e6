// Double-buffered main loop: while a k tile is multiplied, the next one moves from global memory
// through registers to the other shared-memory buffer, and the next fragments move from shared
// memory to registers. A rung's Config has
//
//   kBlockM kBlockN kBlockK kNumThreads   the block's tile and threads
//   kFragmentM kFragmentN                 results per thread, in 4×4 thread tiles
//   kStepM kStepN                         rows and columns from one thread tile to the next
//   kPad                                  words of padding after each row of A in shared memory
//   column(m, k)                          column of A's element (m, k) in row k of shared memory
#pragma once

#include <cstdint>
#include <vector>

#include <tilegate/common/fragment.cuh>
#include <tilegate/common/tile_load.cuh>
#include <tilegate/common/tile_scheduler.cuh>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

namespace tilegate::double_buffered {

template <typename Config, bool kVector>
using ReaderA = TileReader<Config::kBlockM, Config::kBlockK, Config::kNumThreads, kVector>;
template <typename Config, bool kVector>
using ReaderB = TileReader<Config::kBlockK, Config::kBlockN, Config::kNumThreads, kVector>;

template <typename Config>
struct SharedStorage {
  static_assert(Config::kPad % 4 == 0, "rows of A must stay aligned to 128-bit loads");
  alignas(16) float a[2][Config::kBlockK][Config::kBlockM + Config::kPad];  // transposed
  alignas(16) float b[2][Config::kBlockK][Config::kBlockN];
};

// First row and column of a thread's results in the tile of its block.
struct Position {
  int m, n;
};

// The operands of one k step.
template <typename Config>
struct Fragments {
  float a[Config::kFragmentM], b[Config::kFragmentN];

  __device__ void load(const SharedStorage<Config>& smem, int buffer, int k, const Position& at) {
    load_fragment(a, smem.a[buffer][k],
                  [=](int i) { return Config::column(at.m + i * Config::kStepM, k); });
    load_fragment(b, smem.b[buffer][k], [=](int j) { return at.n + j * Config::kStepN; });
  }
};

// acc += A·B over the k tiles from the readers' position on. `k_left`: columns of A from there on;
// `step`: columns from one k tile to the next.
template <typename Config, bool kVector>
__device__ void multiply_tiles(ReaderA<Config, kVector>& reader_a,
                               ReaderB<Config, kVector>& reader_b, std::int64_t k_left,
                               const Position& at,
                               float (&acc)[Config::kFragmentM][Config::kFragmentN],
                               int step = Config::kBlockK) {
  static_assert(Config::kBlockK % 2 == 0, "the last k step reads the second of the fragments");
  auto& smem = device::shared_storage<SharedStorage<Config>>();
  typename ReaderA<Config, kVector>::Registers next_a;
  typename ReaderB<Config, kVector>::Registers next_b;
  Fragments<Config> frag[2];

  reader_a.read(next_a);
  reader_b.read(next_b);
  reader_a.store_transposed(smem.a[0], next_a, Config::column);
  reader_b.store(smem.b[0], next_b);
  __syncthreads();  // the first k tile is stored before any thread reads it
  frag[0].load(smem, 0, 0, at);

  int buffer = 0;
  for (; k_left > 0; k_left -= step) {
    reader_a.advance_cols(step);
    reader_b.advance_rows(step);
    // idea:begin Prefetch
    reader_a.read(next_a);  // zeros after the last tile
    reader_b.read(next_b);
#pragma unroll
    for (int k = 0; k < Config::kBlockK - 1; ++k) {
      frag[(k + 1) % 2].load(smem, buffer, k + 1, at);
      multiply_fragments(frag[k % 2].a, frag[k % 2].b, acc);
    }
    buffer ^= 1;
    reader_a.store_transposed(smem.a[buffer], next_a, Config::column);
    reader_b.store(smem.b[buffer], next_b);
    // The next k tile is stored before any thread reads it, and this one has been read before the
    // next iteration overwrites it.
    __syncthreads();
    frag[0].load(smem, buffer, 0, at);
    multiply_fragments(frag[1].a, frag[1].b, acc);
    // idea:end
  }
}

// One tile of C, over all of K.
template <typename Config, bool kVector>
__device__ void multiply_block(const KernelArgs& args) {
  const Shape& shape = args.shape;
  const auto origin = Config::Grid::origin(shape);
  const Position at = Config::position();
  ReaderA<Config, kVector> reader_a(args.a, args.lda, shape.m, shape.k, origin.row, 0);
  ReaderB<Config, kVector> reader_b(args.b, args.ldb, shape.k, shape.n, 0, origin.col);
  float acc[Config::kFragmentM][Config::kFragmentN]{};
  multiply_tiles<Config, kVector>(reader_a, reader_b, shape.k, at, acc);
  store_thread_tiles<kVector>(args, origin.row + at.m, origin.col + at.n, Config::kStepM,
                              Config::kStepN, acc);
}

// `k_tiles`: of the block with most of them.
template <typename Config>
PlannedKernel planned_kernel(bool vectors, std::int64_t k_tiles) {
  constexpr int kBuffers = 2;
  return {.name = vectors ? "vectors" : "words",
          .parameters = {parameter::rows(Config::kBlockM), parameter::columns(Config::kBlockN),
                         parameter::depth(Config::kBlockK),
                         parameter::ring("k tiles of a block", k_tiles, kBuffers)}};
}

// The choice of a stage whose kernels call `multiply_block`: `with_vectors` where all operands
// allow 128-bit accesses, else `with_words`.
template <typename Config>
Choice choose(const char* name, const Problem& problem, void (*with_vectors)(KernelArgs),
              void (*with_words)(KernelArgs)) {
  const bool vectors = allows_vectors(problem);
  const auto kernel = vectors ? with_vectors : with_words;
  Choice choice = serial_choice<typename Config::Grid>(
      problem, [name, kernel](const KernelArgs& args, Stream stream) {
        const device::LaunchConfig launch{.kernel = name,
                                          .blocks = Config::Grid::num_blocks(args.shape),
                                          .threads_x = Config::kNumThreads,
                                          .shared_bytes = sizeof(SharedStorage<Config>)};
        return device::launch(launch, stream, kernel, args);
      });
  choice.kernels = [vectors, k = problem.shape.k] {
    return std::vector{planned_kernel<Config>(vectors, ceil_div(k, Config::kBlockK))};
  };
  return choice;
}

}  // namespace tilegate::double_buffered
