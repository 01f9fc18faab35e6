// The oracle's kernels agree with its host functions.
#include "verifier/oracle.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

#include "simt/device_array.hpp"

namespace tilegate::verifier {
namespace {

constexpr float kQuietNan = std::numeric_limits<float>::quiet_NaN();

TEST(Fill, DeviceMatchesHost) {
  for (const Inputs inputs : {Inputs::kIntegers, Inputs::kUniform}) {
    for (const std::size_t count : {1U, 255U, 4096U, 4097U, 100003U}) {
      const DeviceArray<float> data(count + 1, -99.0F);
      ASSERT_TRUE(is_ok(fill(data.data(), static_cast<std::int64_t>(count), inputs, 42, nullptr)));
      const std::vector<float> found = data.to_host();
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(found[i], input_value(inputs, 42, i)) << i;
      EXPECT_EQ(found[count], -99.0F);
    }
  }
  EXPECT_TRUE(is_ok(fill(nullptr, 0, Inputs::kUniform, 1, nullptr)));
}

TEST(Fill, ValuesFollowTheInputs) {
  std::set<float> integers;
  double sum = 0.0;
  float largest = 0.0F;
  constexpr std::uint64_t kCount = 10000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    integers.insert(input_value(Inputs::kIntegers, 3, i));
    const float x = input_value(Inputs::kUniform, 3, i);
    ASSERT_TRUE(x >= -1.0F && x < 1.0F) << x;
    ASSERT_EQ(std::fmod(x * 0x1p23F, 1.0F), 0.0F) << x;
    sum += x;
    largest = std::max(largest, x);
  }
  EXPECT_GT(largest, 0.99F);
  EXPECT_EQ(integers, (std::set<float>{-3, -2, -1, 0, 1, 2, 3}));
  EXPECT_LT(std::fabs(sum / kCount), 0.03);
}

TEST(Fill, MaskedValuesNeedAllBits) {
  constexpr int kCount = 10000;
  std::set<float> values;
  int negative = 0;
  for (int i = 0; i < kCount; ++i) {
    const float x = input_value(Inputs::kPicksFromA, 3, static_cast<std::uint64_t>(i));
    const float significand = std::fabs(x) * 0x1p23F;
    ASSERT_TRUE(significand >= 0x1p23F && significand < 0x1p24F) << x;
    ASSERT_EQ(std::fmod(significand, 2.0F), 1.0F) << x;
    values.insert(x);
    negative += x < 0.0F;
  }
  EXPECT_GT(values.size(), kCount - 50U);
  EXPECT_NEAR(negative, kCount / 2, kCount / 20);
}

TEST(Fill, SeedsAndIndicesGiveDifferentStreams) {
  std::set<float> values;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    for (std::uint64_t i = 0; i < 30; ++i) values.insert(input_value(Inputs::kUniform, seed, i));
  }
  EXPECT_GT(values.size(), 895U);  // 24 bits: a collision now and then
}

// One product whose operands are on the host and on the device.
struct Call {
  Call(const Shape& shape, std::int64_t pad, float alpha, float beta, Inputs inputs)
      : a(values(shape.m * (shape.k + pad), inputs, 1)),
        b(values(shape.k * (shape.n + pad), inputs, 2)),
        c(values(shape.m * (shape.n + pad), inputs, 3)),
        on_host{.shape = shape,
                .alpha = alpha,
                .a = a.data(),
                .a_row = shape.k + pad,
                .b = b.data(),
                .b_row = shape.n + pad,
                .beta = beta,
                .c = c.data(),
                .c_row = shape.n + pad},
        count(static_cast<std::size_t>(shape.m * shape.n)) {}

  static std::vector<float> values(std::int64_t n, Inputs inputs, std::uint64_t seed) {
    std::vector<float> v(static_cast<std::size_t>(n) + 1);  // never empty: there is a pointer
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = input_value(inputs, seed, i);
    return v;
  }

  struct Reference {
    std::vector<double> value, scale;
  };

