// One call of a stage on operands that the host has, and the parts of a passport made of such
// calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"

namespace tilegate::passport {

// Dense operands, row-major.
struct Inputs {
  std::vector<float> a, b, c;
};

// All zeros.
Inputs inputs_for(const Shape& shape);

// What C is after the call. Throws std::runtime_error in the stage's own words.
std::vector<float> call(const Stage& stage, const Problem& problem, const Inputs& inputs);

// On the host's copies.
verifier::Product product_of(const Problem& problem, const Inputs& inputs);

// A number from [-1, 1), the same on each device.
float uniform(std::uint64_t seed, std::uint64_t index);

// Members of a JSON object, in the order in which they were added.
class Object {
 public:
  Object& add(const std::string& name, const std::string& json);
  Object& add_text(const std::string& name, const std::string& text);
  Object& add_flag(const std::string& name, bool value);
  std::string json() const { return '{' + members_ + '}'; }

 private:
  std::string members_;
};

// The order in which an element of C is summed, found from outside.
std::string tree_json(const Stage& stage);
// How much of the error bound is used, by class of inputs; the bits of each result; zeros.
std::string error_json(const Stage& stage);
// Not finite operands and results, and what is near to them.
std::string special_json(const Stage& stage);
// What else the bits of a row depend on, and whether two calls give the same bits.
std::string invariance_json(const Stage& stage);
// Random shapes of ones and of small integers, which must be exact.
std::string yardstick_json(const Stage& stage, int num_shapes);

}  // namespace tilegate::passport
