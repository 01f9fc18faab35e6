// The whole rung: bit for bit what the model in exact integers says, whatever the tile, the form
// and the other rows.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "int8x3/run.hpp"
#include "thorough.hpp"

namespace tilegate::int8x3 {
namespace {

// Of wgmma, with whole tiles, and by warps.
constexpr const char* kConfigurations[] = {"64x128pingpong", "128x128pairs", "128x64",
                                           "128x64warps"};

// In each form, in turn: operands as they are and transposed, rows with vectors and without. The
// split pass is tested for each of them by itself.
TEST_F(Int8Gemm, MatchesIntegerModel) {
  const auto expect = [](const Stage& by, int products, const char* configuration, int turn) {
    Problem problem = Problem::dense(turn % 2 == 0 ? Shape{131, 67, 133} : Shape{20, 140, 128},
                                     turn / 2 % 2 == 0 ? Op::kN : Op::kT,
                                     (turn + 1) / 2 % 2 == 0 ? Op::kN : Op::kT);
    set_alpha_and_beta(problem);
    expect_model(by, Operation(problem), products, configuration);
  };
  int turn = 0;
  for (const char* configuration : kConfigurations) {
    for (int i = 0; i < 2; ++i, ++turn) {
      expect(stage, 6, configuration, turn);
      // In ping-pong the code of eight products is that of 128x64.
      if (std::string(configuration) != "64x128pingpong")
        expect(eight(), 8, configuration, turn + 1);
      const bool by_day = turn == 2 || turn == 5;  // of a pair, and of 128x64
      if (by_day || (is_thorough() && std::string(configuration) != "128x64warps")) {
        expect(ten(), 10, configuration, turn);
      }
    }
  }
}

// Which share an operand or none, with the results of a tile stored beside the next and not.
TEST_F(Int8Gemm, MatchesIntegerModelForBatches) {
  for (const int shared : {0, 1, 2}) {
    Problem problem = Problem::dense({40, 70, 130}, Op::kN, Op::kT, 3);
    if (shared == 1) problem.stride_a = 0;
    if (shared == 2) problem.stride_b = 0;
    set_alpha_and_beta(problem);
    expect_model(stage, Operation(problem), 6, shared == 1 ? "128x128pairs" : "128x64");
    expect_model(ten(), Operation(problem), 10, "128x64");
  }
}

// More rings of stages than one, and more rows than a block of the split pass keeps.
TEST_F(Int8Gemm, MatchesIntegerModelForLongRows) {
  for (const std::int64_t k : {1500, 2500}) {
    expect_model(stage, Operation(Problem::dense({3, 5, k})), 6);
  }
  expect_model(ten(), Operation(Problem::dense({3, 5, 900})), 10, "128x64");
}

// Clusters of blocks go from group to group of rows, along k and across it, with vectors and
// without.
TEST_F(Int8Gemm, MatchesIntegerModelWithPipelinedSplit) {
  for (const Op op : {Op::kN, Op::kT}) {
    for (const Shape& shape : {Shape{8, 4, 1092}, Shape{8, 5, 1091}}) {
      expect_model(stage, Operation(Problem::dense(shape, op, op == Op::kN ? Op::kT : Op::kN)), 6);
    }
  }
}

// More tiles than blocks, which go from one to the next; and very many rows of little K.
TEST_F(Int8Gemm, MatchesIntegerModelWithPersistentBlocks) {
  for (const std::int64_t n : {3, 4}) {  // rows of C with pairs of neighbours, and without
    const Operation operation(
        Problem::dense({260, n, 128}, Op::kN, Op::kN, device::current().multiprocessors));
    expect_model(stage, operation, 6, n == 3 ? "128x128pairs" : "128x64");
  }
}

// Tiles that the warpgroups of a block compute in turn, whose chunks go round the ring of stages.
TEST_F(Int8Gemm, MatchesIntegerModelInPingpong) {
  for (const std::int64_t m : {1, 65, 132, 200, 400}) {  // one to seven tiles per block
    expect_model(
        stage,
        Operation(Problem::dense({m, 3, 450}, Op::kN, Op::kN, device::current().multiprocessors)),
        6, "64x128pingpong");
  }
}

std::string taken(const Shape& shape) {
  const Device device{
      .is_cuda = true, .name = "made up", .compute_capability = 90, .multiprocessors = 132};
  return stage.plan(Problem::dense(shape), device).configuration();
}

// Storing a tile beside the next pays where that one's products take longer.
TEST(Int8Plan, DoesNotStageTilesOfSmallK) {
  EXPECT_EQ(taken({2048, 2048, 128}), "64x128pingpong");
  EXPECT_EQ(taken({8192, 8192, 512}), "64x128pingpong");
  EXPECT_EQ(taken({4096, 4096, 2048}), "128x128pairs");
}

// Where each warpgroup of a block has several tiles.
TEST(Int8Plan, TakesPingpongForSeveralTilesPerBlock) {
  EXPECT_EQ(taken({1024, 1024, 1024}), "128x64");
  EXPECT_EQ(taken({2048, 2048, 2048}), "64x128pingpong");
  EXPECT_EQ(taken({3000, 3000, 3000}), "64x128pingpong");
}

// Where whole tiles would leave many multiprocessors idle for long.
TEST(Int8Plan, TakesStreamKForAPartialWave) {
  EXPECT_EQ(taken({4096, 4096, 4096}), "128x128pairs");
  EXPECT_EQ(taken({1152, 1152, 4096}), "128x128streamk");
  EXPECT_EQ(taken({8192, 8192, 8192}), "128x128pairs");
  EXPECT_EQ(taken({2048, 13824, 5120}), "128x128pairsstreamk");
  EXPECT_EQ(taken({5001, 4999, 5003}), "128x128pairsstreamk");
  EXPECT_EQ(taken({8192, 8192, 65536}), "128x128pairs");  // the sums of so much K are not exact
}

// So few tiles that two blocks or more share each, and K so long that this saves more than adding
// their sums costs.
TEST(Int8Plan, TakesSplitKForFewTiles) {
  EXPECT_EQ(taken({512, 512, 16384}), "128x64splitk");
  EXPECT_EQ(taken({128, 4096, 4096}), "128x64splitk");
  EXPECT_EQ(taken({256, 256, 4096}), "128x64splitk");
  EXPECT_EQ(taken({512, 512, 512}), "128x64");
  EXPECT_EQ(taken({1024, 1024, 4096}), "128x64");  // a tile for each multiprocessor
}

TEST(Int8Plan, TakesStreamKUpToTheLargestExactK) {
  const auto can_share = [](std::int64_t k) {
    return stage.plan(Problem::dense({512, 512, k}), device::current(), "128x128streamk").ok();
  };
  EXPECT_TRUE(can_share(models::int8x3::kMostExactK));
  EXPECT_FALSE(can_share(models::int8x3::kMostExactK + 1));
}

// So many blocks split long rows that a grid is too small for them.
TEST(Int8Plan, LimitsRowsByTheBlocksThatSplitThem) {
  const auto takes = [](std::int64_t m, std::int64_t k) {
    return stage.plan(Problem::dense({m, 1, k})).ok();
  };
  EXPECT_TRUE(takes(std::int64_t{1} << 33, 12288));
  EXPECT_FALSE(takes(std::int64_t{1} << 33, 12289));
  EXPECT_TRUE(takes(std::int64_t{1} << 31, 12289));
}

TEST(Int8Plan, TakesTensorCoresFromK128) {
  EXPECT_EQ(taken({2048, 2048, 127}), "fp32");
  EXPECT_EQ(taken({2048, 2048, 128}), "64x128pingpong");
}

// The last tiles in pieces of K: of two blocks, of which each has a whole one, too, and of three.
TEST_F(Int8Gemm, MatchesIntegerModelWithStreamK) {
  const int blocks = device::current().multiprocessors;
  expect_model(stage, Operation(Problem::dense({3, 2, 256}, Op::kN, Op::kN, blocks + 1)), 6,
               "128x128streamk");
  expect_model(stage, Operation(Problem::dense({3, 5, 1540})), 6, "128x128streamk");
  expect_model(stage, Operation(Problem::dense({2, 130, 256}, Op::kT, Op::kN, blocks / 2 + 1)), 6,
               "128x128pairsstreamk");
}

// Two tiles along rows, along columns, and of a batch.
TEST_F(Int8Gemm, MatchesIntegerModelWithSplitK) {
  for (Problem problem : {Problem::dense({131, 5, 516}, Op::kN, Op::kT),
                          Problem::dense({5, 100, 516}, Op::kT, Op::kN),
                          Problem::dense({3, 2, 544}, Op::kN, Op::kT, 2)}) {
    set_alpha_and_beta(problem);
    expect_model(stage, Operation(problem), 6, "128x64splitk");
    expect_model(eight(), Operation(problem), 8, "128x64splitk");
  }
  expect_model(ten(), Operation(Problem::dense({5, 100, 516})), 10, "128x64splitk");
}

// Rows that end and begin within an octave, at its ends, and at those of the range; zeros; equal
// elements; numbers that are far smaller than the largest.
TEST_F(Int8Gemm, MatchesIntegerModelForEdgeValues) {
  constexpr std::int64_t k = 160;
  Operation operation(Problem::dense({24, 10, k}, Op::kN, Op::kT));
  for (std::vector<float>* values : {&operation.a, &operation.b}) {
    for (float& x : *values) x = std::copysign(0.75F + x * x / 4.0F, x);  // so narrow as to make up
  }
  const auto set_row = [&](std::vector<float>& of, std::int64_t row, auto value) {
    for (std::int64_t i = 0; i < k; ++i) {
      float& element = of[static_cast<std::size_t>(row * k + i)];
      element = value(element, i);
    }
  };
  const auto scaled_by = [](float factor) {
    return [factor](float x, std::int64_t) { return x * factor; };
  };
  set_row(operation.a, 0, scaled_by(0x1p60F));
  set_row(operation.a, 1, scaled_by(0x1.8p-55F));
  set_row(operation.a, 2, [](float, std::int64_t) { return 0.0F; });
  set_row(operation.a, 3, [](float, std::int64_t) { return -1.0F; });
  set_row(operation.a, 4, [](float, std::int64_t) { return 0x1.FFFFFEp0F; });
  set_row(operation.a, 5, [](float x, std::int64_t i) { return i == 7 ? -0x1p0F : x * 0.5F; });
  set_row(operation.a, 6,
          [](float x, std::int64_t i) { return i == 7 ? 0x1.FEp3F : std::rint(12 * x); });
  set_row(operation.a, 7, [](float x, std::int64_t i) { return i % 9 != 0 ? x : 0x1p-140F; });
  set_row(operation.b, 0, scaled_by(0x1p-30F));
  set_row(operation.b, 1, [](float, std::int64_t) { return -0.0F; });
  set_row(operation.b, 2, [](float x, std::int64_t) { return std::rint(4095 * x); });
  set_row(operation.b, 3, scaled_by(0x1p60F));
  for (const char* configuration : {"128x64", "128x64warps"}) {
    expect_model(eight(), operation, 8, configuration);
  }
}

// One row and one column whose digits are as large as they become together, with products of one
// sign: -126·2^16 - 128·2^8 - 128, but for one element that sets the scale. `rest`: half of a unit,
// for tails of -127. They are not sampled, so that the others decide.
struct OneSigned {
  Operation operation;
  std::int64_t row = 0, col = 0;