  Reference host_reference() const {
    Reference r{std::vector<double>(count), std::vector<double>(count)};
    reference_on_host(on_host, r.value.data(), r.scale.data());
    return r;
  }

  // Of operands that hold integers there is a way without scales.
  Reference device_reference(bool integers = false) const {
    const DeviceArray<float> da(a), db(b), dc(c);
    const DeviceArray<double> value(count + 1), scale(count + 1);
    Product product = on_host;
    product.a = da.data();
    product.b = db.data();
    product.c = dc.data();
    EXPECT_TRUE(is_ok(integers
                          ? integer_reference_on_device(product, value.data(), nullptr)
                          : reference_on_device(product, value.data(), scale.data(), nullptr)));
    return {value.to_host(), scale.to_host()};
  }

  std::vector<float> a, b, c;
  Product on_host;
  std::size_t count;
};

TEST(Reference, MatchesTheDefinition) {
  const Call product({2, 2, 3}, 1, 2.0F, -1.0F, Inputs::kIntegers);
  const auto reference = product.host_reference();
  const auto& [a, b, c] = std::tie(product.a, product.b, product.c);
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t col = 0; col < 2; ++col) {
      double value = -c[row * 3 + col];
      double scale = std::fabs(c[row * 3 + col]);
      for (std::size_t k = 0; k < 3; ++k) {
        value += 2.0 * a[row * 4 + k] * b[k * 3 + col];
        scale += 2.0 * std::fabs(a[row * 4 + k] * b[k * 3 + col]);
      }
      EXPECT_EQ(reference.value[row * 2 + col], value);
      EXPECT_EQ(reference.scale[row * 2 + col], scale);
    }
  }
}

TEST(Reference, DeviceMatchesHost) {
  for (const Inputs inputs : {Inputs::kIntegers, Inputs::kUniform}) {
    for (const Shape& shape :
         {Shape{1, 1, 1}, Shape{5, 3, 0}, Shape{63, 65, 17}, Shape{64, 64, 16}, Shape{130, 67, 33},
          Shape{129, 128, 5}, Shape{3, 200, 100}, Shape{0, 4, 4}}) {
      for (const float alpha : {1.0F, -0.5F, 0.0F}) {
        for (const float beta : {0.0F, 2.0F}) {
          const Call product(shape, shape.m % 4, alpha, beta, inputs);
          const auto host = product.host_reference();
          const auto device = product.device_reference();
          for (std::size_t i = 0; i < product.count; ++i) {
            // Nothing but the contraction of alpha·sum + beta·c may differ.
            const double slack = inputs == Inputs::kIntegers ? 0.0 : 0x1p-50 * host.scale[i];
            ASSERT_LE(std::fabs(host.value[i] - device.value[i]), slack) << i;
            ASSERT_LE(std::fabs(host.scale[i] - device.scale[i]), slack) << i;
          }
        }
      }
    }
  }
}

TEST(Reference, IntegersOnTheDeviceMatchHost) {
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{5, 3, 0}, Shape{130, 129, 17}, Shape{129, 128, 5}, Shape{0, 4, 4}}) {
    for (const float beta : {0.0F, 2.0F}) {
      const Call product(shape, 3, -0.5F, beta, Inputs::kIntegers);
      const std::vector<double> host = product.host_reference().value;
      const std::vector<double> device = product.device_reference(true).value;
      for (std::size_t i = 0; i < product.count; ++i) ASSERT_EQ(device[i], host[i]) << i;
    }
  }
}

TEST(Reference, ReadsNothingBetweenRows) {
  Call product({5, 6, 7}, 2, 1.0F, 2.0F, Inputs::kIntegers);
  for (std::size_t i = 0; i < product.a.size(); ++i) {
    if (i % 9 >= 7) product.a[i] = kQuietNan;
  }
  for (std::vector<float>* padded : {&product.b, &product.c}) {
    for (std::size_t i = 0; i < padded->size(); ++i) {
      if (i % 8 >= 6) (*padded)[i] = kQuietNan;
    }
  }
  const std::vector<double> host = product.host_reference().value;
  for (const bool integers : {false, true}) {
    const std::vector<double> device = product.device_reference(integers).value;
    for (std::size_t i = 0; i < product.count; ++i) EXPECT_EQ(device[i], host[i]) << i;
  }
}

