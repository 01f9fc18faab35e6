// Copies of boxes of tensors and back, over all borders; on both devices.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device/async.cuh>

#include "simt/async_test.hpp"
#include "simt/device_array.hpp"

namespace tilegate::tensor_test {

constexpr unsigned kThreads = 64;
constexpr unsigned kBoxBytes = 2048;

struct SharedStorage {
  alignas(1024) std::uint32_t box[kBoxBytes / 4];
  device::Barrier full;
};

struct Place {
  int x, y, z;
};

// raw ← the box at `place`, as it lies in shared memory; `to` gets it at the same place, plus one
// in each word.
template <unsigned kDimensions>
__global__ void copy_box(const __grid_constant__ device::TensorMap from,
                         const __grid_constant__ device::TensorMap to, Place place,
                         std::uint32_t* raw) {
#if TILEGATE_TEST_ASYNC
  auto& shared = device::shared_storage<SharedStorage>();
  if (threadIdx.x == 0) {
    device::barrier_init(shared.full, 1);
    device::barrier_init_fence();
    device::barrier_arrive_expect(shared.full, kBoxBytes);
    if constexpr (kDimensions == 2) {
      device::copy_tensor(shared.box, from, place.x, place.y, shared.full);
    } else {
      device::copy_tensor(shared.box, from, place.x, place.y, place.z, shared.full);
    }
  }
  __syncthreads();  // the barrier is made
  device::barrier_wait(shared.full, 0);
  for (unsigned i = threadIdx.x; i < kBoxBytes / 4; i += kThreads) {
    raw[i] = shared.box[i]++;
  }
  device::fence_async_proxy();
  __syncthreads();  // all have stored
  if (threadIdx.x == 0) {
    if constexpr (kDimensions == 2) {
      device::store_tensor(to, place.x, place.y, shared.box);
    } else {
      device::store_tensor(to, place.x, place.y, place.z, shared.box);
    }
    device::store_commit();
    device::store_wait<0>();
  }
#endif
}

// A tensor of words that count from 0 on, rows `pitch` words apart.
struct Tensor {
  unsigned columns, rows, matrices, pitch;
  DeviceArray<std::uint32_t> words;

  Tensor(unsigned n, unsigned m, unsigned k, unsigned p)
      : columns(n), rows(m), matrices(k), pitch(p), words(count_up(p * m * k)) {}

  static std::vector<std::uint32_t> count_up(unsigned count) {
    std::vector<std::uint32_t> values(count);
    for (unsigned i = 0; i < count; ++i) values[i] = i;
    return values;
  }

  // The number of an element; no element: -1.
  std::int64_t at(int x, int y, int z) const {
    const bool inside = x >= 0 && x < static_cast<int>(columns) && y >= 0 &&
                        y < static_cast<int>(rows) && z >= 0 && z < static_cast<int>(matrices);
    return inside ? (std::int64_t{z} * rows + y) * pitch + x : -1;
  }

