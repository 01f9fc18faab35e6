#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"

namespace tilegate::ladder {
namespace {

constexpr std::int64_t kHalfway = std::int64_t{1} << 30;  // elements; two of them pass 2^31
constexpr std::int64_t kPastInt = std::int64_t{1} << 31;  // elements; does not fit an int
constexpr std::int64_t kLong = 2'100'000;                 // in tiles of 32: more than 65535 blocks
constexpr std::int64_t kMany = 20'000;                    // the executor runs all blocks
constexpr std::int64_t kManyProducts = 70'000;

void add_offsets(CaseList& list) {
  std::size_t turn = 0;
  for (const int a : {0, 4, 8, 12}) {
    for (const int b : {0, 4, 8, 12}) {
      for (const int c : {0, 4, 8, 12}) {
        const Factors& f = factors(Inputs::kUniform, turn++);
        list.add({.problem = Padded{.shape = {20, 36, 12},
                                    .pad = {4, 4, 4},
                                    .offset_bytes = {a, b, c},
                                    .alpha = f.alpha == 0.0F ? 1.0F : f.alpha,
                                    .beta = f.beta}});
      }
    }
  }
}

void add_paddings(CaseList& list) {
  for (const std::int64_t pad : {1, 2, 3, 4, 5, 31, 32, 33, 64, 129}) {
    for (const std::size_t operand : {0, 1, 2}) {
      Padded one{.shape = {37, 44, 28}, .alpha = 1, .beta = 1};
      one.pad[operand] = pad;
      list.add({.problem = one});
    }
    list.add(
        {.problem = Padded{.shape = {37, 45, 27}, .pad = {pad, pad, pad}, .alpha = -1, .beta = 0}});
  }
}

// Leading dimensions and offsets suit vectors, the width of the rows does not.
void add_ragged_rows(CaseList& list) {
  for (const float beta : {0.0F, 1.0F}) {
    list.add({.problem = Padded{.shape = {37, 44, 27}, .pad = {1, 0, 0}, .beta = beta}});
    list.add({.problem = Padded{.shape = {37, 43, 28}, .pad = {0, 1, 1}, .beta = beta}});
  }
}

// The same for rows so long that several blocks split one row into digits, along k and across it.
void add_long_ragged_rows(CaseList& list) {
  for (const std::int64_t k : {1092, 1500, 12292}) {
    list.add({.problem = padded_to_vectors({.shape = {9, 10, k}, .op_a = Op::kT})});
    list.add({.problem = padded_to_vectors({.shape = {8, 8, k + 1}, .op_b = Op::kT})});
  }
}

// The last row of one operand past 2^31 elements, for the wide and for the narrow path.
void add_far_rows(CaseList& list) {
  for (const std::size_t operand : {0, 1, 2}) {
    Padded wide{.shape = {3, 8, 4}, .alpha = 1, .beta = 1};
    wide.pad[operand] = kHalfway + 12;
    list.add({.problem = wide, .inputs = Inputs::kIntegers});

    Padded narrow{.shape = {2, 7, 2}, .alpha = 2, .beta = -1};
    narrow.pad[operand] = kPastInt + 5;
    narrow.offset_bytes[operand] = 4;
    list.add({.problem = narrow, .inputs = Inputs::kIntegers});
  }
}

// Offsets of more than 2^31 elements between tiles, and between the rows of one tile.
void add_far_tiles(CaseList& list) {
  const auto add = [&](const Shape& shape, const std::array<std::int64_t, 3>& pad) {
    list.add({.problem = Padded{.shape = shape, .pad = pad, .alpha = 1, .beta = 1},
              .inputs = Inputs::kIntegers});
  };
  constexpr std::int64_t k2to26 = std::int64_t{1} << 26;
  add({132, 8, 4}, {k2to26, 0, 0});      // a second tile of A
  add({132, 8, 4}, {0, 0, k2to26});      // and of C
  add({28, 8, 4}, {2 * k2to26, 0, 0});   // a second read of A, rows from 16 on
  add({4, 8, 260}, {0, k2to26, 0});      // further tiles of B, from 32 rows on
  add({4, 8, 20}, {0, 16 * k2to26, 0});  // further tiles and reads of B, from 2 rows on
}

// One operand at a time padded and misaligned, in every form.
void add_forms(const Stage& stage, CaseList& list) {
  std::int64_t turn = 0;
  for (const Form& form : forms_of(stage)) {
    for (const std::size_t operand : {0, 1, 2}) {
      for (const std::int64_t pad : {1, 4, 6}) {
        Padded padded{.shape = {36, 44, 28},
                      .beta = turn % 2 == 0 ? 0.0F : 1.0F,
                      .op_a = form.op_a,
                      .op_b = form.op_b,
                      .batch = form.batch,
                      .gap = form.gap};
        padded.pad[operand] = pad;
        padded.offset_bytes[operand] = 4 * (turn++ % 4);
        list.add({.problem = padded});
      }
    }
  }
}

// All sizes suit vectors except the stride between the matrices of a batch; shifted by 1, not even
// vectors of two. K is long enough for tensor cores.
void add_shifted_products(CaseList& list) {
  const auto add = [&](const std::array<std::int64_t, 3>& shift, float beta, Inputs inputs) {
    list.add({.problem = Padded{.shape = {36, 44, 148}, .beta = beta, .batch = 2, .shift = shift},
              .inputs = inputs});
  };
  add({2, 0, 0}, 1.0F, Inputs::kUniform);
  add({0, 2, 0}, 1.0F, Inputs::kUniform);
  add({0, 0, 1}, 1.0F, Inputs::kUniform);
  add({0, 0, 2}, 0.0F, Inputs::kIntegers);
}

// Batches whose matrices of A or B overlap in some rows, or in all.
void add_overlapping_products(const Stage& stage, CaseList& list) {
  const std::int64_t k = stage.math == Math::fp32_split ? 148 : 28;  // long enough to be split
  const auto add = [&](std::int64_t rows_a, std::int64_t rows_b, const Padded& padded) {
    Problem problem = padded;
    problem.stride_a = rows_a * problem.lda;
    problem.stride_b = rows_b * problem.ldb;
    list.add({.problem = problem});
  };
  add(4, 0, {.shape = {36, 44, k}, .pad = {4, 8, 4}, .batch = 3});
  add(0, 5, {.shape = {35, 43, k - 1}, .pad = {1, 1, 1}, .beta = 1.0F, .batch = 3, .gap = 2});
  if (!stage.takes_transposed) return;
  add(5, 4, {.shape = {36, 44, k}, .pad = {4, 4, 8}, .op_a = Op::kT, .op_b = Op::kT, .batch = 3});
}

// The third matrix of a batch past 2^31 elements; and a batch larger than a grid along y or z.
void add_far_and_many_products(CaseList& list) {
  for (const std::size_t operand : {0, 1, 2}) {
    Padded far{.shape = {4, 8, 4}, .beta = 1.0F, .batch = 3};
    far.pad[operand] = kHalfway / 4;  // each of four rows
    list.add({.problem = far, .inputs = Inputs::kIntegers});
  }
  // K is 0, so nothing is packed and K is not split: the executor can run a sample.
  list.add({.problem = Padded{.shape = {2, 3, 0}, .batch = kManyProducts}});
}

}  // namespace

std::vector<Case> memory_cases(const Stage& stage) {
  CaseList list;
  add_forms(stage, list);
  if (stage.takes_batches && !is_variant(stage)) {
    add_shifted_products(list);
    add_overlapping_products(stage, list);
    add_far_and_many_products(list);
  }
  add_offsets(list);
  add_paddings(list);
  add_ragged_rows(list);
  if (stage.math == Math::fp32_split && !is_variant(stage)) add_long_ragged_rows(list);
  add_far_rows(list);
  add_far_tiles(list);
  for (const std::int64_t size : {kMany, kLong}) {
    if (size == kLong && is_variant(stage)) continue;
    list.add(
        {.problem = Padded{.shape = {size, 1, 2}, .pad = {0, 0, 1}}, .inputs = Inputs::kIntegers});
    list.add({.problem = Problem::dense({1, size, 2}), .inputs = Inputs::kIntegers});
  }
  return list.take();
}

bool is_long(const Case& test_case) {
  const Problem& problem = test_case.problem;
  return std::max(problem.shape.m, problem.shape.n) >= kLong || problem.batch >= kManyProducts;
}

}  // namespace tilegate::ladder
