// Random cases of bulk copies and int8 multiplications, one per block. All that a case does follows
// from its number, so that two devices can be compared by checksums.
#include "cases.hpp"
#include "random.cuh"

namespace tilegate::async_model {

#if TILEGATE_TEST_ASYNC

// Each copies up to half a quarter of shared memory, from anywhere in `source`.
__device__ void start_copies(Storage& smem, std::uint32_t seed, const std::uint32_t* source) {
  constexpr unsigned kCopies = 4;           // each into a quarter of shared memory
  constexpr unsigned kPieces = kWords / 4;  // of 16 bytes, in shared memory
  Choices choices(seed, kCopy);
  unsigned bytes[2] = {};
  unsigned pieces[kCopies], to[kCopies], from[kCopies];
  for (unsigned i = 0; i < kCopies; ++i) {
    pieces[i] = 1 + choices.below(kPieces / kCopies / 2);
    to[i] = i * (kPieces / kCopies) + choices.below(kPieces / kCopies - pieces[i] + 1);
    from[i] = choices.below(kSourceWords / 4 - pieces[i] + 1);
    bytes[i % 2] += 16 * pieces[i];
  }
  for (unsigned i = 0; i < 2; ++i) device::barrier_arrive_expect(smem.full[i], bytes[i]);
  for (unsigned i = 0; i < kCopies; ++i) {
    device::copy_bulk(&smem.words[4 * to[i]], source + 4 * from[i], 16 * pieces[i],
                      smem.full[i % 2]);
  }
}

template <int kN>
__device__ std::uint32_t multiply(Storage& smem, std::uint32_t seed) {
  Choices choices(seed, kMultiply);
  std::int32_t acc[kN / 2];
  for (unsigned i = 0; i < kN / 2; ++i) {
    acc[i] = static_cast<std::int32_t>(mix(seed, i * kThreads + threadIdx.x, kStart));
  }
  device::warpgroup_arrive();
  for (unsigned i = 0; i < 2; ++i) {
    const auto swizzle_of_a = static_cast<device::Swizzle>(choices.below(4));
    const auto swizzle_of_b = static_cast<device::Swizzle>(choices.below(4));
    const auto a = random_tile(smem, choices, 64, swizzle_of_a);
    const auto b = random_tile(smem, choices, kN, swizzle_of_b);
    device::warpgroup_mma_s8<kN>(acc, a, b);
  }
  device::warpgroup_commit();
  device::warpgroup_wait<0>();
  device::warpgroup_fence_operand(acc);
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < kN / 2; ++i) {
    sum += mix(static_cast<std::uint32_t>(acc[i]), i * kThreads + threadIdx.x, kFold);
  }
  return sum;
}

#endif

// sums[case][thread]
__global__ void copy(std::uint32_t first, const std::uint32_t* source, std::uint32_t* sums) {
#if TILEGATE_TEST_ASYNC
  auto& smem = device::shared_storage<Storage>();
  const std::uint32_t seed = first + blockIdx.x;
  fill(smem, seed);
  if (threadIdx.x == 0) {
    for (device::Barrier& barrier : smem.full) device::barrier_init(barrier, 1);
    device::barrier_init_fence();
  }
  __syncthreads();  // all is stored, the barriers are made
  if (threadIdx.x == 0) start_copies(smem, seed, source);
  for (device::Barrier& barrier : smem.full) device::barrier_wait(barrier, 0);
  sums[blockIdx.x * kThreads + threadIdx.x] = checksum(smem);
#endif
}

template <int kN>
__global__ void multiply_random_tiles(std::uint32_t first, std::uint32_t* sums) {
#if TILEGATE_TEST_ASYNC
  auto& smem = device::shared_storage<Storage>();
  fill(smem, first + blockIdx.x);
  __syncthreads();  // all is stored
  sums[blockIdx.x * kThreads + threadIdx.x] = multiply<kN>(smem, first + blockIdx.x);
#endif
}

Status fill_source(const device::Buffer& source) {
  std::vector<std::uint32_t> words(kSourceWords);
  for (std::uint32_t i = 0; i < kSourceWords; ++i) words[i] = mix(1, i, kFill);
  return device::copy_to_device(source.data(), words.data(), source.size());
}

Status run_copies(std::uint32_t first, std::vector<std::uint32_t>* checksums) {
  const device::Buffer source(kSourceWords * sizeof(std::uint32_t));
  const device::Buffer sums(checksums->size() * kThreads * sizeof(std::uint32_t));
  if (Status s = fill_source(source); !s.ok()) return s;
  const Status launched = device::launch(config_of("copy", checksums->size()), nullptr, copy, first,
                                         reinterpret_cast<const std::uint32_t*>(source.data()),
                                         reinterpret_cast<std::uint32_t*>(sums.data()));
  return launched.ok() ? fold(sums, checksums) : launched;
}

template <int kN>
Status run_multiplications(std::uint32_t first, std::vector<std::uint32_t>* checksums) {
  const device::Buffer sums(checksums->size() * kThreads * sizeof(std::uint32_t));
  void (*const kernel)(std::uint32_t, std::uint32_t*) = multiply_random_tiles<kN>;
  const Status launched = device::launch(config_of("multiply", checksums->size()), nullptr, kernel,
                                         first, reinterpret_cast<std::uint32_t*>(sums.data()));
  return launched.ok() ? fold(sums, checksums) : launched;
}

template Status run_multiplications<64>(std::uint32_t, std::vector<std::uint32_t>*);
template Status run_multiplications<128>(std::uint32_t, std::vector<std::uint32_t>*);

}  // namespace tilegate::async_model
