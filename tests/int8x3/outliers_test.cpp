// Outliers apart: the GEMM multiplies digits of all other elements, and their products in FP32 are
// added to C.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "int8x3/run.hpp"
#include "models/layout.hpp"

namespace tilegate::int8x3 {
namespace {

class Int8Outliers : public SplitTest<stage> {
 protected:
  void SetUp() override {
    const std::string why =
        check_device({.compute_capability = 90, .no_later = true}, device::current()).message();
    if (why.empty()) return;
    RecordProperty(kNotOnThisDevice, why);
    GTEST_SKIP() << why;
  }
};

// Elements of ±0.75 to ±1, but for some outliers.
struct WithOutliers {
  Operation whole, kept;                 // as it is, and with zeros in place of outliers
  std::set<std::size_t> of_a{}, of_b{};  // offsets

  explicit WithOutliers(const Problem& problem) : whole(problem), kept(problem) {
    for (std::vector<float>* values : {&whole.a, &whole.b}) {
      for (float& x : *values) x = std::copysign(0.75F + x * x / 4.0F, x);
    }
    kept = whole;
  }

  // (row, k) of op(A), or of the transposed op(B).
  void set(Operand operand, std::int64_t product, std::int64_t row, std::int64_t k, float value,
           bool is_outlier = true) {
    const models::Rows rows = whole.rows(operand, product);
    std::vector<float>& values = operand == Operand::kA ? whole.a : whole.b;
    const auto at =
        static_cast<std::size_t>(rows.data - values.data() + row * rows.next_row + k * rows.next_k);
    values[at] = value;
    (operand == Operand::kA ? kept.a : kept.b)[at] = is_outlier ? 0.0F : value;
    if (is_outlier) (operand == Operand::kA ? of_a : of_b).insert(at);
  }

  // Outliers of a row, as the kernel orders them.
  struct Outlier {
    std::int64_t k;
    float value;
  };
  std::vector<Outlier> outliers(Operand operand, std::int64_t product, std::int64_t row) const {
    const models::Rows rows = whole.rows(operand, product);
    const bool is_a = operand == Operand::kA;
    const auto first = rows.data - (is_a ? whole.a : whole.b).data();
    std::vector<Outlier> found;
    for (std::int64_t k = 0; k < rows.k; ++k) {
      const auto at = static_cast<std::size_t>(first + row * rows.next_row + k * rows.next_k);
      if ((is_a ? of_a : of_b).contains(at)) found.push_back({k, rows.at(row, k)});
    }
    // A thread has 16 k of each 512, or of each 128 where rows do not lie along k.
    const std::int64_t block_k = rows.next_k == 1 ? 512 : 128;
    std::stable_sort(found.begin(), found.end(), [&](const Outlier& x, const Outlier& y) {
      return x.k % block_k / 16 < y.k % block_k / 16;
    });
    return found;
  }

  // How the sampled rows and columns match without what the sample takes for outliers.
  models::int8x3::Match match() const {
    return models::int8x3::match(whole.all_rows(Operand::kA), whole.all_rows(Operand::kB), true);
  }
  // The products of digits that are accurate enough for the kept elements.
  int decision() const { return decision(match()); }
  int decision(const models::int8x3::Match& match) const {
    const Problem& problem = whole.problem;
    namespace model = models::int8x3;
    const auto a = kept.all_rows(Operand::kA), b = kept.all_rows(Operand::kB);
    const model::Statistics statistics{model::kept_widths(a),
                                       model::kept_widths(b),
                                       match,
                                       true,
                                       model::digit_squares(a, b, match, true),
                                       static_cast<double>((a[0].k + 31) / 32 * 32)};
    return model::decision(statistics, models::summed_in_fp32(product_of(problem)), true);
  }

