// Random cases of multiplications of floats, two one after the other per block. Most operands are
// near each other, so that sums depend on how they are rounded; some are zero, subnormal, Inf or
// NaN.
#include <cstring>

#include "cases.hpp"
#include "random.cuh"

namespace tilegate::async_model {

// Of all types the exponent lies above the mantissa, the sign above it.
template <FloatType kType>
struct Format {
  static constexpr unsigned kMantissa = kType == FloatType::kF16    ? 10
                                        : kType == FloatType::kBf16 ? 7
                                                                    : 23;
  static constexpr unsigned kExponent = kType == FloatType::kF16 ? 5 : 8;
  static constexpr unsigned kBits = 1 + kExponent + kMantissa;
  static constexpr unsigned kLargest = (1U << kExponent) - 2;  // of biased exponents of numbers
};

// How a case's numbers are distributed.
struct Spread {
  unsigned first, count;  // of biased exponents
  unsigned zeros;         // in 256
  unsigned specials;      // in 4096, Inf or NaN

  // Those of products and of the accumulator overlap, or nearly.
  __device__ Spread(Choices& choices, unsigned bias, unsigned largest) {
    count = 1U << choices.below(6);
    const unsigned kind = choices.below(8);
    first = kind == 0   ? choices.below(largest)              // anywhere
            : kind == 1 ? bias / 2 - choices.below(bias / 4)  // tiny products
                        : bias - choices.below(2) * count / 2;
    zeros = choices.below(4) == 0 ? 128 : 4;
    specials = choices.below(4) == 0 ? 16 : 0;
  }
};

// Of any width: the low `bits` of the result.
inline __device__ std::uint32_t random_float(const Spread& spread, unsigned mantissa,
                                             unsigned largest, std::uint32_t seed,
                                             std::uint32_t index, std::uint32_t use) {
  const std::uint32_t random = mix(seed, index, use);
  const std::uint32_t choice = mix(random, index, kFloat);
  const std::uint32_t sign = (random & 1) << (mantissa + (largest > 30 ? 8 : 5));
  const std::uint32_t fraction = random >> 1 & ((1U << mantissa) - 1);
  if (choice >> 24 < spread.zeros) return sign;
  if ((choice >> 12 & 0xFFF) < spread.specials) {
    return sign | (largest + 1) << mantissa | (choice % 2 == 0 ? fraction : 0);
  }
  const unsigned exponent = spread.first + choice % spread.count;
  return sign | (exponent < largest ? exponent : largest) << mantissa | fraction;
}

#if TILEGATE_TEST_ASYNC

template <FloatType kType, int kN, device::Major kMajorA, device::Major kMajorB>
__device__ void multiply_add(float (&acc)[kN / 2], device::MatrixDescriptor a,
                             device::MatrixDescriptor b, bool adds) {
  if constexpr (kType == FloatType::kF16) {
    device::warpgroup_mma_f16<kN, kMajorA, kMajorB>(acc, a, b, adds);
  } else if constexpr (kType == FloatType::kBf16) {
    device::warpgroup_mma_bf16<kN, kMajorA, kMajorB>(acc, a, b, adds);
  } else {
    device::warpgroup_mma_tf32<kN>(acc, a, b, adds);
  }
}

template <device::Major kMajor>
__device__ device::MatrixDescriptor random_tile_of(Storage& smem, Choices& choices, unsigned rows,
                                                   device::Swizzle swizzle) {
  if constexpr (kMajor == device::Major::kMN) {
    return random_transposed_tile(smem, choices, rows, swizzle);
  } else {
    return random_tile(smem, choices, rows, swizzle);
  }
}

template <FloatType kType, int kN, device::Major kMajorA, device::Major kMajorB>
__device__ void multiply_random_tiles(float (&acc)[kN / 2], Storage& smem, Choices& choices) {
  const auto swizzle_of_a = static_cast<device::Swizzle>(choices.below(4));
  const auto swizzle_of_b = static_cast<device::Swizzle>(choices.below(4));
  const bool adds = choices.below(4) != 0;
  const auto a = random_tile_of<kMajorA>(smem, choices, 64, swizzle_of_a);
  const auto b = random_tile_of<kMajorB>(smem, choices, kN, swizzle_of_b);
  device::warpgroup_arrive();
  multiply_add<kType, kN, kMajorA, kMajorB>(acc, a, b, adds);
}

template <FloatType kType>
__device__ void fill_with_floats(Storage& smem, const Spread& spread, std::uint32_t seed) {
  using F = Format<kType>;
  constexpr unsigned kPerWord = 32 / F::kBits;
  for (unsigned i = threadIdx.x; i < kWords; i += kThreads) {
    std::uint32_t word = 0;
    for (unsigned j = 0; j < kPerWord; ++j) {
      word |= random_float(spread, F::kMantissa, F::kLargest, seed, i * kPerWord + j, kFill)
              << (F::kBits * j);
    }
    smem.words[i] = word;
  }
  device::fence_async_proxy();
}

template <FloatType kType, int kN, bool kTransposed>
__device__ std::uint32_t multiply(Storage& smem, Choices& choices, std::uint32_t seed) {
  // Of products of operands near 1.
  const Spread spread(choices, 127, 254);
  float acc[kN / 2];
  for (unsigned i = 0; i < kN / 2; ++i) {
    const std::uint32_t bits =
        random_float(spread, 23, 254, seed, i * kThreads + threadIdx.x, kStart);
    std::memcpy(&acc[i], &bits, sizeof(bits));
  }
  for (unsigned i = 0; i < 2; ++i) {
    constexpr auto kK = device::Major::kK, kMN = device::Major::kMN;
    const unsigned which = kTransposed ? 1 + choices.below(3) : 0;
    if (which == 0) {
      multiply_random_tiles<kType, kN, kK, kK>(acc, smem, choices);
    } else if (which == 1) {
      multiply_random_tiles<kType, kN, kMN, kK>(acc, smem, choices);
    } else if (which == 2) {
      multiply_random_tiles<kType, kN, kK, kMN>(acc, smem, choices);
    } else {
      multiply_random_tiles<kType, kN, kMN, kMN>(acc, smem, choices);
    }
  }
  device::warpgroup_commit();
  device::warpgroup_wait<0>();
  device::warpgroup_fence_operand(acc);
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < kN / 2; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &acc[i], sizeof(bits));
    sum += mix(bits, i * kThreads + threadIdx.x, kFold);
  }
  return sum;
}

