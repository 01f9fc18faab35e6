// Tiles that begin anywhere in the pattern of their swizzle: what this build's device makes of
// them, be it a GPU or the executor, is what PTX says, byte for byte.
#include "starts.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "simt/async_test.hpp"
#include "simt/device_array.hpp"
#include "swizzle.hpp"

namespace tilegate::async_model {
namespace {

class SwizzleStarts : public Async {};

constexpr device::Swizzle kSwizzles[] = {device::Swizzle::k32Bytes, device::Swizzle::k64Bytes,
                                         device::Swizzle::k128Bytes};

TEST_F(SwizzleStarts, OfCopiedBoxes) {
  const Bytes before = shared_before(false);
  for (const device::Swizzle swizzle : kSwizzles) {
    const unsigned width = width_of(swizzle);
    Bytes box(std::size_t{width} * kBoxRows);
    for (std::size_t i = 0; i < box.size(); ++i)
      box[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    std::vector<Bytes> found;
    ASSERT_TRUE(is_ok(copy_to_starts(swizzle, box, &found)));
    ASSERT_EQ(found.size(), kBoxStarts);
    for (unsigned i = 0; i < kBoxStarts; ++i) {
      EXPECT_TRUE(found[i] == ptx::with_box(before, box, {width, kBoxStep * i}))
          << "swizzle of " << width << " bytes, start " << kBoxStep * i;
    }
  }
}

TEST_F(SwizzleStarts, OfStoredBoxes) {
  const Bytes before = shared_before(false);
  for (const device::Swizzle swizzle : kSwizzles) {
    const unsigned width = width_of(swizzle);
    std::vector<Bytes> found;
    ASSERT_TRUE(is_ok(store_from_starts(swizzle, &found)));
    ASSERT_EQ(found.size(), kBoxStarts);
    for (unsigned i = 0; i < kBoxStarts; ++i) {
      EXPECT_TRUE(found[i] ==
                  ptx::box_from(before, std::size_t{width} * kBoxRows, {width, kBoxStep * i}))
          << "swizzle of " << width << " bytes, start " << kBoxStep * i;
    }
  }
}

TEST_F(SwizzleStarts, OfKMajorTiles) {
  const Bytes before = shared_before(false);
  for (const device::Swizzle swizzle : kSwizzles) {
    const unsigned width = width_of(swizzle);
    std::vector<std::vector<std::int32_t>> found;
    ASSERT_TRUE(is_ok(multiply_at_starts(swizzle, &found)));
    ASSERT_EQ(found.size(), kTileStarts);
    for (unsigned i = 0; i < kTileStarts; ++i) {
      const ptx::Start a{width, kTileStep * i};
      const ptx::Start b{width, kStartOfB + kTileStep * number_of_b(i, kTileStarts)};
      std::vector<std::int32_t> expected;
      for (unsigned row = 0; row < kTileRows; ++row) {
        for (unsigned col = 0; col < kTileRows; ++col) {
          std::int32_t sum = 0;
          for (unsigned k = 0; k < 32; ++k) {
            sum += static_cast<std::int8_t>(ptx::byte_along_k(before, a, row, k)) *
                   static_cast<std::int8_t>(ptx::byte_along_k(before, b, col, k));
          }
          expected.push_back(sum);
        }
      }
      EXPECT_TRUE(found[i] == expected)
          << "swizzle of " << width << " bytes, starts " << a.start << " and " << b.start;
    }
  }
}

// Of FP16 whose exponent is that of 1 or 2, or which is zero.
float value_of(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7FFF;
  const std::uint32_t bits =
      (magnitude == 0 ? 0 : ((magnitude >> 10) + 112) << 23 | (magnitude & 0x3FF) << 13) |
      static_cast<std::uint32_t>(half & 0x8000) << 16;
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST_F(SwizzleStarts, OfMnMajorTiles) {
  const Bytes before = shared_before(true);
  for (const device::Swizzle swizzle : kSwizzles) {
    const unsigned width = width_of(swizzle);
    std::vector<std::vector<float>> found;
    ASSERT_TRUE(is_ok(multiply_lines_at_starts(swizzle, &found)));
    ASSERT_EQ(found.size(), kLineStarts);
    for (unsigned i = 0; i < kLineStarts; ++i) {
      const ptx::Start a{width, kLineStep * i};
      const ptx::Start b{width, kStartOfB + kLineStep * number_of_b(i, kLineStarts)};
      std::vector<float> expected;
      for (unsigned row = 0; row < kTileRows; ++row) {
        for (unsigned col = 0; col < kTileRows; ++col) {
          float sum = 0.0F;
          for (unsigned k = 0; k < 16; ++k) {
            sum += value_of(ptx::element_along_rows(before, a, row, k)) *
                   value_of(ptx::element_along_rows(before, b, col, k));
          }
          expected.push_back(sum);
        }
      }
      EXPECT_TRUE(found[i] == expected)
          << "swizzle of " << width << " bytes, starts " << a.start << " and " << b.start;
    }
  }
}

}  // namespace
}  // namespace tilegate::async_model
