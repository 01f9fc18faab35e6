// wgmma of int8. On both devices.
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/async.cuh>

#include "simt/async_test.hpp"
#include "simt/device_array.hpp"

namespace tilegate::int8_multiply_test {

constexpr unsigned kThreads = 128;  // a warpgroup

// c ← a·bᵀ. c: 64×N, a: 64×(32·steps), b: N×(32·steps), of int8. `tiles` holds a, then b, in their
// layout in shared memory.
template <int kN>
struct Multiply {
  static constexpr int kSteps = 4;
  static constexpr unsigned kRowBytes = 32 * kSteps;

  struct SharedStorage {
    alignas(1024) std::int8_t a[64 * kRowBytes];
    alignas(1024) std::int8_t b[kN * kRowBytes];
    device::Barrier full;
  };

  __device__ static void run(const std::int8_t* tiles, std::int32_t* c, device::Swizzle swizzle) {
#if TILEGATE_TEST_ASYNC
    auto& shared = device::shared_storage<SharedStorage>();
    if (threadIdx.x == 0) {
      device::barrier_init(shared.full, 1);
      device::barrier_init_fence();
      device::barrier_arrive_expect(shared.full, sizeof(shared.a) + sizeof(shared.b));
      device::copy_bulk(shared.a, tiles, sizeof(shared.a), shared.full);
      device::copy_bulk(shared.b, tiles + sizeof(shared.a), sizeof(shared.b), shared.full);
    }
    __syncthreads();  // the barrier is made
    device::barrier_wait(shared.full, 0);
    std::int32_t acc[kN / 2] = {};
    device::warpgroup_arrive();
    for (unsigned step = 0; step < kSteps; ++step) {
      device::warpgroup_mma_s8<kN>(acc, step_of(shared.a, 64, step, swizzle),
                                   step_of(shared.b, kN, step, swizzle));
    }
    device::warpgroup_commit();
    device::warpgroup_wait<0>();
    device::warpgroup_fence_operand(acc);
    const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    for (unsigned i = 0; i < kN / 2; ++i) {
      const unsigned column = i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
      c[(row + i % 4 / 2 * 8) * kN + column] = acc[i];
    }
#endif
  }

  // The part of a tile that one multiplication reads.
  __device__ static device::MatrixDescriptor step_of(const std::int8_t* tile, unsigned rows,
                                                     unsigned step, device::Swizzle swizzle) {
    const unsigned width = width_of(swizzle);
    if (swizzle == device::Swizzle::kNone) {
      return device::matrix_descriptor(tile + step * 2 * rows * 16, swizzle, rows * 16, 128);
    }
    const unsigned first = step * 32;
    return device::matrix_descriptor(tile + first / width * width * rows + first % width, swizzle,
                                     16, 8 * width);
  }
};

template <int kN>
__global__ void multiply(const std::int8_t* tiles, std::int32_t* c, device::Swizzle swizzle) {
  Multiply<kN>::run(tiles, c, swizzle);
}

template <int kN>
void expect_multiplies() {
  constexpr unsigned kRowBytes = Multiply<kN>::kRowBytes;
  const Int8Matrix a(64, kRowBytes, 1);
  const Int8Matrix b(kN, kRowBytes, 2);
  const device::LaunchConfig config{.kernel = "multiply",
                                    .blocks = 1,
                                    .threads_x = kThreads,
                                    .shared_bytes = sizeof(typename Multiply<kN>::SharedStorage)};
  for (const auto swizzle : {device::Swizzle::kNone, device::Swizzle::k32Bytes,
                             device::Swizzle::k64Bytes, device::Swizzle::k128Bytes}) {
    std::vector<std::int8_t> tiles = a.as_tile(swizzle);
    const std::vector<std::int8_t> tile_of_b = b.as_tile(swizzle);
    tiles.insert(tiles.end(), tile_of_b.begin(), tile_of_b.end());
    const DeviceArray<std::int8_t> in(tiles);
    for_each_schedule([&] {
      const DeviceArray<std::int32_t> c(64 * kN);
      ASSERT_TRUE(
          is_ok(device::launch(config, nullptr, multiply<kN>,
                               static_cast<const std::int8_t*>(in.data()), c.data(), swizzle)));
      EXPECT_EQ(c.to_host(), a.times_transpose_of(b)) << "swizzle " << static_cast<int>(swizzle);
    });
  }
}

TEST_F(Async, Int8MmaMatchesIntegers) {
  expect_multiplies<64>();
  expect_multiplies<128>();
}

constexpr unsigned kColsOfB = 64;

// Loads a, rows of 32 bytes, from global memory to registers.
__global__ void multiply_registers(const std::uint32_t* a, const std::int8_t* b, std::int32_t* c) {
#if TILEGATE_TEST_ASYNC
  struct Tile {
    alignas(1024) std::int8_t b[kColsOfB * 32];
  };
  auto& shared = device::shared_storage<Tile>();
  for (unsigned i = threadIdx.x; i < sizeof(shared.b); i += kThreads) shared.b[i] = b[i];
  device::fence_async_proxy();
  __syncthreads();  // all is stored
  const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  std::uint32_t mine[4];
  for (unsigned i = 0; i < 4; ++i) mine[i] = a[(row + i % 2 * 8) * 8 + i / 2 * 4 + threadIdx.x % 4];
  std::int32_t acc[kColsOfB / 2] = {};
  device::warpgroup_arrive();
  device::warpgroup_mma_s8<kColsOfB>(
      acc, mine, device::matrix_descriptor(shared.b, device::Swizzle::k32Bytes, 16, 256));
  device::warpgroup_commit();
  device::warpgroup_wait<0>();
  device::warpgroup_fence_operand(mine);
  device::warpgroup_fence_operand(acc);
  for (unsigned i = 0; i < kColsOfB / 2; ++i) {
    c[(row + i % 4 / 2 * 8) * kColsOfB + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = acc[i];
  }
#endif
}

TEST_F(Async, Int8MmaReadsAFromRegisters) {
  const Int8Matrix a(64, 32, 1);
  const Int8Matrix b(kColsOfB, 32, 2);
  const std::vector<std::int8_t> rows = a.as_tile(device::Swizzle::kNone);  // halves of 16 bytes
  std::vector<std::uint32_t> words(64 * 8);
  for (unsigned row = 0; row < 64; ++row) {
    for (unsigned half = 0; half < 2; ++half) {
      std::memcpy(&words[row * 8 + half * 4], &rows[(half * 64 + row) * 16], 16);
    }
  }
  const DeviceArray<std::uint32_t> from(words);
  const DeviceArray<std::int8_t> tile(b.as_tile(device::Swizzle::k32Bytes));
  const device::LaunchConfig config{.kernel = "multiply_registers",
                                    .blocks = 1,
                                    .threads_x = kThreads,
                                    .shared_bytes = kColsOfB * 32};
  for_each_schedule([&] {
    const DeviceArray<std::int32_t> c(64 * kColsOfB);
    ASSERT_TRUE(is_ok(device::launch(config, nullptr, multiply_registers,
                                     static_cast<const std::uint32_t*>(from.data()),
                                     static_cast<const std::int8_t*>(tile.data()), c.data())));
    EXPECT_EQ(c.to_host(), a.times_transpose_of(b));
  });
}

#if !defined(__CUDACC__)
TEST_F(Async, Int8MmaSupportsEveryWidth) {
  expect_multiplies<8>();
  expect_multiplies<24>();
  expect_multiplies<256>();
}
#endif

}  // namespace tilegate::int8_multiply_test
