// Errors are values: every stage refuses each wrong call with a message, and C is unchanged.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <tilegate/catalogue.hpp>
#include <tilegate/device.hpp>

#include "ladder/stage_test.hpp"
#include "verifier/guarded_matrix.hpp"

namespace tilegate::ladder {
namespace {

using verifier::GuardedMatrix;
using verifier::Padded;

constexpr float kUntouched = 42.0F;
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

// A valid call of 16×12×8, with memory for larger operands.
class ErrorsAreValues : public testing::TestWithParam<const Stage*> {
 protected:
  void SetUp() override {
    if (const std::string why = record_cannot_run(stage()); !why.empty()) GTEST_SKIP() << why;
    if (const Status taken = stage().takes(valid().problem); !taken.ok()) {
      GTEST_SKIP() << record_not_applicable(taken);
    }
    for (GuardedMatrix* matrix : {&a_, &b_, &c_}) ASSERT_TRUE(matrix->upload().ok());
    ASSERT_TRUE(stage().prepare().ok());
  }

  const Stage& stage() const { return *GetParam(); }

  struct Call {
    Problem problem;
    Operands operands;
  };

  Call valid() const {
    return {Padded{.shape = {16, 12, 8}, .beta = 1.0F},
            {.a = a_.on_device(),
             .b = b_.on_device(),
             .c = c_.on_device(),
             .workspace = workspace_.data(),
             .workspace_bytes = workspace_.size()}};
  }

  Status launch(const Call& call) const { return stage().plan(call.problem).launch(call.operands); }

  static void expect_names(const Status& status, const std::string& argument) {
    EXPECT_EQ(status.code(), Status::Code::kInvalidArgument) << status.message();
    EXPECT_EQ(status.argument(), argument);
    EXPECT_NE(status.message(), "");
  }

  // `spoil` makes `argument` of the valid problem wrong: there is no plan for it.
  void expect_no_plan(const std::string& argument, const std::function<void(Problem&)>& spoil) {
    Call call = valid();
    spoil(call.problem);
    const Plan plan = stage().plan(call.problem);
    expect_names(plan.status(), argument);
    EXPECT_EQ(plan.launch(call.operands).message(), plan.status().message());
    expect_c_untouched();
  }

  // `spoil` makes `argument` of the valid call wrong: its plan refuses the operands.
  void expect_refused(const std::string& argument, const std::function<void(Call&)>& spoil) {
    Call call = valid();
    spoil(call);
    const Plan plan = stage().plan(call.problem);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    expect_names(plan.launch(call.operands), argument);
    expect_c_untouched();
  }

  void expect_c_untouched() {
    ASSERT_TRUE(device::synchronize().ok());
    ASSERT_TRUE(c_.download().ok());
    EXPECT_FALSE(c_.changed_element()) << *c_.changed_element();
    EXPECT_FALSE(c_.changed_guard()) << *c_.changed_guard();
  }

