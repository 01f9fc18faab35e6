// The split pass alone, on the executor: its kernels write the model's halves and scales, and count
// what the model counts.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "20_fp16x3/plan.hpp"
#include "models/fp16x3.hpp"
#include "models/layout.hpp"
#include "simt/device_array.hpp"
#include "split_call.hpp"

namespace tilegate::fp16x3 {
namespace {

// What the split pass leaves of an operand.
struct Split {
  std::vector<std::byte> halves;
  std::vector<float> steps;
  double counted = 0.0, one_sign = 0.0, squares = 0.0, largest_squares = 0.0;  // of all rows, added
};

// Of op(A) and op(B).
std::array<Split, 2> split(const Operation& operation) {
  const Problem& problem = operation.problem;
  const Launches launches(problem, device::current());
  const DeviceArray<float> a(operation.a), b(operation.b);
  const DeviceArray<std::byte> workspace(launches.where.bytes, std::byte{0xA5});  // of before
  const KernelArgs args{.shape = problem.shape,
                        .a = a.data(),
                        .lda = problem.lda,
                        .b = b.data(),
                        .ldb = problem.ldb,
                        .workspace = workspace.data(),
                        .batch = problem.batch,
                        .stride_a = problem.stride_a,
                        .stride_b = problem.stride_b};
  EXPECT_TRUE(is_ok(problem.shape.k <= kFewRowsK
                        ? enqueue_split<FewRows>(launches.at(args), nullptr)
                        : enqueue_split<ManyRows>(launches.at(args), nullptr)));
  const std::vector<std::byte> found = workspace.to_host();
  const auto part = [&](std::size_t planes, std::size_t steps, const Planes& of,
                        std::size_t first_group, std::size_t groups) {
    const std::byte* first = &found[planes];
    Split all{{first, first + of.bytes()}, std::vector<float>(of.step_bytes() / sizeof(float))};
    std::memcpy(all.steps.data(), &found[steps], of.step_bytes());
    for (std::size_t i = first_group; i < first_group + groups; ++i) {
      OperandStats rows;
      std::memcpy(&rows, &found[launches.where.stats + i * sizeof(rows)], sizeof(rows));
      all.counted += rows.counted;
      all.one_sign += rows.one_sign;
      all.squares += rows.squares;
      all.largest_squares += rows.largest_squares;
    }
    return all;
  };
  const Workspace& where = launches.where;
  const std::size_t groups_a = launches.multiply.groups_a;
  return {part(where.planes_a, where.steps_a, where.a, 0, groups_a),
          part(where.planes_b, where.steps_b, where.b, groups_a, launches.multiply.groups_b)};
}

// By the model: zeros outside the operand, too.
Split expected(const std::vector<models::Rows>& products) {
  const auto [data, rows, k, next_row, next_k] = products[0];
  const auto count = static_cast<std::int64_t>(products.size());
  Split all;
  all.halves.resize(static_cast<std::size_t>(models::bytes_of_fp16_planes(rows, k, count)));
  all.steps.resize(static_cast<std::size_t>(count * models::whole_chunks(rows)));
  for (std::int64_t product = 0; product < count; ++product) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const models::fp16x3::Row row =
          models::fp16x3::split(products[static_cast<std::size_t>(product)], i);
      all.steps[static_cast<std::size_t>(product * models::whole_chunks(rows) + i)] = row.step;
      all.counted += row.counted;
      all.one_sign += row.one_sign;
      all.squares += row.squares;
      all.largest_squares += row.largest_squared;
      for (std::int64_t of_k = 0; of_k < k; ++of_k) {
        for (int plane = 0; plane < 2; ++plane) {
          const std::uint16_t half = (plane == 0 ? row.hi : row.lo)[static_cast<std::size_t>(of_k)];
          std::memcpy(&all.halves[static_cast<std::size_t>(
                          models::offset_of_fp16(rows, k, product, i, of_k, plane))],
                      &half, sizeof(half));
        }
      }
    }
  }
  return all;
}

void expect_model(const Operation& operation) {
  SCOPED_TRACE(to_string(operation.problem));
  const std::array<Split, 2> found = split(operation);
  for (const Operand operand : {Operand::kA, Operand::kB}) {
    const Split& of = found[static_cast<std::size_t>(operand)];
    const Split model = expected(operation.all_rows(operand));
    EXPECT_TRUE(of.halves == model.halves);
    expect_same_bits(of.steps, model.steps);
    EXPECT_EQ(of.counted, model.counted);
    EXPECT_NEAR(of.one_sign, model.one_sign, 1e-5 * model.one_sign + 1e-6);
    EXPECT_NEAR(of.squares, model.squares, 1e-5 * model.squares);
    EXPECT_NEAR(of.largest_squares, model.largest_squares, 1e-5 * model.largest_squares);
  }
}

