// How tensor cores add floats, one case per rule. On both devices.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>

#include <gtest/gtest.h>

#include <tilegate/device/async.cuh>

#include "simt/async_test.hpp"
#include "simt/device_array.hpp"

namespace tilegate::float_multiply_test {

enum class Type { kF16, kBf16, kTf32 };

// The sum of `count` products a·b and the accumulator.
struct Sum {
  const char* name;
  Type type;
  std::uint32_t a, b;  // bits
  unsigned count;
  float acc, expected;
  bool adds = true;
};

struct Storage {
  alignas(128) std::uint32_t a[64 * 8], b[64 * 8];
};

template <Type kType>
__device__ void multiply(float (&acc)[32], const Storage& smem, bool adds) {
#if TILEGATE_TEST_ASYNC
  const auto a = device::matrix_descriptor(smem.a, device::Swizzle::kNone, 1024, 128);
  const auto b = device::matrix_descriptor(smem.b, device::Swizzle::kNone, 1024, 128);
  device::warpgroup_arrive();
  if constexpr (kType == Type::kF16) {
    device::warpgroup_mma_f16<64>(acc, a, b, adds);
  } else if constexpr (kType == Type::kBf16) {
    device::warpgroup_mma_bf16<64>(acc, a, b, adds);
  } else {
    device::warpgroup_mma_tf32<64>(acc, a, b, adds);
  }
  device::warpgroup_commit();
  device::warpgroup_wait<0>();
  device::warpgroup_fence_operand(acc);
#endif
}

// Word `i` of a row whose first `count` elements have these bits; the others are 0.
__device__ std::uint32_t word_of(Type type, std::uint32_t bits, unsigned count, unsigned i) {
  if (type == Type::kTf32) return i < count ? bits : 0;
  return (2 * i < count ? bits : 0) | (2 * i + 1 < count ? bits << 16 : 0);
}

// c[thread][i] ← the accumulators.
__global__ void add_products(Sum sum, float* c) {
#if TILEGATE_TEST_ASYNC
  auto& smem = device::shared_storage<Storage>();
  for (unsigned i = threadIdx.x; i < 64 * 8; i += 128) {
    const unsigned word = i / 256 * 4 + i % 4;  // 16 bytes of all rows lie together
    smem.a[i] = word_of(sum.type, sum.a, sum.count, word);
    smem.b[i] = word_of(sum.type, sum.b, sum.count, word);
  }
  device::fence_async_proxy();
  __syncthreads();  // all is stored
  float acc[32];
  for (float& value : acc) value = sum.acc;
  if (sum.type == Type::kF16) {
    multiply<Type::kF16>(acc, smem, sum.adds);
  } else if (sum.type == Type::kBf16) {
    multiply<Type::kBf16>(acc, smem, sum.adds);
  } else {
    multiply<Type::kTf32>(acc, smem, sum.adds);
  }
  for (unsigned i = 0; i < 32; ++i) c[threadIdx.x * 32 + i] = acc[i];
#endif
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kOne = 0x3C00, kTiny = 0x0C00;  // f16: 1, 2^-12
const Sum kSums[] = {
    {"Exact", Type::kF16, kOne, kOne, 16, 0.5F, 16.5F},
    {"ExactInBf16", Type::kBf16, 0x3F80, 0x4040, 16, 0.5F, 48.5F},
    {"ExactInTf32", Type::kTf32, 0x3F80'0000, 0x4040'0000, 8, 0.5F, 24.5F},
    {"IgnoresAccumulator", Type::kF16, kOne, kOne, 16, 7.0F, 16.0F, false},
    {"CutsOffTheSum", Type::kF16, kTiny, kTiny, 3, 1.0F, 1.0F + 0x1p-23F},
    {"CutsOffTowardsZero", Type::kF16, kTiny | 0x8000, kTiny, 3, -1.0F, -1.0F - 0x1p-23F},
    {"KeepsTheTwentyFifthPlace", Type::kF16, 0x0800, kTiny, 4, 1.0F, 1.0F + 0x1p-23F},
    {"LosesTheTwentySixth", Type::kF16, 0x0400, kTiny, 16, 1.0F, 1.0F},
    {"AlignsToProducts", Type::kF16, kOne, kOne, 1, 0x1p-26F, 1.0F},
    {"KeepsSubnormals", Type::kF16, 0x0001, kOne, 16, 0.0F, 0x1p-20F},
    {"IgnoresLowBitsOfTf32", Type::kTf32, 0x3F80'1FFF, 0x3F80'0000, 8, 0.0F, 8.0F},
    {"MakesZerosPositive", Type::kF16, 0x8000, kOne, 16, -0.0F, 0.0F},
    {"Overflows", Type::kBf16, 0x7F00, 0x4000, 16, 0.0F, kInf},
    {"MakesNaNOfInfTimesZero", Type::kF16, 0x7C00, 0x0000, 1, 0.0F, NAN},
    {"AddsInf", Type::kF16, 0xFC00, kOne, 1, 3.0F, -kInf},
};

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return std::isnan(value) ? 0x7FFF'FFFF : bits;  // the NaN of tensor cores
}

TEST_F(Async, FloatMmaAddsAsDocumented) {
  const device::LaunchConfig config{
      .kernel = "add_products", .blocks = 1, .threads_x = 128, .shared_bytes = sizeof(Storage)};
  for (const Sum& sum : kSums) {
    for_each_schedule([&] {
      const DeviceArray<float> c(128 * 32);
      ASSERT_TRUE(is_ok(device::launch(config, nullptr, add_products, sum, c.data())));
      for (const float found : c.to_host()) {
        std::uint32_t bits;
        std::memcpy(&bits, &found, sizeof(bits));
        ASSERT_EQ(bits, bits_of(sum.expected)) << sum.name << ": " << found;
      }
    });
  }
}

}  // namespace tilegate::float_multiply_test
