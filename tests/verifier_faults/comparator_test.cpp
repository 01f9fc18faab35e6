// The comparators, each shown a single thing that differs.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

#include "verifier/case.hpp"
#include "verifier/guarded_matrix.hpp"
#include "verifier/oracle.hpp"

namespace tilegate::verifier {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kBigInf = std::numeric_limits<double>::infinity();

TEST(Within, ComparesWithTheBound) {
  const Tolerance tolerance{.gamma = 0.25, .underflow = 0.0};
  EXPECT_TRUE(within(1.5F, 1.0, 2.0, tolerance));
  EXPECT_FALSE(within(std::nextafter(1.5F, 2.0F), 1.0, 2.0, tolerance));
  EXPECT_TRUE(within(0.5F, 1.0, 2.0, tolerance));
  EXPECT_FALSE(within(std::nextafter(0.5F, 0.0F), 1.0, 2.0, tolerance));
  EXPECT_FALSE(within(1.5F, 1.0, 1.0, tolerance)) << "the scale counts";
}

TEST(Within, ExactMeansEqual) {
  EXPECT_TRUE(within(3.0F, 3.0, 100.0, {}));
  EXPECT_FALSE(within(std::nextafter(3.0F, 4.0F), 3.0, 100.0, {}));
  EXPECT_FALSE(within(1.0F, 1.0 + 1e-12, 100.0, {})) << "not even where float32 cannot tell";
}

TEST(Within, SignedZerosAreEqual) {
  EXPECT_TRUE(within(-0.0F, 0.0, 0.0, {}));
  EXPECT_TRUE(within(0.0F, -0.0, 0.0, {}));
  EXPECT_FALSE(within(std::numeric_limits<float>::denorm_min(), 0.0, 0.0, {}));
}

TEST(Within, NanIsNeverANumber) {
  for (const double bound : {0.0, 1e300, kBigInf}) {
    EXPECT_FALSE(within(kNan, 1.0, 1.0, {.gamma = bound, .underflow = 0.0}));
    EXPECT_FALSE(within(kInf, 1.0, 1.0, {.gamma = bound, .underflow = 0.0}));
    EXPECT_FALSE(within(-kInf, 1.0, 1.0, {.gamma = bound, .underflow = 0.0}));
  }
  EXPECT_FALSE(within(1.0F, 1.0, kNan, {.gamma = 1.0, .underflow = 0.0})) << "a bound of NaN";
}

TEST(Within, NonFiniteReferencesAreComparedByClass) {
  const Tolerance generous{.gamma = 1e300, .underflow = 1e300};
  EXPECT_TRUE(within(kNan, kNan, kNan, generous));
  EXPECT_TRUE(within(kInf, kBigInf, kBigInf, generous));
  EXPECT_TRUE(within(-kInf, -kBigInf, kBigInf, generous));
  EXPECT_FALSE(within(1.0F, kNan, kNan, generous));
  EXPECT_FALSE(within(kInf, kNan, kNan, generous));
  EXPECT_FALSE(within(-kInf, kBigInf, kBigInf, generous));
  EXPECT_FALSE(within(kNan, kBigInf, kBigInf, generous));
  EXPECT_FALSE(within(3e38F, kBigInf, kBigInf, generous));
}

TEST(ForwardError, IsGammaOfTheChain) {
  const Tolerance tolerance = forward_error(102, Padded{.shape = {1, 1, 100}, .alpha = 2.0F});
  const double lu = 102 * 0x1p-24;
  EXPECT_DOUBLE_EQ(tolerance.gamma, lu / (1 - lu));
  EXPECT_GT(tolerance.underflow, 200 * 0x1p-150);
  EXPECT_LT(tolerance.underflow, 1e-40);
}

TEST(Within, OperandErrorScalesWithTheLargestOfRowAndColumn) {
  EXPECT_TRUE(within(1.5F, 1.0, 0.0, {.operands = 0.25}, 2.0));
  EXPECT_FALSE(within(1.5F, 1.0, 0.0, {.operands = 0.25}, 1.9));
}

TEST(ForwardError, AddsTheOperandErrorOfEachProduct) {
  const Padded padded{.shape = {1, 1, 100}, .alpha = -2.0F};
  EXPECT_EQ(forward_error(5, padded, 0.25).operands, 50.0);
  EXPECT_EQ(forward_error(5, padded).operands, 0.0);
}

TEST(ForwardError, IgnoresAlphaThatIsNotUsed) {
  const Tolerance tolerance = forward_error(2, Padded{.shape = {1, 1, 0}, .alpha = kNan});
  EXPECT_TRUE(std::isfinite(tolerance.underflow));
}

// A matrix whose guards, padding and elements are all there.
class MatrixGuards : public testing::Test {
 protected:
  static constexpr std::int64_t kRows = 3;
  static constexpr std::int64_t kCols = 5;
  static constexpr std::int64_t kLd = 8;

  void SetUp() override {
    for (int i = 0; i < kRows * kLd; ++i) matrix_.expected()[i] = static_cast<float>(i);
    ASSERT_TRUE(matrix_.upload().ok());
  }