  // Digits of the kept elements, then the products of outliers. Those of a column are added for
  // 6144 k at a time.
  std::vector<float> expected(int products) const {
    std::vector<float> c = int8x3::expected(kept, products);
    std::size_t at = 0;
    for (std::int64_t i = 0; i < whole.problem.batch; ++i) {
      const models::Rows a = whole.rows(Operand::kA, i), kept_a = kept.rows(Operand::kA, i),
                         b = whole.rows(Operand::kB, i);
      for (std::int64_t row = 0; row < a.count; ++row) {
        const auto of_row = outliers(Operand::kA, i, row);
        for (std::int64_t col = 0; col < b.count; ++col, ++at) {
          const auto of_col = outliers(Operand::kB, i, col);
          float sum = 0.0F;
          for (std::int64_t first = 0; first < a.k; first += 6144) {
            for (const Outlier& outlier : of_col) {
              if (outlier.k < first || outlier.k >= first + 6144) continue;
              sum = std::fma(kept_a.at(row, outlier.k), outlier.value, sum);
            }
          }
          for (const Outlier& outlier : of_row) {
            sum = std::fma(outlier.value, b.at(col, outlier.k), sum);
          }
          if (!of_col.empty() || !of_row.empty()) {
            c[at] = std::fma(whole.problem.alpha, sum, c[at]);
          }
        }
      }
    }
    return c;
  }
};

void expect_outliers_apart(const WithOutliers& operation, int products,
                           const std::string& configuration = "128x64") {
  SCOPED_TRACE(configuration + " " + to_string(operation.whole.problem));
  const Result result = run(outliers(), operation.whole, configuration);
  EXPECT_EQ(result.decision, products);
  expect_same_bits(result.c, operation.expected(products));
}

// In the first and the last row, column and k; of both signs; one row with as many as there may be.
WithOutliers with_outliers(const Problem& problem, float size = 1e6F) {
  WithOutliers operation(problem);
  const auto [m, n, k] = problem.shape;
  for (std::int64_t product = 0; product < problem.batch; ++product) {
    if (product == 0 || problem.stride_a != 0) {
      operation.set(Operand::kA, product, 0, 0, size);
      operation.set(Operand::kA, product, m - 1, k - 1, -3 * size);
      for (std::int64_t i = 0; i < 4; ++i) {
        operation.set(Operand::kA, product, m / 2, 5 + 31 * i, size * static_cast<float>(i + 1));
      }
    }
    if (product == 0 || problem.stride_b != 0) {
      operation.set(Operand::kB, product, 0, k - 1, 2 * size);
      operation.set(Operand::kB, product, n - 1, 5, -size);
      operation.set(Operand::kB, product, n - 1, 0, size);  // of equal magnitude
    }
  }
  return operation;
}

// The k of the other elements are graded in opposite directions.
TEST_F(Int8Outliers, DependOnHowTheOthersMatch) {
  constexpr std::int64_t kK = 416;
  WithOutliers operation(Problem::dense({18, 20, kK}, Op::kN, Op::kT));
  for (auto* of : {&operation.whole, &operation.kept}) {
    for (std::size_t i = 0; i < of->a.size(); ++i) {
      of->a[i] *= std::exp2(-2.0F * static_cast<float>(i % kK) / kK);
    }
    for (std::size_t i = 0; i < of->b.size(); ++i) {
      of->b[i] *= std::exp2(2.0F * static_cast<float>(i % kK) / kK);
    }
  }
  operation.set(Operand::kA, 0, 3, 5, 1e6F);
  operation.set(Operand::kB, 0, 7, 200, -1e7F);
  const int products = operation.decision();
  EXPECT_LT(operation.decision({}), products);
  expect_outliers_apart(operation, products);
}

TEST_F(Int8Outliers, MatchesModelInEveryForm) {
  for (const Op op_a : {Op::kN, Op::kT}) {
    for (const Op op_b : {Op::kN, Op::kT}) {
      for (const Shape& shape : {Shape{18, 20, 132}, Shape{21, 7, 131}}) {
        Problem problem = Problem::dense(shape, op_a, op_b);
        set_alpha_and_beta(problem);
        expect_outliers_apart(with_outliers(problem), 6);
      }
    }
  }
}

TEST_F(Int8Outliers, MatchesModelInEveryConfiguration) {
  for (const char* configuration : {"64x128pingpong", "128x128pairs"}) {
    expect_outliers_apart(with_outliers(Problem::dense({131, 67, 160})), 6, configuration);
  }
}

TEST_F(Int8Outliers, MatchesModelForBatches) {
  for (const int shared : {0, 1, 2}) {
    Problem problem = Problem::dense({17, 9, 130}, Op::kN, Op::kT, 3);
    if (shared == 1) problem.stride_a = 0;
    if (shared == 2) problem.stride_b = 0;
    set_alpha_and_beta(problem);
    expect_outliers_apart(with_outliers(problem), 6);
  }
}

// More slices of K than a block has threads for, and more than a strip has room for.
TEST_F(Int8Outliers, MatchesModelForLongRows) {
  expect_outliers_apart(with_outliers(Problem::dense({3, 5, 900})), 6);
  WithOutliers operation = with_outliers(Problem::dense({3, 3, 6180}));
  operation.set(Operand::kB, 0, 1, 6143, 1e6F);
  operation.set(Operand::kB, 0, 1, 6144, 1e6F);
  operation.set(Operand::kA, 0, 0, 6143, 1e6F);
  operation.set(Operand::kA, 0, 0, 6148, 1e6F);  // a row of a strip is not that long
  expect_outliers_apart(operation, 6);
}

// More columns than a strip has, more of a thread than one; more strips, and groups of rows, than
// blocks.
TEST_F(Int8Outliers, MatchesModelForManyStrips) {
  expect_outliers_apart(with_outliers(Problem::dense({3, 2070, 128})), 6);
  expect_outliers_apart(with_outliers(Problem::dense({2176, 2, 128})), 6);
}

// Of one operand alone; of rows alone no strip is loaded. The outliers of the row are up to 15
// octaves apart.
TEST_F(Int8Outliers, MatchesModelForOneOperand) {
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    for (const std::int64_t k : {0, 139}) {
      WithOutliers operation(Problem::dense({40, 33, 140}));
      operation.set(operand, 0, 32, k, 1e7F);
      operation.set(operand, 0, 32, 70, 0x1.6p38F);
      operation.set(operand, 0, 32, 101, -0x1.5p38F);
      expect_outliers_apart(operation, 6);
    }
  }
}

// What is left decides how many products.
TEST_F(Int8Outliers, DecidesByTheElementsThatAreLeft) {
  const auto with_large = [](float large) {  // of so many that they are no outliers
    WithOutliers operation(Problem::dense({4, 5, 400}));
    for (std::int64_t row = 0; row < 4; ++row) {
      for (int i = 0; i < 13; ++i) operation.set(Operand::kA, 0, row, 7 * i, large, false);
      for (int i = 0; i < 5; ++i) {
        operation.set(Operand::kB, 0, row, 11 * i, std::fmin(large, 200.0F), false);
      }
      for (int i = 0; i < 4; ++i) operation.set(Operand::kA, 0, row, 200 + i, 1e8F * large);
    }
    return operation;
  };
  std::set<int> decisions;
  for (const float large : {1.0F, 2.0F, 200.0F, 1e7F}) {
    const WithOutliers operation = with_large(large);
    decisions.insert(operation.decision());
    if (operation.decision() == kNoDigits) {
      EXPECT_EQ(run(outliers(), operation.whole, "128x64").decision, kNoDigits);
    } else {
      expect_outliers_apart(operation, operation.decision());
    }
  }
  EXPECT_EQ(decisions, (std::set{6, 8, 10, kNoDigits}));
}

// The fewer elements of a row are not zero, the shorter are the sums in FP32 to compare with.
TEST_F(Int8Outliers, DecidesByTheRowWithMostZeros) {
  std::set<int> decisions;
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    for (const std::int64_t filled : {200, 165, 110, 65}) {
      const bool of_a = operand == Operand::kA;
      const Shape shape{of_a ? 280 : 9, of_a ? 9 : 280, 400};
      WithOutliers operation(Problem::dense(shape, Op::kN, Op::kT));
      operation.set(operand, 0, 0, 3, 1e7F);
      for (std::int64_t k = filled; k < 400; ++k) operation.set(operand, 0, 270, k, 0.0F, false);
      for (std::int64_t k = 0; k < 400; ++k) operation.set(operand, 0, 20, k, 0.0F, false);
      decisions.insert(operation.decision());
      if (operation.decision() == kNoDigits) {
        EXPECT_EQ(run(outliers(), operation.whole, "128x64").decision, kNoDigits) << filled;
      } else {
        expect_outliers_apart(operation, operation.decision());
      }
    }
  }
  EXPECT_EQ(decisions, (std::set{6, 8, 10, kNoDigits}));
}

