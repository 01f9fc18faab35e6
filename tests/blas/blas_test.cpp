// The C API as a stage, so that the verifier judges it by rows and by columns; and its errors.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tilegate.h>

#include <tilegate/device.hpp>
#include <tilegate/sgemm.hpp>
#include <tilegate/stage.hpp>

#include "verifier/case.hpp"

namespace tilegate {
namespace {

tilegate_op op_of(Op op) { return op == Op::kT ? TILEGATE_TRANS : TILEGATE_NO_TRANS; }

// A handle with a problem's math.
struct Handle {
  tilegate_handle handle = nullptr;

  explicit Handle(Math math = Math::fp32) {
    EXPECT_EQ(tilegate_create(&handle), TILEGATE_SUCCESS);
    tilegate_set_math(handle, math == Math::fp32 ? TILEGATE_MATH_FP32 : TILEGATE_MATH_FP32_SPLIT);
  }
  ~Handle() { tilegate_destroy(handle); }
  operator tilegate_handle() const { return handle; }
};

const float* pointer(std::int64_t offset) { return reinterpret_cast<const float*>(offset); }

std::size_t workspace_bytes(const Problem& p, tilegate_order order) {
  const Handle handle(p.math);
  std::size_t bytes = 0;
  const float *a = pointer(p.offset_bytes[0]), *b = pointer(p.offset_bytes[1]),
              *c = pointer(p.offset_bytes[2]);
  const tilegate_status status =
      order == TILEGATE_ROW_MAJOR
          ? tilegate_sgemm_strided_batched_workspace_bytes(
                handle, order, op_of(p.op_a), op_of(p.op_b), p.shape.m, p.shape.n, p.shape.k,
                p.alpha, a, p.lda, p.stride_a, b, p.ldb, p.stride_b, p.beta, c, p.ldc, p.stride_c,
                p.batch, &bytes)
          : tilegate_sgemm_strided_batched_workspace_bytes(
                handle, order, op_of(p.op_b), op_of(p.op_a), p.shape.n, p.shape.m, p.shape.k,
                p.alpha, b, p.ldb, p.stride_b, a, p.lda, p.stride_a, p.beta, c, p.ldc, p.stride_c,
                p.batch, &bytes);
  EXPECT_EQ(status, TILEGATE_SUCCESS) << tilegate_message(handle);
  return bytes;
}

// The product that a stage is asked for, by rows, as a call of the API; by columns it is that of
// the transposed matrices.
Status call(const Problem& p, tilegate_order order, const KernelArgs& args, std::size_t workspace,
            Stream stream) {
  const Handle handle(p.math);
  tilegate_set_stream(handle, stream);
  tilegate_set_workspace(handle, args.workspace, workspace);
  const auto [m, n, k] = args.shape;
  const tilegate_op op_a = op_of(p.op_a), op_b = op_of(p.op_b);
  tilegate_status status;
  if (order == TILEGATE_ROW_MAJOR && args.batch == 1) {
    status = tilegate_sgemm(handle, order, op_a, op_b, m, n, k, args.alpha, args.a, args.lda,
                            args.b, args.ldb, args.beta, args.c, args.ldc);
  } else if (order == TILEGATE_ROW_MAJOR) {
    status = tilegate_sgemm_strided_batched(
        handle, order, op_a, op_b, m, n, k, args.alpha, args.a, args.lda, args.stride_a, args.b,
        args.ldb, args.stride_b, args.beta, args.c, args.ldc, args.stride_c, args.batch);
  } else {
    status = tilegate_sgemm_strided_batched(
        handle, order, op_b, op_a, n, m, k, args.alpha, args.b, args.ldb, args.stride_b, args.a,
        args.lda, args.stride_a, args.beta, args.c, args.ldc, args.stride_c, args.batch);
  }
  if (status == TILEGATE_SUCCESS) return {};
  return Status::device_error(tilegate_message(handle));
}

template <tilegate_order kOrder>
Choice choose(const Problem& problem, const Device& device) {
  Choice choice;
  const Plan plan = sgemm::stage.plan(problem, device);
  choice.rounding_chain = plan.rounding_chain();
  choice.operand_error = plan.operand_error();
  choice.workspace_bytes = workspace_bytes(problem, kOrder);
  choice.enqueue = [problem, bytes = choice.workspace_bytes](const KernelArgs& args,
                                                             Stream stream) {
    return call(problem, kOrder, args, bytes, stream);
  };
  return choice;
}

template <tilegate_order kOrder>
void expect_right(const char* text) {
  const Stage stage{
      .name = "Blas", .takes_transposed = true, .takes_batches = true, .choose = choose<kOrder>};
  verifier::Case test_case;
  ASSERT_TRUE(parse_problem(text, &test_case.problem).ok()) << text;
  for (const verifier::Inputs inputs : {verifier::Inputs::kIntegers, verifier::Inputs::kUniform}) {
    if (inputs == verifier::Inputs::kIntegers && test_case.problem.math == Math::fp32_split) {
      continue;
    }
    test_case.inputs = inputs;
    const verifier::Verdict verdict = verify(stage, test_case);
    EXPECT_TRUE(verdict.ok) << verdict.report;
  }
}

constexpr const char* kProblems[] = {
    "5x7x3",
    "37x45x28/TN/ld41x49x52/beta2",
    "45x37x28/NT/ld29x31x38/alpha-1",
    "36x44x20/TT/off4x8x12/alpha0.5/beta-1",
    "20x12x16/batch3/beta1",
    "9x5x8/TT/ld12x9x7/batch2s0x80x70",
    "1x9x0/beta3",
    "4x0x5",
    "0x3x5",
    "12x8x4/alpha0/beta2",
    "130x70x300/split",
};

TEST(BlasGemm, MatchesReferenceInRowMajor) {
  for (const char* text : kProblems) expect_right<TILEGATE_ROW_MAJOR>(text);
}

TEST(BlasGemm, MatchesReferenceInColumnMajor) {
  for (const char* text : kProblems) expect_right<TILEGATE_COL_MAJOR>(text);
}

// A call of one product that is right: A is 4x3, B 3x5, by rows or by columns.
class BlasErrors : public testing::Test {
 protected:
  struct Call {
    tilegate_order order = TILEGATE_ROW_MAJOR;
    tilegate_op op_a = TILEGATE_NO_TRANS, op_b = TILEGATE_NO_TRANS;
    std::int64_t m = 4, n = 5, k = 3, lda = 5, ldb = 5, ldc = 5;
    std::int64_t stride_a = 0, stride_b = 0, stride_c = 25, batch = 1;
    const float *a, *b;
    float* c;
  };

