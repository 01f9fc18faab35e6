// The split pass alone, on the executor: its kernels write the same digits and steps also where no
// small problem takes them.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "18_int8x3/plan.hpp"
#include "simt/device_array.hpp"
#include "split_call.hpp"

namespace tilegate::int8x3 {
namespace {

// Digits and steps.
std::vector<std::uint32_t> split(const Operation& operation, const SplitForm& form) {
  const Problem& problem = operation.problem;
  Workspace where(problem, device::current(), true);
  where.form = form;
  Launches launches{where,
                    split_job(problem, Operand::kA, where.a, form.rows),
                    split_job(problem, Operand::kB, where.b, form.rows),
                    {}};
  const std::int64_t groups = launches.a.num_groups() + launches.b.num_groups();
  launches.split_blocks = form.blocks(groups, 1);
  const DeviceArray<float> a(operation.a), b(operation.b);
  const std::size_t words = where.widths / sizeof(std::uint32_t);
  const DeviceArray<std::uint32_t> workspace(
      std::vector<std::uint32_t>(words + static_cast<std::size_t>(groups)));
  const KernelArgs args{.shape = problem.shape,
                        .a = a.data(),
                        .lda = problem.lda,
                        .b = b.data(),
                        .ldb = problem.ldb,
                        .workspace = workspace.data(),
                        .batch = problem.batch,
                        .stride_a = problem.stride_a,
                        .stride_b = problem.stride_b};
  EXPECT_TRUE(is_ok(enqueue_split(launches, args, nullptr)));
  std::vector<std::uint32_t> found = workspace.to_host();
  found.resize(words);
  return found;
}

void expect_same(const Shape& shape, Op op, SplitForm::Kernel kernel, unsigned cluster) {
  const Operation operation(Problem::dense(shape, op, op));
  SplitForm form;
  form.kernel = kernel;
  form.rows = Long::kRows;
  form.cluster = cluster;
  EXPECT_TRUE(split(operation, form) == split(operation, SplitForm()));
}

// One cluster goes through all groups of both operands, word by word; its last block has no k.
TEST(Split, InLargeClustersIsThatOfSingleBlocks) {
  expect_same({3, 5, 279}, Op::kT, SplitForm::Kernel::kAhead, 4);
}

TEST(Split, OfLongRowsIsThatOfShortOnes) {
  expect_same({20, 12, 580}, Op::kN, SplitForm::Kernel::kLong, 2);
}

TEST(Split, OfManyRowsIsThatOfFew) {
  expect_same({20, 12, 580}, Op::kN, SplitForm::Kernel::kMany, 2);
}

// By rows and K, on a GPU of 132 multiprocessors.
TEST(Split, IsByTheKernelThatWasFoundToBeFastest) {
  using Kernel = SplitForm::Kernel;
  const auto kernel = [](std::int64_t rows, std::int64_t k) {
    return SplitForm(rows / Long::kRows, k, 0.0, 132).kernel;
  };
  EXPECT_EQ(kernel(2048, 768), Kernel::kFew);
  EXPECT_EQ(kernel(2048, 1024), Kernel::kMany);
  EXPECT_EQ(kernel(8192, 128), Kernel::kMany);
  EXPECT_EQ(kernel(1024, 1152), Kernel::kAhead);
  EXPECT_EQ(kernel(2048, 1152), Kernel::kMany);
  EXPECT_EQ(kernel(2048, 2048), Kernel::kAhead);
  EXPECT_EQ(kernel(2048, 16384), Kernel::kLong);
}

TEST(Split, ReadsOperandsOnceWhereDigitsCanStayInL2) {
  const auto is_once = [](const Shape& shape) {
    return SplitForm((shape.m + shape.n) / Long::kRows, shape.k,
                     4.0 * static_cast<double>(shape.m * shape.n), 132)
        .is_once;
  };
  EXPECT_TRUE(is_once({2048, 2048, 2048}));
  EXPECT_TRUE(is_once({4096, 4096, 1024}));
  EXPECT_FALSE(is_once({1024, 1024, 2048})) << "all of it fits";
  EXPECT_FALSE(is_once({16384, 16384, 1024})) << "digits do not";
  EXPECT_FALSE(is_once({2048, 2048, 4096})) << "nothing is gained";
}

}  // namespace
}  // namespace tilegate::int8x3
