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

void expect_at_most(double most, int products, unsigned seed) {
  // Of a large C cuBLAS adds all products one after another. With rows of very different size one
  // result, and so chance, would make up the Frobenius norm.
  const search::Family family{.rows = 16,
                              .cols = 16,
                              .products = 1024,
                              .chain = 1024,
                              .octaves_of_rows = 2.0,
                              .unused = {search::kRounded}};
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

// What the longer search of the night finds: 1.14 times cuBLAS's error by six products, of few
// values, and 1.07 times by eight.
TEST(Int8Search, FindsNoSixProductsFarLessAccurateThanCublas) { expect_at_most(1.15, 6, 1); }
TEST(Int8Search, FindsNoEightProductsFarLessAccurateThanCublas) { expect_at_most(1.1, 8, 2); }
TEST(Int8Search, FindsNoTenProductsLessAccurateThanCublas) { expect_at_most(1.0, 10, 3); }

}  // namespace
}  // namespace tilegate::int8x3
