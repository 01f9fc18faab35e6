// Math::fp32_split with same_bits gives the model's bits on any number of ranks.
#include "digits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tilegate/device.hpp>

#include "distributed/ranks.hpp"
#include "models/float32.hpp"
#include "models/int8x3.hpp"
#include "split_call.hpp"
#include "thorough.hpp"

namespace tilegate::distributed {
namespace {

namespace model = models::int8x3;

// Changes random operands so that the devices decide for `products` digit products, or 32: FP32.
void make_decide(int products, Whole& whole) {
  const auto [m, n, k] = whole.problem.shape;
  const auto at = [&](std::int64_t index) { return static_cast<std::size_t>(index); };
  if (products == 32) whole.a[at(whole.problem.lda)] = 1e6F;
  if (products != 8) return;
  for (std::int64_t row = 0; row < m; ++row) whole.a[at(row * whole.problem.lda + row % k)] = 1.33F;
  for (std::int64_t col = 0; col < n; ++col) whole.b[at(col % k * whole.problem.ldb + col)] = 1.33F;
}

Operation operation(const Shape& shape, Math math) {
  Problem problem = Problem::dense(shape);
  problem.math = math;
  set_alpha_and_beta(problem);
  return Operation(problem);
}

Whole whole_of(const Operation& of, int products) {
  Whole whole{.problem = of.problem, .a = of.a, .b = of.b, .c = of.c};
  make_decide(products, whole);
  return whole;
}

std::vector<float> product_over(const Layout& layout, const Whole& of) {
  Whole whole = of;
  const Status status = multiply(layout, whole);
  EXPECT_TRUE(status.ok()) << name_of(layout) << ": " << status.message();
  return whole.c;
}

struct Line {
  float step;
  std::vector<std::array<int, 3>> digits;
};

std::vector<Line> lines_of(const models::Rows& rows) {
  std::vector<Line> lines;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const model::Row of_row = model::quantized(rows, row);
    lines.push_back({of_row.step, {}});
    for (const std::int32_t x : of_row.integers) lines.back().digits.push_back(model::digits(x));
  }
  return lines;
}

// Exact sums of the digit products, rounded once.
std::vector<float> exact_product(const models::Rows& a, const models::Rows& b, int products,
                                 const models::Epilogue& epilogue) {
  const int levels = products == 6 ? 3 : 4;
  const std::vector<Line> rows = lines_of(a), cols = lines_of(b);
  std::vector<float> c;
  for (const Line& row : rows) {
    for (const Line& col : cols) {
      std::int64_t of_level[4] = {};
      for (std::size_t k = 0; k < row.digits.size(); ++k) {
        const int* const x = row.digits[k].data();
        const int* const y = col.digits[k].data();
        of_level[0] += x[0] * y[0];
        of_level[1] += x[0] * y[1] + x[1] * y[0];
        of_level[2] += x[0] * y[2] + x[1] * y[1] + x[2] * y[0];
        of_level[3] += x[1] * y[2] + x[2] * y[1];
      }
      std::int64_t sum = 0;
      for (int i = 0; i < 4; ++i) sum = sum * 256 + (i < levels ? of_level[i] : 0);
      const float scaled = static_cast<float>(sum) * 0x1p-24F * (row.step * col.step);
      c.push_back(epilogue.alpha * scaled + epilogue.beta * epilogue.c[c.size()]);
    }
  }
  return c;
}

class DistributedDigits : public OverRanks {
 protected:
  void SetUp() override {
    OverRanks::SetUp();
    const Status needed =
        check_device({.compute_capability = 90, .no_later = true}, device::current());
    if (IsSkipped() || needed.ok()) return;
    RecordProperty(kNotOnThisDevice, needed.message());
    GTEST_SKIP() << needed.message();
  }
};

// Compares with the models, for each decision, and then expects the same bits on more ranks with
// uneven shards.
TEST_F(DistributedDigits, AreTheModelsOnAnyNumberOfRanks) {
  const Operation random = operation({140, 40, 140}, Math::fp32_split);
  int turn = 0;  // by day each layout runs one of the schedules
  for (const int products : {6, 8}) {
    const Whole whole = whole_of(random, products);
    Operation changed = random;
    changed.a = whole.a;
    changed.b = whole.b;
    const auto widths_of = [&](Operand operand) {  // ranks do not exchange spreads
      const double width = model::widths(changed.all_rows(operand)).width;
      return model::Widths{width, width, width};
    };
    ASSERT_EQ(products,
              model::decision({widths_of(Operand::kA), widths_of(Operand::kB)}, 64.0, false));
    for (const Form form : kForms) {
      const auto by_model = [&](const models::Rows& a, const models::Rows& b,
                                const models::Epilogue& epilogue) {
        return form == Form::kColumnParallel ? model::product(a, b, products, epilogue)
                                             : exact_product(a, b, products, epilogue);
      };
      const std::vector<float> expected = changed.expected(by_model);
      for (const int ranks : {1, 2, 3, 4, 8}) {
        if (ranks > most_ranks()) break;
        for (const Schedule schedule : kSchedules) {
          if (!is_thorough() && (schedule == kSchedules[turn++ / 2 % 2])) continue;
          const Layout layout{.form = form,
                              .ranks = ranks,
                              .schedule = schedule,
                              .same_bits = true,
                              .seed = ranks % 2 == 0 ? 5U : 0U};
          SCOPED_TRACE(name_of(layout) + ", " + std::to_string(products) + " products");
          expect_same_bits(product_over(layout, whole), expected);
        }
      }
    }
  }
}

// If digits are not accurate enough, or an element of the last rank or of the last column is not
// finite, C has the bits of the column-parallel product in FP32.
TEST_F(DistributedDigits, GiveWayToFp32) {
  const Operation random = operation({40, 30, 140}, Math::fp32_split);
  Whole infinite = whole_of(random, 6), infinite_b = infinite;
  infinite.a.back() = infinite_b.b.back() = std::numeric_limits<float>::infinity();
  for (const Whole& whole : {whole_of(random, 32), infinite, infinite_b}) {
    Whole in_fp32 = whole;
    in_fp32.problem.math = Math::fp32;
    const std::vector<float> expected = product_over({.same_bits = true}, in_fp32);
    for (const int ranks : {1, 2}) {
      expect_same_bits(product_over({.ranks = ranks, .same_bits = true}, whole), expected);
      const Layout rows{.form = Form::kRowParallel, .ranks = ranks, .same_bits = true};
      const Layout plain_rows{.form = Form::kRowParallel, .ranks = ranks};
      expect_same_bits(product_over(rows, whole), product_over(plain_rows, in_fp32));
    }
  }
}

// The GEMM of a tile with so long a K would share it among blocks in FP64, but it has no FP64 here.
TEST_F(DistributedDigits, GiveWayToFp32ForALongK) {
  const Whole whole = whole_of(operation({9, 7, 1100}, Math::fp32_split), 32);
  Whole in_fp32 = whole;
  in_fp32.problem.math = Math::fp32;
  expect_same_bits(product_over({.same_bits = true}, whole),
                   product_over({.same_bits = true}, in_fp32));
}

// One element makes a row's significands long: of another lane, warp or rank than the first.
TEST_F(DistributedDigits, AreTheModelsWhereOneElementIsLong) {
  Operation of = operation({3, 4, 140}, Math::fp32_split);
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t k = 0; k < 140; ++k) {
      float& x = of.a[static_cast<std::size_t>(row * 140 + k)];
      if (k != std::array{20, 68, 100}[static_cast<std::size_t>(row)]) {
        x = std::rint(x * 2048.0F) / 2048.0F;
      }
    }
  }
  const models::Epilogue epilogue{of.problem.alpha, of.problem.beta, of.c};
  const std::vector<float> expected =
      exact_product(of.rows(Operand::kA, 0), of.rows(Operand::kB, 0), 6, epilogue);
  for (const int ranks : {1, 2}) {
    const Layout layout{.form = Form::kRowParallel, .ranks = ranks, .same_bits = true};
    expect_same_bits(product_over(layout, whole_of(of, 6)), expected);
  }
}

