// What the tests of Int8x3 share.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/int8x3.hpp>

#include "int8x3/model.hpp"
#include "skips.hpp"
#include "split_call.hpp"

namespace tilegate::int8x3 {

std::span<const Stage* const> variants();

inline void expect_same_bits(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::memcmp(&found[i], &expected[i], sizeof(float)), 0)
        << "element " << i << ": " << found[i] << " instead of " << expected[i];
  }
}

class Products : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = check_device(stage.requirements, device::current()).message();
    if (why.empty()) return;
    RecordProperty(kNotOnThisDevice, why);
    GTEST_SKIP() << why;
  }
};

}  // namespace tilegate::int8x3