// Up to 4 elements from 2^4 typical magnitudes on, up to 16 from 2^9 on. Octaves stay whole.
TEST_F(Int8Outliers, ChoosesFewElementsFarAboveTheOthers) {
  WithOutliers operation = with_outliers(Problem::dense({9, 20, 201}));
  std::int64_t row = 1;  // of the transposed op(B)
  const auto add_row = [&](std::int64_t count, float value, bool are_outliers,
                           float typical = 0.8F) {
    for (std::int64_t k = 0; k < 201; ++k) {
      operation.set(Operand::kB, 0, row, k, k % 2 == 0 ? typical : -0.01F - typical, false);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      operation.set(Operand::kB, 0, row, 12 * i + 3, value + value / 64.0F * static_cast<float>(i),
                    are_outliers);
    }
    ++row;
  };
  add_row(1, 7.75F, false);  // the octave of 4; that of a typical magnitude is 0.5
  add_row(1, 8.0F, true);
  add_row(4, 8.0F, true);
  add_row(5, 8.0F, false);
  add_row(5, 100.0F, false);
  add_row(5, 129.0F, false);
  add_row(4, 257.0F, true);
  add_row(5, 257.0F, true);
  add_row(16, 257.0F, true);
  add_row(16, 0x1p20F, true);
  add_row(1, 8.0F, true, 1.02F);  // the mean of 51 approximate roots, squared, is 0.97
  for (std::int64_t i = 0; i < 16; ++i) operation.set(Operand::kA, 0, 3, 12 * i + 1, 0x1p20F);
  for (std::int64_t i = 0; i < 4; ++i) {  // of which the larger octave alone is far enough
    operation.set(Operand::kB, 0, row, 5 * i, 300.0F);
    operation.set(Operand::kB, 0, row, 5 * i + 1, 100.0F, false);
  }
  EXPECT_GT(operation.decision(), 6);
  expect_outliers_apart(operation, operation.decision());
}