// What a split leaves of both operands. Sums: over all sets; the largest value where one has it.
struct Split {
  std::vector<std::byte> planes;
  std::vector<float> steps;
  std::vector<std::uint64_t> sums;
  bool operator==(const Split&) const = default;
};

// `cluster`: of the kernel for whole rows; 0: the two kernels for rows that ranks share.
Split split_by(int cluster, const Operation& of) {
  const Problem& problem = of.problem;
  const auto [m, n, k] = problem.shape;
  const int sets = std::max(cluster, 1);
  const std::size_t bytes_a = plane_bytes(m, k), steps_a = step_bytes(m) / sizeof(float);
  const DeviceArray<float> a(of.a), b(of.b), steps(steps_a + step_bytes(n) / sizeof(float), 7.0F);
  const DeviceArray<std::byte> planes(bytes_a + plane_bytes(n, k), std::byte{0xA5});
  const DeviceArray<RowBits> bits(static_cast<std::size_t>(m + n));
  const DeviceArray<std::uint64_t> sums(static_cast<std::size_t>(sets * (m + n)), 7U);
  if (cluster > 0) {
    const WholeRows rows{
        .of = {{{a.data(), planes.data(), steps.data(), sums.data()},
                {b.data(), planes.data() + bytes_a, steps.data() + steps_a, sums.data() + m}}},
        .next_set = m + n,
        .cluster = cluster};
    EXPECT_TRUE(is_ok(prepare_digits(device::current())));
    EXPECT_TRUE(is_ok(enqueue_split_whole_rows(problem, rows, nullptr)));
  }
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    if (cluster > 0) break;
    const bool is_a = operand == Operand::kA;
    const float* const from = is_a ? a.data() : b.data();
    RowBits* const of_rows = bits.data() + (is_a ? 0 : m);
    EXPECT_TRUE(is_ok(enqueue_row_bits(problem, operand, from, of_rows, nullptr)));
    EXPECT_TRUE(is_ok(enqueue_split(problem, operand, from,
                                    {.bits = of_rows,
                                     .planes = planes.data() + (is_a ? 0 : bytes_a),
                                     .steps = steps.data() + (is_a ? 0 : steps_a),
                                     .sums = sums.data() + (is_a ? 0 : m)},
                                    nullptr)));
  }
  Split split{planes.to_host(), steps.to_host(), {}};
  const std::vector<std::uint64_t> found = sums.to_host();
  constexpr std::uint64_t kInfinite = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t row = 0; row < static_cast<std::size_t>(m + n); ++row) {
    std::uint64_t sum = 0;
    for (std::size_t at = row; at < found.size(); at += static_cast<std::size_t>(m + n)) {
      sum = found[at] > kInfinite - sum ? kInfinite : sum + found[at];
    }
    split.sums.push_back(sum);
  }
  return split;
}

