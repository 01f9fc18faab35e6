// The double-buffered main loop, for Prefetch and the rungs after it. From a rung's Config it takes
// what these rungs differ in:
//
//   kBlockM kBlockN kBlockK kNumThreads   the block's tile and threads
//   kFragmentM kFragmentN                 a thread's results, in parts of 4×4
//   kStepM kStepN                         rows and columns from one part to the next
//   kPad                                  words after each row of A in shared memory
//   column(m, k)                          where A's element (m, k) is in row k there
#pragma once

#include <cstdint>

#include <tilegate/common/fragment.cuh>
#include <tilegate/common/grid.cuh>
#include <tilegate/common/tile_reader.cuh>
#include <tilegate/sgemm.hpp>
#include <tilegate/simt/simt.cuh>

namespace tilegate::prefetch {

template <typename C, bool kVector>
using ReaderA = TileReader<C::kBlockM, C::kBlockK, C::kNumThreads, kVector>;
template <typename C, bool kVector>
using ReaderB = TileReader<C::kBlockK, C::kBlockN, C::kNumThreads, kVector>;

template <typename C>
struct SharedStorage {
  static_assert(C::kPad % 4 == 0, "rows of A must stay aligned to 128-bit loads");
  alignas(16) float a[2][C::kBlockK][C::kBlockM + C::kPad];  // transposed
  alignas(16) float b[2][C::kBlockK][C::kBlockN];
};

// First row and column of a thread's results in the tile of its block.
struct Position {
  int m, n;
};

// The operands of one k step.
template <typename C>
struct Fragments {
  float a[C::kFragmentM], b[C::kFragmentN];

  __device__ void load(const SharedStorage<C>& smem, int buffer, int k, const Position& at) {
    load_fragment(a, smem.a[buffer][k], [=](int i) { return C::column(at.m + i * C::kStepM, k); });
    load_fragment(b, smem.b[buffer][k], [=](int j) { return at.n + j * C::kStepN; });
  }
};

// acc += A·B over the k tiles from where the readers stand on, a tile every `step` columns of A, of
// which `k_left` are left.
template <typename C, bool kVector>
__device__ void multiply_tiles(ReaderA<C, kVector>& reader_a, ReaderB<C, kVector>& reader_b,
                               std::int64_t k_left, const Position& at,
                               float (&acc)[C::kFragmentM][C::kFragmentN], int step = C::kBlockK) {
  static_assert(C::kBlockK % 2 == 0, "the last k step reads the second of the fragments");
  auto& smem = simt::shared_storage<SharedStorage<C>>();
  typename ReaderA<C, kVector>::Registers next_a;
  typename ReaderB<C, kVector>::Registers next_b;
  Fragments<C> frag[2];

  reader_a.read(next_a);
  reader_b.read(next_b);
  reader_a.store_transposed(smem.a[0], next_a, C::column);
  reader_b.store(smem.b[0], next_b);
  __syncthreads();  // the first tile is stored before anyone reads it
  frag[0].load(smem, 0, 0, at);

  int buffer = 0;
  for (; k_left > 0; k_left -= step) {
    reader_a.advance_cols(step);
    reader_b.advance_rows(step);
    reader_a.read(next_a);  // zeros after the last tile
    reader_b.read(next_b);
#pragma unroll
    for (int k = 0; k < C::kBlockK - 1; ++k) {
      frag[(k + 1) % 2].load(smem, buffer, k + 1, at);
      multiply_fragments(frag[k % 2].a, frag[k % 2].b, acc);
    }
    buffer ^= 1;
    reader_a.store_transposed(smem.a[buffer], next_a, C::column);
    reader_b.store(smem.b[buffer], next_b);
    // The next tile is stored before anyone reads it, and this one is read before the next round
    // overwrites it.
    __syncthreads();
    frag[0].load(smem, buffer, 0, at);
    multiply_fragments(frag[1].a, frag[1].b, acc);
  }
}

}  // namespace tilegate::prefetch