  device::TensorLayout layout(unsigned dimensions, std::array<unsigned, 3> box,
                              device::Swizzle swizzle) const {
    return {.data = words.data(),
            .element_bytes = 4,
            .dimensions = dimensions,
            .size = {columns, rows, matrices},
            .stride_bytes = {0, pitch * 4U, std::uint64_t{pitch} * 4 * rows},
            .box = box,
            .swizzle = swizzle};
  }
};

template <unsigned kDimensions>
void expect_copies(std::array<unsigned, 3> box, device::Swizzle swizzle, Place place) {
  if (kDimensions == 2) place.z = 0;
  const Tensor from(37, 21, kDimensions == 3 ? 5 : 1, 40);
  const Tensor to(37, 21, kDimensions == 3 ? 5 : 1, 40);
  device::TensorMap maps[2];
  ASSERT_TRUE(is_ok(device::make_tensor_map(from.layout(kDimensions, box, swizzle), &maps[0])));
  ASSERT_TRUE(is_ok(device::make_tensor_map(to.layout(kDimensions, box, swizzle), &maps[1])));
  const DeviceArray<std::uint32_t> raw(kBoxBytes / 4);
  const device::LaunchConfig config{.kernel = "copy_box",
                                    .blocks = 1,
                                    .threads_x = kThreads,
                                    .shared_bytes = sizeof(SharedStorage)};
  ASSERT_TRUE(is_ok(
      device::launch(config, nullptr, copy_box<kDimensions>, maps[0], maps[1], place, raw.data())));
  std::vector<std::uint32_t> expected_raw(kBoxBytes / 4);
  std::vector<std::uint32_t> expected_to = Tensor::count_up(to.pitch * to.rows * to.matrices);
  for (unsigned i = 0; i < kBoxBytes / 4; ++i) {
    const unsigned row = i / box[0];
    const auto element =
        from.at(place.x + static_cast<int>(i % box[0]), place.y + static_cast<int>(row % box[1]),
                place.z + static_cast<int>(row / box[1]));
    const unsigned line = i * 4 % 1024 / 128;  // of 8 in the pattern of a swizzle
    const unsigned in_shared = i ^ (line % (width_of(swizzle) / 16)) << 2;
    if (element >= 0) {
      expected_raw[in_shared] = static_cast<std::uint32_t>(element);
      expected_to[static_cast<std::size_t>(element)] = static_cast<std::uint32_t>(element) + 1;
    }
  }
  EXPECT_EQ(raw.to_host(), expected_raw);
  EXPECT_EQ(to.words.to_host(), expected_to);
}

// Inside, over each border, and far outside.
constexpr Place kPlaces[] = {{0, 0, 0},   {5, 3, 1},   {-3, 2, -1},
                             {30, -5, 0}, {33, 18, 4}, {90, 0, 2}};

// Copies of boxes end on an H200 with an illegal instruction; why is not known yet.
bool is_broken_here() { return device::current().is_cuda; }

TEST_F(Async, CopiesBoxesOfMatrices) {
  if (is_broken_here()) GTEST_SKIP() << "copies of boxes are not right on a GPU yet";
  for (const Place place : kPlaces) {
    for_each_schedule([&] {
      expect_copies<2>({64, 8, 1}, device::Swizzle::kNone, place);
      expect_copies<2>({4, 128, 1}, device::Swizzle::kNone, place);
      expect_copies<2>({8, 64, 1}, device::Swizzle::k32Bytes, place);
      expect_copies<2>({16, 32, 1}, device::Swizzle::k64Bytes, place);
      expect_copies<2>({32, 16, 1}, device::Swizzle::k128Bytes, place);
    });
  }
}

TEST_F(Async, CopiesBoxesOfThreeDimensions) {
  if (is_broken_here()) GTEST_SKIP() << "copies of boxes are not right on a GPU yet";
  for (const Place place : kPlaces) {
    for_each_schedule([&] {
      expect_copies<3>({12 + 4, 8, 4}, device::Swizzle::kNone, place);
      expect_copies<3>({32, 4, 4}, device::Swizzle::k128Bytes, place);
    });
  }
}

TEST(TensorMap, RefusesWhatTheHardwareCannotCopy) {
  const Tensor tensor(37, 21, 5, 40);
  const auto refusal = [&](auto change) {
    device::TensorLayout layout = tensor.layout(3, {32, 4, 4}, device::Swizzle::k128Bytes);
    change(layout);
    device::TensorMap map;
    return device::make_tensor_map(layout, &map).message();
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  const auto expect = [&](const char* words, auto change) {
    EXPECT_NE(refusal(change).find(words), std::string::npos) << refusal(change);
  };
  expect("2 or 3 dimensions", [](auto& layout) { layout.dimensions = 1; });
  expect("elements are of 1, 2 or 4 bytes", [](auto& layout) { layout.element_bytes = 8; });
  expect("address of its data",
         [](auto& layout) { layout.data = static_cast<std::byte*>(layout.data) + 4; });
  expect("sizes are from 1 to 2^32", [](auto& layout) { layout.size[2] = 0; });
  expect("1 to 256 wide", [](auto& layout) { layout.box[1] = 257; });
  expect("strides are multiples of 16", [](auto& layout) { layout.stride_bytes[1] = 152; });
  expect("multiple of 16 bytes", [](auto& layout) { layout.box[0] = 3; });
  expect("as wide as its swizzle, 128 bytes", [](auto& layout) { layout.box[0] = 16; });
}

}  // namespace tilegate::tensor_test