// More are not set apart.
TEST_F(Int8Outliers, TakesFp64WhereThereAreTooMany) {
  for (const int count : {16, 17}) {
    WithOutliers operation(Problem::dense({4, 3, 8000}));
    for (int i = 0; i < count; ++i) {
      operation.set(Operand::kA, 0, 3, 23 * i, 1e9F * (1.0F + static_cast<float>(i) / 32.0F));
    }
    EXPECT_EQ(run(outliers(), operation.whole, "128x64").decision, count == 16 ? 6 : kNoDigits);
  }
}

// A sample of some rows shows it, so that no row is split again.
TEST_F(Int8Outliers, AreNotLookedForWhereTheRestIsTooWide) {
  for (const Op op : {Op::kN, Op::kT}) {
    for (const bool is_wide : {true, false}) {
      WithOutliers operation(Problem::dense({9, 8, 400}, op, op));
      std::mt19937 random(1);
      for (const Operand operand : {Operand::kA, Operand::kB}) {
        for (std::int64_t row = 0; row < (operand == Operand::kA ? 9 : 8); ++row) {
          for (std::int64_t k = 0; k < 400; ++k) {
            const float size = is_wide ? std::ldexp(1.0F, static_cast<int>(random() % 80) - 40)
                                       : (k == 7 ? 1e7F : 1.0F);
            const float value = size * (1.25F + static_cast<float>(random()) * 0x1p-34F);
            operation.set(operand, 0, row, k, k % 2 == 0 ? value : -value, false);
          }
        }
      }
      const Result result = run(outliers(), operation.whole, "128x64");
      EXPECT_EQ(result.decision == kNoDigits, is_wide);
      EXPECT_EQ(result.workspace[3], is_wide ? 0 : 1) << "outliers are apart";
    }
  }
}

// As in FP64: nothing is set apart.
TEST_F(Int8Outliers, LeavesOperandsThatAreNotFinite) {
  for (const float value : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    WithOutliers operation = with_outliers(Problem::dense({9, 5, 160}));
    operation.set(Operand::kA, 0, 3, 3, value);
    EXPECT_EQ(run(outliers(), operation.whole, "128x64").decision, kNoDigits);
  }
}

