// Barriers in shared memory, bulk copies and multiplications by tensor cores; on both devices.
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/async.cuh>

#include "simt/async_test.hpp"
#include "simt/device_array.hpp"

namespace tilegate::async_test {

constexpr int kTiles = 7;
constexpr int kStages = 3;
constexpr unsigned kConsumers = 128;
constexpr unsigned kThreads = kConsumers + 32;
constexpr unsigned kTileFloats = 2 * kConsumers;

struct SharedStorage {
  alignas(128) float stages[kStages][kTileFloats];
  device::Barrier full[kStages], empty[kStages];
};

// The last warp copies tiles into stages; the others add them up, each thread what its neighbours'
// copies would be. That a stage is empty each of them says, or a lane for its warp.
template <bool kEachArrives>
__global__ void add_tiles(const float* tiles, float* out) {
#if TILEGATE_TEST_ASYNC
  auto& shared = device::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      device::barrier_init(shared.full[stage], 1);
      device::barrier_init(shared.empty[stage], kEachArrives ? kConsumers : kConsumers / 32);
    }
    device::barrier_init_fence();
  }
  __syncthreads();  // the barriers are made
  if (threadIdx.x >= kConsumers) {
    device::give_registers<24>();
    if (threadIdx.x != kConsumers) return;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int stage = tile % kStages;
      device::barrier_wait(shared.empty[stage], (tile / kStages & 1) ^ 1);
      device::barrier_arrive_expect(shared.full[stage], sizeof(shared.stages[0]));
      for (unsigned half = 0; half < 2; ++half) {
        device::copy_bulk(&shared.stages[stage][half * kConsumers],
                          tiles + tile * kTileFloats + half * kConsumers,
                          kConsumers * sizeof(float), shared.full[stage]);
      }
    }
  } else {
    device::take_registers<240>();
    float sum = 0.0F;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int stage = tile % kStages;
      device::barrier_wait(shared.full[stage], tile / kStages & 1);
      sum +=
          shared.stages[stage][threadIdx.x] + shared.stages[stage][kTileFloats - 1 - threadIdx.x];
      __syncwarp();  // all lanes have read
      if (kEachArrives || threadIdx.x % 32 == 0) device::barrier_arrive(shared.empty[stage]);
    }
    out[threadIdx.x] = sum;
  }
#endif
}

template <bool kEachArrives>
void expect_tiles_added() {
  const DeviceArray<float> tiles = iota(kTiles * kTileFloats);
  const device::LaunchConfig config{.kernel = "add_tiles",
                                    .blocks = 2,
                                    .threads_x = kThreads,
                                    .shared_bytes = sizeof(SharedStorage)};
  for_each_schedule([&] {
    const DeviceArray<float> out(kConsumers);
    ASSERT_TRUE(is_ok(device::launch(config, nullptr, add_tiles<kEachArrives>,
                                     static_cast<const float*>(tiles.data()), out.data())));
    float expected = 0.0F;
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      expected += static_cast<float>((2 * tile + 1) * kTileFloats - 1);
    }
    EXPECT_EQ(out.to_host(), std::vector<float>(kConsumers, expected));
  });
}

TEST_F(Async, ProducerAndConsumers) { expect_tiles_added<true>(); }
TEST_F(Async, ProducerAndWarpsOfConsumers) { expect_tiles_added<false>(); }

// Two pairs of warps exchange words apart from each other, round after round.
__global__ void exchange_in_pairs(unsigned* out) {
  auto& words = device::shared_storage<unsigned[128]>();
  const unsigned thread = threadIdx.x;
  unsigned value = thread;
  for (int round = 0; round < 3; ++round) {
    words[thread] = value;
    if (thread < 64) {
      device::named_barrier<1>(64);
    } else {
      device::named_barrier<2>(64);
    }
    value = words[thread ^ 32U] + 1;
    if (thread < 64) {
      device::named_barrier<1>(64);
    } else {
      device::named_barrier<2>(64);
    }
  }
  out[thread] = value;
}

TEST_F(Async, NamedBarriersAreOfSomeThreads) {
  for_each_schedule([&] {
    const DeviceArray<unsigned> out(128);
    const device::LaunchConfig config{.kernel = "exchange_in_pairs",
                                      .blocks = 1,
                                      .threads_x = 128,
                                      .shared_bytes = 128 * sizeof(unsigned)};
    ASSERT_TRUE(is_ok(device::launch(config, nullptr, exchange_in_pairs, out.data())));
    const std::vector<unsigned> found = out.to_host();
    for (unsigned i = 0; i < 128; ++i) EXPECT_EQ(found[i], (i ^ 32U) + 3);
  });
}

// c: 64×N ← a: 64×(32·steps) times the transpose of b: N×(32·steps), of int8; the tiles are in
// memory as they lie in shared memory, all of a first.
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
    device::warpgroup_results(acc);
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
                                     1, 8 * width);
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
                                    .threads_x = 128,
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

TEST_F(Async, MultipliesInt8) {
  expect_multiplies<64>();
  expect_multiplies<128>();
}

constexpr unsigned kColsOfB = 64;

// The rows of a: 32 bytes each, straight from memory to registers.
__global__ void multiply_registers(const std::uint32_t* a, const std::int8_t* b, std::int32_t* c) {
#if TILEGATE_TEST_ASYNC
  struct Tile {
    alignas(1024) std::int8_t b[kColsOfB * 32];
  };
  auto& shared = device::shared_storage<Tile>();
  for (unsigned i = threadIdx.x; i < sizeof(shared.b); i += kConsumers) shared.b[i] = b[i];
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
  device::warpgroup_results(mine);
  device::warpgroup_results(acc);
  for (unsigned i = 0; i < kColsOfB / 2; ++i) {
    c[(row + i % 4 / 2 * 8) * kColsOfB + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = acc[i];
  }
#endif
}

TEST_F(Async, MultipliesInt8FromRegisters) {
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
                                    .threads_x = kConsumers,
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
TEST_F(Async, MultipliesInt8OfEveryWidth) {
  expect_multiplies<8>();
  expect_multiplies<24>();
  expect_multiplies<256>();
}
#endif

}  // namespace tilegate::async_test
