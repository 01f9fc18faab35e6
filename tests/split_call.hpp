// A call of a rung that splits operands, on random ones: its result and the device's decision; and
// its operands as the models see them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/stage.hpp>

#include "models/layout.hpp"
#include "models/rows.hpp"
#include "simt/device_array.hpp"
#include "skips.hpp"

namespace tilegate {

// [-1, 1): the largest elements of rows, and so their scales, differ.
inline std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
  }
  return values;
}

struct Operation {
  Problem problem;
  std::vector<float> a, b, c;

  explicit Operation(const Problem& p)
      : problem(p),
        a(random_values(p.span(Operand::kA), 1)),
        b(random_values(p.span(Operand::kB), 2)),
        c(random_values(p.span(Operand::kC), 3)) {}

  // Of the operand's index in the batch.
  models::Rows rows(Operand operand, std::int64_t product) const {
    const bool is_a = operand == Operand::kA;
    const bool along_k = is_a ? problem.op_a == Op::kN : problem.op_b == Op::kT;
    const std::int64_t ld = problem.ld(operand);
    return {.data = (is_a ? a : b).data() + product * problem.stride(operand),
            .count = is_a ? problem.shape.m : problem.shape.n,
            .k = problem.shape.k,
            .next_row = along_k ? ld : 1,
            .next_k = along_k ? 1 : ld};
  }
  // Of all products; once, if they share it.
  std::vector<models::Rows> all_rows(Operand operand) const {
    std::vector<models::Rows> all;
    for (std::int64_t i = 0; i < problem.batch; ++i) {
      if (i == 0 || problem.stride(operand) != 0) all.push_back(rows(operand, i));
    }
    return all;
  }
  // C of all products, by a model of one; C is dense.
  using Model = std::function<std::vector<float>(const models::Rows& a, const models::Rows& b,
                                                 const models::Epilogue& epilogue)>;
  std::vector<float> expected(const Model& model) const {
    std::vector<float> all;
    const std::int64_t size = problem.shape.m * problem.shape.n;
    for (std::int64_t i = 0; i < problem.batch; ++i) {
      const auto first = c.begin() + i * size;
      const std::vector<float> product =
          model(rows(Operand::kA, i), rows(Operand::kB, i),
                {problem.alpha, problem.beta, std::vector<float>(first, first + size)});
      all.insert(all.end(), product.begin(), product.end());
    }
    return all;
  }
};

inline models::Product product_of(const Problem& problem) {
  const auto [m, n, k] = problem.shape;
  const bool a = problem.op_a == Op::kT, b = problem.op_b == Op::kT;
  return {m,
          n,
          k,
          problem.batch,
          a ? (b ? "TT" : "TN") : (b ? "NT" : "NN"),
          allows_vectors(problem, Operand::kA) && allows_vectors(problem, Operand::kB)};
}

// A result in float64, and (|A||B|)ij.
struct Exact {
  double sum = 0.0, magnitude = 0.0;

  Exact(const models::Rows& a, std::int64_t row, const models::Rows& b, std::int64_t col) {
    for (std::int64_t k = 0; k < a.k; ++k) {
      const double product = static_cast<double>(a.data[row * a.next_row + k * a.next_k]) *
                             b.data[col * b.next_row + k * b.next_k];
      sum += product;
      magnitude += std::fabs(product);
    }
  }
};

struct Result {
  std::vector<float> c;
  int decision = 0;
  std::vector<std::int32_t> workspace = {};  // in words; it begins with the decision
};

// Skips where the device cannot run the stage.
template <const Stage& kStage>
class SplitTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = check_device(kStage.requirements, device::current()).message();
    if (why.empty()) return;
    RecordProperty(kNotOnThisDevice, why);
    GTEST_SKIP() << why;
  }
};

inline Result run(const Stage& by, const Operation& operation,
                  const std::string& configuration = {},
                  std::size_t workspace_limit = kNoWorkspaceLimit) {
  EXPECT_TRUE(is_ok(by.prepare()));
  const Plan plan = by.plan(operation.problem, device::current(), configuration, workspace_limit);
  EXPECT_TRUE(is_ok(plan.status()));
  const DeviceArray<float> a(operation.a), b(operation.b), c(operation.c);
  const DeviceArray<std::int32_t> workspace(plan.workspace_bytes() / sizeof(std::int32_t) + 1);
  EXPECT_TRUE(is_ok(plan.launch({.a = a.data(),
                                 .b = b.data(),
                                 .c = c.data(),
                                 .workspace = workspace.data(),
                                 .workspace_bytes = plan.workspace_bytes()})));
  Result result{.c = c.to_host(), .workspace = workspace.to_host()};
  result.decision = result.workspace[0];
  return result;
}

inline void expect_same_bits(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::memcmp(&found[i], &expected[i], sizeof(float)), 0)
        << "element " << i << ": " << found[i] << " instead of " << expected[i];
  }
}

// Compilers for GPUs may round alpha·sum + beta·C once less; where both are powers of two there is
// nothing to round.
inline void set_alpha_and_beta(Problem& problem) {
  problem.alpha = TILEGATE_ON_SIMT ? 1.1F : -2.0F;
  problem.beta = TILEGATE_ON_SIMT ? -0.7F : 0.5F;
}

}  // namespace tilegate