// Rows with scales of their own: with elements that just count and that just do not, of zeros, of
// one sign, far from 1.
Operation of_unlike_rows(const Problem& problem) {
  Operation operation(problem);
  const auto set_row = [&](std::vector<float>& of, Operand operand, std::int64_t row, auto value) {
    const models::Rows rows = operation.rows(operand, 0);
    for (std::int64_t k = 0; k < rows.k; ++k) {
      float& x = of[static_cast<std::size_t>(row * rows.next_row + k * rows.next_k)];
      x = value(x, k);
    }
  };
  set_row(operation.a, Operand::kA, 0, [](float, std::int64_t k) {
    constexpr float kLeast = 0x1p-16F;  // that counts beside 1
    return k == 0 ? 1.75F : k % 3 == 0 ? -kLeast : std::nextafter(kLeast, 0.0F);
  });
  set_row(operation.a, Operand::kA, 1, [](float, std::int64_t) { return 0.0F; });
  set_row(operation.a, Operand::kA, 2, [](float x, std::int64_t) { return -std::fabs(x); });
  set_row(operation.b, Operand::kB, 1, [](float x, std::int64_t) { return 0x1.8p-54F * x; });
  set_row(operation.b, Operand::kB, problem.shape.n - 1,
          [](float x, std::int64_t k) { return k % 2 == 0 ? 0x1p58F * x : x * 0x1p-140F; });
  return operation;
}

// Along k (A) and across it (B), with vectors and without, more than a block keeps.
TEST(Fp16Split, MatchesModel) {
  expect_model(of_unlike_rows(Problem::dense({20, 12, 580})));
  expect_model(of_unlike_rows(Problem::dense({9, 131, 165})));
  Problem batch = Problem::dense({3, 5, 131}, Op::kT, Op::kT, 2);
  batch.stride_a = 0;
  expect_model(of_unlike_rows(batch));
}

TEST(Fp16Split, MatchesModelForLongRows) {
  expect_model(of_unlike_rows(Problem::dense({18, 3, 2100})));
}

// Of rows alike, so that none's squares are too small to be missed.
TEST(Fp16Split, AddsSquaresOfEveryRow) {
  expect_model(Operation(Problem::dense({19, 9, 580})));
  expect_model(Operation(Problem::dense({18, 3, 2100}, Op::kT, Op::kT, 2)));
}

// The first of a row count, the others do not. Rows of zeros do not count either, but are fine.
void keep(Operation& operation, Operand operand, std::int64_t row, std::int64_t count, float rest) {
  const models::Rows rows = operation.rows(operand, 0);
  std::vector<float>& values = operand == Operand::kA ? operation.a : operation.b;
  for (std::int64_t k = 0; k < rows.k; ++k) {
    float& x = values[static_cast<std::size_t>(row * rows.next_row + k * rows.next_k)];
    x = k < count ? std::copysign(1.0F, x) : rest;
  }
}

// One row of 20 or of 3 with an eighth of K that counts, or with one element less.
TEST(Fp16Split, ReportsRowsOfWhichFewElementsCount) {
  for (const std::int64_t k : {130, 2100}) {
    for (const Operand operand : {Operand::kA, Operand::kB}) {
      for (const std::int64_t row : {0, 2}) {
        SCOPED_TRACE(std::to_string(k) + (operand == Operand::kA ? " row " : " column ") +
                     std::to_string(row));
        const auto of = static_cast<std::size_t>(operand), other = 1 - of;
        Operation operation(Problem::dense({20, 3, k}));
        keep(operation, operand, 1, 0, 0.0F);
        keep(operation, operand, row, (k + 7) / 8, 0x1p-17F);
        expect_model(operation);
        EXPECT_LT(split(operation)[of].counted, INFINITY);
        keep(operation, operand, row, (k + 7) / 8 - 1, 0x1p-17F);
        expect_model(operation);
        EXPECT_EQ(split(operation)[of].counted, INFINITY);
        EXPECT_LT(split(operation)[other].counted, INFINITY);
      }
    }
  }
}

TEST(Fp16Split, ReportsRowsThatCannotBeScaled) {
  Operation operation(Problem::dense({20, 3, 130}));
  operation.a[19 * 130 + 129] = INFINITY;
  operation.b[1] = 0x1p61F;
  const std::array<Split, 2> found = split(operation);
  EXPECT_EQ(found[0].counted, INFINITY);
  EXPECT_EQ(found[1].counted, INFINITY);
}

}  // namespace
}  // namespace tilegate::fp16x3
