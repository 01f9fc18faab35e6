// The split pass alone, on the executor: each of its kernels writes the model's digits and scales,
// also where no small problem takes it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "18_int8x3/plan.hpp"
#include "models/int8x3.hpp"
#include "models/layout.hpp"
#include "simt/device_array.hpp"
#include "split_call.hpp"

namespace tilegate::int8x3 {
namespace {

// What the split pass leaves of an operand.
struct Split {
  std::vector<std::byte> digits;
  std::vector<float> steps;
  models::int8x3::Widths widths;  // the means summed over all rows
};

// Of op(A) and op(B).
std::array<Split, 2> split(const Operation& operation, const SplitPlan& plan,
                           float most_spread = INFINITY) {
  const Problem& problem = operation.problem;
  Workspace where(problem, device::current(), true);
  where.split = plan;
  Launches launches{where,
                    split_job(problem, Operand::kA, where.a, plan.rows),
                    split_job(problem, Operand::kB, where.b, plan.rows),
                    {}};
  const std::int64_t groups_a = launches.a.num_groups();
  const std::int64_t groups = groups_a + launches.b.num_groups();
  launches.split_blocks = plan.blocks(groups, 1);
  launches.most_spread = most_spread;
  const DeviceArray<float> a(operation.a), b(operation.b);
  const std::size_t size =
      where.widths + static_cast<std::size_t>(groups) * kNumWidths * sizeof(float);
  const DeviceArray<std::byte> workspace(size, std::byte{0xA5});  // whatever was there before
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
  const std::vector<std::byte> found = workspace.to_host();
  const auto floats = [&](std::size_t at, std::size_t bytes) {
    std::vector<float> values(bytes / sizeof(float));
    std::memcpy(values.data(), &found[at], bytes);
    return values;
  };
  const auto part = [&](std::size_t planes, std::size_t steps, const Planes& of,
                        std::int64_t first_group, std::int64_t end_group) {
    const std::byte* first = &found[planes];
    models::int8x3::Widths sums;
    for (std::int64_t group = first_group; group < end_group; ++group) {
      const auto of_group =
          floats(where.widths + static_cast<std::size_t>(group) * kNumWidths * sizeof(float),
                 kNumWidths * sizeof(float));
      sums.width += of_group[0];
      sums.spread += of_group[1];
      sums.most = std::max<double>(sums.most, of_group[2]);
    }
    return Split{{first, first + of.bytes()}, floats(steps, of.step_bytes()), sums};
  };
  return {part(where.planes_a, where.steps_a, where.a, 0, groups_a),
          part(where.planes_b, where.steps_b, where.b, groups_a, groups)};
}

// By the model: zeros outside the operand, too.
Split expected(const std::vector<models::Rows>& products) {
  const auto [data, rows, k, next_row, next_k] = products[0];
  const auto count = static_cast<std::int64_t>(products.size());
  Split all;
  all.digits.resize(static_cast<std::size_t>(models::bytes_of_digits(rows, k, count)));
  all.steps.resize(static_cast<std::size_t>(count * models::whole_chunks(rows)));
  for (std::int64_t product = 0; product < count; ++product) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const models::int8x3::Row row =
          models::int8x3::quantized(products[static_cast<std::size_t>(product)], i);
      all.steps[static_cast<std::size_t>(product * models::whole_chunks(rows) + i)] = row.step;
      all.widths.width += row.width;
      all.widths.spread += row.spread;
      all.widths.most = std::max(all.widths.most, row.spread);
      for (std::int64_t of_k = 0; of_k < k; ++of_k) {
        const auto digits = models::int8x3::digits(row.integers[static_cast<std::size_t>(of_k)]);
        for (int plane = 0; plane < 3; ++plane) {
          all.digits[static_cast<std::size_t>(
              models::offset_of_digit(rows, k, product, i, of_k, plane))] =
              static_cast<std::byte>(digits[static_cast<std::size_t>(plane)]);
        }
      }
    }
  }
  return all;
}

void expect_model(const Operation& operation, const SplitPlan& plan) {
  SCOPED_TRACE(to_string(operation.problem));
  const std::array<Split, 2> found = split(operation, plan);
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    const Split& of = found[static_cast<std::size_t>(operand)];
    const Split model = expected(operation.all_rows(operand));
    EXPECT_TRUE(of.digits == model.digits);
    expect_same_bits(of.steps, model.steps);
    EXPECT_NEAR(of.widths.width, model.widths.width, 1e-5 * model.widths.width);
    EXPECT_NEAR(of.widths.spread, model.widths.spread, 1e-4 * model.widths.spread);
    EXPECT_NEAR(of.widths.most, model.widths.most, 1e-4 * model.widths.most);
  }
}

