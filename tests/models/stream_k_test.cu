// StreamK on the executor: the work of each block, where its partial sum lies, and the order in
// which partial sums are added.
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

TEST(StreamKTail, AddsPartialSumsInBatches) {
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
        std::vector<float> values;
        for (std::int64_t split = 0; split < splits; ++split) {
          values.push_back(partials[static_cast<std::size_t>(split * kTileWords<Config> +
                                                             row * Config::kBlockN + col - 128)]);
        }
        expected[static_cast<std::size_t>(row * kCols + col)] =
            models::sum_in_batches(values, kPartialsInFlight);
      }
    }
    expect_same_bits(c.to_host(), expected);
  }
}

}  // namespace
}  // namespace tilegate::stream_k