// One block or several per row, K that is kept or read again, a last block with little or no K, an
// element that is not finite, an operand without rows.
TEST_F(DistributedDigits, SplitWholeRowsAsSharedOnes) {
  for (const char* const name : {"11x9x70", "2x130x4500/TT", "11x9x4200/TN", "3x0x5000",
                                 "3x4x9000/NT/ld9003x9001x4/off4x8x0"}) {
    Problem problem;
    ASSERT_TRUE(parse_problem(name, &problem).ok());
    Operation of(problem);
    of.a[of.a.size() / 2] = std::numeric_limits<float>::infinity();
    const Split expected = split_by(0, of);
    for (const int cluster : {1, 2, 3, 8}) {
      const Split found = split_by(cluster, of);
      EXPECT_EQ(found.sums, expected.sums) << name << ", cluster " << cluster;
      EXPECT_TRUE(found == expected) << name << ", cluster " << cluster;
    }
  }
  EXPECT_EQ(whole_rows_cluster(2048, device::current()), 1);
  EXPECT_EQ(whole_rows_cluster(2049, device::current()), 2);
  EXPECT_EQ(whole_rows_cluster(1 << 20, device::current()), 8);
  EXPECT_EQ(whole_rows_cluster(1 << 20, {.is_cuda = true, .compute_capability = 80}), 0);
}

// More rows than the block has threads, from two ranks; a row that one of them cannot scale.
TEST_F(DistributedDigits, WeighEveryRow) {
  constexpr std::int64_t kRowsA = 1100, kRowsB = 2, kSets = 2, kK = 50, kRows = kRowsA + kRowsB;
  std::vector<std::uint64_t> sums;
  for (std::uint64_t i = 0; i < kSets * kRows; ++i) sums.push_back(1'000'000 + i % 7 * 3000 + i);
  double expected = 0.0;
  for (std::size_t row = 0; row < kRowsA; ++row) {
    const double ratio = 8355700.0 * kK / static_cast<double>(sums[row] + sums[kRows + row]);
    expected += 0.6366 * 65536.0 * ratio * ratio;
  }
  sums.back() = std::numeric_limits<std::uint64_t>::max();
  const DeviceArray<std::uint64_t> of_rows(sums);
  const DeviceArray<Totals> totals(1);
  ASSERT_TRUE(is_ok(enqueue_weigh({.sums = of_rows.data(),
                                   .sets = kSets,
                                   .next_set = kRows,
                                   .rows_a = kRowsA,
                                   .rows_b = kRowsB,
                                   .k = kK,
                                   .totals = totals.data()},
                                  nullptr)));
  const Totals found = totals.to_host()[0];
  EXPECT_NEAR(static_cast<double>(found.a), expected, 1e-6 * expected);
  EXPECT_EQ(found.b, std::numeric_limits<std::uint64_t>::max());
}

