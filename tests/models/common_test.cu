// What rungs share: tiles against an enumeration, fast division against division, and how accurate
// cuBLAS is taken to be.
#include <array>
#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/common/async/split_k.cuh>
#include <tilegate/common/cost_model.hpp>
#include <tilegate/common/cublas_error.hpp>
#include <tilegate/common/divisor.cuh>
#include <tilegate/common/epilogue.cuh>
#include <tilegate/common/tile_scheduler.cuh>

#include "models/float32.hpp"
#include "models/layout.hpp"
#include "simt/device_array.hpp"
#include "split_call.hpp"
#include "thorough.hpp"

namespace tilegate {
namespace {

constexpr std::uint32_t kMost = (std::uint32_t{1} << 31) - 1;  // of numbers and of divisors

void expect_divides(std::uint32_t divisor, std::mt19937_64& random) {
  const Divisor by(divisor);
  ASSERT_EQ(by.value(), divisor);
  const auto is_right = [&](std::int64_t n) {
    if (n < 0 || n > kMost) return true;  // not for these
    const auto number = static_cast<std::uint32_t>(n);
    const std::uint32_t quotient = by.quotient(number);
    return quotient == number / divisor && by.remainder(number, quotient) == number % divisor;
  };
  const std::int64_t last = kMost / divisor * std::int64_t{divisor};
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{divisor}, last / 2, last,
                               last - divisor, std::int64_t{kMost}}) {
    for (const int offset : {-1, 0, 1}) ASSERT_TRUE(is_right(n + offset)) << n << " / " << divisor;
  }
  for (int i = 0; i < 8; ++i) {
    const auto n = static_cast<std::int64_t>(random() & kMost);
    for (const std::int64_t beside : {n, n / divisor * divisor, n / divisor * divisor - 1}) {
      ASSERT_TRUE(is_right(beside)) << beside << " / " << divisor;
    }
  }
}

// The error of the multiplier is largest for large numbers just below a multiple.
TEST(Divisor, MatchesIntegerDivision) {
  std::mt19937_64 random(1);
  for (std::uint32_t divisor = 1; divisor < 3000; ++divisor) {
    ASSERT_NO_FATAL_FAILURE(expect_divides(divisor, random));
  }
  for (int bit = 11; bit <= 30; ++bit) {
    for (const int offset : {-2, -1, 0, 1, 2}) {
      ASSERT_NO_FATAL_FAILURE(
          expect_divides((std::uint32_t{1} << bit) + static_cast<std::uint32_t>(offset), random));
    }
  }
  for (const std::uint32_t divisor : {kMost, kMost - 1, kMost / 2 + 1}) {
    ASSERT_NO_FATAL_FAILURE(expect_divides(divisor, random));
  }
  for (int turn = 0; turn < (is_thorough() ? 3'000'000 : 20'000); ++turn) {
    ASSERT_NO_FATAL_FAILURE(
        expect_divides(static_cast<std::uint32_t>(random() % kMost) + 1, random));
  }
  EXPECT_EQ(Divisor().quotient(kMost), kMost) << "by 1";
}

// Shapes in tiles, each with what is one less and one more than a group of rows, twice, thrice.
template <typename Expect>
void for_all_grids(std::int64_t group, const Expect& expect) {
  for (std::int64_t rows = 1; rows <= 3 * group + 1; ++rows) {
    for (const std::int64_t cols : {1, 2, 3, 7}) {
      for (const std::int64_t batch : {1, 3}) expect(batch, rows, cols);
    }
  }
}

models::Tile plain(const TileCoord& tile) { return {tile.batch_index, tile.row, tile.col}; }

// Groups of one row are the order along N.
TEST(TileScheduler, RastersGroupsOfRowsColumnByColumn) {
  const auto expect = [](int block_m, unsigned group, const auto& scheduler_of) {
    for_all_grids(group, [&](std::int64_t batch, std::int64_t rows, std::int64_t cols) {
      for (const std::int64_t ragged : {0, 1}) {
        const TileScheduler scheduler =
            scheduler_of(Shape{rows * block_m - ragged, cols * 64 - ragged * 63, 1});
        const auto expected = models::tiles_in_order(batch, rows, cols, group);
        const auto expected_along_n = models::tiles_in_order(batch, rows, cols, 1);
        ASSERT_EQ(scheduler.count * batch, static_cast<std::int64_t>(expected.size()));
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const auto index = static_cast<unsigned>(i);
          ASSERT_EQ(plain(scheduler.tile(index)), expected[i])
              << i << " of " << rows << "x" << cols;
          ASSERT_EQ(plain(scheduler.along_n.tile(index)), expected_along_n[i])
              << i << " of " << rows << "x" << cols;
        }
      }
    });
  };
  for (const int block_m : {64, 128, 256}) {
    expect(block_m, static_cast<unsigned>(1536 / block_m),
           [&](const Shape& shape) { return TileScheduler(shape, block_m, 64); });
    for (const unsigned group : {1U, 8U}) {
      expect(block_m, group,
             [&](const Shape& shape) { return TileScheduler(shape, block_m, 64, group); });
    }
  }
}

