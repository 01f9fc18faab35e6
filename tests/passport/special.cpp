// Values that are not finite, or nearly not: planted one at a time, results compared by class
// (finite, Inf, -Inf, NaN) both ways, so that FLT_MAX is no Inf and Inf no large number.
//
// What must become of them: Demmel and others, "Proposed Consistent Exception Handling for the BLAS
// and LAPACK", 2022. An exception in an operand that is read shows in what depends on it, nothing
// else changes, and what BLAS does not read (C at beta 0, A and B at alpha 0) cannot show.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "call.hpp"

namespace tilegate::passport {
namespace {

constexpr Shape kShape = {37, 45, 40};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr std::int64_t kRow = 5, kCol = 3, kAt = 7;  // of C, and along K

struct Operands {
  Inputs& inputs;
  Problem& problem;

  float& a(std::int64_t k) { return inputs.a[static_cast<std::size_t>(kRow * kShape.k + k)]; }
  float& b(std::int64_t k, std::int64_t col = kCol) {
    return inputs.b[static_cast<std::size_t>(k * kShape.n + col)];
  }
  float& c() { return inputs.c[static_cast<std::size_t>(kRow * kShape.n + kCol)]; }
  // The row of A and the column of B are zero but for these.
  void only(float in_a, float in_b) {
    for (std::int64_t k = 0; k < kShape.k; ++k) a(k) = b(k) = 0.0F;
    a(kAt) = in_a;
    b(kAt) = in_b;
  }
};

struct Plant {
  const char* name;
  void (*set)(Operands& at);
};

constexpr Plant kPlants[] = {
    {"NaN in A", [](Operands& at) { at.a(kAt) = kNan; }},
    {"NaN in B", [](Operands& at) { at.b(kAt) = kNan; }},
    {"NaN in C, beta 1", [](Operands& at) { at.problem.beta = 1.0F, at.c() = kNan; }},
    {"Inf in A", [](Operands& at) { at.a(kAt) = kInf; }},
    {"-Inf in B", [](Operands& at) { at.b(kAt) = -kInf; }},
    {"Inf in C, beta 1", [](Operands& at) { at.problem.beta = 1.0F, at.c() = kInf; }},
    {"Inf × 0", [](Operands& at) { at.a(kAt) = kInf, at.b(kAt) = 0.0F; }},
    {"Inf − Inf",
     [](Operands& at) { at.a(kAt) = at.a(kAt + 9) = kInf, at.b(kAt) = 1, at.b(kAt + 9) = -1; }},
    {"a product that overflows", [](Operands& at) { at.only(1e30F, 1e30F); }},
    {"a product that overflows below", [](Operands& at) { at.only(-1e30F, 1e30F); }},
    {"a sum that overflows",
     [](Operands& at) {
       std::fill(at.inputs.b.begin(), at.inputs.b.end(), 0.0F);
       for (std::int64_t k = 0; k < kShape.k; ++k) at.a(k) = kMax / 4, at.b(k) = 1.0F;
     }},
    {"alpha that overflows", [](Operands& at) { at.problem.alpha = 1e30F, at.only(1e20F, 1.0F); }},
    {"the largest number", [](Operands& at) { at.only(kMax, 1.0F); }},
    {"a subnormal product", [](Operands& at) { at.only(0x1p-100F, 0x1p-40F); }},
    {"a subnormal operand", [](Operands& at) { at.only(0x1p-140F, 1.0F); }},
    {"NaN in C, beta 0", [](Operands& at) { at.c() = kNan; }},
    {"NaN in A, alpha 0",
     [](Operands& at) { at.problem.alpha = 0.0F, at.problem.beta = 1.0F, at.a(kAt) = kNan; }},
};

Inputs whole_numbers() {
  Inputs inputs = inputs_for(kShape);
  std::uint64_t index = 0;
  for (auto* values : {&inputs.a, &inputs.b, &inputs.c}) {
    for (float& value : *values) value = std::floor(3.5F * uniform(21, index++));
  }
  return inputs;
}

const char* class_of(float value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Inf" : "-Inf";
  return "finite";
}

// "as it must be", or the first element that is not.
std::string outcome(const Stage& stage, const Plant& plant) {
  Inputs inputs = whole_numbers();
  Problem problem = Problem::dense(kShape);
  Operands operands{inputs, problem};
  plant.set(operands);
  const auto found = call(stage, problem, inputs);
  std::vector<double> value(found.size()), scale(found.size());
  verifier::reference_on_host(product_of(problem, inputs), value.data(), scale.data());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto expected = static_cast<float>(value[i]);  // past the largest float: Inf
    const std::string got = class_of(found[i]), due = class_of(expected);
    if (got != due) return due + " became " + (got == "finite" ? std::to_string(found[i]) : got);
    if (got == "finite" && std::abs(expected) < 0x1p-126F && found[i] != expected) {
      return "a subnormal number became " + std::to_string(found[i]);
    }
    const bool is_exact = std::abs(expected) < 0x1p24F || expected == kMax;
    if (got == "finite" && is_exact && found[i] != expected) return "another element changed";
  }
  return "as it must be";
}

}  // namespace

std::string special_json(const Stage& stage) {
  Object object;
  for (const Plant& plant : kPlants) object.add_text(plant.name, outcome(stage, plant));
  return object.json();
}

}  // namespace tilegate::passport
