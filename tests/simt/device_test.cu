// device.cuh in a kernel: indices, barriers, shared memory, vectors. On both devices.
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"

namespace tilegate::device_test {

struct Place {
  unsigned thread_x, thread_y, block, block_dim_x, block_dim_y, grid_dim;

  friend bool operator==(const Place&, const Place&) = default;
};

__global__ void record_place(Place* places) {
  const unsigned in_block = threadIdx.x + threadIdx.y * blockDim.x;
  places[blockIdx.x * blockDim.x * blockDim.y + in_block] = {threadIdx.x, threadIdx.y, blockIdx.x,
                                                             blockDim.x,  blockDim.y,  gridDim.x};
}

TEST(Device, IndicesOfTwoDimensionalBlocks) {
  constexpr unsigned kBlocks = 3;
  constexpr unsigned kX = 5;
  constexpr unsigned kY = 7;
  const DeviceArray<Place> places(kBlocks * kX * kY);
  const device::LaunchConfig config{
      .kernel = "record_place", .blocks = kBlocks, .threads_x = kX, .threads_y = kY};
  ASSERT_TRUE(is_ok(device::launch(config, nullptr, record_place, places.data())));
  const std::vector<Place> found = places.to_host();
  unsigned i = 0;
  for (unsigned block = 0; block < kBlocks; ++block) {
    for (unsigned y = 0; y < kY; ++y) {
      for (unsigned x = 0; x < kX; ++x) {
        EXPECT_EQ(found[i++], (Place{x, y, block, kX, kY, kBlocks}));
      }
    }
  }
}

template <int kCount>
struct Floats {
  float values[kCount];
};

// Each block reverses its part of `data` through shared memory.
template <int kThreads>
__global__ void reverse_blocks(float* data) {
  auto& shared = device::shared_storage<Floats<kThreads>>();
  float* mine = data + blockIdx.x * kThreads;
  shared.values[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();  // no thread reads before all have written
  mine[threadIdx.x] = shared.values[kThreads - 1 - static_cast<int>(threadIdx.x)];
}

TEST(Device, BlockBarrierAndSharedMemory) {
  constexpr int kThreads = 96;
  constexpr int kBlocks = 4;
  const DeviceArray<float> data = iota(kThreads * kBlocks);
  const device::LaunchConfig config{.kernel = "reverse_blocks",
                                    .blocks = kBlocks,
                                    .threads_x = kThreads,
                                    .shared_bytes = sizeof(Floats<kThreads>)};
  ASSERT_TRUE(is_ok(device::launch(config, nullptr, reverse_blocks<kThreads>, data.data())));
  const std::vector<float> found = data.to_host();
  for (int i = 0; i < kThreads * kBlocks; ++i) {
    const int reversed = i / kThreads * kThreads + kThreads - 1 - i % kThreads;
    EXPECT_EQ(found[static_cast<std::size_t>(i)], static_cast<float>(reversed));
  }
}

TEST(Device, SharedMemoryAbove48KiB) {
  constexpr int kThreads = 256;
  const DeviceArray<float> data = iota(kThreads);
  const device::LaunchConfig config{
      .kernel = "reverse_blocks", .blocks = 1, .threads_x = kThreads, .shared_bytes = 96 * 1024};
  ASSERT_TRUE(is_ok(device::allow_shared_memory(reverse_blocks<kThreads>, config.shared_bytes)));
  ASSERT_TRUE(is_ok(device::prefer_shared_memory(reverse_blocks<kThreads>)));
  ASSERT_TRUE(is_ok(device::launch(config, nullptr, reverse_blocks<kThreads>, data.data())));
  EXPECT_EQ(data.to_host().front(), static_cast<float>(kThreads - 1));
}

// out[i] = in[i] + 1, with accesses of sizeof(V) bytes.
template <typename V>
__global__ void add_one(const float* in, float* out);

template <>
__global__ void add_one<float2>(const float* in, float* out) {
  const auto v = device::load_vector<float2>(in + 2 * threadIdx.x);
  device::store_vector(out + 2 * threadIdx.x, make_float2(v.x + 1.0F, v.y + 1.0F));
}

template <>
__global__ void add_one<float4>(const float* in, float* out) {
  const auto v = device::load_vector<float4>(in + 4 * threadIdx.x);
  device::store_vector(out + 4 * threadIdx.x,
                       make_float4(v.x + 1.0F, v.y + 1.0F, v.z + 1.0F, v.w + 1.0F));
}

template <typename V>
void expect_adds_one() {
  constexpr std::size_t kCount = 8 * sizeof(V) / sizeof(float);
  const DeviceArray<float> in = iota(kCount);
  const DeviceArray<float> out(kCount);
  const device::LaunchConfig config{.kernel = "add_one", .blocks = 1, .threads_x = 8};
  ASSERT_TRUE(is_ok(device::launch(config, nullptr, add_one<V>, in.data(), out.data())));
  const std::vector<float> found = out.to_host();
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(found[i], static_cast<float>(i) + 1.0F);
}

TEST(Device, VectorsOfTwo) { expect_adds_one<float2>(); }

TEST(Device, VectorsOfFour) { expect_adds_one<float4>(); }

// Reverses 4 × 32 words through shared memory and doubles them, with device::ordered.
__global__ void ordered_reverse(const float* in, float* out, float one) {
  auto& shared = device::shared_storage<float[128]>();
  const device::SharedAddress base = device::shared_address(&shared[0]);
  const unsigned thread = threadIdx.x;
  float4 v;
  unsigned vector = 0;
  device::ordered::add(vector, thread);
  device::ordered::load_global(v, in, vector);
  if (thread % 2 == 0) {
    device::ordered::store_shared(base + 16 * thread, v);
  } else {
    device::ordered::store_shared(base + 16 * thread, v.x);
    device::ordered::store_shared(base + 16 * thread + 4, v.y);
    device::ordered::store_shared(base + 16 * thread + 8, v.z);
    device::ordered::store_shared(base + 16 * thread + 12, v.w);
  }
  __syncthreads();  // all is stored before anyone reads
  float loaded[4], reversed[4], result[4]{};
  device::ordered::load_shared(loaded, base + 16 * (31 - thread));
  const bool ascending = thread % 2 == 0;
  device::ordered::fma_row(result, one, reversed, ascending, [&](int i) {
    const int j = ascending ? i : 3 - i;
    reversed[j] = loaded[3 - j];
  });
  device::add_products(result, one, reversed, ascending);
  for (int i = 0; i < 4; ++i) out[4 * thread + static_cast<unsigned>(i)] = result[i];
}

TEST(Device, OrderedInstructionsComputeTheSame) {
  const DeviceArray<float> in = iota(128);
  const DeviceArray<float> out(128);
  const device::LaunchConfig config{.kernel = "ordered_reverse",
                                    .blocks = 1,
                                    .threads_x = 32,
                                    .shared_bytes = 128 * sizeof(float)};
  ASSERT_TRUE(is_ok(device::launch(config, nullptr, ordered_reverse,
                                   static_cast<const float*>(in.data()), out.data(), 1.0F)));
  const std::vector<float> found = out.to_host();
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(found[i], 2.0F * static_cast<float>(127 - i));
}

__global__ void count_launch(float* data) {
  device::wait_for_previous_kernel();
  device::launch_dependents();
  data[blockIdx.x * 32 + threadIdx.x] += 1.0F;
}

TEST(Device, KernelsThatOverlapWaitForEachOther) {
  if (device::current().is_cuda && device::current().compute_capability < 90) {
    GTEST_SKIP() << "needs compute capability 90";
  }
  const DeviceArray<float> data(32 * 64, 0.0F);
  const device::LaunchConfig config{
      .kernel = "count_launch", .blocks = 64, .threads_x = 32, .overlaps_previous = true};
  constexpr int kLaunches = 100;
  for (int i = 0; i < kLaunches; ++i) {
    ASSERT_TRUE(is_ok(device::launch(config, nullptr, count_launch, data.data())));
  }
  for (const float value : data.to_host()) EXPECT_EQ(value, kLaunches);
}

}  // namespace tilegate::device_test
