// Which products the device decides to take, and those in FP32.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "int8x3/run.hpp"
#include "models/layout.hpp"

namespace tilegate::int8x3 {
namespace {

TEST_F(Int8Decision, DependsOnTheOperands) {
  const auto decided = [](const std::function<void(Operation&)>& change) {
    Operation operation(Problem::dense({9, 8, 400}));
    for (float& x : operation.a) x = std::copysign(0.75F + x * x / 4.0F, x);
    change(operation);
    return run(stage, operation).decision;
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(decided([](Operation&) {}), 6);
  EXPECT_EQ(decided([](Operation& o) { o.a[77] = kInf; }), kNoDigits);
  EXPECT_EQ(decided([](Operation& o) { o.b[77] = std::nanf(""); }), kNoDigits);
  EXPECT_EQ(decided([](Operation& o) { o.b[77] = 0x1p61F; }), kNoDigits);
  EXPECT_EQ(decided([](Operation& o) { std::fill(o.a.begin(), o.a.end(), 0.0F); }), 6);
  EXPECT_EQ(decided([](Operation& o) {
              for (std::size_t i = 0; i < o.a.size(); i += 100) o.a[i] = 2.5F;
            }),
            8);
  EXPECT_EQ(decided([](Operation& o) {
              for (std::size_t i = 0; i < o.a.size(); i += 100) o.a[i] = 1000.0F;
            }),
            kNoDigits);
}

// What a row of an operand is in the batch.
struct RowAt {
  Operand operand;
  std::int64_t product, row;
};

// Elements of ±0.75 to ±1, but for one row with one element so large that the error of so many
// products is that share of what FP32 is allowed.
Operation with_wide_row(const Problem& problem, const RowAt& wide, int products, double share) {
  namespace model = models::int8x3;
  Operation operation(problem);
  for (std::vector<float>* values : {&operation.a, &operation.b}) {
    for (float& x : *values) x = std::copysign(0.75F + x * x / 4.0F, x);
  }
  const bool is_a = wide.operand == Operand::kA;
  const models::Rows rows = operation.rows(wide.operand, wide.product);
  const auto first = rows.data - (is_a ? operation.a : operation.b).data();
  const auto all = operation.all_rows(wide.operand);
  const model::Widths other = model::widths(operation.all_rows(is_a ? Operand::kB : Operand::kA));
  const double count = static_cast<double>(rows.count) * static_cast<double>(all.size());
  const model::Row before = model::quantized(rows, wide.row);
  const model::Widths narrow_ones = model::widths(all);
  double narrow = 0.0, too_wide = 1e9;
  for (int turn = 0; turn < 40; ++turn) {
    const double large = (narrow + too_wide) / 2;
    for (std::int64_t k = 0; k < rows.k; ++k) {
      const auto at = static_cast<std::size_t>(first + wide.row * rows.next_row + k * rows.next_k);
      float& element = (is_a ? operation.a : operation.b)[at];
      element = k == 5 ? -static_cast<float>(1.0 + large) : std::fabs(element);
    }
    const model::Row row = model::quantized(rows, wide.row);
    const model::Widths own{narrow_ones.width + (row.width - before.width) / count,
                            narrow_ones.spread + (row.spread - before.spread) / count,
                            std::max(narrow_ones.most, row.spread)};
    const double summed = models::summed_in_fp32(product_of(problem));
    const auto a = operation.all_rows(Operand::kA), b = operation.all_rows(Operand::kB);
    const model::Match match = model::match(a, b);
    const double error = model::expected_error(
        products,
        {is_a ? own : other, is_a ? other : own, match, false, model::digit_squares(a, b, match),
         static_cast<double>((rows.k + 31) / 32 * 32)},
        summed);
    (error < share ? narrow : too_wide) = large;
  }
  return operation;
}

// 1 % from the threshold, on either side.
void expect_threshold(const Problem& problem, const RowAt& wide, int products, int more,
                      const char* configuration = "128x64") {
  SCOPED_TRACE(to_string(problem) + (wide.operand == Operand::kA ? " row " : " column ") +
               std::to_string(wide.row) + " of product " + std::to_string(wide.product));
  for (const auto& [share, expected] : {std::pair{0.99, products}, {1.01, more}}) {
    const Operation operation = with_wide_row(problem, wide, products, share);
    EXPECT_EQ(run(stage, operation, configuration).decision, expected) << "at " << share;
  }
}

// The last of a whole chunk, and one alone in its chunk, of whose statistics the second warp takes
// notice.
TEST_F(Int8Decision, DependsOnEveryRow) {
  expect_threshold(Problem::dense({128, 4, 144}), {Operand::kA, 0, 127}, 6, 8);
  expect_threshold(Problem::dense({4, 128, 144}, Op::kT), {Operand::kB, 0, 127}, 6, 8);
  expect_threshold(Problem::dense({257, 5, 144}, Op::kN, Op::kT), {Operand::kA, 0, 256}, 6, 8);
  expect_threshold(Problem::dense({5, 9, 144}), {Operand::kB, 0, 0}, 6, 8, "128x64warps");
}

// There are more statistics than threads.
TEST_F(Int8Decision, DependsOnEachOfManyRows) {
  Operation operation(Problem::dense({3080, 1, 128}));
  operation.a.back() = 0x1p61F;
  EXPECT_EQ(run(stage, operation).decision, kNoDigits);
}

TEST_F(Int8Decision, DependsOnEveryMatrixOfABatch) {
  const Problem batch = Problem::dense({3, 4, 144}, Op::kT, Op::kN, 2);
  expect_threshold(batch, {Operand::kA, 0, 2}, 6, 8);
  expect_threshold(batch, {Operand::kA, 1, 0}, 6, 8);
  expect_threshold(batch, {Operand::kB, 1, 3}, 6, 8);
}

// The rows of a shared operand count once, and those of the other all.
TEST_F(Int8Decision, DependsOnSharedOperandsOfABatch) {
  Problem batch = Problem::dense({4, 6, 144}, Op::kN, Op::kN, 2);
  batch.stride_b = 0;
  expect_threshold(batch, {Operand::kA, 1, 3}, 6, 8);
  expect_threshold(batch, {Operand::kB, 0, 5}, 6, 8);
  std::swap(batch.stride_a, batch.stride_b);
  batch.stride_b = 144 * 6;
  expect_threshold(batch, {Operand::kA, 0, 3}, 6, 8);
}

// Where all rows are as wide, their mean decides: those of a shared operand count once.
TEST_F(Int8Decision, DependsOnTheMeanOfSharedRows) {
  namespace model = models::int8x3;
  for (const Operand wide : {Operand::kA, Operand::kB}) {
    const bool is_a = wide == Operand::kA;
    Problem problem = Problem::dense({4, 6, 144}, Op::kN, Op::kT, 2);
    (is_a ? problem.stride_a : problem.stride_b) = 0;
    for (const auto& [share, expected] : {std::pair{0.99, 6}, {1.01, 8}}) {
      SCOPED_TRACE(to_string(problem) + " at " + std::to_string(share));
      Operation operation(problem);
      for (float& x : operation.a) x = std::copysign(0.75F + x * x / 4.0F, x);
      for (float& x : operation.b) x = std::copysign(0.75F + x * x / 4.0F, x);
      std::vector<float>& values = is_a ? operation.a : operation.b;
      for (float& x : values) x = std::fabs(x);
      double narrow = 0.0, too_wide = 100.0;
      for (int turn = 0; turn < 20; ++turn) {
        const double large = (narrow + too_wide) / 2;
        for (std::size_t i = 5; i < values.size(); i += 144) {
          values[i] = static_cast<float>(1.0 + large);
        }
        const model::Statistics statistics =
            model::statistics(operation.all_rows(Operand::kA), operation.all_rows(Operand::kB));
        const double summed = models::summed_in_fp32(product_of(problem));
        (model::expected_error(6, statistics, summed) < share ? narrow : too_wide) = large;
      }
      EXPECT_EQ(run(stage, operation, "128x64").decision, expected);
    }
  }
}

// How large elements of A meet those of B, by so much.
using Change = std::function<void(Operation&, double amount)>;

// Multiplies the elements of an operand by 2^exponent(k), in all matrices; of `most_rows` rows.
void scale_along_k(Operation& operation, Operand operand,
                   const std::function<double(std::int64_t)>& exponent,
                   std::int64_t most_rows = std::numeric_limits<std::int64_t>::max()) {
  std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
  for (const models::Rows& rows : operation.all_rows(operand)) {
    const auto first = rows.data - values.data();
    for (std::int64_t row = 0; row < std::min(rows.count, most_rows); ++row) {
      for (std::int64_t k = 0; k < rows.k; ++k) {
        values[static_cast<std::size_t>(first + row * rows.next_row + k * rows.next_k)] *=
            static_cast<float>(std::exp2(exponent(k)));
      }
    }
  }
}

// The amount with which the error of six products is that share of what FP32 is allowed.
Operation with_amount(const Problem& problem, const Change& change, double most, double share) {
  double least = 0.0;
  Operation operation(problem);
  for (int turn = 0; turn < 40; ++turn) {
    const double amount = (least + most) / 2;
    operation = Operation(problem);
    for (float& x : operation.a) x = std::copysign(0.75F + x * x / 4.0F, x);
    for (float& x : operation.b) x = std::copysign(0.75F + x * x / 4.0F, x);
    change(operation, amount);
    const auto statistics = models::int8x3::statistics(operation.all_rows(Operand::kA),
                                                       operation.all_rows(Operand::kB));
    const double summed = models::summed_in_fp32(product_of(problem));
    (models::int8x3::expected_error(6, statistics, summed) < share ? least : most) = amount;
  }
  return operation;
}

// 1 % from the threshold, on either side. The rows alone tell the same of all kinds: so the sampled
// pairs decide.
TEST_F(Int8Decision, DependsOnHowRowsMatchColumns) {
  const auto along = [](std::int64_t k) { return static_cast<double>(k) / 600.0; };
  const Change opposite = [&](Operation& o, double octaves) {  // large meets small
    scale_along_k(o, Operand::kA, [&](std::int64_t k) { return -octaves * along(k); });
    scale_along_k(o, Operand::kB, [&](std::int64_t k) { return octaves * along(k); });
  };
  const Change late = [&](Operation& o, double octaves) {  // large products come last
    scale_along_k(o, Operand::kA, [&](std::int64_t k) { return octaves * along(k); });
  };
  const Change sparse = [&](Operation& o, double octaves) {  // and many products are 0
    opposite(o, octaves);
    scale_along_k(o, Operand::kA, [](std::int64_t k) { return k % 5 < 2 ? -1e9 : 0.0; });
  };
  for (const Change& change : {opposite, late, sparse}) {
    for (const Problem& problem :
         {Problem::dense({9, 8, 545}), Problem::dense({3, 70, 545}, Op::kT),
          Problem::dense({33, 5, 1100}, Op::kN, Op::kT),
          Problem::dense({4, 6, 545}, Op::kT, Op::kT, 3)}) {
      for (const auto& [share, expected] : {std::pair{0.99, 6}, {1.01, 8}}) {
        SCOPED_TRACE(to_string(problem) + " at " + std::to_string(share));
        const Operation operation = with_amount(problem, change, 6.0, share);
        EXPECT_EQ(run(stage, operation, "128x64").decision, expected);
      }
    }
  }
}

// Of one row and one column that match badly, the worst element.
TEST_F(Int8Decision, DependsOnTheWorstPair) {
  const Change change = [](Operation& o, double octaves) {
    const auto along = [=](std::int64_t k) { return octaves * static_cast<double>(k) / 545.0; };
    scale_along_k(o, Operand::kA, [&](std::int64_t k) { return -along(k); }, 1);
    scale_along_k(o, Operand::kB, along, 1);
  };
  for (const Problem& problem :
       {Problem::dense({3, 4, 545}), Problem::dense({4, 3, 545}, Op::kT, Op::kT)}) {
    for (const auto& [share, expected] : {std::pair{0.99, 6}, {1.01, 8}}) {
      SCOPED_TRACE(to_string(problem) + " at " + std::to_string(share));
      const Operation operation = with_amount(problem, change, 8.0, share);
      EXPECT_EQ(run(stage, operation, "128x64").decision, expected);
    }
  }
}

// Of few values all digits may be large: 1.2345, beside 1.474 times that, has digits 123 and 121.
// Elements with few bits besides a rounding error are summed almost exactly in FP32. Short
// significands need no rounding.
TEST_F(Int8Decision, DependsOnDigitsAndBits) {
  namespace model = models::int8x3;
  const auto decided = [](const std::function<float(float x, std::size_t i)>& element) {
    Operation operation(Problem::dense({40, 33, 545}));
    for (std::vector<float>* values : {&operation.a, &operation.b}) {
      for (std::size_t i = 0; i < values->size(); ++i) (*values)[i] = element((*values)[i], i);
    }
    const auto a = operation.all_rows(Operand::kA), b = operation.all_rows(Operand::kB);
    const double summed = models::summed_in_fp32(product_of(operation.problem));
    const int products = run(outliers(), operation, "128x64").decision;
    EXPECT_EQ(products, model::decision(model::statistics(a, b), summed, true));
    return products;
  };
  const auto larger = [](std::size_t i) { return i * 7919 % 545 < 5 ? 1.474F : 1.0F; };  // some
  EXPECT_EQ(decided([&](float x, std::size_t i) {
              return std::copysign((0.75F + x * x / 4.0F) * larger(i), x);
            }),
            6);
  EXPECT_GT(decided([&](float x, std::size_t i) { return std::copysign(1.2345F * larger(i), x); }),
            6);
  const auto integer = [](float x) { return std::copysign(8.0F + std::round(x), x); };
  EXPECT_EQ(decided([&](float x, std::size_t) { return integer(x); }), 6);
  EXPECT_EQ(decided([&](float x, std::size_t i) {
              return integer(x) * (i % 3 == 0 ? 1.0F + 0x1p-23F : 1.0F);
            }),
            10);
}

// 31 values whose roundings to digits have a mean far from 0, beside elements of one sign.
TEST_F(Int8Decision, DependsOnRoundingsOfFewValues) {
  namespace model = models::int8x3;
  const std::int64_t m = 40, n = 33, k = 1090;
  std::vector<float> few{1.0F};  // the row's scale, then others of either sign
  for (float x = 1.0F; few.size() < 31; x -= 0x1.8p-12F) {
    const float signed_x = few.size() % 2 == 0 ? x : -x;
    const std::array<float, 2> row{1.0F, signed_x};
    if (model::quantized({row.data(), 1, 2, 2, 1}, 0).tails[1] > 40) few.push_back(signed_x);
  }
  const auto expect_ten = [&](const Problem& problem, Operand of_few) {
    SCOPED_TRACE(to_string(problem) + (of_few == Operand::kA ? " A" : " B"));
    Operation operation(problem);
    for (const Operand operand : {Operand::kA, Operand::kB}) {
      std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
      for (std::size_t i = 0; i < values.size(); ++i) {
        // The first of several matrices has many values.
        const bool is_first = problem.batch > 1 && i < values.size() / 3;
        if (operand != of_few) {
          values[i] = std::fabs(values[i]);
        } else if (!is_first) {
          values[i] = few[i * i % 1009 % few.size()];
        }
      }
    }
    model::Statistics of =
        model::statistics(operation.all_rows(Operand::kA), operation.all_rows(Operand::kB));
    const double summed = models::summed_in_fp32(product_of(problem));
    EXPECT_EQ(run(outliers(), operation, "128x64").decision, model::decision(of, summed, true));
    EXPECT_EQ(model::decision(of, summed, true), 10);
    of.digits.rounded_a = of.digits.rounded_b = 1.0;
    EXPECT_EQ(model::decision(of, summed, true), 6);
  };
  for (const Operand of_few : {Operand::kA, Operand::kB}) {
    for (const Op op : {Op::kN, Op::kT}) expect_ten(Problem::dense({m, n, k}, op, op), of_few);
    Problem batch = Problem::dense({m, n, k}, Op::kN, Op::kN, 3);
    expect_ten(batch, of_few);
    (of_few == Operand::kA ? batch.stride_b : batch.stride_a) = 0;
    expect_ten(batch, of_few);
  }
}

TEST_F(Int8Decision, TakesFp64WhereEightProductsAreInaccurate) {
  const Problem problem = Problem::dense({4, 5, 144});
  expect_threshold(problem, {Operand::kA, 0, 3}, 8, kNoDigits);
  expect_threshold(problem, {Operand::kB, 0, 0}, 8, kNoDigits);
}

// All elements are rounded to the same side: six products have an error of 2^-23.
TEST_F(Int8Decision, TakesTenProductsOfAlmostEqualElements) {
  const auto decided = [](float of_a, float of_b, const Stage& by) {
    Operation operation(Problem::dense({9, 8, 400}));
    for (float& x : operation.a) x = of_a + 1e-7F * x;
    for (float& x : operation.b) x = of_b * (1.0F + 1e-7F * x);
    const int products = run(by, operation, "128x64").decision;
    EXPECT_EQ(products,
              models::int8x3::decision(models::int8x3::statistics(operation.all_rows(Operand::kA),
                                                                  operation.all_rows(Operand::kB)),
                                       models::summed_in_fp32(product_of(operation.problem)),
                                       &by == &outliers()));
    return products;
  };
  EXPECT_EQ(decided(1.0F, -0.7F, stage), kNoDigits);  // a small call has no ten products
  EXPECT_EQ(decided(1.0F, -0.7F, outliers()), 10);
  EXPECT_EQ(decided(0.0F, -0.7F, stage), 6);
  EXPECT_EQ(decided(1.0F, 0.0F, stage), 6);  // of zeros
}

// Their factors are rounded, too, each for a whole row.
TEST_F(Int8Decision, TenProductsOfAlmostEqualElementsRoundTheResultOnly) {
  constexpr std::int64_t kRows = 37, kCols = 29, kK = 400;
  Operation operation(Problem::dense({kRows, kCols, kK}, Op::kN, Op::kT));
  for (std::size_t i = 0; i < operation.a.size(); ++i) {
    operation.a[i] =
        (1.0F + 0.0113F * static_cast<float>(i / kK)) * (1.0F + 1e-7F * operation.a[i]);
  }
  for (std::size_t i = 0; i < operation.b.size(); ++i) {
    operation.b[i] =
        (1.0F + 0.0171F * static_cast<float>(i / kK)) * (1.0F + 1e-7F * operation.b[i]);
  }
  const Result result = run(outliers(), operation, "128x64");
  ASSERT_EQ(result.decision, 10);
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t col = 0; col < kCols; ++col) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < kK; ++k) {
        sum += static_cast<double>(operation.a[static_cast<std::size_t>(row * kK + k)]) *
               operation.b[static_cast<std::size_t>(col * kK + k)];
      }
      ASSERT_NEAR(result.c[static_cast<std::size_t>(row * kCols + col)], sum, 0x1p-24 * sum)
          << row << ", " << col;
    }
  }
}

