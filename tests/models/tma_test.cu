// Tma on the executor: its producer leaves A and B in shared memory as the model of the swizzle has
// them, and its consumers multiply what the model has put there.
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/tensor_map.hpp>

#include "19_tma/tma.cuh"
#include "models/layout.hpp"
#include "simt/device_array.hpp"

namespace tilegate::tma {
namespace {

struct Tiles {
  static constexpr int kBlockM = 64, kBlockN = 128, kBlockK = 16;
  static constexpr int kThreadM = 8, kThreadN = 8;
  static constexpr int kStages = 4;
};
using Small = Config<Tiles>;
using Shared = SharedStorage<Small>;

constexpr int kM = Small::kBlockM, kN = Small::kBlockN, kBlockK = Small::kBlockK;
constexpr int kKTiles = Small::kStages, kK = kKTiles * kBlockK;  // the ring is filled once
constexpr std::size_t kWords = sizeof(Shared::ring) / (sizeof(float));

// Whole numbers, different in each row and column.
float a_of(std::int64_t row, std::int64_t k) {
  return static_cast<float>((row * 37 + k * 11) % 101);
}
float b_of(std::int64_t k, std::int64_t col) { return static_cast<float>((k * 29 + col * 7) % 97); }

// A k tile: A with rows of 64 bytes, swizzled; B after it, as it is.
std::vector<float> ring_of_model() {
  std::vector<float> ring(kWords);
  const std::int64_t tile_words = kM * kBlockK + kBlockK * kN;
  for (std::int64_t tile = 0; tile < kKTiles; ++tile) {
    for (std::int64_t k = 0; k < kBlockK; ++k) {
      const std::int64_t of_k = tile * kBlockK + k, first = tile * tile_words;
      for (std::int64_t row = 0; row < kM; ++row) {
        const std::int64_t at = models::swizzled(4 * (first + row * kBlockK + k), 64) / 4;
        ring[static_cast<std::size_t>(at)] = a_of(row, of_k);
      }
      for (std::int64_t col = 0; col < kN; ++col) {
        ring[static_cast<std::size_t>(first + kM * kBlockK + k * kN + col)] = b_of(of_k, col);
      }
    }
  }
  return ring;
}

__global__ void produce_ring(const __grid_constant__ device::TensorMap a,
                             const __grid_constant__ device::TensorMap b, float* found) {
  auto& smem = device::shared_storage<Shared>();
  smem.tile = {};
  init_pipeline(smem.full, smem.empty, 1);
  device::barrier_init_fence();
  produce<Small>(a, b, {}, kKTiles, smem);
  for (device::Barrier& full : smem.full) device::barrier_wait(full, 0);
  const auto* words = reinterpret_cast<const float*>(smem.ring);
  for (std::size_t i = 0; i < kWords; ++i) found[i] = words[i];
}

TEST(TmaRing, ProducerMatchesModel) {
  std::vector<float> a, b;
  for (int row = 0; row < kM; ++row) {
    for (int k = 0; k < kK; ++k) a.push_back(a_of(row, k));
  }
  for (int k = 0; k < kK; ++k) {
    for (int col = 0; col < kN; ++col) b.push_back(b_of(k, col));
  }
  const DeviceArray<float> of_a(a), of_b(b), found(kWords);
  const auto map_of = [](float* data, unsigned rows, unsigned cols, unsigned box_rows,
                         unsigned box_cols, device::Swizzle swizzle) {
    device::TensorMap map;
    const std::uint64_t row_bytes = cols * sizeof(float);
    EXPECT_TRUE(is_ok(device::make_tensor_map({.data = data,
                                               .dimensions = 3,
                                               .size = {cols, rows, 1},
                                               .stride_bytes = {0, row_bytes, row_bytes},
                                               .box = {box_cols, box_rows, 1},
                                               .swizzle = swizzle},
                                              &map)));
    return map;
  };
  ASSERT_TRUE(is_ok(device::launch(
      {.kernel = "produce", .blocks = 1, .threads_x = 1, .shared_bytes = sizeof(Shared)}, nullptr,
      produce_ring, map_of(of_a.data(), kM, kK, kM, kBlockK, Shared::kSwizzleOfA),
      map_of(of_b.data(), kK, kN, kBlockK, kN, device::Swizzle::kNone), found.data())));
  EXPECT_TRUE(found.to_host() == ring_of_model());
}

__global__ void multiply_ring(const float* ring, float* c) {
  auto& smem = device::shared_storage<Shared>();
  if (threadIdx.x == 0) {
    std::memcpy(smem.ring, ring, sizeof(smem.ring));
    init_pipeline(smem.full, smem.empty, Small::kConsumers / 32);
    device::barrier_init_fence();
    for (device::Barrier& full : smem.full) device::barrier_arrive(full);
  }
  __syncthreads();  // the ring is filled
  float acc[Small::kThreadM][Small::kThreadN]{};
  Consumer<Small>().multiply(kKTiles, acc);
  store<Small, true>({.shape = {kM, kN, kK}, .c = c, .ldc = kN}, acc);
}

TEST(TmaRing, ConsumersReadWhereTheModelHasElements) {
  const DeviceArray<float> ring(ring_of_model()), c(kM * kN);
  ASSERT_TRUE(is_ok(device::launch({.kernel = "multiply",
                                    .blocks = 1,
                                    .threads_x = Small::kConsumers,
                                    .shared_bytes = sizeof(Shared)},
                                   nullptr, multiply_ring, ring.data(), c.data())));
  std::vector<float> expected;
  for (int row = 0; row < kM; ++row) {
    for (int col = 0; col < kN; ++col) {
      float sum = 0.0F;  // exact
      for (int k = 0; k < kK; ++k) sum += a_of(row, k) * b_of(k, col);
      expected.push_back(sum);
    }
  }
  EXPECT_TRUE(c.to_host() == expected);
}

}  // namespace
}  // namespace tilegate::tma