// A group would have 2^32 tiles.
TEST(TileScheduler, TakesTheLargestGrid) {
  constexpr std::int64_t kColumns = std::int64_t{1} << 29;
  const TileScheduler scheduler({2 * 64, kColumns * 64, 1}, 64, 64, 8);
  EXPECT_EQ(plain(scheduler.tile(0)), (models::Tile{0, 0, 0}));
  EXPECT_EQ(plain(scheduler.tile(2 * kColumns - 1)), (models::Tile{0, 1, kColumns - 1}));
  EXPECT_EQ(plain(scheduler.along_n.tile(2 * kColumns - 1)), (models::Tile{0, 1, kColumns - 1}));
}

__global__ void list_work(SplitK split_k, unsigned count, std::int64_t* numbers) {
  for (unsigned block = 0; block < count; ++block, numbers += 8) {
    const SplitK::WorkTile work = split_k.work_tile(block, numbers);
    const float* none = reinterpret_cast<const float*>(numbers);
    const std::int64_t all[] = {
        work.batch_index,
        work.row,
        work.col,
        work.own_row,
        work.own_col,
        work.first_k_tile,
        work.k_tiles,
        work.partial == nullptr ? -1 : (work.partial - none) / split_k.partial_size()};
    for (int i = 0; i < 8; ++i) numbers[i] = all[i];
  }
}

void expect_work(const models::SplitK& of) {
  const bool has_end = of.end_m < of.rows * of.block_m || of.end_n < of.cols * of.block_n;
  const SplitK split_k{.block_m = static_cast<int>(of.block_m),
                       .block_n = static_cast<int>(of.block_n),
                       .end_m = has_end ? of.end_m : SplitK::kNoEnd,
                       .end_n = has_end ? of.end_n : SplitK::kNoEnd,
                       .raster = RasterAlongN({of.rows, of.cols, 1}, 1, 1),
                       .whole = static_cast<unsigned>(of.whole),
                       .k_splits = Divisor(static_cast<std::uint32_t>(of.k_splits)),
                       .k_tiles = static_cast<int>(of.k_tiles)};
  const std::vector<models::SplitKWork> expected = models::work_in_order(of);
  const DeviceArray<std::int64_t> numbers(8 * expected.size());
  ASSERT_TRUE(
      is_ok(device::launch({.kernel = "list work", .blocks = 1, .threads_x = 1}, nullptr, list_work,
                           split_k, static_cast<unsigned>(expected.size()), numbers.data())));
  const std::vector<std::int64_t> found = numbers.to_host();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int64_t* n = &found[8 * i];
    ASSERT_TRUE((models::SplitKWork{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]} == expected[i]))
        << "block " << i << ", " << of.k_splits << " splits of " << of.k_tiles << " k tiles";
  }
}

