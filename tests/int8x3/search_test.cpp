// A search for operands on which digits are less accurate than cuBLAS in FP32. The models decide
// and multiply: they have the bits of the kernels (products_test.cpp), and take less time.
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "accuracy_search.hpp"
#include "int8x3/run.hpp"

namespace tilegate::int8x3 {
namespace {

namespace model = models::int8x3;

// Of a large C cuBLAS adds all products one after another. With rows of very different size one
// result, and so chance, would make up the Frobenius norm.
search::Family family_of(const std::vector<search::Parameter>& unused) {
  return {.rows = 16,
          .cols = 16,
          .products = 1024,
          .chain = 1024,
          .octaves_of_rows = 2.0,
          .unused = unused};
}

void expect_at_most(double most, const search::Family& family, int products, unsigned seed) {
  search::expect_at_most(
      most, family,
      [&](const Operation& operation) -> std::optional<std::vector<float>> {
        const auto a = operation.all_rows(Operand::kA), b = operation.all_rows(Operand::kB);
        const double summed = static_cast<double>(family.chain);
        if (model::decision(model::statistics(a, b), summed, true) != products) return {};
        return model::product(a[0], b[0], products);
      },
      0.7, seed);
}

const search::Family kManyValues =
    family_of({search::kRounded, search::kShort, search::kNoise, search::kLevels});

TEST(Int8Search, FindsNoSixProductsLessAccurateThanCublas) {
  expect_at_most(1.0, kManyValues, 6, 1);
}
TEST(Int8Search, FindsNoEightProductsLessAccurateThanCublas) {
  expect_at_most(1.0, kManyValues, 8, 2);
}
TEST(Int8Search, FindsNoTenProductsLessAccurateThanCublas) {
  expect_at_most(1.0, kManyValues, 10, 3);
}

// Few bits and few values, too. What the longer search of the night finds: 1.14 times cuBLAS's
// error by six products, 1.07 times by eight. Few values vary more from row to row.
const search::Family kFewValuesToo = family_of({search::kRounded});

TEST(Int8Search, FindsNoSixProductsOfFewValuesFarLessAccurateThanCublas) {
  expect_at_most(1.15, kFewValuesToo, 6, 1);
}
TEST(Int8Search, FindsNoEightProductsOfFewValuesFarLessAccurateThanCublas) {
  expect_at_most(1.1, kFewValuesToo, 8, 2);
}
TEST(Int8Search, FindsNoTenProductsOfFewValuesLessAccurateThanCublas) {
  expect_at_most(1.0, kFewValuesToo, 10, 3);
}

}  // namespace
}  // namespace tilegate::int8x3
