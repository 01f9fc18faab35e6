#include "call.hpp"

#include <stdexcept>

#include <tilegate/device.hpp>

namespace tilegate::passport {
namespace {

void check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(std::string(status.message()));
}

device::Buffer upload(const std::vector<float>& values) {
  device::Buffer buffer(values.size() * sizeof(float));
  check(device::copy_to_device(buffer.data(), values.data(), buffer.size()));
  return buffer;
}

}  // namespace

Inputs inputs_for(const Shape& shape) {
  const auto zeros = [](std::int64_t rows, std::int64_t cols) {
    return std::vector<float>(static_cast<std::size_t>(rows * cols));
  };
  return {zeros(shape.m, shape.k), zeros(shape.k, shape.n), zeros(shape.m, shape.n)};
}

std::vector<float> call(const Stage& stage, const Problem& problem, const Inputs& inputs) {
  check(stage.prepare());
  const Plan plan = stage.plan(problem);
  check(plan.status());
  const device::Buffer a = upload(inputs.a), b = upload(inputs.b), c = upload(inputs.c);
  const device::Buffer workspace(plan.workspace_bytes());
  check(plan.launch({.a = reinterpret_cast<const float*>(a.data()),
                     .b = reinterpret_cast<const float*>(b.data()),
                     .c = reinterpret_cast<float*>(c.data()),
                     .workspace = workspace.data(),
                     .workspace_bytes = workspace.size()}));
  check(device::synchronize());
  std::vector<float> result(inputs.c.size());
  check(device::copy_to_host(result.data(), c.data(), c.size()));
  return result;
}

verifier::Product product_of(const Problem& problem, const Inputs& inputs) {
  return {.shape = problem.shape,
          .alpha = problem.alpha,
          .a = inputs.a.data(),
          .a_row = problem.shape.k,
          .b = inputs.b.data(),
          .b_row = problem.shape.n,
          .beta = problem.beta,
          .c = inputs.c.data(),
          .c_row = problem.shape.n};
}

float uniform(std::uint64_t seed, std::uint64_t index) {
  return verifier::input_value(verifier::Inputs::kUniform, seed, index);
}

Object& Object::add(const std::string& name, const std::string& json) {
  members_ += (members_.empty() ? "\"" : ", \"") + name + "\": " + json;
  return *this;
}

Object& Object::add_text(const std::string& name, const std::string& text) {
  return add(name, '"' + text + '"');
}

Object& Object::add_flag(const std::string& name, bool value) {
  return add(name, value ? "true" : "false");
}

}  // namespace tilegate::passport