// Up to 17 splits, of k tiles that they divide and of others.
TEST(SplitK, CoversAllKTilesOfEachTile) {
  for (std::int64_t splits = 1; splits <= 17; ++splits) {
    for (const std::int64_t k_tiles : {splits, splits + 1, 2 * splits - 1, 5 * splits + 3}) {
      ASSERT_NO_FATAL_FAILURE(
          expect_work({2, 3, 2, 128, 64, 3 * 128, 2 * 64, splits % 13, splits, k_tiles}));
      // The last tiles are shifted back.
      ASSERT_NO_FATAL_FAILURE(expect_work({2, 2, 3, 64, 256, 65, 515, 2, splits, k_tiles}));
    }
  }
}

constexpr int kSums = 8;

// Two threads, each of four elements: kStep apart.
template <int kStep>
__global__ void reduce(const float* partials, std::int64_t stride, unsigned count, float* sums) {
  const int first = static_cast<int>(threadIdx.x) * (kStep == 1 ? 4 : 1);
  const float4 v = reduce_partials<kPartialsInFlight, kStep>(partials + first, stride, count);
  float* sum = sums + first;
  sum[0] = v.x, sum[kStep] = v.y, sum[2 * kStep] = v.z, sum[3 * kStep] = v.w;
}

// More and fewer than are loaded at a time.
TEST(ReducePartials, AddsInBatches) {
  constexpr std::int64_t kStride = 12;
  for (const unsigned count : {1U, 2U, 8U, 9U, 10U, 17U, 18U}) {
    const std::vector<float> partials = random_values(count * kStride, count);
    std::vector<float> expected;
    for (std::size_t sum = 0; sum < kSums; ++sum) {
      std::vector<float> values;
      for (unsigned i = 0; i < count; ++i) values.push_back(partials[i * kStride + sum]);
      expected.push_back(models::sum_in_batches(values, kPartialsInFlight));
    }
    const DeviceArray<float> from(partials), words(kSums), vectors(kSums);
    const device::LaunchConfig launch{.kernel = "reduce", .blocks = 1, .threads_x = kSums / 4};
    ASSERT_TRUE(is_ok(device::launch(launch, nullptr, reduce<kSums / 4>, from.data(), kStride,
                                     count, words.data())));
    ASSERT_TRUE(is_ok(
        device::launch(launch, nullptr, reduce<1>, from.data(), kStride, count, vectors.data())));
    expect_same_bits(words.to_host(), expected);
    expect_same_bits(vectors.to_host(), expected);
  }
}

// On either side of each number of tiles and each K from which cuBLAS sums otherwise.
TEST(CublasError, SummationLengthMatchesModel) {
  const auto expect = [](const Problem& problem) {
    const double part = models::summed_in_fp32(product_of(problem));
    SCOPED_TRACE(to_string(problem));
    ASSERT_EQ(summed_in_fp32(problem), part);
    const double either_sign = models::products_in_fp32(problem.shape.k, part),
                 one_sign = models::products_of_one_sign_in_fp32(problem.shape.k, part);
    ASSERT_NEAR(products_in_fp32(problem), either_sign, 1e-6 * either_sign);
    ASSERT_NEAR(products_of_one_sign_in_fp32(problem), one_sign, 1e-5 * one_sign);
  };
  for (const std::int64_t k :
       {1,    63,   64,   65,   127,  128,  129,  320,  512,  516,  560,  767,   768,   1023,
        1024, 1025, 1028, 1750, 1755, 2047, 2048, 3071, 3072, 3077, 3084, 16384, 300000}) {
    for (const std::int64_t rows : {1, 3, 4, 5, 8, 15, 16, 17, 23, 100}) {
      for (const std::int64_t cols : {1, 4, 5, 8, 15, 16, 17, 33}) {
        for (const std::int64_t ragged : {0, 124, 127}) {
          const Shape shape{128 * rows - ragged, 128 * cols - ragged, k};
          for (const Op op_a : {Op::kN, Op::kT}) {
            for (const Op op_b : {Op::kN, Op::kT}) {
              ASSERT_NO_FATAL_FAILURE(expect(Problem::dense(shape, op_a, op_b)));
            }
          }
        }
      }
    }
    for (const std::int64_t batch : {15, 16, 63, 64, 255, 256}) {
      ASSERT_NO_FATAL_FAILURE(expect(Problem::dense({128, 3, k}, Op::kT, Op::kN, batch)));
    }
  }
}

