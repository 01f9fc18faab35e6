// The models themselves: they share nothing with the kernels, and their FP32 is the processor's.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/float32.hpp"
#include "models/fp16x3.hpp"
#include "models/int8x3.hpp"
#include "models/layout.hpp"

namespace tilegate::models {
namespace {

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(Models, IncludeOnlyTheStandardLibrary) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(TILEGATE_SOURCE_DIR "/tests/models")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".txt") || name.find("_test.") != std::string::npos) continue;
    ++files;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line.find("#") == std::string::npos || line.find("include") == std::string::npos)
        continue;
      const bool is_standard =
          line.starts_with("#include <") && line.find_first_of("/.") == std::string::npos;
      EXPECT_TRUE(is_standard || line.starts_with("#include \"models/")) << name << ": " << line;
    }
  }
  EXPECT_EQ(files, 11);
}

// Random bits, half of the exponents near those of `beside`, and the ends of the range.
float random_float(std::mt19937_64& random, float beside) {
  const auto all = static_cast<std::uint32_t>(random());
  const std::uint32_t field = bits(beside) >> 23 & 0xFF;
  switch (random() % 8) {
    case 0:
      return std::bit_cast<float>(all & 0x807FFFFF);  // subnormal
    case 1:
      return std::bit_cast<float>((all & 0x807FFFFF) | 0x7F000000);
    case 2:
    case 3:
    case 4:
      return std::bit_cast<float>((all & 0x807FF00F) | ((field + all % 52 + 230) % 255) << 23);
    case 5:
      return std::bit_cast<float>(all & 0x80000000);  // zero
    default:
      return std::bit_cast<float>((all & 0x807FFFFF) | (all >> 8) % 255 << 23);
  }
}

TEST(Float32, MatchesTheProcessor) {
  std::mt19937_64 random(1);
  float a = 1.0F;
  for (int turn = 0; turn < 300000; ++turn) {
    const float b = random_float(random, a);
    ASSERT_EQ(bits(add(a, b)), bits(a + b)) << a << " + " << b;
    ASSERT_EQ(bits(multiply(a, b)), bits(a * b)) << a << " * " << b;
    if (b != 0.0F) {
      ASSERT_EQ(bits(divide(a, b)), bits(a / b)) << a << " / " << b;
    }
    if (std::fabs(a) < 0x1p31F) {
      ASSERT_EQ(nearest_integer(a), std::lrint(a)) << a;
    }
    const auto integer = static_cast<std::int32_t>(random());
    ASSERT_EQ(bits(of_integer(integer)), bits(static_cast<float>(integer))) << integer;
    a = b;
  }
}

TEST(Float32, RoundsTiesToEven) {
  EXPECT_EQ(nearest_integer(0.5F), 0);
  EXPECT_EQ(nearest_integer(1.5F), 2);
  EXPECT_EQ(nearest_integer(-2.5F), -2);
  EXPECT_EQ(nearest_integer(-3.5F), -4);
  EXPECT_EQ(of_integer((1 << 24) + 1), 0x1p24F);
  EXPECT_EQ(of_integer(-(1 << 24) - 3), -0x1p24F - 4.0F);
  EXPECT_EQ(of_integer((std::int64_t{1} << 25) + 3), 0x1p25F + 4.0F);
}

// Each chunk of each tile once; the block with the last chunk adds what each block with another
// chunk of the tile has left, all of them before it without a gap.
TEST(StreamKModel, CoversEachTileOnce) {
  for (const std::int64_t chunks : {4, 16, 17, 33, 128, 1361}) {
    for (const std::int64_t clusters : {1, 2, 7, 66, 132}) {
      for (std::int64_t tiles = 1; tiles <= 3 * clusters + 1; tiles += 1 + tiles / 4) {
        if (clusters > tiles * std::clamp<std::int64_t>(chunks / 16, 1, 8)) continue;
        const std::int64_t least = tiles % 2 == 0 ? 4 : 1;  // chunks of digits, k tiles of FP64
        const auto all = work_of_clusters(tiles, clusters, chunks, least);
        std::vector<std::int64_t> covered(static_cast<std::size_t>(tiles)),
            left(static_cast<std::size_t>(tiles));
        for (std::int64_t cluster = 0; cluster < clusters; ++cluster) {
          const auto& works = all[static_cast<std::size_t>(cluster)];
          ASSERT_FALSE(works.empty());
          for (const StreamKWork& work : works) {
            const auto tile = static_cast<std::size_t>(work.tile);
            ASSERT_LT(work.first, work.end);
            ASSERT_EQ(work.first, covered[tile]) << "earlier clusters have what is before";
            ASSERT_EQ(work.is_stored, work.end == chunks);
            if (work.is_stored) {
              ASSERT_EQ(work.partials, left[tile]);
            } else {
              ASSERT_EQ(&work, &works[works.size() > 1 && tiles > clusters
                                          ? static_cast<std::size_t>(tiles / clusters - 1)
                                          : 0])
                  << "the first that is not a whole tile in turn";
            }
            covered[tile] = work.end;
            ++left[tile];
          }
        }
        for (const std::int64_t end : covered) ASSERT_EQ(end, chunks);
      }
    }
  }
}