// Means over the rows of all ranks; more flags than the block has threads.
TEST_F(DistributedDigits, DecideByMeansAndClearAllFlags) {
  const DeviceArray<Totals> totals(std::vector<Totals>{{3 << 16, 1 << 16}, {4 << 16, 2 << 16}});
  const DeviceArray<unsigned> flags(700, 1U);
  const DeviceArray<float> widths(8);
  const DeviceArray<std::int32_t> decision(1);
  ASSERT_TRUE(is_ok(enqueue_decide({.totals = totals.data(),
                                    .sets = 2,
                                    .rows_a = 2,
                                    .rows_b = 12,
                                    .summed = 1e6F,
                                    .widths = widths.data(),
                                    .decision = decision.data(),
                                    .flags = flags.data(),
                                    .num_flags = 700},
                                   nullptr)));
  EXPECT_EQ(widths.to_host(), (std::vector<float>{3.5F, 3.5F, 3.5F, 0, 0.25F, 0.25F, 0.25F, 0}));
  EXPECT_EQ(decision.to_host()[0], 6);
  EXPECT_EQ(flags.to_host(), std::vector<unsigned>(700));
}

TEST_F(DistributedDigits, TakeTransposedAndPaddedShards) {
  Problem problem;
  ASSERT_TRUE(parse_problem("45x37x140/TT/ld49x141x40/off4x8x12/split", &problem).ok());
  set_alpha_and_beta(problem);
  Whole whole{.problem = problem};
  const Operation of(problem);
  whole.a = of.a;
  whole.b = of.b;
  whole.c = of.c;
  for (const Form form : kForms) {
    const std::vector<float> one =
        product_over({.form = form, .ranks = 1, .same_bits = true}, whole);
    const Layout layout{.form = form, .ranks = 2, .same_bits = true, .seed = 7};
    expect_same_bits(product_over(layout, whole), one);
  }
}

// Fewer rows, columns and K than ranks. Operands are integers, so every method gives the same bits.
TEST_F(DistributedDigits, TakeEmptyShards) {
  Whole whole = whole_of(operation({3, 2, 2}, Math::fp32_split), 6);
  for (std::vector<float>* operand : {&whole.a, &whole.b, &whole.c}) {
    for (std::size_t i = 0; i < operand->size(); ++i) (*operand)[i] = static_cast<float>(i + 1);
  }
  whole.problem.alpha = 2.0F;
  whole.problem.beta = -1.0F;
  const std::vector<float> expected = {2 * 7 - 1,  2 * 10 - 2, 2 * 15 - 3,
                                       2 * 22 - 4, 2 * 23 - 5, 2 * 34 - 6};
  const int ranks = std::min(5, most_ranks());
  for (const Form form : kForms) {
    for (const Schedule schedule : kSchedules) {
      const Layout layout{.form = form, .ranks = ranks, .schedule = schedule, .same_bits = true};
      EXPECT_EQ(product_over(layout, whole), expected) << name_of(layout);
    }
  }
}

// Without the kernel for whole rows: two kernels split, as row-parallel.
TEST_F(DistributedDigits, AreTheSameOnOlderDevices) {
  if (device::current().is_cuda) GTEST_SKIP() << "plans for another GPU than this one";
  const Whole whole = whole_of(operation({70, 40, 140}, Math::fp32_split), 6);
  for (const int ranks : {1, 2}) {
    const Layout older{.ranks = ranks, .same_bits = true, .is_older = true};
    expect_same_bits(product_over(older, whole), product_over({.same_bits = true}, whole));
  }
}

// By night K needs several launches of the GEMM, on one rank and on two.
TEST_F(DistributedDigits, AreTheSameForLongK) {
  const Operation of = operation({3, 2, is_thorough() ? 90'000 : 900}, Math::fp32_split);
  const models::Epilogue epilogue{of.problem.alpha, of.problem.beta, of.c};
  const std::vector<float> expected =
      exact_product(of.rows(Operand::kA, 0), of.rows(Operand::kB, 0), 6, epilogue);
  for (const int ranks : {1, 2}) {
    const Layout layout{.form = Form::kRowParallel, .ranks = ranks, .same_bits = true};
    expect_same_bits(product_over(layout, whole_of(of, 6)), expected);
  }
}

// With stream-K blocks raise flags, which each launch must clear.
TEST_F(DistributedDigits, AreTheSameWithStreamK) {
  const Operation of = operation({256, 128, 3600}, Math::fp32_split);
  const Whole whole = whole_of(of, 6);
  Group group(1, kPatience);
  const std::unique_ptr<Transport> transport = group.join(0);
  Device device = device::current();
  device.multiprocessors = 3;
  DistributedProblem problem =
      DistributedProblem::even(Form::kColumnParallel, of.problem.shape, 1, 0);
  problem.math = Math::fp32_split;
  problem.same_bits = true;
  const DistributedSgemm plan(*transport, problem, device);
  EXPECT_EQ(plan.configurations().front(), "128x128streamk");
  expect_same_bits(product_over({.same_bits = true, .multiprocessors = 3}, whole),
                   product_over({.same_bits = true}, whole));
}

}  // namespace
}  // namespace tilegate::distributed
