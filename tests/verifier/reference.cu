// The reference on the device: square tiles of C, several elements per thread.
#include <cmath>
#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"
#include "verifier/oracle_math.cuh"

namespace tilegate::verifier {
namespace reference {  // named, so that the kernels' symbols do not depend on the file's path

constexpr int kBlockK = 16;  // depth of the tiles in shared memory
constexpr int kSide = 16;    // threads along the rows, and along the columns, of a block's tile
constexpr int kThreads = kSide * kSide;

// Types of the accumulators.
struct Float64 {  // accumulates value and scale
  using Real = double;
  static constexpr int kThread = 4;  // rows and columns of C a thread computes
  static constexpr bool kScales = true;
};
struct Float32 {  // for integers: as exact as float64, and more than three times as fast
  using Real = float;
  static constexpr int kThread = 8;
  static constexpr bool kScales = false;
};

template <typename Sums>
constexpr int kBlock = kSide * Sums::kThread;  // rows and columns of C a block computes

// Tiles in the accumulators' type: converting each operand at its use would take as long as the
// arithmetic.
template <typename Sums>
struct SharedStorage {
  typename Sums::Real a[kBlockK][kBlock<Sums> + 1];  // transposed; padded against bank conflicts
  typename Sums::Real b[kBlockK][kBlock<Sums>];
};

struct Tile {
  std::int64_t row, col;  // of C, of the block's first element
};

// Loads zeros outside the operands: they do not change the sums.
template <typename Sums>
__device__ void load_tiles(const Product& product, const Tile& tile, std::int64_t k_first,
                           SharedStorage<Sums>& shared) {
  using Real = typename Sums::Real;
  constexpr int kElements = kBlock<Sums> * kBlockK;
  static_assert(kElements % kThreads == 0, "every thread loads the same number of elements");
  for (int i = static_cast<int>(threadIdx.x); i < kElements; i += kThreads) {
    const int a_row = i / kBlockK;
    const int a_k = i % kBlockK;
    const std::int64_t row = tile.row + a_row;
    const std::int64_t k = k_first + a_k;
    const bool in_a = row < product.shape.m && k < product.shape.k;
    shared.a[a_k][a_row] =
        in_a ? static_cast<Real>(product.a[row * product.a_row + k * product.a_col]) : Real{0};
  }
  for (int i = static_cast<int>(threadIdx.x); i < kElements; i += kThreads) {
    const int b_k = i / kBlock<Sums>;
    const int b_col = i % kBlock<Sums>;
    const std::int64_t k = k_first + b_k;
    const std::int64_t col = tile.col + b_col;
    const bool in_b = k < product.shape.k && col < product.shape.n;
    shared.b[b_k][b_col] =
        in_b ? static_cast<Real>(product.b[k * product.b_row + col * product.b_col]) : Real{0};
  }
}

template <typename Sums>
struct Accumulator {
  typename Sums::Real sum[Sums::kThread][Sums::kThread];
  typename Sums::Real abs_sum[Sums::kThread][Sums::kThread];  // zero without scales
};

template <typename Sums>
__device__ void multiply_tiles(const SharedStorage<Sums>& shared, int thread_row, int thread_col,
                               Accumulator<Sums>& acc) {
  constexpr int kThread = Sums::kThread;
  for (int k = 0; k < kBlockK; ++k) {
    typename Sums::Real a[kThread];
    typename Sums::Real b[kThread];
    for (int i = 0; i < kThread; ++i) a[i] = shared.a[k][thread_row + i * kSide];
    for (int j = 0; j < kThread; ++j) b[j] = shared.b[k][thread_col + j * kSide];
    for (int i = 0; i < kThread; ++i) {
      for (int j = 0; j < kThread; ++j) {
        acc.sum[i][j] += a[i] * b[j];
        if constexpr (Sums::kScales) acc.abs_sum[i][j] += fabs(a[i]) * fabs(b[j]);
      }
    }
  }
}

template <typename Sums>
__global__ void reference_kernel(Product product, double* value, double* scale) {
  constexpr int kThread = Sums::kThread;
  auto& shared = device::shared_storage<SharedStorage<Sums>>();
  const auto tiles_n = static_cast<unsigned>((product.shape.n - 1) / kBlock<Sums> + 1);
  const Tile tile{static_cast<std::int64_t>(blockIdx.x / tiles_n) * kBlock<Sums>,
                  static_cast<std::int64_t>(blockIdx.x % tiles_n) * kBlock<Sums>};
  const int thread_row = static_cast<int>(threadIdx.x) / kSide;
  const int thread_col = static_cast<int>(threadIdx.x) % kSide;

  Accumulator<Sums> acc{};
  const std::int64_t k_end = reads_a_and_b(product) ? product.shape.k : 0;
  for (std::int64_t k = 0; k < k_end; k += kBlockK) {
    load_tiles(product, tile, k, shared);
    __syncthreads();  // the tiles are complete before a thread multiplies them
    multiply_tiles(shared, thread_row, thread_col, acc);
    __syncthreads();  // all threads have multiplied before the next tiles overwrite these
  }

  for (int i = 0; i < kThread; ++i) {
    for (int j = 0; j < kThread; ++j) {
      const std::int64_t row = tile.row + thread_row + i * kSide;
      const std::int64_t col = tile.col + thread_col + j * kSide;
      if (row >= product.shape.m || col >= product.shape.n) continue;
      const Expected e = expected_element(product, acc.sum[i][j], acc.abs_sum[i][j],
                                          product.c + row * product.c_row + col);
      value[row * product.shape.n + col] = e.value;
      if constexpr (Sums::kScales) scale[row * product.shape.n + col] = e.scale;
    }
  }
}

template <typename Sums>
Status enqueue(const Product& product, double* value, double* scale, Stream stream) {
  const Shape& shape = product.shape;
  if (shape.m == 0 || shape.n == 0) return {};
  const device::LaunchConfig launch{
      .kernel = "reference",
      .blocks = ((shape.m - 1) / kBlock<Sums> + 1) * ((shape.n - 1) / kBlock<Sums> + 1),
      .threads_x = kThreads,
      .shared_bytes = sizeof(SharedStorage<Sums>)};
  return device::launch(launch, stream, reference_kernel<Sums>, product, value, scale);
}

}  // namespace reference

Status reference_on_device(const Product& product, double* value, double* scale, Stream stream) {
  return reference::enqueue<reference::Float64>(product, value, scale, stream);
}

Status integer_reference_on_device(const Product& product, double* value, Stream stream) {
  return reference::enqueue<reference::Float32>(product, value, nullptr, stream);
}

}  // namespace tilegate::verifier
