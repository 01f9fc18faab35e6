// Tensor copies in both directions, across all borders. On both devices.
#include <algorithm>
#include <array>
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

  Place operator+(const Place& more) const { return {x + more.x, y + more.y, z + more.z}; }
};

// raw ← the box at `place`, in its layout in shared memory. Adds one to each word and stores the
// box at `store` in `to`.
template <unsigned kDimensions>
__global__ void copy_box(const __grid_constant__ device::TensorMap from,
                         const __grid_constant__ device::TensorMap to, Place place, Place store,
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
  for (unsigned i = threadIdx.x; i < kBoxBytes / 4; i += kThreads) raw[i] = shared.box[i]++;
  device::fence_async_proxy();
  __syncthreads();  // all have stored
  if (threadIdx.x == 0) {
    if constexpr (kDimensions == 2) {
      device::store_tensor(to, store.x, store.y, shared.box);
    } else {
      device::store_tensor(to, store.x, store.y, store.z, shared.box);
    }
    device::store_commit();
    device::store_wait<0>();
  }
#endif
}

constexpr device::LaunchConfig kConfig{.kernel = "copy_box",
                                       .blocks = 1,
                                       .threads_x = kThreads,
                                       .shared_bytes = sizeof(SharedStorage)};

// A tensor of the words 0, 1, 2, … with rows `pitch` words apart.
struct Tensor {
  unsigned columns, rows, matrices, pitch;
  DeviceArray<std::uint32_t> words{count_up(pitch * rows * matrices)};

  static std::vector<std::uint32_t> count_up(unsigned count) {
    std::vector<std::uint32_t> values(count);
    for (unsigned i = 0; i < count; ++i) values[i] = i;
    return values;
  }

  // Columns that a store writes: whole pieces of 16 bytes, so also some of the padding.
  unsigned stored_columns() const { return (columns + 3) / 4 * 4; }

  // Index of an element before column `end`, or -1 outside of the tensor.
  std::int64_t at(const Place& p, unsigned end) const {
    const auto is_in = [](int i, unsigned size) { return i >= 0 && i < static_cast<int>(size); };
    const bool inside = is_in(p.x, end) && is_in(p.y, rows) && is_in(p.z, matrices);
    return inside ? (std::int64_t{p.z} * rows + p.y) * pitch + p.x : -1;
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
  const Place store = {std::max(place.x, 0), std::max(place.y, 0), std::max(place.z, 0)};
  const Tensor from{37, 21, kDimensions == 3 ? 5 : 1, 40};
  const Tensor to{37, 21, kDimensions == 3 ? 5 : 1, 40};
  device::TensorMap maps[2];
  ASSERT_TRUE(is_ok(device::make_tensor_map(from.layout(kDimensions, box, swizzle), &maps[0])));
  ASSERT_TRUE(is_ok(device::make_tensor_map(to.layout(kDimensions, box, swizzle), &maps[1])));
  const DeviceArray<std::uint32_t> raw(kBoxBytes / 4);
  ASSERT_TRUE(is_ok(device::launch(kConfig, nullptr, copy_box<kDimensions>, maps[0], maps[1], place,
                                   store, raw.data())));
  std::vector<std::uint32_t> expected_raw(kBoxBytes / 4);
  std::vector<std::uint32_t> expected_to = Tensor::count_up(to.pitch * to.rows * to.matrices);
  for (unsigned i = 0; i < kBoxBytes / 4; ++i) {
    const unsigned row = i / box[0];
    const Place at = {static_cast<int>(i % box[0]), static_cast<int>(row % box[1]),
                      static_cast<int>(row / box[1])};
    const unsigned line = i * 4 % 1024 / 128;  // of the 8 lines of a swizzle's period
    const unsigned in_shared = i ^ (line % (width_of(swizzle) / 16)) << 2;
    const auto from_element = from.at(place + at, from.columns);
    const auto to_element = to.at(store + at, to.stored_columns());
    const auto value = static_cast<std::uint32_t>(std::max<std::int64_t>(from_element, 0));
    expected_raw[in_shared] = value;
    if (to_element >= 0) expected_to[static_cast<std::size_t>(to_element)] = value + 1;
  }
  EXPECT_EQ(raw.to_host(), expected_raw);
  EXPECT_EQ(to.words.to_host(), expected_to);
}

// Inside, across each border, and far outside. Columns are multiples of 16 bytes. Stores cannot
// begin at negative coordinates.
constexpr Place kPlaces[] = {{0, 0, 0},   {4, 3, 1},   {-4, 2, -1},
                             {28, -5, 0}, {32, 18, 4}, {88, 0, 2}};

TEST_F(Async, TmaLoadsBoxesOfMatrices) {
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

TEST_F(Async, TmaLoadsBoxesOfThreeDimensions) {
  for (const Place place : kPlaces) {
    for_each_schedule([&] {
      expect_copies<3>({16, 8, 4}, device::Swizzle::kNone, place);
      expect_copies<3>({32, 4, 4}, device::Swizzle::k128Bytes, place);
    });
  }
}

TEST(TensorMap, RejectsWhatTheHardwareCannotCopy) {
  const Tensor tensor{37, 21, 5, 40};
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
  expect("elements have 1, 2 or 4 bytes", [](auto& layout) { layout.element_bytes = 8; });
  expect("address of its data",
         [](auto& layout) { layout.data = static_cast<std::byte*>(layout.data) + 4; });
  expect("sizes are from 1 to 2^32", [](auto& layout) { layout.size[2] = 0; });
  expect("1 to 256 wide", [](auto& layout) { layout.box[1] = 257; });
  expect("strides are multiples of 16", [](auto& layout) { layout.stride_bytes[1] = 152; });
  expect("multiple of 16 bytes", [](auto& layout) { layout.box[0] = 3; });
  expect("as wide as its swizzle, 128 bytes", [](auto& layout) { layout.box[0] = 16; });
  expect("the L2 promotion is 64, 128 or 256 bytes",
         [](auto& layout) { layout.l2_promotion_bytes = 32; });
}

// A plan makes the map before it knows the operands.
TEST_F(Async, TensorMapMayMove) {
  const Tensor from{32, 16, 1, 32}, to{32, 16, 1, 32};
  device::TensorLayout layout = from.layout(2, {32, 16, 1}, device::Swizzle::kNone);
  layout.data = reinterpret_cast<void*>(16);
  device::TensorMap moved, map_to;
  ASSERT_TRUE(is_ok(device::make_tensor_map(layout, &moved)));
  EXPECT_EQ(device::set_tensor_data(from.words.data() + 1, &moved).message(),
            "the address of its data must be a multiple of 16");
  ASSERT_TRUE(is_ok(device::set_tensor_data(from.words.data(), &moved)));
  layout.data = to.words.data();
  ASSERT_TRUE(is_ok(device::make_tensor_map(layout, &map_to)));
  const DeviceArray<std::uint32_t> raw(kBoxBytes / 4);
  ASSERT_TRUE(is_ok(device::launch(kConfig, nullptr, copy_box<2>, moved, map_to, Place{0, 0, 0},
                                   Place{0, 0, 0}, raw.data())));
  EXPECT_EQ(raw.to_host(), Tensor::count_up(kBoxBytes / 4));
}

}  // namespace tilegate::tensor_test
