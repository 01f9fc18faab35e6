// The split pass alone, on the executor: all of its kernels write the same digits and steps.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "18_int8x3/launches.cuh"
#include "simt/device_array.hpp"
#include "split_call.hpp"

namespace tilegate::int8x3 {
namespace {

// Digits and steps. `multiprocessors`: few of them have more groups of rows each.
std::vector<std::uint32_t> split(const Operation& operation, const SplitForm& form,
                                 int multiprocessors) {
  const Problem& problem = operation.problem;
  Workspace where(problem, device::current(), true);
  where.form = form;
  Launches launches{where,
                    split_job(problem, Operand::kA, where.a, form.rows),
                    split_job(problem, Operand::kB, where.b, form.rows),
                    {}};
  const std::int64_t groups = launches.a.num_groups() + launches.b.num_groups();
  launches.split_blocks = form.blocks(groups, multiprocessors);
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

SplitForm form(SplitForm::Kernel kernel, unsigned cluster) {
  SplitForm form;
  form.kernel = kernel;
  form.rows = Long::kRows;
  form.cluster = cluster;
  return form;
}

// One cluster goes through all groups of both operands, along k and across it, with vectors and
// without; of eight blocks the last has no k.
TEST(Split, IsTheSameByEveryKernel) {
  for (const Op op : {Op::kN, Op::kT}) {
    for (const Shape& shape : {Shape{20, 12, 580}, Shape{3, 5, 579}}) {
      const Operation operation(Problem::dense(shape, op, op, op == Op::kN ? 2 : 1));
      const std::vector<std::uint32_t> expected = split(operation, SplitForm(), 1);
      for (const SplitForm& each :
           {form(SplitForm::Kernel::kAhead, 2), form(SplitForm::Kernel::kAhead, 8),
            form(SplitForm::Kernel::kMany, 2), form(SplitForm::Kernel::kLong, 2)}) {
        EXPECT_TRUE(split(operation, each, 1) == expected)
            << static_cast<int>(each.kernel) << " by clusters of " << each.cluster;
      }
    }
  }
}

}  // namespace
}  // namespace tilegate::int8x3