// The range of scales: such a row is computed in FP32, and has no outliers.
TEST_F(Int8Outliers, LeavesRowsThatCannotBeScaled) {
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    for (const float factor : {0x1p-66F, 0x1p62F}) {
      WithOutliers operation = with_outliers(Problem::dense({9, 7, 400}));
      for (std::int64_t k = 0; k < 400; ++k) {
        operation.set(operand, 0, 3, k, (k % 2 == 0 ? 0.9F : -0.8F) * factor, false);
      }
      EXPECT_EQ(run(outliers(), operation.whole, "128x64").decision, kNoDigits) << factor;
    }
    WithOutliers operation = with_outliers(Problem::dense({9, 7, 400}));
    operation.set(operand, 0, 3, 77, 0x1p61F);
    EXPECT_EQ(run(outliers(), operation.whole, "128x64").decision, kNoDigits);
  }
}

// Without the outliers they are all rounded to the same side.
TEST_F(Int8Outliers, TakesTenProductsOfAlmostEqualElements) {
  WithOutliers operation(Problem::dense({9, 8, 400}));
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    for (std::int64_t row = 0; row < (operand == Operand::kA ? 9 : 8); ++row) {
      for (std::int64_t k = 0; k < 400; ++k) {
        operation.set(operand, 0, row, k, 1.0321F + 1e-7F * static_cast<float>(k % 7), false);
      }
      operation.set(operand, 0, row, 31 * row, 1e6F);
    }
  }
  EXPECT_EQ(operation.decision(), 10);
  expect_outliers_apart(operation, 10);
}

// The squares of the others, in units of the largest outlier's, are no floats.
TEST_F(Int8Outliers, DecidesByTheMeanOfTinyElements) {
  WithOutliers operation(Problem::dense({9, 8, 400}));
  for (std::int64_t row = 0; row < 9; ++row) {
    for (std::int64_t k = 0; k < 400; ++k) {
      const float size = k % 40 == 0 ? 50.0F : 1.0F;  // too many to be set apart
      operation.set(Operand::kA, 0, row, k, (k % 2 == 0 ? 0x1.8p-50F : -0x1.9p-50F) * size, false);
    }
    operation.set(Operand::kA, 0, row, 31 * row, 0x1p55F);
  }
  EXPECT_GT(run(outliers(), operation.whole, "128x64").decision, 6);
}

TEST_F(Int8Outliers, AreLeftWhereAllElementsAreDigits) {
  Problem problem = Problem::dense({20, 30, 200});
  set_alpha_and_beta(problem);
  expect_model(outliers(), WithOutliers(problem).whole, 6, "128x64");
}

// The launches take time in every call.
TEST(Int8Plan, SetsOutliersApartInLargeCalls) {
  const Device device{
      .is_cuda = true, .name = "made up", .compute_capability = 90, .multiprocessors = 132};
  const auto bytes_of_row = [&](std::int64_t size) {
    const Plan plan = stage.plan(Problem::dense({size, size, size}), device, "64x128pingpong");
    return static_cast<std::int64_t>(plan.workspace_bytes()) / (2 * size);
  };
  constexpr std::size_t kPartials = std::size_t{132} * 128 * 128 * 4;  // of FP64
  EXPECT_LT(bytes_of_row(2048), 3 * 2048 + 8 + static_cast<std::int64_t>(kPartials) / (2 * 2048));
  EXPECT_GT(bytes_of_row(4096), 4 * 4096 + 4 + 32);  // tails, steps, outliers
  // With few rows and a long K a block would read too much.
  const auto bytes = [&](const Shape& shape) {
    return stage.plan(Problem::dense(shape), device, "128x64").workspace_bytes();
  };
  EXPECT_GT(bytes({3008, 3008, 3008}), std::size_t{4} * 2 * 3072 * 3008 + 2 * 3072 * 36);
  EXPECT_LT(bytes({1024, 1024, 16384}),
            std::size_t{4} * 2 * 1024 * 16384 + 2 * 1024 * 36 + kPartials);
}

}  // namespace
}  // namespace tilegate::int8x3