// Nothing is rounded.
TEST_F(Int8Decision, TakesSixProductsOfEqualShortElements) {
  Operation operation(Problem::dense({9, 8, 400}));
  std::fill(operation.a.begin(), operation.a.end(), 1.0F);
  std::fill(operation.b.begin(), operation.b.end(), 3.0F);
  EXPECT_EQ(run(stage, operation, "128x64").decision, 6);
}

// By the same kernel: zero times infinity is NaN, and rows without either are as they were.
void expect_fp64(const Shape& shape, const char* configuration) {
  Operation operation(Problem::dense(shape));
  operation.a[5] = std::numeric_limits<float>::infinity();
  operation.b[static_cast<std::size_t>(5 * shape.n + 3)] = 0.0F;
  const Result result = run(stage, operation, configuration);
  EXPECT_EQ(result.decision, kNoDigits);
  EXPECT_TRUE(std::isnan(result.c[3]));
  EXPECT_TRUE(std::isinf(result.c[4]));
  for (std::int64_t row = 1; row < shape.m; ++row) {
    for (std::int64_t col = 0; col < shape.n; ++col) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < shape.k; ++k) {
        sum += static_cast<double>(operation.a[static_cast<std::size_t>(row * shape.k + k)]) *
               operation.b[static_cast<std::size_t>(k * shape.n + col)];
      }
      ASSERT_NEAR(result.c[static_cast<std::size_t>(row * shape.n + col)], sum, 2e-5) << row;
    }
  }
}

TEST_F(Int8Decision, TakesFp64ForNonFiniteOperands) { expect_fp64({130, 70, 300}, "128x64"); }

}  // namespace
}  // namespace tilegate::int8x3
