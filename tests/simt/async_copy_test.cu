// cp.async: copies to shared memory that are complete after their wait. On both devices.
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"

namespace tilegate::async_copy_test {

constexpr int kThreads = 64;
constexpr int kStages = 3;

template <int kBytes>
struct SharedStorage {
  static constexpr int kFloats = kBytes / 4;
  alignas(16) float stages[kStages][kThreads * kFloats];
};

// Copies kStages pieces of `in`, each as a group, and waits for each group, oldest first.
template <int kBytes>
__global__ void copy_in_stages(const float* in, float* out) {
  using Storage = SharedStorage<kBytes>;
  auto& shared = device::shared_storage<Storage>();
  const int first = static_cast<int>(threadIdx.x) * Storage::kFloats;
  constexpr int kStage = kThreads * Storage::kFloats;
  for (int stage = 0; stage < kStages; ++stage) {
    device::copy_async<kBytes>(&shared.stages[stage][first], in + stage * kStage + first);
    device::copy_async_commit();
  }
  for (int stage = 0; stage < kStages; ++stage) {
    if (stage == 0) device::copy_async_wait<2>();
    if (stage == 1) device::copy_async_wait<1>();
    if (stage == 2) device::copy_async_wait<0>();
    __syncthreads();  // the wait covers only the thread's own copies
    for (int i = 0; i < Storage::kFloats; ++i) {
      const int from = kStage - 1 - (first + i);  // another thread's
      out[stage * kStage + first + i] = shared.stages[stage][from];
    }
  }
}

template <int kBytes>
void expect_copies() {
  constexpr int kStage = kThreads * kBytes / 4;
  const DeviceArray<float> in = iota(kStages * kStage);
  const DeviceArray<float> out(kStages * kStage);
  const device::LaunchConfig config{.kernel = "copy_in_stages",
                                    .blocks = 1,
                                    .threads_x = kThreads,
                                    .shared_bytes = sizeof(SharedStorage<kBytes>)};
  ASSERT_TRUE(is_ok(device::launch(config, nullptr, copy_in_stages<kBytes>,
                                   static_cast<const float*>(in.data()), out.data())));
  const std::vector<float> found = out.to_host();
  for (int i = 0; i < kStages * kStage; ++i) {
    const int from = i / kStage * kStage + kStage - 1 - i % kStage;
    EXPECT_EQ(found[static_cast<std::size_t>(i)], static_cast<float>(from));
  }
}

// Copies to an address. Copies of odd threads are outside, so they write zeros.
__global__ void copy_by_address(const float* in, float* out) {
  auto& shared = device::shared_storage<SharedStorage<16>>();
  const auto thread = static_cast<int>(threadIdx.x);
  float* mine = &shared.stages[0][4 * thread];
  for (int i = 0; i < 4; ++i) mine[i] = -1.0F;
  const device::SharedAddress base = device::shared_address(&shared.stages[0][0]);
  const bool inside = thread % 2 == 0;
  device::copy_async<16>(base + 16U * static_cast<unsigned>(thread), inside ? in + 4 * thread : in,
                         inside);
  device::copy_async_commit();
  device::copy_async_wait<0>();
  for (int i = 0; i < 4; ++i) out[4 * thread + i] = mine[i];
}

TEST(AsyncCopy, FillsZerosOutside) {
  const DeviceArray<float> in = iota(4 * kThreads);
  const DeviceArray<float> out(4 * kThreads);
  const device::LaunchConfig config{.kernel = "copy_by_address",
                                    .blocks = 1,
                                    .threads_x = kThreads,
                                    .shared_bytes = sizeof(SharedStorage<16>)};
  ASSERT_TRUE(is_ok(device::launch(config, nullptr, copy_by_address,
                                   static_cast<const float*>(in.data()), out.data())));
  const std::vector<float> found = out.to_host();
  for (int i = 0; i < 4 * kThreads; ++i) {
    EXPECT_EQ(found[static_cast<std::size_t>(i)], i / 4 % 2 == 0 ? static_cast<float>(i) : 0.0F);
  }
}

TEST(AsyncCopy, FourBytes) { expect_copies<4>(); }

TEST(AsyncCopy, EightBytes) { expect_copies<8>(); }

TEST(AsyncCopy, SixteenBytes) { expect_copies<16>(); }

}  // namespace tilegate::async_copy_test
