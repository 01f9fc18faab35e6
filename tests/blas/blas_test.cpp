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

#include "simt/device_array.hpp"
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

TEST_F(BlasErrors, NameTheOperandThatTheWorkspaceOverlaps) {
  constexpr std::int64_t kN = 768;  // for 512 the plan of an NVIDIA H200 needs no workspace
  tilegate_set_math(handle_, TILEGATE_MATH_FP32_SPLIT);
  const device::Buffer a_and_c(2 * kN * kN * sizeof(float));
  for (const tilegate_order order : {TILEGATE_ROW_MAJOR, TILEGATE_COL_MAJOR}) {
    Call call = valid();
    call.order = order;
    call.op_a = call.op_b = TILEGATE_NO_TRANS;
    call.m = call.n = call.k = call.lda = call.ldb = call.ldc = kN;
    call.a = reinterpret_cast<const float*>(a_and_c.data());
    call.c = reinterpret_cast<float*>(a_and_c.data()) + kN * kN;
    std::size_t bytes = 0;
    ASSERT_EQ(tilegate_sgemm_workspace_bytes(handle_, order, call.op_a, call.op_b, kN, kN, kN, 1.0F,
                                             nullptr, kN, nullptr, kN, 0.0F, nullptr, kN, &bytes),
              TILEGATE_SUCCESS);
    ASSERT_GT(bytes, 16U);
    const device::Buffer workspace(bytes + kN * kN * sizeof(float));
    tilegate_set_workspace(handle_, workspace.data(), bytes);
    call.b = reinterpret_cast<const float*>(workspace.data() + bytes - 16);
    expect_refused(call, "workspace overlaps b");
    call.b += 4;
    EXPECT_EQ(run(call), TILEGATE_SUCCESS) << tilegate_message(handle_);
  }
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
    Problem problem = Problem::dense({1024, 1024, 1024}, Op::kN, Op::kN, 3);
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

// op(A) is 64x512 and the prepared op(B) 512x256; or the prepared op(A) 256x512, op(B) 512x64.
// Elements are small integers, so that results are exact.
struct PreparedCall {
  tilegate_order order;
  bool is_a;
  tilegate_op op;  // of the prepared operand; the other is not transposed
  Handle handle{};
  tilegate_prepared prepared = nullptr;

  static constexpr std::int64_t kExtent = 256, kOther = 64, kK = 512;
  std::int64_t m = is_a ? kExtent : kOther, n = is_a ? kOther : kExtent;
  DeviceArray<float> a{integers(m * kK, 1)}, b{integers(kK * n, 2)},
      c{static_cast<std::size_t>(m * n)};
  device::Buffer memory, workspace;

  PreparedCall(tilegate_order order_, bool is_a_, tilegate_op op_)
      : order(order_), is_a(is_a_), op(op_) {}
  ~PreparedCall() { tilegate_destroy_prepared(prepared); }

  static std::vector<float> integers(std::int64_t count, std::uint64_t factor) {
    std::vector<float> values;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
      values.push_back(static_cast<float>((i * 2654435761U * factor >> 7) % 9) - 4.0F);
    }
    return values;
  }
  tilegate_op op_a() const { return is_a ? op : TILEGATE_NO_TRANS; }
  tilegate_op op_b() const { return is_a ? TILEGATE_NO_TRANS : op; }
  std::int64_t ld(tilegate_op of, std::int64_t rows, std::int64_t cols) const {
    return (order == TILEGATE_ROW_MAJOR) == (of == TILEGATE_NO_TRANS) ? cols : rows;
  }
  std::int64_t lda() const { return ld(op_a(), m, kK); }
  std::int64_t ldb() const { return ld(op_b(), kK, n); }
  std::int64_t ldc() const { return ld(TILEGATE_NO_TRANS, m, n); }

  tilegate_status prepare(int is_checked = 0) {
    const tilegate_operand operand = is_a ? TILEGATE_OPERAND_A : TILEGATE_OPERAND_B;
    const float* const from = is_a ? a.data() : b.data();
    const std::int64_t ld = is_a ? lda() : ldb();
    std::size_t bytes = 0;
    const tilegate_status status = tilegate_prepare_bytes(handle, order, operand, op, kExtent, kK,
                                                          from, ld, is_checked, &bytes);
    if (status != TILEGATE_SUCCESS) return status;
    memory = device::Buffer(bytes);
    tilegate_destroy_prepared(prepared);
    prepared = nullptr;
    return tilegate_prepare(handle, order, operand, op, kExtent, kK, from, ld, is_checked,
                            memory.data(), bytes, &prepared);
  }
  tilegate_status run() {
    std::size_t bytes = 0;
    const tilegate_status status = tilegate_sgemm_prepared_workspace_bytes(
        handle, prepared, order, op_a(), op_b(), m, n, kK, 1.0F, a.data(), lda(), b.data(), ldb(),
        0.0F, c.data(), ldc(), &bytes);
    if (status != TILEGATE_SUCCESS) return status;
    workspace = device::Buffer(bytes + sizeof(std::int32_t));
    tilegate_set_workspace(handle, workspace.data(), bytes);
    return tilegate_sgemm_prepared(handle, prepared, order, op_a(), op_b(), m, n, kK, 1.0F,
                                   a.data(), lda(), b.data(), ldb(), 0.0F, c.data(), ldc());
  }
  struct Strides {
    std::int64_t row, col;
  };
  Strides strides(tilegate_op of, std::int64_t ld) const {
    const bool along_row = (order == TILEGATE_ROW_MAJOR) == (of == TILEGATE_NO_TRANS);
    return along_row ? Strides{ld, 1} : Strides{1, ld};
  }
  std::vector<float> expected() const {
    const std::vector<float> of_a = a.to_host(), of_b = b.to_host();
    const Strides in_a = strides(op_a(), lda()), in_b = strides(op_b(), ldb());
    const Strides in_c = strides(TILEGATE_NO_TRANS, ldc());
    std::vector<float> result(static_cast<std::size_t>(m * n));
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const float* x = of_a.data() + i * in_a.row;
        const float* y = of_b.data() + j * in_b.col;
        float sum = 0.0F;
        for (std::int64_t k = 0; k < kK; ++k, x += in_a.col, y += in_b.row) sum += *x * *y;
        result[static_cast<std::size_t>(i * in_c.row + j * in_c.col)] = sum;
      }
    }
    return result;
  }
};