  // Flips the lowest bit of the element `at` of device memory, counted from the first of the
  // matrix.
  void flip(std::int64_t at) {
    std::uint32_t bits = 0;
    ASSERT_TRUE(device::copy_to_host(&bits, matrix_.on_device() + at, sizeof(bits)).ok());
    bits ^= 1U;
    ASSERT_TRUE(device::copy_to_device(matrix_.on_device() + at, &bits, sizeof(bits)).ok());
  }

  void expect_changed(bool guard, bool padding, bool element, std::int64_t at) {
    ASSERT_TRUE(matrix_.download().ok());
    EXPECT_EQ(matrix_.changed_guard().has_value(), guard) << at;
    EXPECT_EQ(matrix_.changed_padding().has_value(), padding) << at;
    EXPECT_EQ(matrix_.changed_element().has_value(), element) << at;
  }

  GuardedMatrix matrix_{"x", {.rows = kRows, .cols = kCols, .ld = kLd, .offset = 4}, kNan};
};

TEST_F(MatrixGuards, IsUnchangedAfterARoundTrip) { expect_changed(false, false, false, 0); }

TEST_F(MatrixGuards, DetectsAChangeOfAnyElement) {
  constexpr std::int64_t kExtent = (kRows - 1) * kLd + kCols;
  for (std::int64_t at = -GuardedMatrix::kGuard; at < kExtent + GuardedMatrix::kGuard; ++at) {
    const bool in_guard = at < 0 || at >= kExtent;
    const bool in_row = !in_guard && at % kLd < kCols;
    flip(at);
    expect_changed(in_guard, !in_guard && !in_row, in_row, at);
    flip(at);
  }
  expect_changed(false, false, false, 0);
}

TEST_F(MatrixGuards, ReportsWhatChangedWhere) {
  flip(-1);
  flip(2 * kLd + 3);
  ASSERT_TRUE(matrix_.download().ok());
  EXPECT_NE(matrix_.changed_guard()->find("x, 1 elements before its first"), std::string::npos);
  EXPECT_NE(matrix_.changed_element()->find("row 2, column 3: was 19"), std::string::npos);
}

TEST(BatchGuards, DistinguishesElementsFromRowsBetweenMatrices) {
  GuardedMatrix matrix("x", {.rows = 2, .cols = 3, .ld = 4, .batch = 2, .period = 3}, 0.0F);
  ASSERT_TRUE(matrix.upload().ok());
  // Two matrices of two rows, a row of padding between them; the last ends with its element.
  for (std::int64_t at = 0; at < 4 * 4 + 3; ++at) {
    const float one = 1.0F, zero = 0.0F;
    ASSERT_TRUE(device::copy_to_device(matrix.on_device() + at, &one, sizeof(one)).ok());
    ASSERT_TRUE(matrix.download().ok());
    const bool is_element = at / 4 != 2 && at % 4 < 3;
    EXPECT_EQ(matrix.changed_element().has_value(), is_element) << at;
    EXPECT_EQ(matrix.changed_padding().has_value(), !is_element) << at;
    ASSERT_TRUE(device::copy_to_device(matrix.on_device() + at, &zero, sizeof(zero)).ok());
  }
  const float one = 1.0F;
  ASSERT_TRUE(device::copy_to_device(matrix.on_device() + 13, &one, sizeof(one)).ok());
  ASSERT_TRUE(matrix.download().ok());
  EXPECT_NE(matrix.changed_element()->find("matrix 1, row 0, column 1"), std::string::npos);
}

TEST(CaseName, HasEveryField) {
  EXPECT_EQ(name_of({.problem = Padded{.shape = {129, 65, 17}}}), "129x65x17");
  EXPECT_EQ(name_of({.problem = Padded{.shape = {1, 2, 3},
                                       .pad = {0, 1, 2},
                                       .offset_bytes = {4, 8, 12},
                                       .alpha = -0.5F,
                                       .beta = 1e-3F},
                     .inputs = Inputs::kIntegers,
                     .seed = 7}),
            "1x2x3_ld3x3x4_off4x8x12_alpham0p5_beta0p001_s7_int");
  EXPECT_EQ(name_of({.problem = Padded{.alpha = kNan, .beta = -kInf}, .null_inputs = true}),
            "0x0x0_alphanan_betaminf_null");
  EXPECT_EQ(name_of({.plants = {{Operand::kB, -1, 2, kNan}}}), "0x0x0_nanInBe1x2");
  EXPECT_EQ(name_of({.workspace_limit = 5}), "0x0x0_ws5");
  EXPECT_EQ(name_of({.configuration = "Rung:64x64", .compute_capability = 90}),
            "0x0x0_at_Rung_64x64_cc90");
}

TEST(CaseName, DistinguishesNeighbouringNumbers) {
  std::set<std::string> names;
  float alpha = 0.1F;
  for (int i = 0; i < 100; ++i, alpha = std::nextafter(alpha, 1.0F)) {
    names.insert(name_of({.problem = Padded{.alpha = alpha}}));
  }
  EXPECT_EQ(names.size(), 100U);
}

}  // namespace
}  // namespace tilegate::verifier
