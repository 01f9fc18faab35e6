#include "verifier/case.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "verifier/guarded_matrix.hpp"

#if TILEGATE_ON_SIMT
#include <tilegate/simt/host/executor.hpp>
#endif

namespace tilegate::verifier {
namespace {

// The shortest decimal that reads back as `value`, with what a test's name may hold.
std::string spell(float value) {
  char text[32];
  for (int digits = 1; digits <= 9; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, double{value});
    if (std::strtof(text, nullptr) == value) break;
  }
  std::string spelt;
  for (const char c : std::string(text)) {
    if (c == '-') {
      spelt += 'm';
    } else if (c == '.') {
      spelt += 'p';
    } else if (c != '+') {
      spelt += c;
    }
  }
  return spelt;
}

template <typename T>
std::string spell_each(const std::array<T, 3>& values) {
  std::string spelt = std::to_string(values[0]);
  if (values[1] == values[0] && values[2] == values[0]) return spelt;
  return spelt + "x" + std::to_string(values[1]) + "x" + std::to_string(values[2]);
}

std::string spell_position(std::int64_t i) {
  return i < 0 ? "e" + std::to_string(-i) : std::to_string(i);
}

}  // namespace

std::string name_of(const Case& test_case) {
  const Shape& shape = test_case.shape;
  std::string name = "m" + std::to_string(shape.m) + "_n" + std::to_string(shape.n) + "_k" +
                     std::to_string(shape.k) + "_ld" + spell_each(test_case.pad) + "_off" +
                     spell_each(test_case.offset) + "_a" + spell(test_case.alpha) + "_b" +
                     spell(test_case.beta);
  if (test_case.seed != Case{}.seed) name += "_s" + std::to_string(test_case.seed);
  if (test_case.null_inputs) name += "_null";
  for (const Plant& plant : test_case.plants) {
    name += "_" + spell(plant.value) + "In" + "ABC"[static_cast<int>(plant.operand)] +
            spell_position(plant.row) + "x" + spell_position(plant.col);
  }
  return test_case.inputs == Inputs::kIntegers ? name + "_int" : name;
}

std::size_t device_bytes(const Case& test_case) {
  const auto& [m, n, k] = test_case.shape;
  const auto& pad = test_case.pad;
  return GuardedMatrix::device_bytes(m, k, k + pad[0]) +
         GuardedMatrix::device_bytes(k, n, n + pad[1]) +
         GuardedMatrix::device_bytes(m, n, n + pad[2]);
}

void set_order([[maybe_unused]] Order order, [[maybe_unused]] std::uint64_t seed) {
#if TILEGATE_ON_SIMT
  switch (order) {
    case Order::kForward:
      return simt::executor::set_schedule(simt::Schedule::forward());
    case Order::kReverse:
      return simt::executor::set_schedule(simt::Schedule::reverse());
    case Order::kShuffled:
      return simt::executor::set_schedule(simt::Schedule::shuffled(seed));
  }
#endif
}

}  // namespace tilegate::verifier
