// The whole rung: the bits that an H200 gave, which path the device decides for, and small elements
// beside large ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/fp16x3.hpp>

#include "models/fp16x3.hpp"
#include "models/layout.hpp"
#include "split_call.hpp"

namespace tilegate::fp16x3 {
namespace {

constexpr int kThree = 3, kFp64 = 64;  // decisions

class Fp16Gemm : public SplitTest<stage> {};

std::uint32_t checksum(const std::vector<float>& values) {
  std::uint32_t sum = 0;
  for (const float value : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    sum = (sum ^ bits) * 0x01000193U;
  }
  return sum;
}

namespace model = models::fp16x3;

// As the plan of a C of fewer than 16 tiles knows them.
model::Summed summed_of(std::int64_t k) {
  const double part = models::summed_in_fp32({1, 1, k});
  return {static_cast<double>(k), models::products_in_fp32(k, part),
          models::products_of_one_sign_in_fp32(k, part)};
}

// The result has the model's bits, in the runs that the model decides for.
void expect_model(const Operation& operation, int run_chunks, Result* result = nullptr) {
  SCOPED_TRACE(to_string(operation.problem));
  EXPECT_EQ(model::decision(model::statistics(operation.all_rows(Operand::kA)),
                            model::statistics(operation.all_rows(Operand::kB)),
                            summed_of(operation.problem.shape.k)),
            run_chunks);
  const Result found = run(stage, operation);
  EXPECT_EQ(found.decision, kThree);
  expect_same_bits(found.c, operation.expected([&](const models::Rows& a, const models::Rows& b,
                                                   const models::Epilogue& epilogue) {
    return model::product(a, b, run_chunks, epilogue);
  }));
  if (result != nullptr) *result = found;
}

// Odd numbers of chunks and runs, several tiles, more rows than a block of the split pass keeps;
// the last with long runs.
TEST_F(Fp16Gemm, MatchesModelAndAnH200) {
  const auto bits = [](const Problem& problem, int run_chunks = 1) {
    Result result;
    expect_model(Operation(problem), run_chunks, &result);
    return checksum(result.c);
  };
  EXPECT_EQ(bits(Problem::dense({131, 67, 133})), 0x7F5E8BDFU);
  EXPECT_EQ(bits(Problem::dense({20, 140, 300}, Op::kT, Op::kT)), 0x9E44CA96U);
  EXPECT_EQ(bits(Problem::dense({3, 5, 2500}, Op::kN, Op::kT)), 0xB73B3269U);
  EXPECT_EQ(bits(Problem::dense({40, 70, 130}, Op::kT, Op::kN, 3)), 0xB5201FD8U);
  EXPECT_EQ(bits(Problem::dense({3, 5, 30000}, Op::kN, Op::kT), 2), 0x6E1FFF7EU);
}

// Scales at both ends of the range, elements far smaller than the largest, zeros; scaled by alpha
// and added to beta·C.
TEST_F(Fp16Gemm, MatchesModelForEdgeValues) {
  constexpr std::int64_t k = 250;
  Problem problem = Problem::dense({14, 9, k}, Op::kN, Op::kT);
  set_alpha_and_beta(problem);
  Operation operation(problem);
  const auto set_row = [&](std::vector<float>& of, std::int64_t row, auto value) {
    for (std::int64_t i = 0; i < k; ++i) {
      float& element = of[static_cast<std::size_t>(row * k + i)];
      element = value(element, i);
    }
  };
  set_row(operation.a, 0, [](float x, std::int64_t) { return 0x1p50F * x; });
  set_row(operation.a, 1, [](float x, std::int64_t) { return 0x1.8p-54F * x; });
  set_row(operation.a, 2, [](float, std::int64_t) { return 0.0F; });
  set_row(operation.a, 3, [](float x, std::int64_t) { return x < 0 ? -0x1.FFFFFEp0F : 0x1p0F; });
  set_row(operation.a, 4, [](float x, std::int64_t i) { return i == 9 ? 0x1p9F : x; });
  set_row(operation.a, 5, [](float x, std::int64_t i) { return i % 30 == 0 ? x * 0x1p-25F : x; });
  set_row(operation.a, 6, [](float x, std::int64_t i) { return i % 2 == 0 ? 1.0F : x - 1.0F; });
  set_row(operation.b, 0, [](float x, std::int64_t) { return 0x1p-54F * x; });
  set_row(operation.b, 1, [](float x, std::int64_t i) { return i % 50 == 0 ? 0x1p-149F : x; });
  set_row(operation.b, 2, [](float x, std::int64_t) { return std::rint(2047.0F * x); });
  expect_model(operation, 1);
}

// 16 runs make a sum: one fewer, one more, and one more of a second sum; of one chunk, and of two.
TEST_F(Fp16Gemm, MatchesModelForSumsOfRuns) {
  for (const std::int64_t k : {480, 513, 1056}) {
    expect_model(Operation(Problem::dense({2, 3, k}, Op::kN, Op::kT)), 1);
  }
}

// Elements of which a share counts; those of one row fewer, so that by all rows halves are as
// accurate as FP32 1 % below a threshold, and 1 % above it not.
void expect_threshold(const Problem& problem, Operand operand, std::int64_t product,
                      std::int64_t row) {
  SCOPED_TRACE(to_string(problem) + (operand == Operand::kA ? " row " : " column ") +
               std::to_string(row) + " of product " + std::to_string(product));
  for (const double share : {0.99, 1.01}) {
    Operation operation(problem);
    std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
    const models::Rows rows = operation.rows(operand, product);
    const auto first = rows.data - values.data();
    for (std::vector<float>* all : {&operation.a, &operation.b}) {
      for (float& x : *all) x = std::copysign(0.5F + std::fabs(x) / 2.0F, x);
    }
    for (std::size_t i = 0; i < values.size(); i += 4) values[i] *= 0x1p-30F;
    const auto error = [&] {
      return model::expected_error(1, model::statistics(operation.all_rows(Operand::kA)),
                                   model::statistics(operation.all_rows(Operand::kB)),
                                   summed_of(rows.k));
    };
    for (std::int64_t k = 0; k < rows.k && error() < share; ++k) {
      values[static_cast<std::size_t>(first + row * rows.next_row + k * rows.next_k)] = 0x1p-30F;
    }
    EXPECT_NEAR(error(), share, 0.008);
    EXPECT_EQ(run(stage, operation).decision, share < 1.0 ? kThree : kFp64) << "at " << share;
  }
}

TEST_F(Fp16Gemm, DecisionDependsOnEveryRow) {
  const Problem problem = Problem::dense({3, 2, 250});
  expect_threshold(problem, Operand::kA, 0, 2);
  expect_threshold(problem, Operand::kB, 0, 1);
}

// The last of a whole chunk, and one alone in its chunk, of whose statistics the second warp takes
// notice.
TEST_F(Fp16Gemm, TakesFp64WhereARowCannotBeScaled) {
  for (const std::int64_t rows : {128, 257}) {
    Operation wide_row(Problem::dense({rows, 3, 130}, Op::kN, Op::kN));
    wide_row.a.back() = 0x1p61F;
    EXPECT_EQ(run(stage, wide_row).decision, kFp64) << rows;
    Operation wide_column(Problem::dense({3, rows, 130}, Op::kT, Op::kT));
    wide_column.b.back() = 0x1p61F;
    EXPECT_EQ(run(stage, wide_column).decision, kFp64) << rows;
  }
}

TEST_F(Fp16Gemm, DecisionDependsOnEveryMatrixOfABatch) {
  Problem batch = Problem::dense({2, 2, 250}, Op::kT, Op::kT, 2);
  expect_threshold(batch, Operand::kA, 1, 1);
  batch.stride_b = 0;
  expect_threshold(batch, Operand::kA, 1, 0);
  expect_threshold(batch, Operand::kB, 0, 1);
}

TEST_F(Fp16Gemm, IsNotTakenForSmallK) {
  const auto taken = [](const Shape& shape) {
    return stage.plan(Problem::dense(shape)).configuration();
  };
  EXPECT_EQ(taken({2048, 2048, 128}), "128x128");
  EXPECT_EQ(taken({2048, 2048, 127}), "fp32");
}

TEST_F(Fp16Gemm, DecisionDependsOnTheOperands) {
  const auto decided = [](const std::function<void(Operation&)>& change) {
    Operation operation(Problem::dense({9, 8, 800}));
    change(operation);
    return run(stage, operation).decision;
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(decided([](Operation&) {}), kThree);
  const auto of_one_sign = [](std::vector<float>& values) {
    for (float& value : values) value = std::fabs(value);
  };
  EXPECT_EQ(decided([&](Operation& o) { of_one_sign(o.a); }), kThree);
  EXPECT_EQ(decided([&](Operation& o) { of_one_sign(o.a), of_one_sign(o.b); }), kFp64);
  EXPECT_EQ(decided([](Operation& o) { o.a[77] = kInf; }), kFp64);
  EXPECT_EQ(decided([](Operation& o) { o.b[77] = std::nanf(""); }), kFp64);
  EXPECT_EQ(decided([](Operation& o) { o.b[77] = 0x1p61F; }), kFp64);
  EXPECT_EQ(decided([](Operation& o) { std::fill_n(o.a.begin(), 800, 0.0F); }), kThree);
  EXPECT_EQ(decided([](Operation& o) { std::fill_n(o.a.begin(), o.a.size() * 9 / 10, 0.0F); }),
            kFp64);
  EXPECT_EQ(decided([](Operation& o) {
              for (std::size_t i = 0; i < o.a.size(); ++i) o.a[i] *= i % 9 == 0 ? 1.0F : 0x1p-30F;
            }),
            kFp64);
}

// The first `count` elements of a row or column are 1 or -1, the others too small to count
// beside 1.
void keep(Operation& operation, Operand operand, std::int64_t row, std::int64_t count) {
  const models::Rows rows = operation.rows(operand, 0);
  std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
  for (std::int64_t k = 0; k < rows.k; ++k) {
    float& x = values[static_cast<std::size_t>(row * rows.next_row + k * rows.next_k)];
    x = k < count ? std::copysign(1.0F, x) : 0x1p-17F;
  }
}

// An eighth of K, or one element less; on average over the rows far more count.
TEST_F(Fp16Gemm, TakesFp64WhereFewElementsOfARowCount) {
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    for (const std::int64_t row : {0, 7}) {
      for (const std::int64_t count : {100, 99}) {
        Operation operation(Problem::dense({8, 8, 800}));
        keep(operation, operand, row, count);
        EXPECT_EQ(run(stage, operation).decision, count == 100 ? kThree : kFp64)
            << (operand == Operand::kA ? "row " : "column ") << row;
      }
    }
  }
}

// One large element in each row of A, in each column of B, or in a single one of them.
TEST_F(Fp16Gemm, TakesFp64WhereFewProductsMakeUpAnElement) {
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    for (const std::int64_t count : {8, 1}) {
      Operation operation(Problem::dense({8, 8, 800}));
      const models::Rows rows = operation.rows(operand, 0);
      std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
      const auto set = [&](float x) {
        for (std::int64_t row = 0; row < count; ++row) {
          values[static_cast<std::size_t>(row * rows.next_row + 5 * rows.next_k)] = x;
        }
      };
      set(2.0F);
      EXPECT_EQ(run(stage, operation).decision, kThree);
      set(500.0F);
      EXPECT_EQ(run(stage, operation).decision, kFp64);
    }
  }
}

TEST_F(Fp16Gemm, TakesFp64ForElementsThatAreAlmostEqual) {
  const auto decided = [](const std::function<float(float)>& a,
                          const std::function<float(float)>& b) {
    Operation operation(Problem::dense({9, 8, 128}));
    for (float& x : operation.a) x = a(x);
    for (float& x : operation.b) x = b(x);
    return run(stage, operation).decision;
  };
  const auto equal = [](float x) { return 1.0F + 1e-7F * x; };
  const auto less_equal = [](float x) { return 0.9F + 0.1F * x; };
  EXPECT_EQ(decided(equal, equal), kFp64);
  EXPECT_EQ(decided(equal, [](float x) { return -7.0F - 1e-3F * x; }), kFp64);
  EXPECT_EQ(decided(equal, less_equal), kThree);
  EXPECT_EQ(decided(less_equal, equal), kThree);
  EXPECT_EQ(decided(equal, [](float x) { return std::copysign(1.0F, x); }), kThree);
}

// By the same kernel: zero times infinity is NaN, and rows without either are as they were.
TEST_F(Fp16Gemm, TakesFp64ForNonFiniteOperands) {
  Operation operation(Problem::dense({130, 70, 600}));
  operation.a[5] = std::numeric_limits<float>::infinity();
  operation.b[5 * 70 + 3] = 0.0F;
  const Result result = run(stage, operation);
  EXPECT_EQ(result.decision, kFp64);
  EXPECT_TRUE(std::isnan(result.c[3]));
  EXPECT_TRUE(std::isinf(result.c[4]));
  EXPECT_TRUE(std::all_of(result.c.begin() + 70, result.c.end(),
                          [](float value) { return std::isfinite(value); }));
}

// What tensor cores cut off, and what is lost when a run is added, does not grow with K: 1.1e-7 of
// the product, where 32 runs that are simply added are off by 1.8e-7.
TEST_F(Fp16Gemm, IsAsAccurateForLongK) {
  constexpr std::int64_t m = 24, n = 40, k = 1024;
  const Operation operation(Problem::dense({m, n, k}));
  const Result result = run(stage, operation);
  EXPECT_EQ(result.decision, kThree);
  double error = 0.0, squares = 0.0;
  for (std::int64_t i = 0; i < m * n; ++i) {
    double sum = 0.0;
    for (std::int64_t x = 0; x < k; ++x) {
      sum += static_cast<double>(operation.a[i / n * k + x]) * operation.b[x * n + i % n];
    }
    error += (result.c[i] - sum) * (result.c[i] - sum);
    squares += sum * sum;
  }
  EXPECT_LE(std::sqrt(error / squares), 1.35e-7);
}

// Elements of 2^-12 beside some of 1 keep 23 bits: with three digits of 8 they would keep 11.
TEST_F(Fp16Gemm, KeepsSmallElementsBesideLargeOnes) {
  constexpr std::int64_t k = 512;
  Operation operation(Problem::dense({1, 1, k}));
  double expected = 0.0, magnitudes = 0.0;
  for (std::size_t i = 0; i < k; ++i) {
    operation.a[i] = i % 16 == 0 ? 1.0F : i % 16 == 8 ? -1.0F : operation.a[i] * 0x1p-12F;
    if (i % 8 == 0) operation.b[i] *= 0x1p-12F;
    const double product = static_cast<double>(operation.a[i]) * operation.b[i];
    expected += product;
    magnitudes += std::fabs(product);
  }
  const Result result = run(stage, operation);
  EXPECT_EQ(result.decision, kThree);
  EXPECT_LE(std::fabs(result.c[0] - expected), 4e-7 * magnitudes);
}

}  // namespace
}  // namespace tilegate::fp16x3
