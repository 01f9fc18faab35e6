// What each block of a streamed form computes, on the executor, against an enumeration.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "18_int8x3/gemm_sm90.cuh"
#include "models/layout.hpp"
#include "simt/device_array.hpp"

namespace tilegate::int8x3 {
namespace {

constexpr unsigned kMostWork = 40;  // of a block

// works[block · kMostWork + number], and how many they are.
template <unsigned kCluster>
__global__ void list_work(GemmParams params, unsigned tiles, Work* works, unsigned* counts) {
  if (threadIdx.x > 0) return;
  const Scheduler<kCluster, true> scheduler(params.six, tiles, params.chunks, params.stream_k);
  unsigned number = 0;
  for (Work work; number < kMostWork && scheduler.get(number, work); ++number) {
    works[blockIdx.x * kMostWork + number] = work;
  }
  counts[blockIdx.x] = number;
}

// A problem of `batch` matrices of rows×cols tiles; a pair of blocks has two columns of tiles.
template <unsigned kCluster>
void expect_work(std::int64_t batch, std::int64_t rows, std::int64_t cols, unsigned clusters,
                 unsigned chunks, unsigned least) {
  SCOPED_TRACE(std::to_string(batch) + " of " + std::to_string(rows) + "x" + std::to_string(cols) +
               " tiles of " + std::to_string(chunks) + " chunks, " + std::to_string(clusters) +
               " clusters of " + std::to_string(kCluster) + ", at least " + std::to_string(least));
  const auto tiles = static_cast<unsigned>(batch * rows * cols);
  GemmParams params{};
  params.chunks = chunks;
  params.six = TileScheduler({rows * kBlockM, cols * kCluster * 128, 1}, kBlockM, kCluster * 128);
  params.stream_k = StreamKTiles(tiles, clusters, chunks, least);
  const unsigned idle = params.stream_k.full_waves == 0 ? 2 : 0;  // clusters of a larger grid
  const unsigned blocks = (clusters + idle) * kCluster;
  const DeviceArray<Work> works(std::size_t{blocks} * kMostWork);
  const DeviceArray<unsigned> counts(blocks);
  ASSERT_TRUE(is_ok(device::launch(
      {.kernel = "list work", .blocks = blocks, .threads_x = 32, .cluster = kCluster}, nullptr,
      list_work<kCluster>, params, tiles, works.data(), counts.data())));
  const std::vector<Work> found = works.to_host();
  const std::vector<unsigned> found_counts = counts.to_host();
  const auto order = models::tiles_in_order(batch, rows, cols, 12);
  const auto expected = models::work_of_clusters(tiles, clusters, chunks, least);
  for (unsigned block = clusters * kCluster; block < blocks; ++block) {
    ASSERT_EQ(found_counts[block], 0U) << "block " << block;
  }
  for (unsigned block = 0; block < clusters * kCluster; ++block) {
    const std::vector<models::StreamKWork>& of_cluster = expected[block / kCluster];
    ASSERT_EQ(found_counts[block], of_cluster.size()) << "block " << block;
    for (std::size_t i = 0; i < of_cluster.size(); ++i) {
      const Work& work = found[block * kMostWork + i];
      const models::StreamKWork& want = of_cluster[i];  // the last tile comes first
      const models::Tile& tile = order[tiles - 1 - static_cast<std::size_t>(want.tile)];
      const models::StreamKWork as_found{want.tile,
                                         work.first_chunk,
                                         std::int64_t{work.first_chunk} + work.chunks,
                                         work.stores_tile != 0,
                                         work.num_partials,
                                         work.is_last != 0,
                                         work.index};
      ASSERT_TRUE(as_found == want) << "work " << i << " of block " << block;
      ASSERT_EQ(work.tile.batch_index, tile.batch_index);
      ASSERT_EQ(work.tile.row, tile.row);
      ASSERT_EQ(work.tile.col, tile.col * kCluster + block % kCluster);
    }
  }
}

// As many clusters as a plan takes at most: a tile is shared by no more than one for four chunks,
// nor than 32.
template <unsigned kCluster>
void expect_work_of_all() {
  for (const unsigned chunks : {4U, 5U, 16U, 31U, 33U, 100U}) {
    for (const std::int64_t tiles : {1, 2, 3, 5, 13, 27}) {
      for (const unsigned clusters : {1U, 2U, 3U, 5U, 8U, 13U, 41U}) {
        const std::int64_t most = tiles * std::clamp<std::int64_t>(chunks / 4, 1, 32);
        if (clusters > most || tiles / clusters > 12) continue;
        for (const unsigned least : {4U, 1U}) {  // chunks of digits, k tiles of FP64
          ASSERT_NO_FATAL_FAILURE(expect_work<kCluster>(1, tiles, 1, clusters, chunks, least));
        }
      }
    }
  }
  expect_work<kCluster>(2, 13, 2, 11, 40, 4);
  expect_work<kCluster>(3, 25, 3, 29, 17, 1);
}

TEST(Int8Scheduler, MatchesModel) { expect_work_of_all<1>(); }
TEST(Int8Scheduler, MatchesModelForClusters) { expect_work_of_all<2>(); }

__global__ void list_parts(GemmParams params, unsigned tiles, unsigned splits, Work* works,
                           unsigned* counts) {
  if (threadIdx.x > 0) return;
  const SplitKScheduler scheduler(params.six, tiles, params.chunks, splits);
  unsigned number = 0;
  for (Work work; scheduler.get(number, work); ++number) works[blockIdx.x] = work;
  counts[blockIdx.x] = number;
}

// Each block has one part of a tile. The parts of a tile cover K, and differ by one chunk at most.
TEST(Int8Scheduler, SplitKCoversEachTileOnce) {
  constexpr unsigned kTiles = 2 * 3 * 2, kIdle = 2;
  GemmParams params{};
  params.six = TileScheduler({3 * kBlockM, 2 * 128, 1}, kBlockM, 128);
  const auto order = models::tiles_in_order(2, 3, 2, 12);
  for (const unsigned splits : {1U, 2U, 3U, 7U}) {
    for (const unsigned chunks : {splits, splits + 1, 8 * splits + 5}) {
      params.chunks = chunks;
      const unsigned blocks = kTiles * splits + kIdle;
      const DeviceArray<Work> works(blocks);
      const DeviceArray<unsigned> counts(blocks);
      ASSERT_TRUE(
          is_ok(device::launch({.kernel = "list parts", .blocks = blocks, .threads_x = 32}, nullptr,
                               list_parts, params, kTiles, splits, works.data(), counts.data())));
      const std::vector<Work> found = works.to_host();
      const std::vector<unsigned> found_counts = counts.to_host();
      for (unsigned block = 0; block < blocks; ++block) {
        ASSERT_EQ(found_counts[block], block < kTiles * splits ? 1U : 0U) << "block " << block;
      }
      for (unsigned block = 0; block < kTiles * splits; ++block) {
        const Work& work = found[block];
        const models::Tile& tile = order[kTiles - 1 - block / splits];
        ASSERT_EQ(work.tile.batch_index, tile.batch_index);
        ASSERT_EQ(work.tile.row, tile.row);
        ASSERT_EQ(work.tile.col, tile.col);
        ASSERT_EQ(work.stores_tile, 0U);
        ASSERT_GE(work.chunks, chunks / splits);
        ASSERT_LE(work.chunks, chunks / splits + 1);
        const bool is_first = block % splits == 0, is_last = block % splits == splits - 1;
        const unsigned begin =
            is_first ? 0 : found[block - 1].first_chunk + found[block - 1].chunks;
        ASSERT_EQ(work.first_chunk, begin) << "block " << block;
        if (is_last) {
          ASSERT_EQ(work.first_chunk + work.chunks, chunks);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilegate::int8x3