#endif

template <FloatType kType, int kN, bool kTransposed>
__global__ void multiply_random_floats(std::uint32_t first, std::uint32_t* sums) {
#if TILEGATE_TEST_ASYNC
  auto& smem = device::shared_storage<Storage>();
  const std::uint32_t seed = first + blockIdx.x;
  Choices choices(seed, kFloat);
  const Spread spread(choices, Format<kType>::kLargest / 2, Format<kType>::kLargest);
  fill_with_floats<kType>(smem, spread, seed);
  __syncthreads();  // all is stored
  sums[blockIdx.x * kThreads + threadIdx.x] = multiply<kType, kN, kTransposed>(smem, choices, seed);
#endif
}

template <FloatType kType, int kN, bool kTransposed>
Status run_float_multiplications(std::uint32_t first, std::vector<std::uint32_t>* checksums) {
  const device::Buffer sums(checksums->size() * kThreads * sizeof(std::uint32_t));
  void (*const kernel)(std::uint32_t, std::uint32_t*) =
      multiply_random_floats<kType, kN, kTransposed>;
  const Status launched = device::launch(config_of("multiply", checksums->size()), nullptr, kernel,
                                         first, reinterpret_cast<std::uint32_t*>(sums.data()));
  return launched.ok() ? fold(sums, checksums) : launched;
}

using Checksums = std::vector<std::uint32_t>;
template Status run_float_multiplications<FloatType::kF16, 64>(std::uint32_t, Checksums*);
template Status run_float_multiplications<FloatType::kF16, 128>(std::uint32_t, Checksums*);
template Status run_float_multiplications<FloatType::kBf16, 64>(std::uint32_t, Checksums*);
template Status run_float_multiplications<FloatType::kBf16, 128>(std::uint32_t, Checksums*);
template Status run_float_multiplications<FloatType::kTf32, 64>(std::uint32_t, Checksums*);
template Status run_float_multiplications<FloatType::kTf32, 128>(std::uint32_t, Checksums*);
template Status run_float_multiplications<FloatType::kF16, 64, true>(std::uint32_t, Checksums*);
template Status run_float_multiplications<FloatType::kF16, 128, true>(std::uint32_t, Checksums*);
template Status run_float_multiplications<FloatType::kBf16, 64, true>(std::uint32_t, Checksums*);
template Status run_float_multiplications<FloatType::kBf16, 128, true>(std::uint32_t, Checksums*);

}  // namespace tilegate::async_model