// As measured: whole waves, a short last wave, and op(A) and op(B).
TEST(CublasError, PartsOfKAreAtLeastThoseMeasured) {
  const auto problem_of = [](const char* name) {
    Problem problem;
    EXPECT_TRUE(parse_problem(name, &problem).ok());
    return problem;
  };
  for (const auto& [name, least, most] : {std::tuple{"4096x4096x4096", 1, 1},
                                          {"2048x2048x16384", 1, 1},
                                          {"4096x4096x4096/NT", 1, 1},
                                          {"4096x4096x4096/TN", 2, 3},
                                          {"4096x4096x1024/TN", 1, 1},
                                          {"2048x2048x2048/NT", 1, 2},
                                          {"8192x8192x8192", 1, 1},
                                          {"8192x8192x8192/TN", 3, 3},
                                          {"6144x6144x6144", 1, 4},
                                          {"2048x2048x8192/NT", 3, 3},
                                          {"3072x3072x3072", 4, 4},
                                          {"3001x2999x3003", 4, 4},
                                          {"8192x768x8192", 4, 8},
                                          {"8192x768x8192/TN", 2, 8},
                                          {"5120x5120x5120", 3, 4},
                                          {"512x11008x4096", 3, 6}}) {
    const std::int64_t parts = parts_in_fp32(problem_of(name));
    EXPECT_TRUE(least <= parts && parts <= most) << name << ": " << parts;
  }
  EXPECT_EQ(summed_in_fp32(problem_of("1024x1024x1024")), 1024.0F);
  EXPECT_EQ(summed_in_fp32(problem_of("1024x1024x1024/TN")), 256.0F);
  EXPECT_EQ(summed_in_fp32(problem_of("704x1664x896")), 298.0F);
}

// 132 multiprocessors: up to 264, and from 397 or 661 blocks on, four or six per multiprocessor.
TEST(CostModel, PartOfAWaveDoesNotOverlapThePreviousLaunch) {
  const Device device{.multiprocessors = 132};
  for (const int per_sm : {1, 2}) {
    for (std::int64_t blocks = 1; blocks < 1000; ++blocks) {
      EXPECT_TRUE(cost::spreads_evenly(blocks, per_sm, device)) << blocks << ", " << per_sm;
    }
  }
  for (const auto& [per_sm, last_even, first_full] :
       {std::array{4, 264, 397}, std::array{5, 264, 529}, std::array{6, 396, 661}}) {
    for (std::int64_t blocks = 1; blocks < 1500; ++blocks) {
      EXPECT_EQ(cost::spreads_evenly(blocks, per_sm, device),
                blocks <= last_even || blocks >= first_full)
          << blocks << ", " << per_sm;
    }
  }
}

// Six blocks per multiprocessor: a seventh begins a wave, in which the prologue is partly hidden.
TEST(CostModel, CountsBlocksAndWaves) {
  const Device device{.multiprocessors = 132};
  const cost::BlockCost cost{.teraflops = 132.0,
                             .microseconds = 10.0,
                             .speed = {0.5, 1.0, 1.0, 1.0},
                             .block_microseconds = 0.25};
  const auto microseconds = [&](double blocks) {
    return 1e6 * cost::block_seconds(blocks, {.flop = 1e6}, cost, 6, device);  // 1 µs per block
  };
  EXPECT_EQ(microseconds(0), 0.0);
  EXPECT_DOUBLE_EQ(microseconds(132), 10.0 + 2.0 + 0.25);
  EXPECT_DOUBLE_EQ(microseconds(133), 10.0 + 2 * 1.25);
  EXPECT_DOUBLE_EQ(microseconds(5 * 132), 10.0 + 5 * 1.25);
  EXPECT_DOUBLE_EQ(microseconds(6 * 132), 10.0 + 6 * 1.25);
  EXPECT_DOUBLE_EQ(microseconds(6 * 132 + 1), 10.0 + 6 * 1.25 + 10.0 * cost::kLaterWaves + 2.25);
}

}  // namespace
}  // namespace tilegate
