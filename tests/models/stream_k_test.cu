// StreamK on the executor: the work of each block, where its partial sum lies, and the order in
// which partial sums are added.
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "14_stream_k/stream_k.cuh"
#include "models/float32.hpp"
#include "models/layout.hpp"
#include "simt/device_array.hpp"
#include "split_call.hpp"

namespace tilegate::stream_k {
namespace {

using Config = InterleavedTiles<interleaved::Tiles64x128x32s4>;

constexpr std::int64_t kGroup = 8;  // rows of tiles

struct Grid {
  std::int64_t batch, rows, cols;  // tiles

  std::vector<models::Tile> tiles() const {
    return models::tiles_in_order(batch, rows, cols, kGroup);
  }
  TailSplit split(std::int64_t head, std::int64_t k_splits) const {
    return {.scheduler = interleaved::scheduler_of<Config>(
                {rows * Config::kBlockM, cols * Config::kBlockN, 1}),
            .head = static_cast<unsigned>(head),
            .tail = static_cast<unsigned>(batch * rows * cols - head),
            .k_splits = static_cast<unsigned>(k_splits)};
  }
};

__global__ void list_work(TailSplit split, std::int64_t k, unsigned count, std::int64_t* numbers) {
  KernelArgs args;
  args.workspace = numbers;
  for (unsigned block = 0; block < count; ++block, numbers += 6) {
    const TileCoord tile = split.scheduler.tile(split.tile_index(block));
    const interleaved::KTiles<Config> k_tiles = split.k_tiles<Config>(block, k);
    const float* to = target<Config>(args, tile, split, block).c;
    const std::int64_t all[] = {
        tile.batch_index,
        tile.row,
        tile.col,
        k_tiles.begin,
        k_tiles.end,
        split.is_partial(block)
            ? (to - static_cast<const float*>(args.workspace)) / kTileWords<Config>
            : -1};
    for (int i = 0; i < 6; ++i) numbers[i] = all[i];
  }
}

void expect_work(const Grid& grid, std::int64_t head, std::int64_t k_splits, std::int64_t k_tiles) {
  const std::vector<models::TailWork> expected =
      models::tail_work_in_order(grid.tiles(), head, k_splits, k_tiles);
  const DeviceArray<std::int64_t> numbers(6 * expected.size());
  const std::int64_t k = k_tiles * Config::kBlockK - 5;
  ASSERT_TRUE(is_ok(device::launch({.kernel = "list work", .blocks = 1, .threads_x = 1}, nullptr,
                                   list_work, grid.split(head, k_splits), k,
                                   static_cast<unsigned>(expected.size()), numbers.data())));
  const std::vector<std::int64_t> found = numbers.to_host();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int64_t* n = &found[6 * i];
    ASSERT_TRUE((models::TailWork{{n[0], n[1], n[2]}, n[3], n[4], n[5]} == expected[i]))
        << "block " << i << ", " << k_splits << " splits of " << k_tiles << " k tiles";
  }
}

// k tiles that the splits divide, and others; no whole tiles, and some in a batch.
TEST(StreamKTail, MatchesModel) {
  for (std::int64_t splits = 2; splits <= 17; ++splits) {
    for (const std::int64_t k_tiles :
         {4 * splits, 4 * splits + 1, 5 * splits - 1, 7 * splits + 3}) {
      ASSERT_NO_FATAL_FAILURE(expect_work({1, 2, 3}, 0, splits, k_tiles));
      ASSERT_NO_FATAL_FAILURE(expect_work({2, 9, 3}, 48, splits, k_tiles));
    }
  }
}

// One after another, in order of k; each is rounded once.
TEST(StreamKTail, AddsPartialSumsInOrder) {
  const Grid grid{1, 1, 2};
  constexpr std::int64_t kHead = 1, kRows = 3, kCols = 128 + 7;  // of C
  for (const std::int64_t splits : {2, 8, 9, 10, 18}) {
    const std::vector<float> partials = random_values(splits * kTileWords<Config>, 1);
    const DeviceArray<float> workspace(partials), c(kRows * kCols);
    ASSERT_TRUE(is_ok(device::launch(
        {.kernel = "stream_k add",
         .blocks = kTileWords<Config> / 4 / kAddThreads,
         .threads_x = kAddThreads},
        nullptr, add<Config, false, kPartialsInFlight>,
        KernelArgs{
            .shape = {kRows, kCols, 1}, .c = c.data(), .ldc = kCols, .workspace = workspace.data()},
        grid.split(kHead, splits))));
    std::vector<float> expected(kRows * kCols);
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t col = 128; col < kCols; ++col) {
        float& sum = expected[static_cast<std::size_t>(row * kCols + col)];
        for (std::int64_t split = 0; split < splits; ++split) {
          sum = models::add(sum,
                            partials[static_cast<std::size_t>(split * kTileWords<Config> +
                                                              row * Config::kBlockN + col - 128)]);
        }
      }
    }
    expect_same_bits(c.to_host(), expected);
  }
}

