// A search for operands on which halves, or planes, are less accurate than cuBLAS in FP32.
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/bf16x6.hpp>

#include "accuracy_search.hpp"
#include "split_call.hpp"

namespace tilegate::bf16x6 {
namespace {

// cuBLAS adds 112 products one after another where C has 16 to 63 tiles (cublas_error.hpp).
const search::Family kFewValuesToo{.rows = 16, .cols = 12, .products = 512, .chain = 112};
const search::Family kManyValues{.rows = 16,
                                 .cols = 12,
                                 .products = 512,
                                 .chain = 112,
                                 .unused = {search::kShort, search::kNoise, search::kLevels}};

search::Multiply multiply_by(int path) {
  return [path](const Operation& operation) -> std::optional<std::vector<float>> {
    Result result = run(stage, operation, "128x64");
    if (result.decision != path) return {};
    return std::move(result.c);
  };
}

void expect_at_most(double most, const search::Family& family, int path, double zeros,
                    unsigned seed) {
  search::expect_at_most(most, family, multiply_by(path), zeros, seed);
}

class Bf16Search : public SplitTest<stage> {};

// What the longer search of the night finds is on the page of the rung: planes 2.3 times as
// inaccurate as cuBLAS, 3.1 times with few bits or few values, halves less than 1.25 times.
TEST_F(Bf16Search, FindsNoHalvesFarLessAccurateThanCublas) {
  expect_at_most(1.25, kFewValuesToo, 3, 0.8, 1);
}
// What it found where elements of three bits got back as much as others: 1.45.
TEST_F(Bf16Search, FindsLittleLostWithElementsOfFewBits) {
  search::Genes genes{};
  auto& [a, b] = genes;
  a[search::kGrade] = 0.204, a[search::kAlternate] = 0.62, a[search::kShort] = 0.465;
  b[search::kGrade] = 0.329, b[search::kSign] = 0.484, b[search::kEqual] = 0.778;
  b[search::kShort] = 0.452, b[search::kLevels] = 0.386;
  EXPECT_LE(search::excess(kFewValuesToo, multiply_by(3), genes), 1.0);
}
TEST_F(Bf16Search, FindsNoPlanesFarLessAccurateThanCublas) {
  expect_at_most(2.4, kManyValues, 6, 0.6, 2);
}
TEST_F(Bf16Search, FindsNoPlanesOfFewValuesFarLessAccurateThanCublas) {
  expect_at_most(3.2, kFewValuesToo, 6, 0.6, 2);
}

}  // namespace
}  // namespace tilegate::bf16x6
