// What CUDA's functions give in kernels that join as they are, by the CUDA C++ Programming Guide.
#include <cstdint>
#include <vector>

#include <cuda_pipeline.h>
#include <gtest/gtest.h>

#include <tilegate/device/plain.cuh>

#include "simt/device_array.hpp"

namespace tilegate {
namespace {

__global__ void shuffle_parts(int* out) {
  const int lane = threadIdx.x;
  out[lane] = __shfl_sync(~0u, lane, 11, 8);
  out[32 + lane] = __shfl_xor_sync(~0u, lane, 12, 8);
  out[64 + lane] = __shfl_down_sync(~0u, lane, 3, 8);
  out[96 + lane] = __shfl_up_sync(~0u, lane, 3, 8);
}

// In parts of 8 lanes. A lane of a later part, or past the ends of the own one, gives the caller
// its own value.
TEST(PlainHeader, ShufflesWithinPartsOfAWarp) {
  const DeviceArray<int> out(128);
  ASSERT_TRUE(is_ok(plain::status_of([&] { shuffle_parts<<<1, 32>>>(out.data()); })));
  std::vector<int> expected(128);
  for (int lane = 0; lane < 32; ++lane) {
    const auto at = static_cast<std::size_t>(lane);
    const int first = lane / 8 * 8, end = first + 8;
    expected[at] = first + 3;
    expected[32 + at] = (lane ^ 12) < end ? lane ^ 12 : lane;
    expected[64 + at] = lane + 3 < end ? lane + 3 : lane;
    expected[96 + at] = lane - 3 >= first ? lane - 3 : lane;
  }
  EXPECT_EQ(out.to_host(), expected);
}

__global__ void vote(unsigned* out) {
  const unsigned lane = threadIdx.x;
  if (lane >= 16) return;
  out[lane] = __ballot_sync(0xffff, lane % 3 == 0);
  out[16 + lane] = __all_sync(0xffff, lane < 16) * 4 + __all_sync(0xffff, lane != 9) * 2 +
                   __any_sync(0xffff, lane == 9);
}

TEST(PlainHeader, VotesAmongTheLanesOfTheMask) {
  const DeviceArray<unsigned> out(32);
  ASSERT_TRUE(is_ok(plain::status_of([&] { vote<<<1, 32>>>(out.data()); })));
  std::vector<unsigned> expected(16, 0x9249U);
  expected.resize(32, 4 + 1);
  EXPECT_EQ(out.to_host(), expected);
}

__global__ void update(unsigned* out) {
  unsigned* const word = out;  // then what each operation gives, which is the word before
  unsigned* before = out + 1;
  *before++ = atomicAdd(word, 5);      // 0 -> 5
  *before++ = atomicSub(word, 3);      // 5 -> 2
  *before++ = atomicInc(word, 3);      // 2 -> 3
  *before++ = atomicInc(word, 3);      // 3 -> 0
  *before++ = atomicDec(word, 6);      // 0 -> 6
  *before++ = atomicDec(word, 6);      // 6 -> 5
  *before++ = atomicDec(word, 3);      // 5 -> 3, above the limit
  *before++ = atomicMax(word, 9);      // 3 -> 9
  *before++ = atomicMin(word, 10);     // 9 -> 9
  *before++ = atomicAnd(word, 12);     // 9 -> 8
  *before++ = atomicOr(word, 3);       // 8 -> 11
  *before++ = atomicXor(word, 1);      // 11 -> 10
  *before++ = atomicCAS(word, 7, 1);   // 10 -> 10
  *before++ = atomicCAS(word, 10, 4);  // 10 -> 4
  *before++ = atomicExch(word, 77);    // 4 -> 77
}

TEST(PlainHeader, AtomicOperationsGiveTheWordBefore) {
  const DeviceArray<unsigned> out(16);
  ASSERT_TRUE(is_ok(plain::status_of([&] { update<<<1, 1>>>(out.data()); })));
  EXPECT_EQ(out.to_host(),
            (std::vector<unsigned>{77, 0, 5, 2, 3, 0, 6, 5, 3, 9, 9, 8, 11, 10, 10, 4}));
}

__global__ void copy_zeros(const float* from, float* to) {
  __shared__ char before;
  __shared__ __align__(128) float copied[8];
  before = 1;
  for (float& word : copied) word = 7.f;
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(copied));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at), "l"(from), "r"(0));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at + 8), "l"(from), "r"(8));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
  __pipeline_memcpy_async(copied + 4, from, 8, 8);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  for (int i = 0; i < 8; ++i) to[i] = copied[i];
  to[8] = static_cast<float>(reinterpret_cast<unsigned long long>(copied) % 128) + before;
}

TEST(PlainHeader, CopiesOfNoBytesAreZeros) {
  const DeviceArray<float> from(std::vector<float>{1, 2, 3, 4}), to(9);
  ASSERT_TRUE(is_ok(plain::status_of([&] { copy_zeros<<<1, 1>>>(from.data(), to.data()); })));
  EXPECT_EQ(to.to_host(), (std::vector<float>{0, 0, 1, 2, 0, 0, 7, 7, 1}));
}

__global__ void copy_some(const float* from) {
  __shared__ float copied[4];
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(copied));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(4));
  asm volatile("cp.async.wait_all;");
}

__global__ void count_threads(unsigned* count) { atomicAdd(count, 1); }

TEST(PlainHeader, TheFirstErrorOfItsLaunchesStays) {
  const DeviceArray<float> from(4);
  const DeviceArray<unsigned> count(1);
  const Status status = plain::status_of([&] {
    copy_some<<<1, 1>>>(from.data());  // a part of a copy
    count_threads<<<2, dim3(2, 3, 4)>>>(count.data());
  });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(count.to_host()[0], 48U);
}

TEST(PlainHeader, ALaunchBeyondTheLimitsOfCudaIsAnError) {
  const DeviceArray<unsigned> count(1);
  const auto message = [&](dim3 grid, dim3 block) {
    return plain::status_of([&] { count_threads<<<grid, block>>>(count.data()); }).message();
  };
  EXPECT_EQ(message(dim3(1, 2, 3), dim3(1, 2, 64)), "");
  EXPECT_EQ(message(7, dim3(1, 2, 65)),
            "count_threads: invalid launch of 7 blocks of 130 threads (65 along z) with 0 bytes of "
            "shared memory");
  EXPECT_EQ(message(dim3(1, 65536), 5),
            "count_threads: invalid launch of 1x65536x1 blocks of 5 threads with 0 bytes of shared "
            "memory");
  EXPECT_NE(message(0, 1), "");
  EXPECT_NE(message(1, 1025), "");
}

}  // namespace
}  // namespace tilegate