TEST(Reference, SkipsRows) {
  Call product({8, 5, 3}, 2, 1.0F, 2.0F, Inputs::kUniform);
  const auto whole = product.host_reference();
  product.on_host = every_nth_row(product.on_host, 3);
  ASSERT_EQ(product.on_host.shape, (Shape{3, 5, 3}));
  const auto some = product.host_reference();
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(some.value[i], whole.value[i / 5 * 15 + i % 5]) << i;
    EXPECT_EQ(some.scale[i], whole.scale[i / 5 * 15 + i % 5]) << i;
  }
  EXPECT_EQ(every_nth_row({.shape = {0, 5, 3}}, 3).shape.m, 0);
  EXPECT_EQ(every_nth_row({.shape = {9, 5, 3}}, 3).shape.m, 3);
  EXPECT_EQ(every_nth_row({.shape = {10, 5, 3}}, 3).shape.m, 4);
}

TEST(Reference, FollowsOpsAndStrides) {
  // A is stored 3×2 and B 4×3; the second product of a batch that shares B.
  Problem problem = Problem::dense({2, 4, 3}, Op::kT, Op::kT, 2);
  problem.stride_b = 0;
  std::vector<float> a(2 * 6), b(12), c(2 * 8);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i) - 5.0F;
  const Product product = product_of(problem, {.a = a.data(), .b = b.data(), .c = c.data()}, 1);
  EXPECT_EQ(product.c, c.data() + 8);
  std::vector<double> value(8), scale(8);
  reference_on_host(product, value.data(), scale.data());
  for (std::size_t row = 0; row < 2; ++row) {
    for (std::size_t col = 0; col < 4; ++col) {
      double sum = 0.0;
      for (std::size_t k = 0; k < 3; ++k) sum += double{a[6 + k * 2 + row]} * b[col * 3 + k];
      EXPECT_EQ(value[row * 4 + col], sum);
    }
  }
}

TEST(Reference, DoesNotReadWhatBlasDoesNotRead) {
  Call product({4, 4, 4}, 0, 0.0F, 0.0F, Inputs::kUniform);
  product.on_host.a = product.on_host.b = nullptr;
  product.c.assign(product.c.size(), kQuietNan);
  for (const double value : product.host_reference().value) EXPECT_EQ(value, 0.0);

  Call no_k({4, 4, 0}, 0, kQuietNan, 1.0F, Inputs::kUniform);
  EXPECT_EQ(no_k.host_reference().value[5], double{no_k.c[5]});
}

// A result on the device, right but for the elements that a test spoils.
class Compare : public testing::Test {
 protected:
  Comparison compare(const std::vector<std::size_t>& spoilt, float by, const Tolerance& tolerance) {
    return compare(product_, spoilt, by, tolerance);
  }

  static Comparison compare(const Call& call, const std::vector<std::size_t>& spoilt, float by,
                            const Tolerance& tolerance) {
    const auto reference = call.host_reference();
    const auto cols = static_cast<std::size_t>(call.on_host.shape.n);
    const auto ld = static_cast<std::size_t>(call.on_host.c_row);
    std::vector<float> c(call.c);
    for (std::size_t i = 0; i < call.count; ++i) {
      c[i / cols * ld + i % cols] = static_cast<float>(reference.value[i]);
    }
    for (const std::size_t i : spoilt) c[i / cols * ld + i % cols] += by;
    const DeviceArray<float> a(call.a), b(call.b), dc(c);
    const DeviceArray<double> value(reference.value), scale(reference.scale);
    Product product = call.on_host;
    product.a = a.data();
    product.b = b.data();
    product.c = dc.data();
    Comparison result;
    EXPECT_TRUE(is_ok(compare_on_device(product, value.data(), scale.data(), tolerance, &result)));
    return result;
  }

