// Errors are values: each wrong call of every stage is refused in words, and C is as it was.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <tilegate/simt/device.hpp>

#include "ladder/stage_test.hpp"
#include "verifier/guarded_matrix.hpp"

namespace tilegate::ladder {
namespace {

using verifier::GuardedMatrix;

constexpr float kUntouched = 42.0F;
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

// A valid call of 16×12×8 with room for each operand to be larger than it is.
class ErrorsAreValuesTest : public testing::TestWithParam<const Stage*> {
 protected:
  void SetUp() override {
    if (const std::string why = cannot_run(stage()); !why.empty()) GTEST_SKIP() << why;
    for (GuardedMatrix* matrix : {&a_, &b_, &c_}) ASSERT_TRUE(matrix->upload().ok());
    ASSERT_TRUE(stage().prepare().ok());
  }

  const Stage& stage() const { return *GetParam(); }

  SgemmArgs valid() const {
    return {.shape = {16, 12, 8},
            .a = a_.on_device(),
            .lda = 8,
            .b = b_.on_device(),
            .ldb = 12,
            .beta = 1.0F,
            .c = c_.on_device(),
            .ldc = 12,
            .workspace = workspace_.data(),
            .workspace_bytes = workspace_.size()};
  }

  // `spoil` makes the valid call wrong in `argument`.
  void expect_refused(const std::string& argument, const std::function<void(SgemmArgs&)>& spoil) {
    SgemmArgs args = valid();
    spoil(args);
    const Status status = stage().launch(args);
    EXPECT_EQ(status.code(), Status::Code::kInvalidArgument) << status.message();
    EXPECT_EQ(status.argument(), argument);
    EXPECT_NE(status.message(), "");
    EXPECT_EQ(stage().supports(args).code(), status.code()) << "supports() and launch() differ";
    expect_c_untouched();
  }

  void expect_c_untouched() {
    ASSERT_TRUE(device::synchronize().ok());
    ASSERT_TRUE(c_.download().ok());
    EXPECT_FALSE(c_.changed_element()) << *c_.changed_element();
    EXPECT_FALSE(c_.changed_guard()) << *c_.changed_guard();
  }

  GuardedMatrix a_{"a", 64, 64, 64, 0, 1.0F};
  GuardedMatrix b_{"b", 64, 64, 64, 0, 1.0F};
  GuardedMatrix c_{"c", 64, 64, 64, 0, kUntouched};
  device::Buffer workspace_{1 << 20};
};

TEST_P(ErrorsAreValuesTest, ValidCallIsAccepted) {
  ASSERT_LE(stage().workspace_bytes(valid().shape), workspace_.size());
  EXPECT_TRUE(stage().supports(valid()).ok()) << stage().supports(valid()).message();
  const Status status = stage().launch(valid());
  EXPECT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(device::synchronize().ok());
  ASSERT_TRUE(c_.download().ok());
  EXPECT_TRUE(c_.changed_element()) << "so the other tests could not fail";
}

TEST_P(ErrorsAreValuesTest, NegativeSizes) {
  expect_refused("m", [](SgemmArgs& args) { args.shape.m = -1; });
  expect_refused("n", [](SgemmArgs& args) { args.shape.n = -1; });
  expect_refused("k", [](SgemmArgs& args) { args.shape.k = -kHuge; });
}

TEST_P(ErrorsAreValuesTest, ShortLeadingDimensions) {
  expect_refused("lda", [](SgemmArgs& args) { args.lda = 7; });
  expect_refused("ldb", [](SgemmArgs& args) { args.ldb = 11; });
  expect_refused("ldc", [](SgemmArgs& args) { args.ldc = 11; });
  expect_refused("ldc", [](SgemmArgs& args) { args.ldc = -12; });
}

TEST_P(ErrorsAreValuesTest, ShortLeadingDimensionsOfEmptyProducts) {
  expect_refused("ldb", [](SgemmArgs& args) { args.shape.m = 0, args.ldb = 11; });
  expect_refused("m", [](SgemmArgs& args) { args.shape.n = 0, args.shape.m = -1; });
}

TEST_P(ErrorsAreValuesTest, NullPointers) {
  expect_refused("a", [](SgemmArgs& args) { args.a = nullptr; });
  expect_refused("b", [](SgemmArgs& args) { args.b = nullptr; });
  expect_refused("c", [](SgemmArgs& args) { args.c = nullptr; });
  expect_refused("c", [](SgemmArgs& args) { args.c = nullptr, args.alpha = 0.0F; });
}

template <typename T>
T* one_byte_on(T* p) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(p) + 1);
}

