// What every rung is measured against is tested like one: exact operands, thousands of shapes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <tilegate/device.hpp>

#include "call.hpp"

namespace tilegate::passport {
namespace {

constexpr std::uint64_t kSeed = 41;
constexpr double kMostExtent = 1500.0;

void check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

float* floats(const device::Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }

// Extents spread evenly over their logarithms; a third of them are multiples of 8.
Problem problem_number(int number) {
  std::array<std::int64_t, 3> extents{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double u = uniform(kSeed, static_cast<std::uint64_t>(number) * 4 + i) * 0.5 + 0.5;
    extents[i] = static_cast<std::int64_t>(std::pow(kMostExtent, u));
    if (number % 3 == 0) extents[i] = (extents[i] + 7) / 8 * 8;
  }
  return Problem::dense({extents[0], extents[1], extents[2]});
}

struct Memory {
  device::Buffer a, b, c, workspace, value, scale;
};

Memory memory_for(std::size_t elements) {
  const std::size_t bytes = elements * sizeof(float);
  return {device::Buffer(bytes),     device::Buffer(bytes),     device::Buffer(bytes),
          device::Buffer(bytes * 4), device::Buffer(bytes * 2), device::Buffer(bytes * 2)};
}

// Elements that are not the exact result.
std::int64_t wrong_elements(const Stage& stage, const Plan& plan, const Memory& memory) {
  const Problem& problem = plan.problem();
  const Operands operands{.a = floats(memory.a),
                          .b = floats(memory.b),
                          .c = floats(memory.c),
                          .workspace = memory.workspace.data(),
                          .workspace_bytes = memory.workspace.size()};
  check(stage.prepare());
  check(plan.launch(operands));
  auto* value = reinterpret_cast<double*>(memory.value.data());
  auto* scale = reinterpret_cast<double*>(memory.scale.data());
  const auto product = verifier::product_of(problem, operands, 0);
  check(verifier::reference_on_device(product, value, scale, nullptr));
  verifier::Comparison comparison;
  check(verifier::compare_on_device(product, value, scale, {}, &comparison));
  return comparison.mismatches;
}

}  // namespace

std::string yardstick_json(const Stage& stage, int num_shapes) {
  const auto most = static_cast<std::size_t>(kMostExtent + 8);
  const Memory memory = memory_for(most * most);
  const auto elements = static_cast<std::int64_t>(most * most);
  std::string wrong;
  for (const bool is_ones : {true, false}) {
    if (is_ones) {
      const std::vector<float> ones(most * most, 1.0F);
      for (const auto* buffer : {&memory.a, &memory.b}) {
        check(device::copy_to_device(buffer->data(), ones.data(), buffer->size()));
      }
    } else {
      check(verifier::fill(floats(memory.a), elements, verifier::Inputs::kIntegers, 1, nullptr));
      check(verifier::fill(floats(memory.b), elements, verifier::Inputs::kIntegers, 2, nullptr));
    }
    for (int number = 0; number < num_shapes; ++number) {
      const Plan plan = stage.plan(problem_number(number));
      check(plan.status());
      if (plan.workspace_bytes() > memory.workspace.size()) {
        throw std::runtime_error("more workspace than there is for " + to_string(plan.problem()));
      }
      if (wrong_elements(stage, plan, memory) == 0) continue;
      wrong += wrong.empty() ? "\"" : ", \"";
      wrong += to_string(plan.problem()) + (is_ones ? " of ones\"" : " of whole numbers\"");
    }
  }
  Object object;
  object.add("shapes", std::to_string(num_shapes)).add("seed", std::to_string(kSeed));
  return object.add("wrong", '[' + wrong + ']').json();
}

}  // namespace tilegate::passport
