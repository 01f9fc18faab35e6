#include "verifier/operands.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

namespace tilegate::verifier {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kWorkspaceAlignment = 16;  // bytes
// NaN of either sign, a raised flag, the largest float.
constexpr std::array<std::uint32_t, 4> kLeftovers = {0x7FC00000, 0xFFFFFFFF, 1, 0x7F7FFFFF};

bool is_pick(Inputs inputs) {
  return inputs == Inputs::kPicksFromA || inputs == Inputs::kPicksFromB;
}

void fill_rows(GuardedMatrix& matrix, Inputs inputs, std::uint64_t seed) {
  matrix.for_each_row([&](float* to, std::int64_t row, std::int64_t index) {
    for (std::int64_t col = 0; col < matrix.cols(); ++col) {
      const std::int64_t element = (index * matrix.rows() + row) * matrix.cols() + col;
      to[col] = input_value(inputs, seed, static_cast<std::uint64_t>(element));
    }
  });
}

// A row of op(A), or a column of op(B), that picks from the other operand: it is `factor`, a power
// of two, at `k`, and 0 elsewhere. k == -1: all 0.
struct Pick {
  std::int64_t k = -1;
  float factor = 0.0F;
};

Pick pick_of(const Case& test_case, std::int64_t index, std::int64_t line) {
  const bool from_a = test_case.inputs == Inputs::kPicksFromA;
  const std::int64_t lines = from_a ? test_case.problem.shape.n : test_case.problem.shape.m;
  const auto number = static_cast<std::uint64_t>(index * lines + line);
  const auto random = static_cast<std::uint64_t>(
      3 + input_value(Inputs::kIntegers, 4 * test_case.seed + 3, number));  // 0 … 6
  const std::int64_t k_end = test_case.problem.shape.k;
  if (k_end == 0 || (test_case.problem.beta != 0.0F && random == 0)) return {};
  // Every k in turn, beginning with the last one, where tiles and vectors end.
  return {k_end - 1 - (index + line) % k_end, std::ldexp(1.0F, static_cast<int>(random) - 3)};
}

// Fills the matrix with picks. A line is a column of op(B) or a row of op(A).
void fill_picks(GuardedMatrix& matrix, const Case& test_case) {
  const bool from_a = test_case.inputs == Inputs::kPicksFromA;
  const bool line_is_row =
      from_a ? test_case.problem.op_b == Op::kT : test_case.problem.op_a == Op::kN;
  matrix.for_each_row([&](float* to, std::int64_t row, std::int64_t index) {
    for (std::int64_t col = 0; col < matrix.cols(); ++col) {
      const Pick pick = pick_of(test_case, index, line_is_row ? row : col);
      to[col] = pick.k == (line_is_row ? col : row) ? pick.factor : 0.0F;
    }
  });
}

// Sets elements of C to 0 where a product is added, so that nothing rounds.
void clear_picked(GuardedMatrix& c, const Case& test_case) {
  const bool from_a = test_case.inputs == Inputs::kPicksFromA;
  const bool shares_inputs =
      test_case.problem.batch > 1 &&
      (from_a ? test_case.problem.stride_b : test_case.problem.stride_a) == 0;
  c.for_each_row([&](float* to, std::int64_t row, std::int64_t index) {
    for (std::int64_t col = 0; col < c.cols(); ++col) {
      const Pick pick = pick_of(test_case, shares_inputs ? 0 : index, from_a ? col : row);
      if (pick.k >= 0) to[col] = 0.0F;
    }
  });
}

void fill_rows(GuardedMatrix& matrix, float value) {
  matrix.for_each_row(
      [&](float* to, std::int64_t, std::int64_t) { std::fill_n(to, matrix.cols(), value); });
}

// Sets an element of the first matrix of a batch.
void set_element(GuardedMatrix& matrix, const Plant& plant) {
  const std::int64_t row = plant.row < 0 ? matrix.rows() + plant.row : plant.row;
  const std::int64_t col = plant.col < 0 ? matrix.cols() + plant.col : plant.col;
  matrix.expected(row)[col] = plant.value;
}

void fill_c(GuardedMatrix& c, const Case& test_case) {
  if (test_case.problem.beta == 0.0F) return fill_rows(c, kNan);
  fill_rows(c, test_case.inputs, 4 * test_case.seed + 2);
  if (is_pick(test_case.inputs)) clear_picked(c, test_case);
}

}  // namespace

GuardedMatrix make_operand(const Case& test_case, Operand operand) {
  const auto number = static_cast<std::size_t>(operand);
  const bool is_c = operand == Operand::kC;
  GuardedMatrix matrix(kOperandNames[number], layout_of(test_case.problem, operand),
                       is_c ? kSentinel : kNan);
  const Inputs picking = operand == Operand::kA ? Inputs::kPicksFromB : Inputs::kPicksFromA;
  if (is_c) {
    fill_c(matrix, test_case);
  } else if (test_case.inputs == picking) {
    fill_picks(matrix, test_case);
  } else {
    fill_rows(matrix, test_case.inputs, 4 * test_case.seed + number);
  }
  for (const Plant& plant : test_case.plants) {
    if (plant.operand == operand) set_element(matrix, plant);
  }
  return matrix;
}

GuardedMatrix make_workspace(const Case& test_case, const Plan& plan) {
  const std::string name = name_of(test_case);
  // Divided by 2, because the lowest bit selects the order of the run (see orders_of).
  const unsigned turn = std::accumulate(name.begin(), name.end(), 0U) / 2;
  const auto elements =
      static_cast<std::int64_t>((plan.workspace_bytes() + sizeof(float) - 1) / sizeof(float));
  return {"workspace",
          {.rows = 1, .cols = elements, .ld = elements, .offset = kWorkspaceAlignment},
          std::bit_cast<float>(kLeftovers[turn % kLeftovers.size()])};
}

}  // namespace tilegate::verifier
