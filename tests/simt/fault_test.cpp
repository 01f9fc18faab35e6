// What ends a launch with an error, how the error names the culprit, and that the next launch runs.
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/device.cuh>

#include "simt/device_array.hpp"

namespace tilegate::fault_test {

constexpr unsigned kThreads = 64;

device::LaunchConfig config_of(const char* kernel, std::int64_t blocks = 3) {
  return {.kernel = kernel, .blocks = blocks, .threads_x = 32, .threads_y = 2, .shared_bytes = 256};
}

__global__ void write_ones(float* out) { out[threadIdx.x + 32 * threadIdx.y] = 1.0F; }

// The device is as good as new.
void expect_next_launch_runs() {
  const DeviceArray<float> out(kThreads);
  ASSERT_TRUE(is_ok(device::launch(config_of("write_ones", 1), nullptr, write_ones, out.data())));
  EXPECT_EQ(out.to_host(), std::vector<float>(kThreads, 1.0F));
}

void expect_fault(const Status& status, const std::vector<std::string>& words) {
  EXPECT_EQ(status.code(), Status::Code::kDeviceError);
  for (const std::string& word : words) {
    EXPECT_NE(status.message().find(word), std::string::npos)
        << "no \"" << word << "\" in: " << status.message();
  }
  expect_next_launch_runs();
}

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

// On one line of two files.
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

__global__ void write_to(volatile float* p) {
  if (blockIdx.x == 2 && threadIdx.x == 7 && threadIdx.y == 1) p[1] = 1.0F;
}

TEST(Fault, WildAccess) {
  volatile float* const wild = nullptr;
  expect_fault(device::launch(config_of("write_to"), nullptr, write_to, wild),
               {"write_to", "block 2", "thread (7,1,0)", "access outside every operand"});
}

// A page on each side of a buffer is no memory at all.
TEST(Fault, AccessFarOutsideABuffer) {
  const DeviceArray<float> data(kThreads);
  for (const std::ptrdiff_t away : {std::ptrdiff_t{kThreads}, std::ptrdiff_t{-1025}}) {
    volatile float* const outside = data.data() + away;
    expect_fault(device::launch(config_of("write_to"), nullptr, write_to, outside),
                 {"write_to", "block 2", "thread (7,1,0)", "access outside every operand"});
  }
}

// Counts the live objects of its kind: a fault must not leave the frames of waiting threads behind.
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

TEST(Fault, ExceptionUnwindsEveryThread) {
  expect_fault(
      device::launch(config_of("throw_while_others_wait"), nullptr, throw_while_others_wait),
      {"throw_while_others_wait", "block 0", "thread (31,1,0)", "thrown by a kernel"});
  EXPECT_EQ(Counted::alive, 0);
}

struct TooLarge {
  float values[65];
};
__global__ void take_too_much() { device::shared_storage<TooLarge>().values[0] = 1.0F; }

TEST(Launch, SharedStorageLargerThanLaunchedWith) {
  expect_fault(device::launch(config_of("take_too_much"), nullptr, take_too_much),
               {"take_too_much", "needs 260 bytes of shared memory, launched with 256"});
}

__global__ void nothing() {}
__global__ void launch_from_inside(Status* status) {
  *status = device::launch(config_of("nothing"), nullptr, nothing);
}

TEST(Launch, FromInsideAKernelIsRefused) {
  Status status;
  ASSERT_TRUE(
      is_ok(device::launch(config_of("launch_from_inside"), nullptr, launch_from_inside, &status)));
  expect_fault(status, {"nothing", "from inside a kernel"});
}

TEST(Launch, BeyondTheLimitsIsRefused) {
  const auto launch_with = [](auto change) {
    device::LaunchConfig config = config_of("nothing");
    change(config);
    return device::launch(config, nullptr, nothing);
  };
  EXPECT_TRUE(is_ok(launch_with([](auto& c) { c.threads_y = 32; })));
  expect_fault(launch_with([](auto& c) { c.threads_y = 33; }), {"nothing", "1056 threads"});
  expect_fault(launch_with([](auto& c) { c.threads_x = 0; }), {"0 threads"});
  expect_fault(launch_with([](auto& c) { c.blocks = 0; }), {"0 blocks"});
  expect_fault(launch_with([](auto& c) { c.blocks = std::int64_t{1} << 31; }), {"blocks"});
  EXPECT_TRUE(is_ok(launch_with([](auto& c) { c.shared_bytes = 227 * 1024; })));
  expect_fault(launch_with([](auto& c) { c.shared_bytes = 227 * 1024 + 1; }), {"shared memory"});
  expect_fault(launch_with([](auto& c) { c.cluster = 2; }), {"invalid clusters of 2 blocks"});
  expect_fault(launch_with([](auto& c) { c.cluster = 0; }), {"invalid clusters of 0 blocks"});
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasAddressSanitizer = true;
#else
constexpr bool kHasAddressSanitizer = false;
#endif

class Sanitizer : public testing::Test {
 protected:
  void SetUp() override {
    if (!kHasAddressSanitizer) GTEST_SKIP() << "only in the asan preset";
  }
};

__global__ void read_one(const volatile float* p, std::int64_t index, float* out) {
  if (blockIdx.x == 1 && threadIdx.x == 3 && threadIdx.y == 1) out[0] = p[index];
}

TEST_F(Sanitizer, CatchesOneElementOutside) {
  const DeviceArray<float> data(100);
  const DeviceArray<float> out(1);
  const auto read = [&](std::int64_t index) {
    return device::launch(config_of("read_one"), nullptr, read_one, data.data(), index, out.data());
  };
  EXPECT_TRUE(is_ok(read(0)));
  EXPECT_TRUE(is_ok(read(99)));
  expect_fault(read(100), {"read_one", "block 1", "thread (3,1,0)", "access outside"});
  expect_fault(read(-1), {"read_one", "block 1", "thread (3,1,0)", "access outside"});
  EXPECT_TRUE(is_ok(read(99))) << "the same access as before";
  expect_fault(read(100), {"read_one"});  // at the same place in the code as before
}

TEST_F(Sanitizer, CatchesAccessToClosedMemory) {
  const DeviceArray<float> data(100);
  const DeviceArray<float> out(1);
  const auto read = [&] {
    return device::launch(config_of("read_one"), nullptr, read_one, data.data(), 50, out.data());
  };
  device::set_accessible(data.data() + 50, 8, false);
  expect_fault(read(), {"read_one", "thread (3,1,0)", "access outside"});
  device::set_accessible(data.data() + 50, 8, true);
  EXPECT_TRUE(is_ok(read()));
}

__global__ void overflow(int by, int* out) { out[0] = 2147483647 + by; }

TEST_F(Sanitizer, CatchesUndefinedBehaviour) {
  const DeviceArray<int> out(1);
  expect_fault(device::launch(config_of("overflow"), nullptr, overflow, 1, out.data()),
               {"overflow", "undefined behaviour"});
}

}  // namespace tilegate::fault_test
