#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "ladder/case_list.hpp"
#include "ladder/cases.hpp"

namespace tilegate::ladder {
namespace {

using verifier::Plant;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Unaligned within a tile, whole vectors, and several tiles.
constexpr std::array<Shape, 3> kShapes = {{{5, 7, 3}, {68, 36, 20}, {67, 131, 35}}};

// NaN and Inf in A and B, which must not be read.
std::vector<Plant> poison() {
  return {{Operand::kA, 0, 0, kNan}, {Operand::kA, -1, -1, kInf}, {Operand::kB, 1, 1, -kInf}};
}

void add_ignored_operands(const Shape& shape, CaseList& list) {
  for (const float alpha : {1.0F, -2.0F, 0.0F}) {  // C is NaN before the launch
    list.add({.problem = Padded{.shape = shape, .pad = {1, 2, 3}, .alpha = alpha, .beta = 0}});
  }
  for (const float beta : {0.0F, -0.0F, 1.0F, 0.5F}) {
    const Padded no_alpha{.shape = shape, .alpha = 0, .beta = beta};
    list.add({.problem = no_alpha, .plants = poison()});
    list.add({.problem = no_alpha, .null_inputs = true});
  }
  const Shape no_k{shape.m, shape.n, 0};
  for (const float alpha : {kNan, kInf, 1.0F}) {
    for (const float beta : {0.0F, 1.0F, 0.5F}) {
      list.add({.problem = Padded{.shape = no_k, .pad = {2, 1, 3}, .alpha = alpha, .beta = beta}});
      list.add(
          {.problem = Padded{.shape = no_k, .alpha = alpha, .beta = beta}, .null_inputs = true});
    }
  }
  for (const float beta : {0.0F, 2.0F}) {
    for (const Shape& empty : {Shape{0, shape.n, shape.k}, Shape{shape.m, 0, shape.k}}) {
      list.add({.problem = Padded{.shape = empty, .pad = {3, 3, 3}, .beta = beta}});
    }
  }
}

void add_planted(const Shape& shape, CaseList& list) {
  const auto add = [&](float alpha, float beta, std::vector<Plant> plants) {
    list.add({.problem = Padded{.shape = shape, .alpha = alpha, .beta = beta},
              .inputs = Inputs::kIntegers,
              .plants = std::move(plants)});
  };
  for (const float value : {kNan, kInf, -kInf}) {
    for (const std::int64_t at : {0, 1, -1}) {  // the last element may take the path for edges
      add(1, 0, {{Operand::kA, at, -1, value}});
      add(2, 1, {{Operand::kB, -1, at, value}});
      add(1, 1, {{Operand::kC, at, at, value}});
    }
    add(-1, 0, {{Operand::kA, 2, 1, value}, {Operand::kB, 1, 3, 0.0F}});  // Inf·0 is NaN
    add(1, -1, {{Operand::kA, 2, 0, value}, {Operand::kA, 2, 1, -value}});
    add(0, 1, {{Operand::kC, 1, 2, value}});
    add(value, 0, {});
    add(1, value, {});
  }
  add(1, 1, {{Operand::kC, 1, 2, kInf}, {Operand::kA, 1, 0, -kInf}, {Operand::kB, 0, 2, 1.0F}});
}

}  // namespace

std::vector<Case> semantics_cases(const Stage& /*stage*/) {
  CaseList list;
  for (const Shape& shape : kShapes) {
    add_ignored_operands(shape, list);
    add_planted(shape, list);
  }
  return list.take();
}

std::vector<Case> repeat_cases(const Stage& /*stage*/) {
  CaseList list;
  std::size_t turn = 0;
  for (const Shape& shape : {Shape{7, 5, 300}, Shape{64, 64, 64}, Shape{129, 65, 33},
                             Shape{100, 132, 68}, Shape{33, 257, 17}, Shape{1, 1, 1031}}) {
    for (const std::array<std::int64_t, 3>& pad :
         {std::array<std::int64_t, 3>{0, 0, 0}, std::array<std::int64_t, 3>{3, 1, 2}}) {
      const Factors& f = factors(Inputs::kUniform, turn++);
      list.add({.problem = Padded{.shape = shape, .pad = pad, .alpha = f.alpha, .beta = f.beta},
                .seed = 7});
    }
  }
  return list.take();
}

}  // namespace tilegate::ladder
