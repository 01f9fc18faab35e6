// The text form of problems.
#include <fstream>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <tilegate/problem.hpp>

namespace tilegate {
namespace {

// The examples that the commands' parser is tested on too: a text and its canonical form, which is
// empty where the text is invalid.
TEST(Problem, RoundTripsTheSharedExamples) {
  std::ifstream file(TILEGATE_SOURCE_DIR "/tests/problem/names.csv");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  ASSERT_EQ(line, "text,canonical");
  int rows = 0;
  for (; std::getline(file, line); ++rows) {
    const std::size_t comma = line.find(',');
    ASSERT_NE(comma, std::string::npos) << line;
    std::string text = line.substr(0, comma);
    std::string canonical = line.substr(comma + 1);
    for (std::string* part : {&text, &canonical}) {  // a benchmark's own mark, not the problem's
      if (part->ends_with("/cold")) part->resize(part->size() - std::string("/cold").size());
    }
    NamedProblem named;
    const Status status = parse_named_problem(text, &named);
    EXPECT_EQ(status.ok(), !canonical.empty()) << text;
    if (!status.ok()) {
      EXPECT_NE(status.message().find("'" + text + "'"), std::string::npos) << status.message();
      continue;
    }
    EXPECT_EQ(to_string(named), canonical);
    NamedProblem again;
    ASSERT_TRUE(parse_named_problem(canonical, &again).ok()) << canonical;
    EXPECT_EQ(to_string(again), canonical);
  }
  EXPECT_GT(rows, 2);
}

TEST(Problem, ParsesTheConfigurationAfterTheStage) {
  NamedProblem named;
  ASSERT_TRUE(parse_named_problem("StreamK@128x256x8/3x5x7", &named).ok());
  EXPECT_EQ(named.stage, "StreamK");
  EXPECT_EQ(named.configuration, "128x256x8");
  EXPECT_EQ(to_string(named), "StreamK@128x256x8/3x5x7");
  EXPECT_FALSE(parse_named_problem("StreamK@/3x5x7", &named).ok());
  EXPECT_FALSE(parse_named_problem("@128x256x8/3x5x7", &named).ok());
}

Problem parsed(const std::string& text) {
  Problem problem;
  EXPECT_TRUE(parse_problem(text, &problem).ok()) << text;
  return problem;
}

TEST(Problem, DenseLeadingDimensionsFollowTheOps) {
  EXPECT_EQ(parsed("3x5x7"), Problem::dense({3, 5, 7}));
  const Problem transposed = parsed("3x5x7/TT/batch4");
  EXPECT_EQ(transposed, Problem::dense({3, 5, 7}, Op::kT, Op::kT, 4));
  EXPECT_EQ(transposed.lda, 3);
  EXPECT_EQ(transposed.ldb, 7);
  EXPECT_EQ(transposed.ldc, 5);
  EXPECT_EQ(transposed.extent(Operand::kA).rows, 7);
  EXPECT_EQ(transposed.extent(Operand::kB).cols, 7);
  EXPECT_EQ(transposed.stride_a, 21);
  EXPECT_EQ(transposed.stride_c, 15);
  EXPECT_EQ(Problem::dense({1 << 20, 1, 1 << 20}).stride_a, std::int64_t{1} << 40);
}

TEST(Problem, ParsesEveryField) {
  const Problem problem =
      parsed("3x5x7/NT/ld8x9x10/batch2s0x100x64/off4x8x12/alpha-0.5/beta2/split");
  EXPECT_EQ(problem.op_a, Op::kN);
  EXPECT_EQ(problem.op_b, Op::kT);
  EXPECT_EQ(problem.ld(Operand::kB), 9);
  EXPECT_EQ(problem.batch, 2);
  EXPECT_EQ(problem.stride_a, 0);
  EXPECT_EQ(problem.stride_b, 100);
  EXPECT_EQ(problem.offset_bytes[2], 12);
  EXPECT_EQ(problem.alpha, -0.5F);
  EXPECT_EQ(problem.beta, 2.0F);
  EXPECT_EQ(problem.math, Math::fp32_split);
}

TEST(Problem, RoundTripsAnEmptyBatch) {
  EXPECT_EQ(to_string(Problem::dense({3, 5, 7}, Op::kN, Op::kN, 0)), "3x5x7/batch0");
  EXPECT_EQ(parsed("3x5x7/batch0").batch, 0);
}

TEST(Problem, RoundTripsFloatsBitForBit) {
  Problem problem = Problem::dense({1, 1, 1});
  for (const float value :
       {0.1F, 1.0F / 3.0F, 1e-30F, -3.4e38F, 1e-45F, std::numeric_limits<float>::infinity()}) {
    problem.alpha = problem.beta = value;
    EXPECT_EQ(parsed(to_string(problem)), problem) << to_string(problem);
  }
}

TEST(Problem, RejectsFieldsOutOfOrder) {
  Problem problem;
  for (const char* text :
       {"", "3x5", "3x5x7/", "3x5x7/off4/ld8x9x10", "3x5x7/NX", "3x5x7/beta", "3x5x7/split/beta1",
        "-3x5x7", "3x5x7/off-4", "99999999999999999999x1x1", "3x5x7/cold"}) {
    EXPECT_FALSE(parse_problem(text, &problem).ok()) << text;
  }
}

}  // namespace
}  // namespace tilegate
