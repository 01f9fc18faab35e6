// The program of `ci/gate check accuracy`: runs each case on every input of accuracy.hpp, and
// cuBLAS on the same operands. It prints lines on the device (name, tab, value), an empty line, and
// one line per case and input, fields separated by tabs: kHeads.
//
//   build/gpu/bench/accuracy Int8x3/1024x1024x1024 Int8x3/777x333x555
#include "accuracy.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>

#include <tilegate/catalogue.hpp>
#include <tilegate/device.hpp>

#include "cuda_check.hpp"
#include "errors.hpp"
#include "memory.hpp"
#include "platform.hpp"

namespace tilegate::bench {
namespace {

constexpr std::string_view kUsage =
    "usage: accuracy CASE...\n"
    "A CASE is a stage and a shape, as Int8x3/1024x1024x1024, with /split for Math::fp32_split.\n";
constexpr std::string_view kHeads =
    "case\tinput\tdecision\tseconds\tratio_to_cublas\tratio_to_fp32\tfrobenius\t"
    "frobenius_cublas\tweighted\tweighted_cublas\tmedian\tmedian_cublas\tlargest\tlargest_cublas\n";

constexpr double kMostProducts = 0x1p33;  // for float64; larger cases compare only some rows
constexpr double kReplayS = 1e-3;
constexpr int kReplays = 5;

Batch recorded(const Plan& plan, const Operands& operands) {
  const std::span calls(&operands, 1);
  Batch batch(plan, calls, 1);
  batch.replay();
  batch.replay();
  return {plan, calls, static_cast<int>(std::max(1.0, kReplayS / batch.replay_s()))};
}

Sample timed(const Batch& rung, const Batch& yardstick) {
  std::vector<Sample> samples = replay_in_turn(rung, &yardstick, kReplays);
  const auto middle = samples.begin() + kReplays / 2;
  std::nth_element(samples.begin(), middle, samples.end(), [](const Sample& a, const Sample& b) {
    return a.rung_s * b.yardstick_s < b.rung_s * a.yardstick_s;
  });
  return *middle;
}

// The device's decision in the last launch, or 0 if the plan leaves no decision to it.
int decision_of(const Plan& plan, const Operands& operands) {
  std::int32_t decision = 0;
  if (plan.decides_on_device()) {
    check(cudaMemcpy(&decision, operands.workspace, sizeof(decision), cudaMemcpyDeviceToHost),
          "decision");
  }
  return decision;
}

void measure(const std::string& name) {
  NamedProblem named;
  if (Status s = parse_named_problem(name, &named); !s.ok()) throw UsageError(s.message());
  const Shape& shape = named.problem.shape;
  const Stage* stage = find_in_catalogue(named.stage);
  if (stage == nullptr) throw UsageError("no stage '" + named.stage + "'");
  Problem fp32 = Problem::dense(shape), split = fp32;
  split.math = Math::fp32_split;
  const bool is_split = named.problem.math == Math::fp32_split;
  if (name != named.stage + "/" + to_string(is_split ? split : fp32)) {
    throw UsageError(name + ": only a stage, a shape and /split");
  }
  const Stage& yardstick = *find_in_catalogue("Cublas");
  check(stage->prepare());
  check(yardstick.prepare());
  const Plan plan = stage->plan(named.problem), plain = stage->plan(fp32),
             other = yardstick.plan(fp32);
  check(plan.status());
  check(plain.status());
  check(other.status());
  const Memory memory(named.problem, plan, &other, 1), of_plain(fp32, plain, nullptr, 1);
  const Operands& operands = memory.rung().front();
  const Operands& others = memory.yardstick().front();
  Operands plain_operands = of_plain.rung().front();
  plain_operands.a = operands.a;
  plain_operands.b = operands.b;
  const double products =
      static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  const auto row_step = static_cast<std::int64_t>(products / kMostProducts) + 1;

  for (std::size_t i = 0; i < kInputNames.size(); ++i) {
    const auto input = static_cast<Input>(i);
    check(fill(const_cast<float*>(operands.a), shape.m, shape.k, input, input == Input::kRows, 1,
               stream()));
    check(fill(const_cast<float*>(operands.b), shape.k, shape.n, input, false, 2, stream()));
    memory.reset_result(verifier::Inputs::kUniform, 1);
    const Batch rung = recorded(plan, operands);
    double ratio_to_fp32 = 1.0;
    if (is_split) {
      const Sample sample = timed(rung, recorded(plain, plain_operands));
      ratio_to_fp32 = sample.yardstick_s / sample.rung_s;
    }
    const Sample sample = timed(rung, recorded(other, others));
    const float* const results[] = {operands.c, others.c};
    const auto errors = errors_of(shape, operands.a, operands.b, results, row_step, stream());
    std::cout << name << '\t' << kInputNames[i] << '\t' << decision_of(plan, operands) << '\t'
              << sample.rung_s << '\t' << sample.yardstick_s / sample.rung_s << '\t'
              << ratio_to_fp32;
    for (double Errors::* each :
         {&Errors::frobenius, &Errors::weighted, &Errors::median, &Errors::largest}) {
      for (const Errors& of : errors) std::cout << '\t' << of.*each;
    }
    std::cout << '\n' << std::flush;
  }
}

int run(std::span<char*> arguments) try {
  if (arguments.empty()) {
    std::cerr << kUsage;
    return 2;
  }
  check(device::available());
  for (const auto& [key, value] : device_context()) std::cout << key << '\t' << value << '\n';
  std::cout << '\n' << kHeads;
  for (const char* name : arguments) measure(name);
  return 0;
} catch (const UsageError& error) {
  std::cerr << "accuracy: " << error.what() << '\n';
  return 2;
} catch (const std::exception& error) {
  std::cerr << "accuracy: " << error.what() << '\n';
  return 1;
}

}  // namespace
}  // namespace tilegate::bench

int main(int argc, char** argv) {
  return tilegate::bench::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
}
