// mma.sync of int8 and of double, with exact sums. On both devices.
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/warp_mma.cuh>

#include "simt/device_array.hpp"

namespace tilegate::warp_mma_test {

constexpr int kRows = 16, kCols = 8, kK = 32;

struct Operands {
  std::int8_t a[kRows][kK], b[kCols][kK];
};

struct Storage {
  alignas(16) Operands tiles;
};

// c ← c + a·bᵀ, with tiles in shared memory.
__global__ void multiply(const Operands* from, std::int32_t* c) {
  auto& smem = device::shared_storage<Storage>();
  const int lane = static_cast<int>(threadIdx.x);
  const auto* words = reinterpret_cast<const std::uint32_t*>(from);
  auto* to = reinterpret_cast<std::uint32_t*>(&smem.tiles);
  for (int i = lane; i < static_cast<int>(sizeof(Operands) / 4); i += 32) to[i] = words[i];
  __syncwarp();  // the tiles are there
  std::uint32_t a[4], b[4];
  device::load_matrices(a, &smem.tiles.a[lane % 16][lane / 16 * 16]);
  device::load_matrices(b, &smem.tiles.b[lane % 8][lane / 8 % 2 * 16]);
  std::int32_t* mine = c + lane / 4 * kCols + lane % 4 * 2;
  std::int32_t acc[4] = {mine[0], mine[1], mine[8 * kCols], mine[8 * kCols + 1]};
  device::multiply_s8(acc, a, {b[0], b[1]});
  mine[0] = acc[0];
  mine[1] = acc[1];
  mine[8 * kCols] = acc[2];
  mine[8 * kCols + 1] = acc[3];
}

TEST(WarpMma, SumsProductsExactly) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 3; ++turn) {
    Operands operands{};
    const auto value = [&] {  // in the last turn every product is the largest possible
      return static_cast<std::int8_t>(turn == 2 ? 0x80U : random() & 0xFFU);
    };
    for (auto& row : operands.a) {
      for (auto& x : row) x = value();
    }
    for (auto& row : operands.b) {
      for (auto& x : row) x = value();
    }
    std::vector<std::int32_t> c(kRows * kCols);
    for (auto& x : c) x = static_cast<std::int32_t>(random() >> 8);
    const DeviceArray<Operands> from(std::vector{operands});
    const DeviceArray<std::int32_t> to(c);
    const device::LaunchConfig config{
        .kernel = "mma", .blocks = 1, .threads_x = 32, .shared_bytes = sizeof(Storage)};
    ASSERT_TRUE(is_ok(device::launch(config, nullptr, multiply, from.data(), to.data())));
    const std::vector<std::int32_t> found = to.to_host();
    for (int row = 0; row < kRows; ++row) {
      for (int col = 0; col < kCols; ++col) {
        std::int32_t sum = c[static_cast<std::size_t>(row * kCols + col)];
        for (int k = 0; k < kK; ++k) sum += operands.a[row][k] * operands.b[col][k];
        EXPECT_EQ(found[static_cast<std::size_t>(row * kCols + col)], sum) << row << ", " << col;
      }
    }
  }
}

constexpr int kF64K = 16;

struct OperandsF64 {
  double a[kRows][kF64K], b[kCols][kF64K];
};

__global__ void multiply_f64(const OperandsF64* from, double* c) {
  const int lane = static_cast<int>(threadIdx.x), row = lane / 4, k = lane % 4;
  double a[8], b[4];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = from->a[row][k + 4 * i];
    a[2 * i + 1] = from->a[row + 8][k + 4 * i];
    b[i] = from->b[row][k + 4 * i];
  }
  double* mine = c + lane / 4 * kCols + lane % 4 * 2;
  double acc[4] = {mine[0], mine[1], mine[8 * kCols], mine[8 * kCols + 1]};
  device::mma_f64(acc, a, b);
  mine[0] = acc[0];
  mine[1] = acc[1];
  mine[8 * kCols] = acc[2];
  mine[8 * kCols + 1] = acc[3];
}

// Integers of at most 20 bits: all sums are exact, in any order.
TEST(WarpMma, SumsProductsOfDoubles) {
  if (device::current().is_cuda && device::current().compute_capability < 90) {
    GTEST_SKIP() << "needs compute capability 9.0";
  }
  std::mt19937 random(2);
  const auto value = [&] { return static_cast<double>(random() >> 12) - 0x1p19; };
  OperandsF64 operands{};
  for (auto& row : operands.a) {
    for (auto& x : row) x = value();
  }
  for (auto& row : operands.b) {
    for (auto& x : row) x = value();
  }
  std::vector<double> c(kRows * kCols);
  for (auto& x : c) x = value();
  const DeviceArray<OperandsF64> from(std::vector{operands});
  const DeviceArray<double> to(c);
  const device::LaunchConfig config{.kernel = "mma", .blocks = 1, .threads_x = 32};
  ASSERT_TRUE(is_ok(device::launch(config, nullptr, multiply_f64, from.data(), to.data())));
  const std::vector<double> found = to.to_host();
  for (int row = 0; row < kRows; ++row) {
    for (int col = 0; col < kCols; ++col) {
      double sum = c[static_cast<std::size_t>(row * kCols + col)];
      for (int k = 0; k < kF64K; ++k) sum += operands.a[row][k] * operands.b[col][k];
      EXPECT_EQ(found[static_cast<std::size_t>(row * kCols + col)], sum) << row << ", " << col;
    }
  }
}

}  // namespace tilegate::warp_mma_test
