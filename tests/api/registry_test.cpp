// The descriptors of the stages, with no device involved.
#include <cctype>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <tilegate/sgemm.hpp>

#include "ladder/stage_test.hpp"

namespace tilegate::ladder {
namespace {

// The longest K that the benchmarks and the tests use.
constexpr Shape kLongest{16, 16, 1 << 20};

TEST(Registry, IsNotEmptyAndEndsWithTheYardstick) {
  ASSERT_FALSE(stages().empty());
  EXPECT_EQ(stages().back()->name, "Cublas");
}

TEST(Registry, NamesAreUniqueWords) {
  std::set<std::string> seen;
  for (const Stage* stage : all_stages()) {
    EXPECT_TRUE(seen.insert(test_name(*stage)).second) << stage->name << " is there twice";
    ASSERT_FALSE(stage->name.empty());
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(stage->name.front()))) << stage->name;
    for (const char c : test_name(*stage)) {
      EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) || c == '_') << stage->name;
    }
  }
}

TEST(Registry, VariantsAreNamedAfterTheirRung) {
  for (const Stage* stage : stages()) {
    EXPECT_EQ(stage->name.find('.'), std::string_view::npos) << stage->name;
    for (const Stage* variant : stage->variants) {
      EXPECT_TRUE(variant->name.starts_with(std::string(stage->name) + ".")) << variant->name;
    }
  }
}

TEST(Registry, DescriptorsAreComplete) {
  for (const Stage* stage : all_stages()) {
    EXPECT_FALSE(stage->idea.empty()) << stage->name;
    EXPECT_FALSE(stage->tile_sizes.empty()) << stage->name;
    for (const std::int64_t size : stage->tile_sizes) EXPECT_GT(size, 0) << stage->name;
    EXPECT_NE(stage->enqueue, nullptr) << stage->name;
  }
}

TEST(Registry, RoundingChainsBoundSomething) {
  for (const Stage* stage : all_stages()) {
    ASSERT_NE(stage->rounding_chain, nullptr) << stage->name;
    for (const Shape& shape : {Shape{1, 1, 0}, Shape{1, 1, 1}, Shape{100, 100, 100}, kLongest}) {
      const auto chain = static_cast<double>(stage->rounding_chain(shape));
      EXPECT_GE(chain, 1.0) << stage->name << ": alpha alone rounds once";
      EXPECT_LT(chain * 0x1p-24, 1.0) << stage->name;
      EXPECT_LE(chain, static_cast<double>(2 * shape.k + 4))
          << stage->name << ": longer than a serial sum with two roundings a step";
    }
  }
}

TEST(Registry, FindStageFindsEachByItsName) {
  for (const Stage* stage : all_stages()) EXPECT_EQ(find_stage(stage->name), stage);
  EXPECT_EQ(find_stage(""), nullptr);
  EXPECT_EQ(find_stage("naive"), nullptr);
  EXPECT_EQ(find_stage("NoSuchStage"), nullptr);
}

TEST(Status, DefaultIsOkAndTheOthersSayWhy) {
  EXPECT_TRUE(Status().ok());
  const Status invalid = Status::invalid_argument("lda", "too short");
  EXPECT_FALSE(invalid.ok());
  EXPECT_EQ(invalid.argument(), "lda");
  EXPECT_EQ(invalid.message(), "too short");
  EXPECT_EQ(Status::unsupported("x").code(), Status::Code::kUnsupported);
  EXPECT_EQ(Status::device_error("x").code(), Status::Code::kDeviceError);
}

}  // namespace
}  // namespace tilegate::ladder
