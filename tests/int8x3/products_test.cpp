// The whole rung: bit for bit what the plain model says, whatever the tile, the form and the other
// rows.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "int8x3/run.hpp"
#include "thorough.hpp"

namespace tilegate::int8x3 {
namespace {

const Stage& eight() { return *variants()[0]; }

TEST_F(Products, AreThoseOfTheModelInEveryForm) {
  for (const Op op_a : {Op::kN, Op::kT}) {
    for (const Op op_b : {Op::kN, Op::kT}) {
      for (const Shape& shape : {Shape{131, 67, 132}, Shape{20, 140, 128}}) {
        const Operation operation(Problem::dense(shape, op_a, op_b));
        for (const char* configuration : {"128x128", "128x128pairs", "128x64"}) {
          const Result six = run(stage, operation, configuration);
          EXPECT_EQ(six.decision, 6);
          expect_same_bits(six.c, model(operation.problem, operation.a, operation.b, 6));
        }
        for (const char* configuration : {"128x128pairs", "128x64"}) {
          const Result more = run(eight(), operation, configuration);
          EXPECT_EQ(more.decision, 8);
          expect_same_bits(more.c, model(operation.problem, operation.a, operation.b, 8));
        }
      }
    }
  }
}

TEST_F(Products, AreThoseOfTheModelInBatches) {
  for (const bool shares_b : {false, true}) {
    Problem problem = Problem::dense({40, 70, 130}, Op::kN, Op::kT, 3);
    if (shares_b) problem.stride_b = 0;
    const Operation operation(problem);
    expect_same_bits(run(stage, operation).c, model(problem, operation.a, operation.b, 6));
  }
}

// More rings of stages than one, and more rows than a block of the split pass keeps.
TEST_F(Products, AreThoseOfTheModelForLongRows) {
  for (const std::int64_t k : {1500, 2500}) {
    const Operation operation(Problem::dense({3, 5, k}));
    expect_same_bits(run(stage, operation).c,
                     model(operation.problem, operation.a, operation.b, 6));
  }
}

// Clusters of blocks go from group to group of rows, along k and across it, with vectors and
// without.
TEST_F(Products, AreThoseOfTheModelWhereRowsAreCopiedAhead) {
  for (const Op op : {Op::kN, Op::kT}) {
    for (const Shape& shape : {Shape{8, 4, 1092}, Shape{8, 5, 1091}}) {
      const Operation operation(Problem::dense(shape, op, op == Op::kN ? Op::kT : Op::kN));
      expect_same_bits(run(stage, operation).c,
                       model(operation.problem, operation.a, operation.b, 6));
    }
  }
}

// More tiles than blocks, which go from one to the next; and very many rows of little K.
TEST_F(Products, AreThoseOfTheModelInManyTiles) {
  for (const std::int64_t n : {3, 4}) {  // rows of C with pairs of neighbours, and without
    const Operation operation(
        Problem::dense({260, n, 128}, Op::kN, Op::kN, device::current().multiprocessors));
    expect_same_bits(run(stage, operation, n == 3 ? "128x128pairs" : "128x64").c,
                     model(operation.problem, operation.a, operation.b, 6));
  }
}

std::string taken(const Shape& shape) {
  const Device device{
      .is_cuda = true, .name = "made up", .compute_capability = 90, .multiprocessors = 132};
  return stage.plan(Problem::dense(shape), device).configuration();
}

// Storing a tile beside the next pays where that one's products take longer.
TEST(Forms, OfLittleKStoreTheirTilesThemselves) {
  EXPECT_EQ(taken({2048, 2048, 128}), "128x128");
  EXPECT_EQ(taken({8192, 8192, 512}), "128x128");
  EXPECT_EQ(taken({4096, 4096, 1024}), "128x128pairs");
}

// Where whole tiles would leave many multiprocessors idle for long.
TEST(Forms, ShareTilesWhereThatPays) {
  EXPECT_EQ(taken({2048, 2048, 2048}), "128x64");
  EXPECT_EQ(taken({4096, 4096, 4096}), "128x128pairs");
  EXPECT_EQ(taken({3000, 3000, 3000}), "128x128streamk");
  EXPECT_EQ(taken({512, 512, 16384}), "128x128streamk");
  EXPECT_EQ(taken({8192, 8192, 8192}), "128x128streamk");
  EXPECT_EQ(taken({5001, 4999, 5003}), "128x128pairsstreamk");
  EXPECT_EQ(taken({8192, 8192, 65536}), "128x128pairs");  // the sums of so much K are not exact
}

// The last tiles in pieces of K: of two blocks, of which each has a whole one, too, and of three.
TEST_F(Products, AreThoseOfTheModelWhereBlocksShareTiles) {
  const auto expect_same = [](const Problem& problem, const char* configuration) {
    const Operation operation(problem);
    const Result result = run(stage, operation, configuration);
    EXPECT_EQ(result.decision, 6);
    expect_same_bits(result.c, model(operation.problem, operation.a, operation.b, 6));
  };
  const int blocks = device::current().multiprocessors;
  expect_same(Problem::dense({3, 2, 256}, Op::kN, Op::kN, blocks + 1), "128x128streamk");
  expect_same(Problem::dense({3, 5, 1540}), "128x128streamk");
  expect_same(Problem::dense({2, 130, 256}, Op::kT, Op::kN, blocks / 2 + 1), "128x128pairsstreamk");
}

// K above what int32 holds: the parts are exact, and added in FP32.
void expect_split_of_k(const char* configuration) {
  constexpr std::int64_t k = 43552 + 64;
  Operation operation(Problem::dense({1, 1, k}));
  for (std::vector<float>* values : {&operation.a, &operation.b}) {
    std::fill(values->begin(), values->end(), -0.7F);
  }
  const Result result = run(stage, operation, configuration);
  EXPECT_EQ(result.decision, 6);
  const double each = operation.a[0] * static_cast<double>(operation.b[0]);
  EXPECT_NEAR(result.c[0], each * k, 2e-7 * each * k);
}

TEST_F(Products, SplitKBeforeSumsOverflow) { expect_split_of_k("128x64"); }

TEST_F(Products, OfWarpsSplitKBeforeSumsOverflow) {
  if (TILEGATE_ON_SIMT && !is_thorough()) {
    GTEST_SKIP() << "takes the executor 20 s; TILEGATE_THOROUGH=1 runs it";
  }
  expect_split_of_k("128x64warps");
}

TEST_F(Products, OfARowDoNotDependOnOtherRows) {
  const Operation all(Problem::dense({130, 9, 200}));
  Operation last(Problem::dense({1, 9, 200}));
  last.a.assign(all.a.end() - 200, all.a.end());
  const std::vector<float> rows = run(stage, all).c;
  expect_same_bits(run(stage, last).c, {rows.end() - 9, rows.end()});
}

}  // namespace
}  // namespace tilegate::int8x3
