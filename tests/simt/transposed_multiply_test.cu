// wgmma of K-major and MN-major tiles, as tensor copies write them to shared memory. On both
// devices.
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/async.cuh>

#include "simt/async_test.hpp"
#include "simt/device_array.hpp"

namespace tilegate::transposed_multiply_test {

using device::Major;

constexpr unsigned kM = 64, kN = 128, kK = 16;

struct SharedStorage {
  alignas(1024) std::uint16_t a[kM * kK];
  alignas(1024) std::uint16_t b[kN * kK];
  device::Barrier full;
};

// Rows of a or b in an MN-major box: as many as the swizzle's width holds.
__host__ __device__ constexpr unsigned box_rows(device::Swizzle swizzle) {
  return width_of(swizzle) / 2;
}

// K-major: one box of 32-byte lines. MN-major: several boxes along the rows.
template <Major kMajor>
__device__ void copy_tile(std::uint16_t* to, const device::TensorMap& map, unsigned rows,
                          device::Swizzle swizzle, device::Barrier& full) {
#if TILEGATE_TEST_ASYNC
  if (kMajor == Major::kK) {
    device::copy_tensor(to, map, 0, 0, full);
  } else {
    for (unsigned row = 0; row < rows; row += box_rows(swizzle)) {
      device::copy_tensor(to + row * kK, map, static_cast<int>(row), 0, full);
    }
  }
#endif
}

template <Major kMajor>
__device__ device::MatrixDescriptor tile_of(const std::uint16_t* tile, device::Swizzle swizzle) {
  if (kMajor == Major::kK) {
    return device::matrix_descriptor(tile, device::Swizzle::k32Bytes, 16, 8 * 32);
  }
  const unsigned box = box_rows(swizzle) * kK * 2, eight_lines = 8 * width_of(swizzle);
  if (swizzle == device::Swizzle::kNone) {
    return device::matrix_descriptor(tile, swizzle, eight_lines, box);
  }
  return device::matrix_descriptor(tile, swizzle, box, eight_lines);
}

// c[thread][i] ← the accumulators.
template <Major kMajorA, Major kMajorB>
__global__ void multiply(const __grid_constant__ device::TensorMap a,
                         const __grid_constant__ device::TensorMap b, device::Swizzle swizzle,
                         float* c) {
#if TILEGATE_TEST_ASYNC
  auto& shared = device::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    device::barrier_init(shared.full, 1);
    device::barrier_init_fence();
    device::barrier_arrive_expect(shared.full, sizeof(shared.a) + sizeof(shared.b));
    copy_tile<kMajorA>(shared.a, a, kM, swizzle, shared.full);
    copy_tile<kMajorB>(shared.b, b, kN, swizzle, shared.full);
  }
  __syncthreads();  // the barrier is made
  device::barrier_wait(shared.full, 0);
  float acc[kN / 2] = {};
  device::warpgroup_arrive();
  device::warpgroup_mma_f16<kN, kMajorA, kMajorB>(acc, tile_of<kMajorA>(shared.a, swizzle),
                                                  tile_of<kMajorB>(shared.b, swizzle));
  device::warpgroup_commit();
  device::warpgroup_wait<0>();
  device::warpgroup_fence_operand(acc);
  for (unsigned i = 0; i < kN / 2; ++i) c[threadIdx.x * (kN / 2) + i] = acc[i];
#endif
}

// The rows of a or b: small integers.
class Matrix {
 public:
  Matrix(unsigned rows, std::uint32_t seed) : rows_(rows) {
    std::mt19937 random(seed);
    for (unsigned i = 0; i < rows * kK; ++i) values_.push_back(static_cast<int>(random() % 5) - 2);
  }

  int at(unsigned row, unsigned k) const { return values_[row * kK + k]; }

  // The matrix as float16, with lines along k or along the rows.
  std::vector<std::uint16_t> lines(Major major) const {
    constexpr std::uint16_t kBits[] = {0xC000, 0xBC00, 0x0000, 0x3C00, 0x4000};  // -2 … 2
    std::vector<std::uint16_t> bits(values_.size());
    for (unsigned row = 0; row < rows_; ++row) {
      for (unsigned k = 0; k < kK; ++k) {
        bits[major == Major::kK ? row * kK + k : k * rows_ + row] = kBits[at(row, k) + 2];
      }
    }
    return bits;
  }

  device::TensorLayout layout(Major major, device::Swizzle swizzle, std::uint16_t* data) const {
    const bool along_k = major == Major::kK;
    const unsigned columns = along_k ? kK : rows_;
    return {.data = data,
            .element_bytes = 2,
            .size = {columns, along_k ? rows_ : kK, 1},
            .stride_bytes = {0, 2 * columns, 0},
            .box = {along_k ? kK : box_rows(swizzle), along_k ? rows_ : kK, 1},
            .swizzle = along_k ? device::Swizzle::k32Bytes : swizzle};
  }

 private:
  unsigned rows_;
  std::vector<int> values_;
};

template <Major kMajorA, Major kMajorB>
void expect_multiplies(device::Swizzle swizzle) {
  const Matrix a(kM, 1), b(kN, 2);
  const DeviceArray<std::uint16_t> lines_a(a.lines(kMajorA)), lines_b(b.lines(kMajorB));
  device::TensorMap maps[2];
  ASSERT_TRUE(is_ok(device::make_tensor_map(a.layout(kMajorA, swizzle, lines_a.data()), &maps[0])));
  ASSERT_TRUE(is_ok(device::make_tensor_map(b.layout(kMajorB, swizzle, lines_b.data()), &maps[1])));
  const device::LaunchConfig config{
      .kernel = "multiply", .blocks = 1, .threads_x = 128, .shared_bytes = sizeof(SharedStorage)};
  for_each_schedule([&] {
    const DeviceArray<float> c(128 * kN / 2);
    ASSERT_TRUE(is_ok(device::launch(config, nullptr, multiply<kMajorA, kMajorB>, maps[0], maps[1],
                                     swizzle, c.data())));
    const std::vector<float> found = c.to_host();
    for (unsigned i = 0; i < found.size(); ++i) {
      const unsigned thread = i / (kN / 2), value = i % (kN / 2);
      const unsigned row = thread / 32 * 16 + thread % 32 / 4 + value % 4 / 2 * 8;
      const unsigned column = value / 4 * 8 + thread % 4 * 2 + value % 2;
      int expected = 0;
      for (unsigned k = 0; k < kK; ++k) expected += a.at(row, k) * b.at(column, k);
      ASSERT_EQ(found[i], static_cast<float>(expected)) << row << ", " << column;
    }
  });
}

TEST_F(Async, MmaReadsTransposedTiles) {
  expect_multiplies<Major::kK, Major::kK>(device::Swizzle::k32Bytes);
  for (const auto swizzle : {device::Swizzle::kNone, device::Swizzle::k32Bytes,
                             device::Swizzle::k64Bytes, device::Swizzle::k128Bytes}) {
    expect_multiplies<Major::kMN, Major::kK>(swizzle);
    expect_multiplies<Major::kK, Major::kMN>(swizzle);
    expect_multiplies<Major::kMN, Major::kMN>(swizzle);
  }
}

}  // namespace tilegate::transposed_multiply_test
