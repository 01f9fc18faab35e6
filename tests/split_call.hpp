// A call of a rung that splits operands, on random ones: its result and the device's decision.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/stage.hpp>

#include "simt/device_array.hpp"

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

}  // namespace tilegate