  Call valid() const {
    Call call;
    call.a = floats_;
    call.b = floats_ + 64;
    call.c = floats_ + 128;
    return call;
  }

  tilegate_status run(const Call& x) const {
    return tilegate_sgemm_strided_batched(handle_, x.order, x.op_a, x.op_b, x.m, x.n, x.k, 1.0F,
                                          x.a, x.lda, x.stride_a, x.b, x.ldb, x.stride_b, 0.0F, x.c,
                                          x.ldc, x.stride_c, x.batch);
  }

  void expect_refused(const Call& call, const std::string& message) const {
    EXPECT_EQ(run(call), TILEGATE_INVALID_ARGUMENT);
    EXPECT_EQ(tilegate_message(handle_), message);
  }

  Handle handle_;
  device::Buffer memory_{1024};
  float* floats_ = reinterpret_cast<float*>(memory_.data());
};

TEST_F(BlasErrors, NameTheArgument) {
  EXPECT_EQ(run(valid()), TILEGATE_SUCCESS) << tilegate_message(handle_);
  EXPECT_STREQ(tilegate_message(handle_), "");
  Call call = valid();
  call.m = -1;
  expect_refused(call, "m = -1 is negative");
  call = valid();
  call.batch = -2;
  expect_refused(call, "batch = -2 is negative");
  call = valid();
  call.lda = 2;
  expect_refused(call, "lda = 2 is shorter than a row of 3 elements");
  call.order = TILEGATE_COL_MAJOR;
  expect_refused(call, "lda = 2 is shorter than a column of 4 elements");
  call.op_a = TILEGATE_TRANS;
  expect_refused(call, "lda = 2 is shorter than a column of 3 elements");
  call.lda = 3;
  EXPECT_EQ(run(call), TILEGATE_SUCCESS) << tilegate_message(handle_);
  EXPECT_STREQ(tilegate_message(handle_), "") << "of the call before";
  call.ldb = 2;
  expect_refused(call, "ldb = 2 is shorter than a column of 3 elements");
  call = valid();
  call.ldc = 4;
  expect_refused(call, "ldc = 4 is shorter than a row of 5 elements");
  call.order = TILEGATE_COL_MAJOR;
  EXPECT_EQ(run(call), TILEGATE_SUCCESS) << tilegate_message(handle_);
}

TEST_F(BlasErrors, RejectInvalidPointers) {
  Call call = valid();
  call.a = nullptr;
  expect_refused(call, "a is a null pointer");
  call = valid();
  call.c = nullptr;
  expect_refused(call, "c is a null pointer");
  call.m = 0;  // nothing is touched
  EXPECT_EQ(run(call), TILEGATE_SUCCESS);
  call.m = 4;
  call.batch = 0;
  EXPECT_EQ(run(call), TILEGATE_SUCCESS);
  call = valid();
  call.b = reinterpret_cast<const float*>(reinterpret_cast<const char*>(call.b) + 2);
  expect_refused(call, "b is not 4-byte aligned");
}

// Also what the plan finds, which has the operands swapped where the order is by columns.
TEST_F(BlasErrors, AreTheSameInBothOrders) {
  for (const tilegate_order order : {TILEGATE_ROW_MAJOR, TILEGATE_COL_MAJOR}) {
    Call call = valid();
    call.order = order;
    ASSERT_EQ(run(call), TILEGATE_SUCCESS) << tilegate_message(handle_);
    call.c = floats_ + 64;
    expect_refused(call, "c overlaps b");
    call.c = floats_;
    expect_refused(call, "c overlaps a");
    call = valid();
    call.order = order;
    call.batch = 2;
    call.stride_a = -1;
    expect_refused(call, "stride_a = -1 is negative");
    call.stride_a = 0;
    call.stride_b = -2;
    expect_refused(call, "stride_b = -2 is negative");
    call.stride_b = 0;
    call.stride_c = 1;
    expect_refused(call, "stride_c = 1 makes the results of the batch overlap");
    call = valid();
    call.order = order;
    call.ldb = std::int64_t{1} << 62;
    const std::string lines = order == TILEGATE_ROW_MAJOR ? "3 rows" : "5 columns";
    expect_refused(call, "b spans more than the address space: " + lines +
                             " of leading dimension 4611686018427387904");
  }
}

TEST_F(BlasErrors, RejectInvalidEnumerators) {
  Call call = valid();
  call.order = std::bit_cast<tilegate_order>(0);
  expect_refused(call, "order is neither TILEGATE_ROW_MAJOR nor TILEGATE_COL_MAJOR");
  call = valid();
  call.op_b = std::bit_cast<tilegate_op>(113);
  expect_refused(call, "op_b is neither TILEGATE_NO_TRANS nor TILEGATE_TRANS");
  EXPECT_EQ(tilegate_set_math(handle_, std::bit_cast<tilegate_math>(7)), TILEGATE_INVALID_ARGUMENT);
}

TEST_F(BlasErrors, NameTheMissingWorkspace) {
  tilegate_set_math(handle_, TILEGATE_MATH_FP32_SPLIT);
  const device::Buffer operands(3 * 1024 * 1024 * sizeof(float));
  Call call = valid();
  call.a = reinterpret_cast<const float*>(operands.data());
  call.b = call.a + 1024 * 1024;
  call.c = reinterpret_cast<float*>(operands.data()) + 2 * 1024 * 1024;
  call.m = call.n = call.k = call.lda = call.ldb = call.ldc = 1024;
  std::size_t bytes = 0;
  ASSERT_EQ(
      tilegate_sgemm_workspace_bytes(handle_, call.order, call.op_a, call.op_b, 1024, 1024, 1024,
                                     1.0F, call.a, 1024, call.b, 1024, 0.0F, call.c, 1024, &bytes),
      TILEGATE_SUCCESS);
  ASSERT_GT(bytes, 0U);
  const device::Buffer workspace(bytes);
  const auto expect_missing = [&](std::size_t given) {
    EXPECT_EQ(run(call), TILEGATE_INVALID_ARGUMENT);
    const std::string wanted =
        "workspace of " + std::to_string(given) + " bytes; Sgemm needs " + std::to_string(bytes);
    EXPECT_EQ(tilegate_message(handle_), wanted);
  };
  expect_missing(0);
  EXPECT_EQ(tilegate_set_workspace(handle_, workspace.data(), bytes - 1), TILEGATE_SUCCESS);
  expect_missing(bytes - 1);
  EXPECT_EQ(tilegate_set_workspace(handle_, nullptr, 0), TILEGATE_SUCCESS) << "takes it back";
  expect_missing(0);
  EXPECT_EQ(tilegate_set_workspace(handle_, nullptr, 1), TILEGATE_INVALID_ARGUMENT);
  EXPECT_EQ(tilegate_set_workspace(handle_, workspace.data() + 8, bytes - 8),
            TILEGATE_INVALID_ARGUMENT);
}

TEST_F(BlasErrors, OfAWorkspaceNameTheLeadingDimension) {
  std::size_t bytes = 0;
  const auto message = [&](std::int64_t lda, std::int64_t ldb, std::int64_t ldc) {
    tilegate_sgemm_workspace_bytes(handle_, TILEGATE_ROW_MAJOR, TILEGATE_NO_TRANS,
                                   TILEGATE_NO_TRANS, 8, 16, 32, 1.0F, nullptr, lda, nullptr, ldb,
                                   0.0F, nullptr, ldc, &bytes);
    return std::string(tilegate_message(handle_)).substr(0, 8);
  };
  EXPECT_EQ(message(32, 16, 16), "");
  EXPECT_EQ(message(31, 16, 16), "lda = 31");
  EXPECT_EQ(message(32, 15, 16), "ldb = 15");
  EXPECT_EQ(message(32, 16, 15), "ldc = 15");
}

// One of the operands is shared by the products of the batch, and split once.
TEST(BlasHandle, TellsTheWorkspaceOfThePlan) {
  for (const Operand shared : {Operand::kA, Operand::kB}) {
    Problem problem = Problem::dense({256, 512, 1024}, Op::kN, Op::kN, 3);
    problem.math = Math::fp32_split;
    (shared == Operand::kA ? problem.stride_a : problem.stride_b) = 0;
    const Plan plan = sgemm::stage.plan(problem);
    EXPECT_GT(plan.workspace_bytes(), 0U);
    for (const tilegate_order order : {TILEGATE_ROW_MAJOR, TILEGATE_COL_MAJOR}) {
      EXPECT_EQ(workspace_bytes(problem, order), plan.workspace_bytes());
    }
  }
}

TEST(BlasHandle, LimitsTheWorkspaceOfItsPlans) {
  const Handle handle(Math::fp32_split);
  const auto needed = [&](std::size_t limit) {
    EXPECT_EQ(tilegate_set_workspace_limit(handle, limit), TILEGATE_SUCCESS);
    std::size_t bytes = 1;
    EXPECT_EQ(tilegate_sgemm_workspace_bytes(handle, TILEGATE_ROW_MAJOR, TILEGATE_NO_TRANS,
                                             TILEGATE_NO_TRANS, 1024, 1024, 1024, 1.0F, nullptr,
                                             1024, nullptr, 1024, 0.0F, nullptr, 1024, &bytes),
              TILEGATE_SUCCESS);
    return bytes;
  };
  const std::size_t all = needed(SIZE_MAX);
  EXPECT_GT(all, 0U);
  EXPECT_EQ(needed(all), all);
  EXPECT_LT(needed(all - 1), all);
  EXPECT_EQ(needed(0), 0U);
  EXPECT_EQ(needed(SIZE_MAX), all);
}

TEST(BlasHandle, MayBeNull) {
  EXPECT_EQ(tilegate_create(nullptr), TILEGATE_INVALID_ARGUMENT);
  EXPECT_EQ(tilegate_set_stream(nullptr, nullptr), TILEGATE_INVALID_ARGUMENT);
  EXPECT_STREQ(tilegate_message(nullptr), "handle is a null pointer");
  tilegate_destroy(nullptr);
}

TEST(BlasHandle, HasAStringForEveryStatus) {
  for (int status = TILEGATE_SUCCESS; status <= TILEGATE_INTERNAL_ERROR; ++status) {
    EXPECT_STRNE(tilegate_status_string(static_cast<tilegate_status>(status)), "unknown status");
  }
  EXPECT_STREQ(tilegate_status_string(std::bit_cast<tilegate_status>(99)), "unknown status");
}

// Of more problems than a handle keeps plans of, each is still computed.
TEST(BlasHandle, EvictsCachedPlans) {
  const Handle handle;
  const device::Buffer memory(3 * 256);
  auto* floats = reinterpret_cast<float*>(memory.data());
  for (int i = 0; i < 4100; ++i) {
    ASSERT_EQ(tilegate_sgemm(handle, TILEGATE_ROW_MAJOR, TILEGATE_NO_TRANS, TILEGATE_NO_TRANS, 1, 1,
                             0, 1.0F, floats, 1, floats, 1, static_cast<float>(i), floats + 64, 1),
              TILEGATE_SUCCESS);
  }
}

}  // namespace
}  // namespace tilegate
