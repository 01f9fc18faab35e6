// A call of Int8x3 on random operands, its result and the device's decision.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/int8x3.hpp>

#include "int8x3/model.hpp"
#include "simt/device_array.hpp"

namespace tilegate::int8x3 {

std::span<const Stage* const> variants();

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
  std::vector<float> a, b;

  explicit Operation(const Problem& p)
      : problem(p),
        a(random_values(p.span(Operand::kA), 1)),
        b(random_values(p.span(Operand::kB), 2)) {}
};

struct Result {
  std::vector<float> c;
  int decision = 0;
};

inline Result run(const Stage& by, const Operation& operation,
                  const std::string& configuration = {}) {
  EXPECT_TRUE(is_ok(by.prepare()));
  const Plan plan = by.plan(operation.problem, device::current(), configuration);
  EXPECT_TRUE(is_ok(plan.status()));
  const DeviceArray<float> a(operation.a), b(operation.b);
  const DeviceArray<float> c(static_cast<std::size_t>(operation.problem.span(Operand::kC)));
  const DeviceArray<std::int32_t> workspace(plan.workspace_bytes() / sizeof(std::int32_t) + 1);
  EXPECT_TRUE(is_ok(plan.launch({.a = a.data(),
                                 .b = b.data(),
                                 .c = c.data(),
                                 .workspace = workspace.data(),
                                 .workspace_bytes = plan.workspace_bytes()})));
  Result result{.c = c.to_host()};
  result.decision = workspace.to_host()[0];
  return result;
}

inline void expect_same_bits(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::memcmp(&found[i], &expected[i], sizeof(float)), 0)
        << "element " << i << ": " << found[i] << " instead of " << expected[i];
  }
}

}  // namespace tilegate::int8x3
