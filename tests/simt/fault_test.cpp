// Faults of kernels, and the error messages for them.
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/async.cuh>
#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"
#include "simt/faults.hpp"

namespace tilegate::fault_test {

using faults::config_of;
using faults::expect_fault;
using faults::kThreads;

constexpr unsigned kLineOfLonelyBarrier = __LINE__ + 2;
__global__ void lonely_barrier() {
  if (blockIdx.x != 1 || threadIdx.x != 4 || threadIdx.y != 1) __syncthreads();
}

TEST(Fault, BarrierThatAThreadNeverReaches) {
  const Status status = device::launch(config_of("lonely_barrier"), nullptr, lonely_barrier);
  expect_fault(status,
               {"lonely_barrier", "block 1", "thread (4,1,0) left the kernel", "divergent barrier",
                "fault_test.cpp:" + std::to_string(kLineOfLonelyBarrier)});
}

constexpr unsigned kLineOfFirstBranch = __LINE__ + 3;
__global__ void two_barriers() {
  if (threadIdx.x < 16) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST(Fault, ThreadsAtDifferentBarriers) {
  const Status status = device::launch(config_of("two_barriers"), nullptr, two_barriers);
  expect_fault(status, {"two_barriers", "block 0", "thread (16,0,0)", "divergent barrier",
                        "fault_test.cpp:" + std::to_string(kLineOfFirstBranch),
                        "fault_test.cpp:" + std::to_string(kLineOfFirstBranch + 2)});
}

// Barriers on the same line of two files.
__global__ void barriers_of_two_files() {
  __syncthreads(simt::Site::current(threadIdx.x < 16 ? "first.cuh" : "second.cuh", 7));
}

TEST(Fault, ThreadsAtBarriersOfDifferentFiles) {
  expect_fault(device::launch(config_of("barriers_of_two_files"), nullptr, barriers_of_two_files),
               {"thread (16,0,0)", "divergent barrier", "first.cuh:7", "second.cuh:7"});
}

__global__ void lonely_warp_barrier() {
  if (threadIdx.x != 9) __syncwarp();
}

TEST(Fault, WarpBarrierThatALaneNeverReaches) {
  expect_fault(device::launch(config_of("lonely_warp_barrier"), nullptr, lonely_warp_barrier),
               {"lonely_warp_barrier", "divergent warp barrier", "thread (9,0,0)"});
}

__global__ void barrier_for_others() { __syncwarp(0x0000FFFFU); }

TEST(Fault, WarpBarrierWithoutTheCaller) {
  expect_fault(device::launch(config_of("barrier_for_others"), nullptr, barrier_for_others),
               {"barrier_for_others", "thread (16,0,0)", "leaves out the calling lane"});
}

// Lane 0 waits for lane 1, which waits for lanes 0 and 2.
__global__ void different_masks() {
  if (threadIdx.x < 3) __syncwarp(threadIdx.x == 0 ? 0b011U : 0b111U);
}

TEST(Fault, WarpBarriersOfDifferentMasks) {
  expect_fault(device::launch(config_of("different_masks"), nullptr, different_masks),
               {"divergent warp barrier: this thread waits at", "thread (1,0,0) waits at",
                "for other lanes"});
}

__global__ void barrier_or_shuffle() {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    static_cast<void>(__shfl_sync(~0U, 1.0F, 0));
  }
}

TEST(Fault, WarpBarrierWhileOtherLanesShuffle) {
  expect_fault(device::launch(config_of("barrier_or_shuffle"), nullptr, barrier_or_shuffle),
               {"divergent warp barrier: this thread waits at", "thread (16,0,0) waits at"});
}

__global__ void load_at(const float* p) { static_cast<void>(device::load_vector<float4>(p)); }
__global__ void store_at(float* p) { device::store_vector(p, make_float2(0.0F, 0.0F)); }
__global__ void copy_from(const float* p) {
  device::copy_async<16>(&device::shared_storage<float[64]>()[0], p);
}

TEST(Fault, MisalignedVectors) {
  const DeviceArray<float> data(64);
  expect_fault(device::launch(config_of("load_at"), nullptr, load_at, data.data() + 2),
               {"load_at", "block 0", "thread (0,0,0)", "misaligned 128-bit load"});
  expect_fault(device::launch(config_of("store_at"), nullptr, store_at, data.data() + 1),
               {"store_at", "misaligned 64-bit store"});
  expect_fault(device::launch(config_of("copy_from"), nullptr, copy_from, data.data() + 3),
               {"copy_from", "misaligned 128-bit async copy"});
}

// Multiplies a tile of 64 rows of 32 bytes that begins at byte `start`, with these strides.
__global__ void multiply_tile_at(unsigned start, device::Swizzle swizzle, unsigned leading,
                                 unsigned stride) {
  auto* const bytes = reinterpret_cast<std::byte*>(&device::shared_storage<float[4096]>());
  const auto tile = device::matrix_descriptor(bytes + start, swizzle, leading, stride);
  const auto whole = device::matrix_descriptor(bytes, device::Swizzle::kNone, 128, 256);
  std::int32_t acc[32] = {};
  device::warpgroup_arrive();
  device::warpgroup_mma_s8<64>(acc, tile, whole);
  device::warpgroup_commit();
  device::warpgroup_wait<0>();
}

TEST(Fault, MisalignedDescriptors) {
  using enum device::Swizzle;
  const device::LaunchConfig config{
      .kernel = "multiply", .blocks = 1, .threads_x = 128, .shared_bytes = 4096 * sizeof(float)};
  const auto launch = [&](unsigned start, device::Swizzle swizzle, unsigned leading,
                          unsigned stride) {
    return device::launch(config, nullptr, multiply_tile_at, start, swizzle, leading, stride);
  };
  for (const auto& [start, leading, stride] :
       {std::array{8U, 128U, 256U}, {16U, 132U, 256U}, {16U, 128U, 260U}, {1U, 128U, 256U}}) {
    expect_fault(launch(start, kNone, leading, stride),
                 {"multiply", "thread (0,0,0)", "misaligned matrix_descriptor at", "fault_test.cpp",
                  "multiples of 16"});
  }
  // The 32 bytes of k cross a line of the swizzle.
  expect_fault(launch(16, k32Bytes, 16, 256), {"misaligned descriptor of a", "in one line"});
  expect_fault(launch(48, k64Bytes, 16, 512), {"misaligned descriptor of a", "in one line"});
  expect_fault(launch(112, k128Bytes, 16, 1024), {"misaligned descriptor of a", "in one line"});
  for (const unsigned start : {0U, 32U, 64U, 96U, 128U, 896U}) {
    EXPECT_TRUE(is_ok(launch(start, k128Bytes, 16, 1024)));
    EXPECT_TRUE(is_ok(launch(start, k64Bytes, 16, 512)));
    EXPECT_TRUE(is_ok(launch(start, k32Bytes, 16, 256)));
  }
}

__global__ void copy_box_to(const device::TensorMap* map, unsigned start, device::Barrier*) {
  auto& floats = device::shared_storage<float[4096]>();
  auto& barrier = *reinterpret_cast<device::Barrier*>(&floats[4000]);
  device::barrier_init(barrier, 1);
  device::barrier_init_fence();
  device::barrier_arrive_expect(barrier, 512);
  device::copy_tensor(reinterpret_cast<std::byte*>(&floats) + start, *map, 0, 0, barrier);
  device::barrier_wait(barrier, 0);
}

TEST(Fault, MisalignedBoxes) {
  const DeviceArray<float> data(32 * 4);
  device::TensorMap map;
  ASSERT_TRUE(is_ok(device::make_tensor_map({.data = data.data(),
                                             .size = {32, 4, 1},
                                             .stride_bytes = {0, 128},
                                             .box = {32, 4, 1},
                                             .swizzle = device::Swizzle::k128Bytes},
                                            &map)));
  const device::LaunchConfig config{
      .kernel = "copy_box", .blocks = 1, .threads_x = 1, .shared_bytes = 4096 * sizeof(float)};
  for (const unsigned start : {16U, 32U, 64U, 112U, 1088U}) {
    expect_fault(device::launch(config, nullptr, copy_box_to, &map, start, nullptr),
                 {"copy_box", "misaligned copy_tensor at", "it must be a multiple of 128"});
  }
  for (const unsigned start : {0U, 128U, 384U, 896U, 1024U}) {
    EXPECT_TRUE(is_ok(device::launch(config, nullptr, copy_box_to, &map, start, nullptr)));
  }
}

__global__ void write_to(volatile float* p) {
  if (blockIdx.x == 2 && threadIdx.x == 7 && threadIdx.y == 1) p[1] = 1.0F;
}

TEST(Fault, WildAccess) {
  volatile float* const wild = nullptr;
  expect_fault(device::launch(config_of("write_to"), nullptr, write_to, wild),
               {"write_to", "block 2", "thread (7,1,0)", "access outside every operand"});
}

// A guard page on each side of a buffer is not accessible.
TEST(Fault, AccessFarOutsideABuffer) {
  const DeviceArray<float> data(kThreads);
  for (const std::ptrdiff_t away : {std::ptrdiff_t{kThreads}, std::ptrdiff_t{-1025}}) {
    volatile float* const outside = data.data() + away;
    expect_fault(device::launch(config_of("write_to"), nullptr, write_to, outside),
                 {"write_to", "block 2", "thread (7,1,0)", "access outside every operand"});
  }
}

// Counts its live objects: after a fault the frames of waiting threads must be unwound.
struct Counted {
  static inline int alive = 0;
  Counted() { ++alive; }
  ~Counted() { --alive; }
};

__global__ void throw_while_others_wait() {
  const Counted counted;
  if (threadIdx.x == 31 && threadIdx.y == 1) throw std::runtime_error("thrown by a kernel");
  __syncthreads();
}

TEST(Fault, ExceptionsUnwindEveryThread) {
  expect_fault(
      device::launch(config_of("throw_while_others_wait"), nullptr, throw_while_others_wait),
      {"throw_while_others_wait", "block 0", "thread (31,1,0)", "thrown by a kernel"});
  EXPECT_EQ(Counted::alive, 0);
}

}  // namespace tilegate::fault_test