  explicit OneSigned(std::int64_t k, double rest = 0.0)
      : operation(Problem::dense({64, 64, k}, Op::kN, Op::kT)) {
    for (std::vector<float>* values : {&operation.a, &operation.b}) {
      for (float& x : *values) x = std::copysign(0.75F + x * x / 4.0F, x);
    }
    row = set(operation.a, rest);
    col = set(operation.b, rest);
  }

  std::int64_t set(std::vector<float>& values, double rest) {
    constexpr double kInteger = -126.0 * 65536 - 128 * 256 - 128;
    const std::int64_t k = operation.problem.shape.k;
    for (std::int64_t at = 0; at < 64; ++at) {
      const auto first = values.begin() + at * k;
      const std::vector<float> before(first, first + k);
      std::fill(first, first + k, static_cast<float>(kInteger - rest));
      first[k / 2] = -8355700.0F;
      const auto a = operation.all_rows(Operand::kA), b = operation.all_rows(Operand::kB);
      if (models::int8x3::match(a, b).equal == 0.0) return at;
      std::copy(before.begin(), before.end(), first);
    }
    ADD_FAILURE() << "all rows are sampled";
    return 0;
  }

  // Their product is the model's. `most`: K of a part.
  void expect(const Stage& by, int products, const std::string& configuration,
              std::int64_t most) const {
    SCOPED_TRACE(configuration + " " + to_string(operation.problem));
    const std::int64_t k = operation.problem.shape.k;
    Operation alone(Problem::dense({1, 1, k}, Op::kN, Op::kT));
    std::copy_n(operation.a.begin() + row * k, k, alone.a.begin());
    std::copy_n(operation.b.begin() + col * k, k, alone.b.begin());
    const Result result = run(by, operation, configuration);
    EXPECT_EQ(result.decision, products);
    const float c = result.c[static_cast<std::size_t>(row * 64 + col)];
    expect_same_bits({c}, int8x3::expected(alone, products, most));
  }
};

// Level 2 sums to 48640 per k. One part of K may fill int32, what is left is added in FP32.
TEST_F(Int8Gemm, SplitsKBeforeInt32Overflows) {
  using models::int8x3::kMostExactK, models::int8x3::kMostExactTenK;
  const OneSigned all(kMostExactK + 1504);
  all.expect(eight(), 8, "128x64", kMostExactTenK);
  if (TILEGATE_ON_SIMT && !is_thorough()) return;  // the executor takes seconds for each
  for (const std::string configuration : kConfigurations) {
    const std::int64_t most = configuration == "128x64warps" ? kMostExactK : kMostExactTenK;
    all.expect(stage, 6, configuration, most);
    all.expect(eight(), 8, configuration, most);
  }
  OneSigned(kMostExactTenK + 96, 0.5).expect(ten(), 10, "128x64", kMostExactTenK);
  const OneSigned shared(kMostExactK);
  shared.expect(stage, 6, "128x128streamk", kMostExactK);
  shared.expect(stage, 6, "128x128pairsstreamk", kMostExactK);
}

TEST_F(Int8Gemm, RowsAreIndependent) {
  const Operation all(Problem::dense({130, 9, 200}));
  Operation last(Problem::dense({1, 9, 200}));
  last.a.assign(all.a.end() - 200, all.a.end());
  const std::vector<float> rows = run(stage, all).c;
  expect_same_bits(run(stage, last).c, {rows.end() - 9, rows.end()});
}

}  // namespace
}  // namespace tilegate::int8x3