  static constexpr std::size_t kRows = 131;
  static constexpr std::size_t kCols = 126;  // with the rows one more than the threads of a block
  Call product_{{kRows, kCols, 5}, 3, 1.0F, 0.0F, Inputs::kIntegers};
};

TEST_F(Compare, AcceptsACorrectResult) {
  const Comparison result = compare({}, 1.0F, {});
  EXPECT_EQ(result.mismatches, 0);
  EXPECT_EQ(result.first_row, -1);
  EXPECT_EQ(result.first_col, -1);
}

TEST_F(Compare, CountsErrorsAndFindsTheFirst) {
  const Comparison result = compare({kRows * kCols - 1, 70 * kCols + 13, 90 * kCols}, 1.0F, {});
  EXPECT_EQ(result.mismatches, 3);
  EXPECT_EQ(result.first_row, 70);
  EXPECT_EQ(result.first_col, 13);
  const Comparison from_first = compare({0, 1, 300, kRows * kCols - 1}, 1.0F, {});
  EXPECT_EQ(from_first.first_row, 0);
  EXPECT_EQ(from_first.first_col, 0);
}

TEST_F(Compare, DetectsErrorsInCornersAndNan) {
  for (const std::size_t i : {std::size_t{0}, kCols - 1, (kRows - 1) * kCols, kRows * kCols - 1}) {
    EXPECT_EQ(compare({i}, kQuietNan, {.gamma = 1e6, .underflow = 1e6}).mismatches, 1) << i;
    EXPECT_EQ(compare({i}, 1.0F, {}).mismatches, 1) << i;
  }
}

TEST_F(Compare, DetectsErrorsOfEachThread) {
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(compare({i}, 1.0F, {}).mismatches, 1) << i;
}

TEST_F(Compare, MatchesTheHostTolerance) {
  EXPECT_EQ(compare({7}, 1.0F, {.gamma = 0.0, .underflow = 1.0}).mismatches, 0);
  EXPECT_EQ(compare({7}, 1.0F, {.gamma = 0.0, .underflow = 0.99}).mismatches, 1);
}

// The largest of a row and of a column: of a row that differs from the next one in it, of a column
// that differs from the one five before, and of the last column; of more rows than columns and of
// fewer.
TEST_F(Compare, AllowsTheOperandErrorOfThePlan) {
  const Call wide({20, 300, 5}, 3, 1.0F, 0.0F, Inputs::kIntegers);
  for (const Call* call : std::array<const Call*, 2>{&product_, &wide}) {
    const auto rows = static_cast<std::size_t>(call->on_host.shape.m);
    const auto cols = static_cast<std::size_t>(call->on_host.shape.n);
    std::vector<double> largest(rows + cols);
    largest_on_host(call->on_host, largest.data());
    for (const double each : largest) EXPECT_TRUE(each >= 1.0 && each <= 3.0) << each;
    std::size_t row = 0, telling = 0;
    while (largest[row] == largest[row + 1]) ++row;
    while (largest[rows + telling] == largest[rows - 5 + telling]) ++telling;
    for (const std::size_t col : {telling, cols - 1}) {
      const double both = largest[row] * largest[rows + col];
      const std::size_t element = row * cols + col;
      EXPECT_EQ(compare(*call, {element}, 1.0F, {.operands = 1.0 / both}).mismatches, 0);
      EXPECT_EQ(compare(*call, {element}, 1.0F, {.operands = 0.99 / both}).mismatches, 1);
    }
  }
}

TEST_F(Compare, AcceptsAnEmptyResult) {
  Comparison result{.mismatches = 5};
  EXPECT_TRUE(is_ok(compare_on_device({.shape = {0, 5, 5}}, nullptr, nullptr, {}, &result)));
  EXPECT_EQ(result.mismatches, 0);
}

}  // namespace
}  // namespace tilegate::verifier