SplitPlan plan_of(SplitPlan::Kernel kernel, unsigned cluster = 1, bool boxes = false) {
  SplitPlan plan;
  plan.boxes = boxes;
  plan.kernel = kernel;
  const bool is_short = kernel == SplitPlan::Kernel::kAny || kernel == SplitPlan::Kernel::kFew;
  plan.rows = is_short ? FewRows::kRows : Long::kRows;
  plan.cluster = cluster;
  return plan;
}

// Rows with scales of their own: of short significands, of zeros, and far from 1.
Operation of_unlike_rows(const Problem& problem) {
  Operation operation(problem);
  for (std::vector<float>* values : {&operation.a, &operation.b}) {
    for (std::size_t i = 0; i < values->size(); ++i) {
      if (i / 3 % 5 == 0) (*values)[i] = std::rint(16.0F * (*values)[i]);
    }
  }
  const auto set_row = [&](std::vector<float>& of, Operand operand, std::int64_t row, auto value) {
    const models::Rows rows = operation.rows(operand, 0);
    for (std::int64_t k = 0; k < rows.k; ++k) {
      float& x = of[static_cast<std::size_t>(row * rows.next_row + k * rows.next_k)];
      x = value(x);
    }
  };
  set_row(operation.a, Operand::kA, 0, [](float x) { return std::rint(4000.0F * x); });
  set_row(operation.a, Operand::kA, 1, [](float) { return 0.0F; });
  set_row(operation.b, Operand::kB, 1, [](float x) { return -0x1p-54F * std::fabs(x); });
  set_row(operation.b, Operand::kB, problem.shape.n - 1, [](float x) { return 0x1p55F * x; });
  return operation;
}

// Along k (A) and across it (B), with vectors and without, K and rows beside a multiple of what a
// block takes, a batch that shares an operand.
void expect_model(const SplitPlan& plan, std::int64_t k) {
  expect_model(of_unlike_rows(Problem::dense({20, 12, k})), plan);
  expect_model(of_unlike_rows(Problem::dense({9, 131, k + 1})), plan);
  Problem batch = Problem::dense({3, 5, 279}, Op::kT, Op::kT, 2);
  batch.stride_a = 0;
  expect_model(of_unlike_rows(batch), plan);
}

// K such that each warp has a part of it, and some have more than one.
TEST(Int8Split, AnyRowsKernelMatchesModel) { expect_model(plan_of(SplitPlan::Kernel::kAny), 1064); }
TEST(Int8Split, FewRowsKernelMatchesModel) { expect_model(plan_of(SplitPlan::Kernel::kFew), 1000); }
TEST(Int8Split, ManyRowsKernelMatchesModel) {
  expect_model(plan_of(SplitPlan::Kernel::kMany, 2), 580);
}
TEST(Int8Split, PipelinedKernelMatchesModel) {
  expect_model(plan_of(SplitPlan::Kernel::kAhead, 2), 1124);
}
TEST(Int8Split, ClusterKernelMatchesModel) {
  expect_model(plan_of(SplitPlan::Kernel::kLong, 2), 580);
}

// Along k and across it, a last box that is partly outside, a batch that shares an operand, a last
// block without k.
TEST(Int8Split, BoxesMatchModel) {
  for (const auto kernel : {SplitPlan::Kernel::kMany, SplitPlan::Kernel::kAhead}) {
    for (const unsigned cluster : {2U, 4U}) {
      SCOPED_TRACE(std::string(name_of(kernel)) + ", cluster of " + std::to_string(cluster));
      const SplitPlan plan = plan_of(kernel, cluster, true);
      expect_model(of_unlike_rows(Problem::dense({20, 12, 1124})), plan);
      expect_model(of_unlike_rows(Problem::dense({12, 132, 580}, Op::kN, Op::kT)), plan);
      Problem batch = Problem::dense({4, 8, 280}, Op::kT, Op::kT, 2);
      batch.stride_a = 0;
      expect_model(of_unlike_rows(batch), plan);
    }
  }
}

// The threads of a block keep 1024 k, and read the others again.
TEST(Int8Split, RowsReadTwiceMatchModel) {
  expect_model(Operation(Problem::dense({3, 5, 2100})), plan_of(SplitPlan::Kernel::kLong, 2));
}

// One cluster goes through all groups of both operands, word by word; its last block has no k.
TEST(Int8Split, LargeClustersMatchModel) {
  expect_model(Operation(Problem::dense({3, 5, 279}, Op::kT, Op::kT)),
               plan_of(SplitPlan::Kernel::kAhead, 4));
}