using OneSlice = InterleavedTiles<interleaved::Tiles128x256x8>;
using NoneTransposed = interleaved::Layout<true, false, true>;

// C by the kernel with a condition, in sums of `longest` k tiles of 8; C was 0.5.
std::vector<float> in_sums(const Shape& shape, const std::vector<float>& a,
                           const std::vector<float>& b, int longest, bool holds) {
  const DeviceArray<float> from_a(a), from_b(b);
  const DeviceArray<float> c(static_cast<std::size_t>(shape.m * shape.n), 0.5F);
  const DeviceArray<std::int32_t> word(1, 7);
  const LimitedSplit split{{.scheduler = interleaved::scheduler_of<OneSlice>(shape),
                            .head = 1,
                            .tail = 0,
                            .k_splits = 1},
                           longest};
  EXPECT_TRUE(
      is_ok(device::launch({.kernel = "in sums",
                            .blocks = 1,
                            .threads_x = OneSlice::kNumThreads,
                            .shared_bytes = sizeof(LimitedStorage<OneSlice, NoneTransposed>)},
                           nullptr, sgemm_in_sums<OneSlice, NoneTransposed, OneSlice::Order>,
                           KernelArgs{.shape = shape,
                                      .a = from_a.data(),
                                      .lda = shape.k,
                                      .b = from_b.data(),
                                      .ldb = shape.n,
                                      .c = c.data(),
                                      .ldc = shape.n},
                           split, Condition{word.data(), holds ? 7 : 8})));
  return c.to_host();
}

// Products are exact, sums are not. The first k tile is the partial one.
TEST(LimitedSums, AreAddedOneAfterAnother) {
  constexpr Shape kShape{8, 12, 6 * 8 + 4};
  const auto integers = [](std::int64_t count, std::uint64_t seed) {
    std::vector<float> values = random_values(count, seed);
    for (float& value : values) value = std::round(4095.0F * value);
    return values;
  };
  const std::vector<float> a = integers(kShape.m * kShape.k, 1),
                           b = integers(kShape.k * kShape.n, 2);
  std::vector<std::vector<float>> all;
  for (const int longest : {1, 3, 6, 7}) {
    std::vector<float> expected;
    for (std::int64_t m = 0; m < kShape.m; ++m) {
      for (std::int64_t n = 0; n < kShape.n; ++n) {
        float total = 0.0F, sum = 0.0F;
        for (std::int64_t k = 0; k < kShape.k; ++k) {
          if (k > 0 && (k + 4) % (8 * longest) == 0) {
            total = models::add(total, sum);
            sum = 0.0F;
          }
          sum = models::add(sum, a[static_cast<std::size_t>(m * kShape.k + k)] *
                                     b[static_cast<std::size_t>(k * kShape.n + n)]);
        }
        expected.push_back(models::add(total, sum));
      }
    }
    expect_same_bits(in_sums(kShape, a, b, longest, true), expected);
    all.push_back(expected);
  }
  EXPECT_NE(all.front(), all.back());
  EXPECT_EQ(in_sums(kShape, a, b, 3, false), std::vector<float>(8 * 12, 0.5F));
}

}  // namespace
}  // namespace tilegate::stream_k