  GuardedMatrix a_{"a", {.rows = 64, .cols = 64, .ld = 64}, 1.0F};
  GuardedMatrix b_{"b", {.rows = 64, .cols = 64, .ld = 64}, 1.0F};
  GuardedMatrix c_{"c", {.rows = 64, .cols = 64, .ld = 64}, kUntouched};
  device::Buffer workspace_{1 << 20};
};

TEST_P(ErrorsAreValues, ValidCallIsAccepted) {
  ASSERT_LE(stage().plan(valid().problem).workspace_bytes(), workspace_.size());
  const Status status = launch(valid());
  EXPECT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(device::synchronize().ok());
  ASSERT_TRUE(c_.download().ok());
  EXPECT_TRUE(c_.changed_element()) << "without this the other tests could not fail";
}

TEST_P(ErrorsAreValues, NegativeSizes) {
  expect_no_plan("m", [](Problem& problem) { problem.shape.m = -1; });
  expect_no_plan("n", [](Problem& problem) { problem.shape.n = -1; });
  expect_no_plan("k", [](Problem& problem) { problem.shape.k = -kHuge; });
  expect_no_plan("batch", [](Problem& problem) { problem.batch = -1; });
}

TEST_P(ErrorsAreValues, ShortLeadingDimensions) {
  expect_no_plan("lda", [](Problem& problem) { problem.lda = 7; });
  expect_no_plan("ldb", [](Problem& problem) { problem.ldb = 11; });
  expect_no_plan("ldc", [](Problem& problem) { problem.ldc = 11; });
  expect_no_plan("ldc", [](Problem& problem) { problem.ldc = -12; });
}

TEST_P(ErrorsAreValues, ShortLeadingDimensionsOfEmptyProblems) {
  expect_no_plan("ldb", [](Problem& problem) { problem.shape.m = 0, problem.ldb = 11; });
  expect_no_plan("m", [](Problem& problem) { problem.shape.n = 0, problem.shape.m = -1; });
}

TEST_P(ErrorsAreValues, OffsetsWithinAFloat) {
  expect_no_plan("a", [](Problem& problem) { problem.offset_bytes[0] = 2; });
  expect_no_plan("b", [](Problem& problem) { problem.offset_bytes[1] = -4; });
  expect_no_plan("c", [](Problem& problem) { problem.offset_bytes[2] = 5; });
}

TEST_P(ErrorsAreValues, UnsupportedProblems) {
  for (const char* text : {"16x12x8/TN", "16x12x8/NT", "16x12x8/batch2"}) {
    Problem problem;
    ASSERT_TRUE(parse_problem(text, &problem).ok());
    const bool takes = problem.batch > 1 ? stage().takes_batches : stage().takes_transposed;
    const Status status = stage().plan(problem).status();
    EXPECT_EQ(status.code(), takes ? Status::Code::kOk : Status::Code::kUnsupported) << text;
  }
}

TEST_P(ErrorsAreValues, OverlappingBatchResults) {
  expect_no_plan("stride_c", [](Problem& problem) { problem.batch = 2, problem.stride_c = 191; });
  expect_no_plan("stride_a", [](Problem& problem) { problem.batch = 2, problem.stride_a = -1; });
}

TEST_P(ErrorsAreValues, NullPointers) {
  expect_refused("a", [](Call& call) { call.operands.a = nullptr; });
  expect_refused("b", [](Call& call) { call.operands.b = nullptr; });
  expect_refused("c", [](Call& call) { call.operands.c = nullptr; });
  expect_refused("c", [](Call& call) { call.operands.c = nullptr, call.problem.alpha = 0.0F; });
}

template <typename T>
T* bytes_on(T* p, int bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(p) +
                              static_cast<std::uintptr_t>(bytes));
}

TEST_P(ErrorsAreValues, MisalignedPointers) {
  expect_refused("a", [](Call& call) { call.operands.a = bytes_on(call.operands.a, 1); });
  expect_refused("b", [](Call& call) { call.operands.b = bytes_on(call.operands.b, 1); });
  expect_refused("c", [](Call& call) { call.operands.c = bytes_on(call.operands.c, 1); });
}

TEST_P(ErrorsAreValues, PointersBelowThePromisedAlignment) {
  expect_refused("a", [](Call& call) { call.operands.a = bytes_on(call.operands.a, 8); });
  expect_refused("b", [](Call& call) {
    call.problem.offset_bytes[1] = 8;
    call.operands.b = bytes_on(call.operands.b, 4);
  });
  Call call = valid();
  call.problem.offset_bytes = {4, 8, 12};
  EXPECT_TRUE(launch(call).ok()) << "better aligned than promised";
}

TEST_P(ErrorsAreValues, ExtentsBeyondTheAddressSpace) {
  expect_no_plan("a", [](Problem& problem) { problem.lda = kHuge; });
  expect_no_plan("a", [](Problem& p) { p.shape.k = p.lda = std::int64_t{1} << 61; });
  expect_no_plan("b", [](Problem& problem) { problem.ldb = kHuge / 4; });
  expect_no_plan("c", [](Problem& problem) { problem.ldc = kHuge / 8; });
  expect_no_plan("a", [](Problem& problem) { problem.shape.m = kHuge; });
  // The size is possible, but not at this address.
  expect_refused(
      "c", [](Call& call) { call.operands.c = reinterpret_cast<float*>(~std::uintptr_t{0} - 15); });
}

TEST_P(ErrorsAreValues, GridTooLarge) {
  if (stage().name == "Cublas") GTEST_SKIP() << "the library has its own limits";
  // Fits into the address space.
  Problem problem = Problem::dense({std::int64_t{1} << 40, std::int64_t{1} << 18, 0});
  EXPECT_EQ(stage().plan(problem).status().code(), Status::Code::kUnsupported);
}

// The most rows, and the most columns, that the stage takes fill a grid with one tile per block; or
// the stage names another limit, and takes exactly that.
TEST_P(ErrorsAreValues, LargestGrid) {
  if (stage().name == "Cublas") GTEST_SKIP() << "the library has its own limits";
  constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;
  const auto expect_limit = [&](const char* side, const auto& shape_of) {
    constexpr std::int64_t kStep = 4;  // whole vectors; the limit may differ for other sizes
    std::int64_t taken = kStep, refused = std::int64_t{1} << 45;
    const auto takes = [&](std::int64_t size) {
      return stage().plan(Problem::dense(shape_of(size))).ok();
    };
    ASSERT_TRUE(takes(taken) && !takes(refused)) << side;
    while (refused - taken > kStep) {
      const std::int64_t middle = taken + (refused - taken) / 2 / kStep * kStep;
      (takes(middle) ? taken : refused) = middle;
    }
    const std::string why = stage().plan(Problem::dense(shape_of(refused))).status().message();
    for (std::int64_t limit = taken; limit < refused; ++limit) {
      if (why.find(" above " + std::to_string(limit)) == std::string::npos) continue;
      EXPECT_TRUE(takes(limit)) << side << " = " << limit;
      EXPECT_FALSE(takes(limit + 1)) << side << " = " << limit + 1;
      return;
    }
    EXPECT_EQ(taken % kMostBlocks, 0) << side << ": takes " << taken << "; " << why;
    const auto& tiles = stage().tile_sizes;
    EXPECT_NE(std::find(tiles.begin(), tiles.end(), taken / kMostBlocks), tiles.end())
        << side << ": takes " << taken;
  };
  expect_limit("m", [](std::int64_t size) { return Shape{size, 1, 0}; });
  expect_limit("n", [](std::int64_t size) { return Shape{1, size, 0}; });
}

// The largest K for a C of one element, and the largest batch of such problems, with four
// multiprocessors. Rungs that are not listed take as much as the address space, and a batch of one
// block per matrix.
struct Limits {
  std::string_view rung;
  std::int64_t k, batch;
};
constexpr std::int64_t kNoLimit = kHuge / 4, kMostInGrid = (std::int64_t{1} << 31) - 1;
constexpr Limits kLimits[] = {
    {"Interleaved", kMostInGrid - 256, kMostInGrid},
    {"StreamK", kMostInGrid - 256, kMostInGrid},
    {"AsyncCopy", 1 << 30, kMostInGrid},
    {"Packed", 1 << 30, kMostInGrid / 6},  // 6 tiles to pack per matrix
    {"Skinny", std::int64_t{64} << 30, kMostInGrid},
    {"Int8x3", (1 << 27) - 1, kMostInGrid / 32},  // 32 blocks split the operands of a matrix
    {"Tma", 1 << 30, kMostInGrid},
    {"Fp16x3", (1 << 27) - 1, kMostInGrid / 32},
    {"Bf16x6", (1 << 27) - 1, kMostInGrid / 12},  // rows of tiles in a group
};

TEST_P(ErrorsAreValues, LongestKAndLargestBatch) {
  if (stage().name == "Cublas") GTEST_SKIP() << "the library has its own limits";
  if (stage().restrictions.int_indices) GTEST_SKIP() << "int indices limit whole operands";
  Limits limits{.rung = stage().name, .k = kNoLimit, .batch = kMostInGrid};
  for (const Limits& listed : kLimits) {
    if (listed.rung == stage().name.substr(0, stage().name.find('.'))) limits = listed;
  }
  Device device = device::current();
  device.multiprocessors = 4;
  const auto takes = [&](const Problem& problem) { return stage().plan(problem, device).ok(); };
  EXPECT_TRUE(takes(Problem::dense({1, 1, limits.k})));
  EXPECT_FALSE(takes(Problem::dense({1, 1, limits.k + 1})));
  if (!stage().takes_batches) return;
  const auto takes_batch = [&](std::int64_t batch) {
    return takes(Problem::dense({1, 1, 1}, Op::kN, Op::kN, batch));
  };
  if (limits.k == kNoLimit && takes_batch(kNoLimit)) return;
  EXPECT_TRUE(takes_batch(limits.batch));
  EXPECT_FALSE(takes_batch(limits.batch + 1));
}

TEST_P(ErrorsAreValues, InterleavedBatchResultsAreAccepted) {
  if (!stage().takes_batches) return;  // WhatTheStageDoesNotDo
  constexpr std::int64_t kPerRow = 3 * 12 + 1;
  Call call = valid();
  call.problem = Problem::dense({16, 12, 8}, Op::kN, Op::kN, 3);
  call.problem.ldc = kPerRow;
  call.problem.stride_c = 12;
  const Status status = launch(call);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(device::synchronize().ok());
  ASSERT_TRUE(c_.download().ok());
  for (std::int64_t i = 0; i < c_.rows() * c_.cols(); ++i) {
    const bool is_result = i < 16 * kPerRow && i % kPerRow < 3 * 12;
    ASSERT_EQ(c_.found(i / c_.cols())[i % c_.cols()], is_result ? 8.0F : kUntouched) << i;
  }
}

TEST_P(ErrorsAreValues, COverlapsAnInput) {
  expect_refused("c", [](Call& call) { call.operands.a = call.operands.c; });
  expect_refused("c", [](Call& call) { call.operands.b = call.operands.c; });
  // Overlaps of one element: the first of A or B is the last of C, and vice versa.
  const auto unaligned = [](Call& call) { call.problem.offset_bytes = {4, 4, 4}; };
  expect_refused("c", [&](Call& call) {
    unaligned(call);
    call.operands.a = call.operands.c + 16 * 12 - 1;
  });
  expect_refused("c", [&](Call& call) {
    unaligned(call);
    call.operands.b = call.operands.c + 16 * 12 - 1;
  });
  expect_refused("c", [&](Call& call) {
    unaligned(call);
    call.operands.a = call.operands.c;
    call.operands.c += 16 * 8 - 1;
  });
}

TEST_P(ErrorsAreValues, AdjacentBuffersAreAccepted) {
  Call call = valid();
  call.operands.a = call.operands.c + 16 * 12;
  EXPECT_TRUE(launch(call).ok()) << launch(call).message();
  call.problem.alpha = 0.0F;
  call.operands.a = call.operands.b = call.operands.c;  // not read
  EXPECT_TRUE(launch(call).ok()) << launch(call).message();
  EXPECT_TRUE(device::synchronize().ok());
}

TEST_P(ErrorsAreValues, LeadingDimensionOfASingleRowIsUnused) {
  Call call = valid();
  call.problem.shape = {1, 12, 1};
  call.problem.lda = call.problem.ldb = call.problem.ldc = std::int64_t{1} << 60;
  const Status status = launch(call);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(device::synchronize().ok());
}

TEST_P(ErrorsAreValues, WorkspaceTooSmall) {
  const device::Buffer a(16 * 2048 * sizeof(float));
  const device::Buffer b(2048 * 12 * sizeof(float));
  const Plan plan = stage().plan(Problem::dense({16, 12, 2048}));
  const std::size_t needed = plan.workspace_bytes();
  if (needed == 0) return;  // no workspace is too small
  const device::Buffer large(needed + 8);
  const auto refused = [&](void* workspace, std::size_t bytes) {
    expect_names(plan.launch({.a = reinterpret_cast<const float*>(a.data()),
                              .b = reinterpret_cast<const float*>(b.data()),
                              .c = c_.on_device(),
                              .workspace = workspace,
                              .workspace_bytes = bytes}),
                 "workspace");
    expect_c_untouched();
  };
  refused(nullptr, 0);
  refused(nullptr, needed);
  refused(large.data(), needed - 1);
  refused(large.data() + 4, needed);
  refused(large.data() + 8, needed);
}

TEST_P(ErrorsAreValues, PlanForAnotherDevice) {
  for (const int step : {-1, 1}) {
    Device other = device::current();
    other.ordinal += step;  // does not exist; used only for planning
    const Plan plan = stage().plan(valid().problem, other);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    const Status status = plan.launch(valid().operands);
    EXPECT_EQ(status.code(), Status::Code::kUnsupported);
    EXPECT_NE(status.message().find("planned for device " + std::to_string(other.ordinal)),
              std::string::npos);
    expect_c_untouched();
  }
}

INSTANTIATE_TEST_SUITE_P(Ladder, ErrorsAreValues, testing::ValuesIn(catalogue_stages()),
                         name_stage);

}  // namespace
}  // namespace tilegate::ladder