TEST(Int8Split, ReportsRowsThatCannotBeScaled) {
  for (const auto kernel :
       {SplitPlan::Kernel::kFew, SplitPlan::Kernel::kAhead, SplitPlan::Kernel::kLong}) {
    const bool is_few = kernel == SplitPlan::Kernel::kFew;
    Operation operation(Problem::dense({20, 3, 130}));
    operation.a[19 * 130 + 129] = INFINITY;
    operation.b[1] = 0x1p61F;
    const std::array<Split, 2> found = split(operation, plan_of(kernel, is_few ? 1 : 2));
    for (const Split& of : found) {
      EXPECT_EQ(of.widths.width, INFINITY);
      EXPECT_EQ(of.widths.spread, INFINITY);
      EXPECT_EQ(of.widths.most, INFINITY);
    }
  }
}

// Where one row alone rules digits out, they are not written, but steps and widths are.
TEST(Int8Split, WritesNoDigitsOfWideRows) {
  using Kernel = SplitPlan::Kernel;
  constexpr std::int64_t kK = 132, kWideRow = 18;
  Operation operation(Problem::dense({40, 4, kK}));
  operation.a[kWideRow * kK + 5] = 1e6F;
  for (const SplitPlan& plan :
       {plan_of(Kernel::kAny), plan_of(Kernel::kFew), plan_of(Kernel::kMany, 2),
        plan_of(Kernel::kAhead, 2), plan_of(Kernel::kMany, 2, true),
        plan_of(Kernel::kAhead, 2, true)}) {
    SCOPED_TRACE(std::string(name_of(plan.kernel)) + (plan.boxes ? ", boxes" : ""));
    const std::array<Split, 2> all = split(operation, plan);
    const auto spread = static_cast<float>(all[0].widths.most);
    const std::array<Split, 2> same = split(operation, plan, spread),
                               fewer = split(operation, plan, 0.999F * spread);
    EXPECT_TRUE(same[0].digits == all[0].digits);
    EXPECT_TRUE(fewer[1].digits == all[1].digits);
    expect_same_bits(fewer[0].steps, all[0].steps);
    EXPECT_EQ(fewer[0].widths.most, all[0].widths.most);
    for (const std::int64_t row : {std::int64_t{0}, kWideRow, std::int64_t{39}}) {
      const auto digit = static_cast<std::size_t>(models::offset_of_digit(40, kK, 0, row, 5, 0));
      EXPECT_EQ(fewer[0].digits[digit], row == kWideRow ? std::byte{0xA5} : all[0].digits[digit]);
    }
  }
}

// The fewest blocks per cluster whose slots hold every chunk of a row, for each K.
TEST(Int8Split, ClustersHoldTheirRows) {
  for (std::int64_t k = 1025; k <= Ahead::kMaxK; ++k) {
    const SplitPlan plan(1, k, 0.0, 132, false);
    ASSERT_EQ(plan.kernel, SplitPlan::Kernel::kAhead);
    const std::int64_t held = std::int64_t{plan.cluster} * Ahead::kMaxChunks * kChunkK;
    ASSERT_LE(k, held);
    ASSERT_TRUE(plan.cluster == 2 || k > held / 2) << k << ": " << plan.cluster << " blocks";
  }
}

// By rows and K, on a GPU of 132 multiprocessors.
TEST(Int8Split, TakesTheFastestMeasuredKernel) {
  using Kernel = SplitPlan::Kernel;
  const auto kernel = [](std::int64_t rows, std::int64_t k, bool by_tma = false) {
    return SplitPlan(rows / Long::kRows, k, 0.0, 132, by_tma).kernel;
  };
  EXPECT_EQ(kernel(256, 128, true), Kernel::kMany);
  EXPECT_EQ(kernel(2048, 768), Kernel::kFew);
  EXPECT_EQ(kernel(2048, 1024), Kernel::kMany);
  EXPECT_EQ(kernel(8192, 128), Kernel::kMany);
  EXPECT_EQ(kernel(1024, 1152), Kernel::kAhead);
  EXPECT_EQ(kernel(2048, 1152), Kernel::kMany);
  EXPECT_EQ(kernel(2048, 2048), Kernel::kAhead);
  EXPECT_EQ(kernel(2048, 16384), Kernel::kLong);
}

TEST(Int8Split, EvictsOperandsWhereDigitsFitInL2) {
  const auto evicts_first = [](const Shape& shape) {
    return SplitPlan((shape.m + shape.n) / Long::kRows, shape.k,
                     4.0 * static_cast<double>(shape.m * shape.n), 132, true)
        .evicts_first;
  };
  EXPECT_TRUE(evicts_first({2048, 2048, 2048}));
  EXPECT_TRUE(evicts_first({4096, 4096, 1024}));
  EXPECT_FALSE(evicts_first({1024, 1024, 2048})) << "all of it fits";
  EXPECT_FALSE(evicts_first({16384, 16384, 1024})) << "digits do not";
  EXPECT_FALSE(evicts_first({2048, 2048, 4096})) << "nothing is gained";
}

}  // namespace
}  // namespace tilegate::int8x3