TEST(LayoutModel, IsABijection) {
  for (const std::int64_t rows : {1, 130}) {
    for (const std::int64_t k : {1, 33, 64}) {
      std::vector<int> of_digits(static_cast<std::size_t>(bytes_of_digits(rows, k, 2)));
      std::vector<int> of_halves(static_cast<std::size_t>(bytes_of_fp16_planes(rows, k, 2)));
      for (std::int64_t product = 0; product < 2; ++product) {
        for (std::int64_t row = 0; row < whole_chunks(rows); ++row) {
          for (std::int64_t i = 0; i < (k + 31) / 32 * 32; ++i) {
            for (int plane = 0; plane < 3; ++plane) {
              ++of_digits[static_cast<std::size_t>(
                  offset_of_digit(rows, k, product, row, i, plane))];
              if (plane == 2) continue;
              const std::int64_t half = offset_of_fp16(rows, k, product, row, i, plane);
              ++of_halves[static_cast<std::size_t>(half)];
              ++of_halves[static_cast<std::size_t>(half) + 1];
            }
          }
        }
      }
      EXPECT_EQ(std::count(of_digits.begin(), of_digits.end(), 1), std::ssize(of_digits));
      EXPECT_EQ(std::count(of_halves.begin(), of_halves.end(), 1), std::ssize(of_halves));
    }
  }
}

TEST(LayoutModel, SwizzlesAsDocumented) {
  EXPECT_EQ(swizzled(128 + 16, 32), 128);
  EXPECT_EQ(swizzled(3 * 128 + 16, 64), 3 * 128 + 32);
  EXPECT_EQ(swizzled(13 * 128 + 7, 128), 13 * 128 + 5 * 16 + 7);
  EXPECT_EQ(swizzled(8 * 128 + 16, 128), 8 * 128 + 16);
}

TEST(Int8x3Model, DigitsSumToTheInteger) {
  for (const std::int32_t x :
       {0, 127, 128, 255, 256, -128, -129, 32639, 32640, -32896, -32897, 0x7F7F7F, -0x7F7F7F}) {
    const auto [hi, mid, lo] = int8x3::digits(x);
    EXPECT_EQ(hi * 65536 + mid * 256 + lo, x);
    for (const int digit : {hi, mid, lo}) {
      EXPECT_GE(digit, -128) << x;
      EXPECT_LE(digit, 127) << x;
    }
  }
}

TEST(Fp16x3Model, HalvesMatchIeee754) {
  using fp16x3::to_fp16;
  EXPECT_EQ(to_fp16(1.0F), 0x3C00);
  EXPECT_EQ(to_fp16(-1.5F), 0xBE00);
  EXPECT_EQ(to_fp16(1.0F + 0x1p-11F), 0x3C00) << "to the even one of two";
  EXPECT_EQ(to_fp16(1.0F + 0x3p-11F), 0x3C02);
  EXPECT_EQ(to_fp16(1.0F + 0x1.002p-11F), 0x3C01);
  EXPECT_EQ(to_fp16(0x1.FFFp-15F), 0x0400) << "from subnormal to normal";
  EXPECT_EQ(to_fp16(0x1p-25F), 0x0000);
  EXPECT_EQ(to_fp16(0x3p-25F), 0x0002);
  EXPECT_EQ(to_fp16(-0x1.8p-25F), 0x8001);
  EXPECT_EQ(to_fp16(32752.0F), 0x77FF);
  EXPECT_EQ(to_fp16(65504.0F), 0x7BFF);
  EXPECT_EQ(to_fp16(-0.0F), 0x8000);
}

}  // namespace
}  // namespace tilegate::models
