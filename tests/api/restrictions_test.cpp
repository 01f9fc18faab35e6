// What a stage says that it does not take is refused, with that reason; everything else is planned.
#include <string>

#include <gtest/gtest.h>

#include <tilegate/stage.hpp>

namespace tilegate {
namespace {

Choice take_all(const Problem& /*problem*/, const Device& /*device*/) {
  return {.rounding_chain = 1};
}

// "" where the problem is planned.
std::string refusal(const Restrictions& restrictions, const char* text) {
  const Stage stage{.name = "Made", .restrictions = restrictions, .choose = take_all};
  Problem problem;
  EXPECT_TRUE(parse_problem(text, &problem).ok()) << text;
  const Status status = stage.plan(problem, Device{}).status();
  EXPECT_TRUE(status.ok() || status.code() == Status::Code::kUnsupported) << status.message();
  return status.message();
}

TEST(Restrictions, NoneByDefault) { EXPECT_EQ(refusal({}, "129x65x17/ld19x70x80/off4"), ""); }

TEST(Restrictions, MultiplesOfTheTile) {
  const Restrictions tile{.multiple_of = {128, 64, 8}};
  EXPECT_EQ(refusal(tile, "256x64x8"), "");
  EXPECT_EQ(refusal(tile, "128x64x0"), "");
  EXPECT_EQ(refusal(tile, "0x1x1"), "") << "nothing to do";
  EXPECT_EQ(refusal(tile, "64x64x8"), "Made takes M in multiples of 128");
  EXPECT_EQ(refusal(tile, "128x65x8"), "Made takes N in multiples of 64");
  EXPECT_EQ(refusal(tile, "128x64x12"), "Made takes K in multiples of 8");
}

TEST(Restrictions, LargestExtents) {
  const Restrictions most{.most_m = 100, .most_n = 200};
  EXPECT_EQ(refusal(most, "100x200x1000"), "");
  EXPECT_EQ(refusal(most, "101x200x1"), "Made takes no M above 100");
  EXPECT_EQ(refusal(most, "100x201x1"), "Made takes no N above 200");
}

TEST(Restrictions, EmptyProblems) {
  const Restrictions nonzero{.nonzero_k = true};
  EXPECT_EQ(refusal(nonzero, "4x4x4"), "");
  EXPECT_EQ(refusal(nonzero, "4x4x0"), "Made takes neither K nor alpha of 0");
  EXPECT_EQ(refusal(nonzero, "4x4x4/alpha0"), "Made takes neither K nor alpha of 0");
}

TEST(Restrictions, PaddedRows) {
  const Restrictions dense{.dense = true};
  EXPECT_EQ(refusal(dense, "4x5x6"), "");
  EXPECT_EQ(refusal(dense, "1x5x6/ld9x5x9"), "") << "rows of A and C that are alone";
  EXPECT_EQ(refusal(dense, "4x5x6/ld7x5x5"), "Made takes no lda but the width of the rows");
  EXPECT_EQ(refusal(dense, "4x5x6/ld6x5x8"), "Made takes no ldc but the width of the rows");
}

TEST(Restrictions, Alignment) {
  const Restrictions vectors{.alignment = 16};
  EXPECT_EQ(refusal(vectors, "4x4x4/off32"), "");
  EXPECT_EQ(refusal(vectors, "4x4x4/off0x8x0"), "Made takes b at multiples of 16 bytes");
}

TEST(Restrictions, IntIndices) {
  const Restrictions ints{.int_indices = true};
  EXPECT_EQ(refusal(ints, "1x2147483647x1"), "");
  EXPECT_EQ(refusal(ints, "1x2147483648x1"), "Made takes no operand above 2147483647 elements");
  EXPECT_EQ(refusal(ints, "65536x32768x1"), "Made takes no operand above 2147483647 elements");
}

}  // namespace
}  // namespace tilegate
