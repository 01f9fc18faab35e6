// The checks that all stages share, each from both sides: what just fits is planned and launched,
// one element, byte or device further is not.
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>
#include <tilegate/device/launch_config.hpp>
#include <tilegate/stage.hpp>

namespace tilegate {
namespace {

constexpr std::size_t kWorkspaceBytes = 48;
constexpr std::int64_t kMostElements = std::numeric_limits<std::int64_t>::max() / 4;

// Does nothing, with a workspace where K is 5.
Choice choose_nothing(const Problem& problem, const Device& /*device*/) {
  return {.rounding_chain = 1,
          .workspace_bytes = problem.shape.k == 5 ? kWorkspaceBytes : 0,
          .enqueue = [](const KernelArgs&, Stream) { return Status(); }};
}
constexpr Stage kNothing{
    .name = "Nothing", .takes_transposed = true, .takes_batches = true, .choose = choose_nothing};

// Never read: an address that is enough of a multiple.
float* address(std::int64_t element) {
  constexpr std::uintptr_t kSomewhere = 1 << 20;
  return reinterpret_cast<float*>(kSomewhere +
                                  static_cast<std::uintptr_t>(element) * sizeof(float));
}

// Of three 4×4 products; rows are 6 to 8 elements apart, products of C 30.
Problem padded_batch() {
  Problem problem = Problem::dense({4, 4, 4}, Op::kN, Op::kN, 3);
  problem.lda = 6, problem.ldb = 7, problem.ldc = 8;
  problem.stride_a = 10, problem.stride_b = 0, problem.stride_c = 30;
  problem.offset_bytes = {4, 4, 4};
  return problem;
}
constexpr std::int64_t kSpanOfA = 2 * 10 + 3 * 6 + 4, kSpanOfB = 3 * 7 + 4,
                       kSpanOfC = 2 * 30 + 3 * 8 + 4;

std::string refused(const Problem& problem, std::int64_t a, std::int64_t b, std::int64_t c) {
  const Plan plan = kNothing.plan(problem);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.launch({.a = address(a), .b = address(b), .c = address(c)}).argument();
}

TEST(Plan, RejectsCThatOverlapsAnInput) {
  constexpr std::int64_t kFar = 1000;
  const Problem problem = padded_batch();
  EXPECT_EQ(refused(problem, kSpanOfC, kFar, 0), "");
  EXPECT_EQ(refused(problem, kSpanOfC - 1, kFar, 0), "c");
  EXPECT_EQ(refused(problem, kFar, kSpanOfC, 0), "");
  EXPECT_EQ(refused(problem, kFar, kSpanOfC - 1, 0), "c");
  EXPECT_EQ(refused(problem, 0, kFar, kSpanOfA), "");
  EXPECT_EQ(refused(problem, 0, kFar, kSpanOfA - 1), "c");
  EXPECT_EQ(refused(problem, kFar, 0, kSpanOfB), "") << "all products share B";
  EXPECT_EQ(refused(problem, kFar, 0, kSpanOfB - 1), "c");
  EXPECT_EQ(refused(problem, kFar, kFar, 0), "") << "A and B may be one";
}

TEST(Plan, AcceptsDisjointOrInterleavedBatchResults) {
  const auto takes = [](const Shape& shape, std::int64_t ldc, std::int64_t stride,
                        std::int64_t batch) {
    Problem problem = Problem::dense(shape, Op::kN, Op::kN, batch);
    problem.ldc = ldc;
    problem.stride_c = stride;
    return problem.check().argument() != "stride_c";
  };
  EXPECT_TRUE(takes({4, 5, 1}, 8, 3 * 8 + 5, 3));
  EXPECT_FALSE(takes({4, 5, 1}, 8, 3 * 8 + 4, 3)) << "longer than a dense product";
  EXPECT_TRUE(takes({4, 5, 1}, 15, 5, 3));
  EXPECT_FALSE(takes({4, 5, 1}, 15, 4, 3));
  EXPECT_FALSE(takes({4, 5, 1}, 14, 5, 3)) << "the last overlaps the second row of the first";
  EXPECT_TRUE(takes({4, 5, 1}, 10, 5, 2));
  EXPECT_TRUE(takes({1, 5, 1}, 5, 5, 3));
  EXPECT_FALSE(takes({1, 5, 1}, 5, 4, 3));
  EXPECT_FALSE(takes({1, 5, 1}, 5, 0, 2));
  EXPECT_TRUE(takes({4, 5, 1}, 8, 0, 1)) << "one product has no stride";
}

TEST(Plan, OneProductHasNoStrides) {
  Problem problem = Problem::dense({4, 5, 6});
  problem.stride_a = problem.stride_b = problem.stride_c = -1;
  EXPECT_TRUE(problem.check().ok()) << problem.check().message();
  problem.batch = 2;
  EXPECT_EQ(problem.check().argument(), "stride_a");
}

TEST(Plan, RejectsExtentsBeyondTheAddressSpace) {
  const auto argument = [](const Problem& problem) { return problem.check().argument(); };
  for (const std::int64_t more : {0, 1}) {
    const auto expected = [&](const char* name) { return more == 0 ? "" : name; };
    Problem rows = Problem::dense({2, 3, 5});
    rows.lda = kMostElements - 5 + more;
    EXPECT_EQ(argument(rows), expected("a"));
    rows = Problem::dense({5, 3, 2});
    rows.ldb = kMostElements - 3 + more;
    EXPECT_EQ(argument(rows), expected("b"));
    rows = Problem::dense({2, 3, 5});
    rows.ldc = kMostElements - 3 + more;
    EXPECT_EQ(argument(rows), expected("c"));
    Problem batch = Problem::dense({2, 3, 5}, Op::kN, Op::kN, 3);
    batch.stride_a = (kMostElements - 10) / 2 + more;
    EXPECT_EQ(argument(batch), expected("a"));
    batch.stride_a = 0;
    batch.stride_b = (kMostElements - 15) / 2 + more;
    EXPECT_EQ(argument(batch), expected("b"));
    batch.alpha = 0.0F;
    EXPECT_EQ(argument(batch), "") << "is not read";
    batch.stride_b = 0;
    batch.stride_c = (kMostElements - 6) / 2 + more;
    EXPECT_EQ(argument(batch), expected("c"));
  }
}

TEST(Plan, RejectsASmallerWorkspaceThanItAsksFor) {
  const Plan plan = kNothing.plan(Problem::dense({4, 4, 5}));
  const auto accepts = [&](std::int64_t element, std::size_t bytes) {
    const Status status = plan.launch({.a = address(0),
                                       .b = address(0),
                                       .c = address(1000),
                                       .workspace = address(2000 + element),
                                       .workspace_bytes = bytes});
    EXPECT_EQ(status.argument(), status.ok() ? "" : "workspace");
    return status.ok();
  };
  EXPECT_TRUE(accepts(0, kWorkspaceBytes));
  EXPECT_FALSE(accepts(0, kWorkspaceBytes - 1));
  EXPECT_TRUE(accepts(4, kWorkspaceBytes));
  EXPECT_FALSE(accepts(2, kWorkspaceBytes + 8)) << "aligned to 8 bytes";
  const Operands none{
      .a = address(0), .b = address(0), .c = address(1000), .workspace_bytes = kWorkspaceBytes};
  EXPECT_EQ(plan.launch(none).message(), "workspace is a null pointer");
  EXPECT_TRUE(kNothing.plan(Problem::dense({4, 4, 4})).launch(none).ok()) << "needs none";
}

TEST(Plan, RejectsAWorkspaceThatOverlapsAnOperand) {
  const auto message = [](std::int64_t element, float alpha) {
    Problem problem = Problem::dense({4, 4, 5});
    problem.alpha = alpha;
    return std::string(kNothing.plan(problem)
                           .launch({.a = address(1000),
                                    .b = address(2000),
                                    .c = address(3000),
                                    .workspace = address(element),
                                    .workspace_bytes = kWorkspaceBytes})
                           .message());
  };
  const std::int64_t elements = kWorkspaceBytes / sizeof(float);
  EXPECT_EQ(message(1000 - elements, 1.0F), "") << "ends where A begins";
  EXPECT_EQ(message(1004 - elements, 1.0F), "workspace overlaps a");
  EXPECT_EQ(message(1016, 1.0F), "workspace overlaps a") << "the last four of 20 elements";
  EXPECT_EQ(message(1020, 1.0F), "");
  EXPECT_EQ(message(2016, 1.0F), "workspace overlaps b");
  EXPECT_EQ(message(3012, 1.0F), "workspace overlaps c");
  EXPECT_EQ(message(3016, 1.0F), "");
  EXPECT_EQ(message(1016, 0.0F), "") << "A is not read";
}

TEST(Plan, AWorkspaceThatIsNotNeededMayLieAnywhere) {
  const Plan plan = kNothing.plan(Problem::dense({4, 4, 4}));
  EXPECT_TRUE(plan.launch({.a = address(0),
                           .b = address(0),
                           .c = address(1000),
                           .workspace = address(2001),
                           .workspace_bytes = 4})
                  .ok());
}

// The rows that stand alone are those of A and C where M is 1, and those of B where K is.
TEST(Plan, KernelsSeeNoStrideOfARowThatStandsAlone) {
  static Problem seen;
  constexpr Stage kStage{.name = "Seen", .choose = [](const Problem& problem, const Device&) {
                           seen = problem;
                           return Choice{.rounding_chain = 1};
                         }};
  const auto strides = [&](const Shape& shape) {
    Problem problem = Problem::dense(shape);
    problem.lda = 1001, problem.ldb = 1002, problem.ldc = 1003;
    EXPECT_TRUE(kStage.plan(problem).ok());
    return std::array{seen.lda, seen.ldb, seen.ldc};
  };
  EXPECT_EQ(strides({1, 5, 3}), (std::array<std::int64_t, 3>{3, 1002, 5}));
  EXPECT_EQ(strides({2, 5, 1}), (std::array<std::int64_t, 3>{1001, 5, 1003}));
}

// Where blocks may crowd: a multiprocessor for each, and long enough.
TEST(Plan, StartsEarlyOnlyBehindItself) {
  static bool is_alone;
  constexpr Stage kStage{.name = "Crowding",
                         .candidates = [](const Problem& problem, const Device&) {
                           const auto enqueue = [](const KernelArgs&, Stream) {
                             is_alone = device::StartsAlone::take();
                             return Status();
                           };
                           return std::vector<Candidate>{
                               {.choice = {.rounding_chain = 1, .enqueue = enqueue},
                                .seconds = static_cast<double>(problem.shape.m) * 1e-6,
                                .parts = {.waves = static_cast<double>(problem.shape.n % 6) / 4}}};
                         }};
  const auto starts_alone = [&](std::int64_t microseconds, std::int64_t quarters_of_a_wave,
                                std::int64_t stream = 0) {
    const Plan plan = kStage.plan(Problem::dense({microseconds, quarters_of_a_wave, 1}));
    EXPECT_TRUE(plan.launch({.a = address(0), .b = address(100), .c = address(1000)},
                            reinterpret_cast<Stream>(address(stream)))
                    .ok());
    EXPECT_FALSE(device::StartsAlone::take());
    return is_alone;
  };
  EXPECT_TRUE(starts_alone(3, 4));
  EXPECT_FALSE(starts_alone(3, 4));
  EXPECT_TRUE(starts_alone(3, 3));
  EXPECT_TRUE(starts_alone(3, 4));
  EXPECT_TRUE(starts_alone(3, 4, 1));
  EXPECT_FALSE(starts_alone(3, 4, 1));
  EXPECT_FALSE(starts_alone(2, 4, 1));
  EXPECT_TRUE(starts_alone(3, 4, 1));
  EXPECT_FALSE(starts_alone(3, 5, 1));
  EXPECT_FALSE(starts_alone(3, 6, 1));  // not modelled
}

TEST(Plan, OperandsEndWithTheAddressSpace) {
  float* const last =
      reinterpret_cast<float*>(std::numeric_limits<std::uintptr_t>::max() - 64 * sizeof(float) + 1);
  const auto argument = [&](std::int64_t elements) {
    const Plan plan = kNothing.plan(Problem::dense({1, 1, elements}));
    return plan.launch({.a = last, .b = address(0), .c = address(1000)}).argument();
  };
  EXPECT_EQ(argument(63), "");
  EXPECT_EQ(argument(64), "a");
}

TEST(Plan, RejectsAnotherDevice) {
  for (const int step : {-1, 0, 1}) {
    Device device = device::current();
    device.ordinal += step;
    const Plan plan = kNothing.plan(Problem::dense({4, 4, 4}), device);
    const Status status = plan.launch({.a = address(0), .b = address(0), .c = address(1000)});
    EXPECT_EQ(status.ok(), step == 0) << "planned for a device " << step << " from the current one";
  }
}

}  // namespace
}  // namespace tilegate
