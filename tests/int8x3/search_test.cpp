// A search for operands on which digits are less accurate than cuBLAS in FP32. The models decide
// and multiply: they have the bits of the kernels (products_test.cpp), and take less time.
#include <optional>
#include <string>
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

// The most that the longer search of the night may find, times cuBLAS's error. Of few bits and few
// values it finds 1.14 by six products, 1.07 by eight: they vary more from row to row.
struct Search {
  std::string name;
  int products;
  unsigned seed;
  double most;
  std::vector<search::Parameter> unused;
};
const std::vector<search::Parameter> kFew = {search::kRounded},
                                     kMany = {search::kRounded, search::kShort, search::kNoise,
                                              search::kLevels};

class Int8Search : public testing::TestWithParam<Search> {};

TEST_P(Int8Search, FindsNothingLessAccurateThanCublas) {
  const Search& of = GetParam();
  expect_at_most(of.most, family_of(of.unused), of.products, of.seed);
}

INSTANTIATE_TEST_SUITE_P(Digits, Int8Search,
                         testing::Values(Search{"Six", 6, 1, 1.0, kMany},
                                         Search{"Eight", 8, 2, 1.0, kMany},
                                         Search{"Ten", 10, 3, 1.0, kMany},
                                         Search{"SixOfFewValues", 6, 1, 1.15, kFew},
                                         Search{"EightOfFewValues", 8, 2, 1.1, kFew},
                                         Search{"TenOfFewValues", 10, 3, 1.0, kFew}),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace tilegate::int8x3