TEST_P(ErrorsAreValuesTest, MisalignedPointers) {
  expect_refused("a", [](SgemmArgs& args) { args.a = one_byte_on(args.a); });
  expect_refused("b", [](SgemmArgs& args) { args.b = one_byte_on(args.b); });
  expect_refused("c", [](SgemmArgs& args) { args.c = one_byte_on(args.c); });
}

TEST_P(ErrorsAreValuesTest, ExtentsPastTheAddressSpace) {
  expect_refused("a", [](SgemmArgs& args) { args.lda = kHuge; });
  expect_refused("a", [](SgemmArgs& args) { args.shape.k = args.lda = std::int64_t{1} << 61; });
  expect_refused("b", [](SgemmArgs& args) { args.ldb = kHuge / 4; });
  expect_refused("c", [](SgemmArgs& args) { args.ldc = kHuge / 8; });
  expect_refused("c", [](SgemmArgs& args) { args.shape.m = kHuge; });
}

TEST_P(ErrorsAreValuesTest, MoreBlocksThanAGridHas) {
  // Fits the address space of a pointer, if not any memory: refused, or never launched.
  SgemmArgs args = valid();
  args.shape = {std::int64_t{1} << 40, std::int64_t{1} << 18, 0};
  args.lda = 0;
  args.ldb = args.ldc = args.shape.n;
  if (stage().workspace_bytes(args.shape) > workspace_.size()) GTEST_SKIP() << "no such workspace";
  if (stage().name == "Cublas") GTEST_SKIP() << "the library has its own limits";
  EXPECT_EQ(stage().launch(args).code(), Status::Code::kUnsupported);
  expect_c_untouched();
}

TEST_P(ErrorsAreValuesTest, COverlapsAnInput) {
  expect_refused("c", [](SgemmArgs& args) { args.a = args.c; });
  expect_refused("c", [](SgemmArgs& args) { args.b = args.c; });
  // By one element: the first of A, or of B, is the last of C, and the other way round.
  expect_refused("c", [](SgemmArgs& args) { args.a = args.c + 16 * 12 - 1; });
  expect_refused("c", [](SgemmArgs& args) { args.b = args.c + 16 * 12 - 1; });
  expect_refused("c", [](SgemmArgs& args) { args.a = args.c, args.c += 16 * 8 - 1; });
}

TEST_P(ErrorsAreValuesTest, NeighboursDoNotOverlap) {
  SgemmArgs args = valid();
  args.a = args.c + 16 * 12;
  EXPECT_TRUE(stage().supports(args).ok()) << stage().supports(args).message();
  args.alpha = 0.0F;
  args.a = args.b = args.c;  // not read
  EXPECT_TRUE(stage().supports(args).ok()) << stage().supports(args).message();
}

TEST_P(ErrorsAreValuesTest, StrideOfASingleRowMayBeAnything) {
  SgemmArgs args = valid();
  args.shape = {1, 12, 1};
  args.lda = args.ldb = args.ldc = std::int64_t{1} << 60;
  const Status status = stage().launch(args);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(device::synchronize().ok());
}

TEST_P(ErrorsAreValuesTest, WorkspaceTooSmall) {
  SgemmArgs args = valid();
  args.shape = {16, 12, 2048};
  args.lda = 2048;
  const device::Buffer a(16 * 2048 * sizeof(float));
  const device::Buffer b(2048 * 12 * sizeof(float));
  args.a = reinterpret_cast<const float*>(a.data());
  args.b = reinterpret_cast<const float*>(b.data());
  const std::size_t needed = stage().workspace_bytes(args.shape);
  if (needed == 0) GTEST_SKIP() << "needs no workspace";
  ASSERT_LE(needed, workspace_.size());
  const auto refused = [&](void* workspace, std::size_t bytes) {
    args.workspace = workspace;
    args.workspace_bytes = bytes;
    const Status status = stage().launch(args);
    EXPECT_EQ(status.code(), Status::Code::kInvalidArgument) << status.message();
    EXPECT_EQ(status.argument(), "workspace");
    expect_c_untouched();
  };
  refused(nullptr, 0);
  refused(nullptr, needed);
  refused(workspace_.data(), needed - 1);
  refused(workspace_.data() + 4, needed);
}

INSTANTIATE_TEST_SUITE_P(Ladder, ErrorsAreValuesTest, testing::ValuesIn(all_stages()), name_stage);

}  // namespace
}  // namespace tilegate::ladder