TEST(BlasPrepared, IsExactOnIntegers) {
  for (const tilegate_order order : {TILEGATE_ROW_MAJOR, TILEGATE_COL_MAJOR}) {
    for (const bool is_a : {false, true}) {
      for (const tilegate_op op : {TILEGATE_NO_TRANS, TILEGATE_TRANS}) {
        PreparedCall call(order, is_a, op);
        ASSERT_EQ(call.prepare(), TILEGATE_SUCCESS) << tilegate_message(call.handle);
        const std::vector<float> expected = call.expected();
        for (int turn = 0; turn < 2; ++turn) {  // the second with the cached plan
          ASSERT_EQ(call.run(), TILEGATE_SUCCESS) << tilegate_message(call.handle);
          EXPECT_EQ(call.c.to_host(), expected);
        }
        std::int32_t decision = 0;
        ASSERT_TRUE(
            is_ok(device::copy_to_host(&decision, call.workspace.data(), sizeof(decision))));
        EXPECT_EQ(decision == 10, !device::current().is_cuda) << decision << "; a GPU takes FP32";
      }
    }
  }
}

TEST(BlasPrepared, NamesWrongArguments) {
  for (const tilegate_order order : {TILEGATE_ROW_MAJOR, TILEGATE_COL_MAJOR}) {
    PreparedCall call(order, false, TILEGATE_NO_TRANS);
    const std::string message_of_null = "prepared is a null pointer";
    EXPECT_EQ(call.run(), TILEGATE_INVALID_ARGUMENT);
    EXPECT_EQ(tilegate_message(call.handle), message_of_null);
    ASSERT_EQ(call.prepare(), TILEGATE_SUCCESS) << tilegate_message(call.handle);
    call.n -= 4;  // op(B) is smaller than the prepared one
    EXPECT_EQ(call.run(), TILEGATE_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(tilegate_message(call.handle)).substr(0, 5), "b is ");
    call.n += 4;
    const std::string message_of_order = "order differs from that of tilegate_prepare";
    call.order = order == TILEGATE_ROW_MAJOR ? TILEGATE_COL_MAJOR : TILEGATE_ROW_MAJOR;
    EXPECT_EQ(call.run(), TILEGATE_INVALID_ARGUMENT);
    EXPECT_EQ(tilegate_message(call.handle), message_of_order);
    EXPECT_EQ(
        tilegate_sgemm_prepared(call.handle, call.prepared, call.order, call.op_a(), call.op_b(),
                                call.m, call.n, call.kK, 1.0F, call.a.data(), call.lda(),
                                call.b.data(), call.ldb(), 0.0F, call.c.data(), call.ldc()),
        TILEGATE_INVALID_ARGUMENT);
    EXPECT_EQ(tilegate_message(call.handle), message_of_order);
    call.order = order;
    EXPECT_EQ(call.run(), TILEGATE_SUCCESS) << tilegate_message(call.handle);
    const auto message_of = [&](float* c) {
      EXPECT_EQ(tilegate_sgemm_prepared(call.handle, call.prepared, order, call.op_a(), call.op_b(),
                                        call.m, call.n, call.kK, 1.0F, call.a.data(), call.lda(),
                                        call.b.data(), call.ldb(), 0.0F, c, call.ldc()),
                TILEGATE_INVALID_ARGUMENT);
      return std::string(tilegate_message(call.handle));
    };
    EXPECT_EQ(message_of(reinterpret_cast<float*>(call.memory.data())),
              "c overlaps the prepared operand");
    call.m = 1;  // in FP32, which reads no digits
    EXPECT_EQ(message_of(reinterpret_cast<float*>(call.memory.data())),
              "c overlaps the prepared operand");
    call.m = PreparedCall::kOther;
    tilegate_set_workspace(call.handle, call.memory.data(), std::size_t{1} << 30);
    EXPECT_EQ(message_of(call.c.data()), "workspace overlaps the prepared operand");
  }
  const Handle handle;
  std::size_t bytes = 0;
  const auto refused = [&](tilegate_operand operand, std::int64_t k, std::size_t* to) {
    EXPECT_EQ(tilegate_prepare_bytes(handle, TILEGATE_ROW_MAJOR, operand, TILEGATE_NO_TRANS, 8, k,
                                     nullptr, 8, 0, to),
              TILEGATE_INVALID_ARGUMENT);
    return std::string(tilegate_message(handle));
  };
  EXPECT_EQ(refused(std::bit_cast<tilegate_operand>(2), 200, &bytes),
            "operand is neither TILEGATE_OPERAND_A nor TILEGATE_OPERAND_B");
  EXPECT_EQ(refused(TILEGATE_OPERAND_B, -1, &bytes), "k = -1 is negative");
  EXPECT_EQ(refused(TILEGATE_OPERAND_A, 200, &bytes),
            "lda = 8 is shorter than a row of 200 elements");
  EXPECT_EQ(refused(TILEGATE_OPERAND_B, 200, nullptr), "bytes is a null pointer");
  const device::Buffer b(200 * 8 * sizeof(float));
  const auto prepare = [&](tilegate_prepared* prepared) {
    EXPECT_EQ(
        tilegate_prepare(handle, TILEGATE_COL_MAJOR, TILEGATE_OPERAND_B, TILEGATE_NO_TRANS, 8, 200,
                         reinterpret_cast<const float*>(b.data()), 200, 0, nullptr, 0, prepared),
        TILEGATE_INVALID_ARGUMENT);
    return std::string(tilegate_message(handle)).substr(0, 8);
  };
  tilegate_prepared prepared = nullptr;
  EXPECT_EQ(prepare(nullptr), "prepared");
  EXPECT_EQ(prepare(&prepared), "memory o");
  EXPECT_EQ(prepared, nullptr);
  tilegate_destroy_prepared(nullptr);
}

#if TILEGATE_ON_SIMT  // on a GPU no later test could run
TEST(BlasPrepared, FindsAnOperandThatHasChanged) {
  PreparedCall call(TILEGATE_COL_MAJOR, true, TILEGATE_TRANS);
  ASSERT_EQ(call.prepare(1), TILEGATE_SUCCESS) << tilegate_message(call.handle);
  EXPECT_EQ(call.run(), TILEGATE_SUCCESS) << tilegate_message(call.handle);
  call.a.data()[77] += 1.0F;
  EXPECT_EQ(call.run(), TILEGATE_DEVICE_ERROR);
  EXPECT_NE(std::string(tilegate_message(call.handle)).find("has changed"), std::string::npos);
  EXPECT_EQ(call.prepare(0), TILEGATE_SUCCESS);
  call.a.data()[77] += 1.0F;
  EXPECT_EQ(call.run(), TILEGATE_SUCCESS) << "nothing is compared";
}
#endif

}  // namespace
}  // namespace tilegate
