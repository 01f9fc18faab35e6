// Classes of inputs, each on a shape with ragged tiles.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "call.hpp"

namespace tilegate::passport {
namespace {

constexpr Shape kShape = {67, 45, 200};
constexpr std::uint64_t kSeedA = 11, kSeedB = 12;

// 2^x for x from -most to most, by the number of a row, a column or a k.
float power(std::int64_t number, int most) {
  return std::ldexp(1.0F, static_cast<int>(number * 7 % (2 * most + 1)) - most);
}

struct Class {
  const char* name;
  // Of element (row, col) of one operand; `is_b` says which, u is from [-1, 1).
  float (*value)(std::int64_t row, std::int64_t col, bool is_b, float u);
};

constexpr std::int64_t kHalf = kShape.k / 2;

// Random u of the first half of K again in the second, so that the exact sum is 0.
float cancelling(std::int64_t row, std::int64_t col, bool is_b, float) {
  const std::int64_t k = is_b ? row : col, other = is_b ? col : row;
  const float u =
      uniform(is_b ? kSeedB : kSeedA, static_cast<std::uint64_t>(other * kHalf + k % kHalf));
  return is_b && k >= kHalf ? -u : u;
}

constexpr Class kClasses[] = {
    {"uniform in [-1, 1)", [](std::int64_t, std::int64_t, bool, float u) { return u; }},
    {"positive", [](std::int64_t, std::int64_t, bool, float u) { return std::abs(u); }},
    {"whole numbers to 3",
     [](std::int64_t, std::int64_t, bool, float u) { return std::floor(3.5F * u); }},
    {"exponents from -20 to 20", [](std::int64_t row, std::int64_t col, bool,
                                    float u) { return u * power(row * 31 + col, 20); }},
    {"sums that cancel", cancelling},
    {"graded rows and columns", [](std::int64_t row, std::int64_t col, bool is_b,
                                   float u) { return u * power(is_b ? col : row, 30); }},
    {"graded along K", [](std::int64_t row, std::int64_t col, bool is_b,
                          float u) { return is_b ? u / power(row, 20) : u * power(col, 20); }},
};

Inputs inputs_of(const Class& which) {
  Inputs inputs = inputs_for(kShape);
  const auto fill = [&](std::vector<float>& values, std::int64_t cols, bool is_b) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      values[i] = which.value(at / cols, at % cols, is_b, uniform(is_b ? kSeedB : kSeedA, i));
    }
  };
  fill(inputs.a, kShape.k, false);
  fill(inputs.b, kShape.n, true);
  return inputs;
}

std::string to_text(const char* format, auto value) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// FNV-1a of the bits.
std::uint64_t digest_of(const std::vector<float>& values) {
  std::uint64_t hash = 14695981039346656037U;
  for (const float value : values) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 1099511628211U;
  }
  return hash;
}

// The greatest error, in shares of what the tolerance allows.
double share_of(const Problem& problem, const Inputs& inputs, const std::vector<float>& found,
                const verifier::Tolerance& tolerance) {
  const auto product = product_of(problem, inputs);
  std::vector<double> value(found.size()), scale(found.size());
  std::vector<double> largest(static_cast<std::size_t>(kShape.m + kShape.n));
  verifier::reference_on_host(product, value.data(), scale.data());
  verifier::largest_on_host(product, largest.data());
  double most = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double both = largest[i / kShape.n] * largest[kShape.m + i % kShape.n];
    const double allowed =
        tolerance.gamma * scale[i] + tolerance.underflow + tolerance.operands * both;
    const double error = std::abs(double{found[i]} - value[i]);
    most = std::max(most, error == 0.0 ? 0.0 : error / allowed);
  }
  return most;
}

// Rows of A and columns of B that are zero make rows and columns of C that are.
bool keeps_zeros(const Stage& stage) {
  Inputs inputs = inputs_of(kClasses[0]);
  const auto is_zero = [](std::size_t row, std::size_t col) {
    return row % 3 == 0 || col % 4 == 0;
  };
  for (std::size_t i = 0; i < inputs.a.size(); ++i) {
    if (is_zero(i / kShape.k, 1)) inputs.a[i] = 0.0F;
  }
  for (std::size_t i = 0; i < inputs.b.size(); ++i) {
    if (is_zero(1, i % kShape.n)) inputs.b[i] = 0.0F;
  }
  const auto found = call(stage, Problem::dense(kShape), inputs);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (is_zero(i / kShape.n, i % kShape.n) && found[i] != 0.0F) return false;
  }
  return true;
}

}  // namespace

std::string error_json(const Stage& stage) {
  const Problem problem = Problem::dense(kShape);
  const Plan plan = stage.plan(problem);
  Object object, classes;
  object.add_text("problem", to_string(problem)).add_text("configuration", plan.configuration());
  for (const Class& each : kClasses) {
    const Inputs inputs = inputs_of(each);
    const auto found = call(stage, problem, inputs);
    const auto chain = plan.rounding_chain();
    const auto declared = verifier::forward_error(chain, problem, plan.operand_error());
    const auto componentwise = verifier::forward_error(chain, problem);
    Object row;
    row.add("of_bound", to_text("%.4f", share_of(problem, inputs, found, declared)));
    row.add("of_componentwise", to_text("%.4f", share_of(problem, inputs, found, componentwise)));
    row.add_text("bits", to_text("%016llx", static_cast<unsigned long long>(digest_of(found))));
    classes.add(each.name, row.json());
  }
  object.add("classes", classes.json()).add_flag("keeps_zeros", keeps_zeros(stage));
  return object.json();
}

}  // namespace tilegate::passport
