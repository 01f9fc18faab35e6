// The float64 reference on the device: 64×64 tiles of C, 4×4 elements a thread, value and scale
// accumulated side by side.
#include <cmath>
#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"
#include "verifier/oracle_math.cuh"

namespace tilegate::verifier {
namespace {

constexpr int kBlock = 64;   // rows and columns of C a block computes
constexpr int kBlockK = 16;  // of A and B in shared memory at a time
constexpr int kThread = 4;   // rows and columns of C a thread computes
constexpr int kSide = kBlock / kThread;
constexpr int kThreads = kSide * kSide;
static_assert(kBlock * kBlockK % kThreads == 0, "every thread loads as many elements");

// Already float64: converting each operand where it is used would take as long as the arithmetic.
struct SharedStorage {
  double a[kBlockK][kBlock + 1];  // transposed; one column of padding against bank conflicts
  double b[kBlockK][kBlock];
};

struct Tile {
  std::int64_t row, col;  // of C, of the block's first element
};

// Zeros outside the operands: neither sum notices them.
__device__ void load_tiles(const Product& product, const Tile& tile, std::int64_t k_first,
                           SharedStorage& shared) {
  for (int i = static_cast<int>(threadIdx.x); i < kBlock * kBlockK; i += kThreads) {
    const int a_row = i / kBlockK;
    const int a_k = i % kBlockK;
    const std::int64_t row = tile.row + a_row;
    const std::int64_t k = k_first + a_k;
    const bool in_a = row < product.shape.m && k < product.shape.k;
    shared.a[a_k][a_row] =
        in_a ? static_cast<double>(product.a[row * product.a_row + k * product.a_col]) : 0.0;
  }
  for (int i = static_cast<int>(threadIdx.x); i < kBlock * kBlockK; i += kThreads) {
    const int b_k = i / kBlock;
    const int b_col = i % kBlock;
    const std::int64_t k = k_first + b_k;
    const std::int64_t col = tile.col + b_col;
    const bool in_b = k < product.shape.k && col < product.shape.n;
    shared.b[b_k][b_col] =
        in_b ? static_cast<double>(product.b[k * product.b_row + col * product.b_col]) : 0.0;
  }
}

struct Accumulator {
  double sum[kThread][kThread];
  double abs_sum[kThread][kThread];
};

__device__ void multiply_tiles(const SharedStorage& shared, int thread_row, int thread_col,
                               Accumulator& acc) {
  for (int k = 0; k < kBlockK; ++k) {
    double a[kThread];
    double b[kThread];
    for (int i = 0; i < kThread; ++i) a[i] = shared.a[k][thread_row + i * kSide];
    for (int j = 0; j < kThread; ++j) b[j] = shared.b[k][thread_col + j * kSide];
    for (int i = 0; i < kThread; ++i) {
      for (int j = 0; j < kThread; ++j) {
        acc.sum[i][j] += a[i] * b[j];
        acc.abs_sum[i][j] += fabs(a[i]) * fabs(b[j]);
      }
    }
  }
}

}  // namespace

__global__ void reference_kernel(Product product, double* value, double* scale) {
  auto& shared = device::shared_storage<SharedStorage>();
  const auto tiles_n = static_cast<unsigned>((product.shape.n - 1) / kBlock + 1);
  const Tile tile{static_cast<std::int64_t>(blockIdx.x / tiles_n) * kBlock,
                  static_cast<std::int64_t>(blockIdx.x % tiles_n) * kBlock};
  const int thread_row = static_cast<int>(threadIdx.x) / kSide;
  const int thread_col = static_cast<int>(threadIdx.x) % kSide;

  Accumulator acc{};
  const std::int64_t k_end = reads_a_and_b(product) ? product.shape.k : 0;
  for (std::int64_t k = 0; k < k_end; k += kBlockK) {
    load_tiles(product, tile, k, shared);
    __syncthreads();  // nobody multiplies before the tiles are whole
    multiply_tiles(shared, thread_row, thread_col, acc);
    __syncthreads();  // nobody loads over what another still multiplies
  }

  for (int i = 0; i < kThread; ++i) {
    for (int j = 0; j < kThread; ++j) {
      const std::int64_t row = tile.row + thread_row + i * kSide;
      const std::int64_t col = tile.col + thread_col + j * kSide;
      if (row >= product.shape.m || col >= product.shape.n) continue;
      const Expected e = expected_element(product, acc.sum[i][j], acc.abs_sum[i][j],
                                          product.c + row * product.c_row + col);
      value[row * product.shape.n + col] = e.value;
      scale[row * product.shape.n + col] = e.scale;
    }
  }
}

Status reference_on_device(const Product& product, double* value, double* scale, Stream stream) {
  const Shape& shape = product.shape;
  if (shape.m == 0 || shape.n == 0) return {};
  const device::LaunchConfig launch{
      .kernel = "reference",
      .blocks = ((shape.m - 1) / kBlock + 1) * ((shape.n - 1) / kBlock + 1),
      .threads_x = kThreads,
      .shared_bytes = sizeof(SharedStorage)};
  return device::launch(launch, stream, reference_kernel, product, value, scale);
}

}  // namespace tilegate::verifier
