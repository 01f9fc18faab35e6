// The program that `ci/gate profile` runs under Nsight Compute: each case is launched once to warm
// up and once between cudaProfilerStart and cudaProfilerStop, so that `ncu --profile-from-start
// off` sees its kernels and no other.
//
//   build/gpu/bench/profile_target Warptile/4096x4096x4096 SplitK/64x4096x4096/beta0.5
#include <cstddef>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_profiler_api.h>

#include <tilegate/catalogue.hpp>
#include <tilegate/device.hpp>

#include "cuda_check.hpp"
#include "errors.hpp"
#include "memory.hpp"
#include "platform.hpp"

namespace tilegate::bench {
namespace {

constexpr std::string_view kUsage =
    "usage: profile_target CASE...    one launch each, between cudaProfilerStart and -Stop\n"
    "       profile_target --device   the GPU and its software: name, tab, value\n"
    "A CASE is a benchmark's name, as Warptile/4096x4096x4096.\n";

void print_device() {
  check(device::available());
  for (const auto& [key, value] : device_context()) std::cout << key << '\t' << value << '\n';
}

// Each stage is launched once before, to warm up.
void profile(const std::string& name) {
  NamedProblem named;
  if (Status s = parse_named_problem(name, &named); !s.ok()) throw UsageError(s.message());
  const Problem& problem = named.problem;
  const Stage* stage = find_in_catalogue(named.stage);
  if (stage == nullptr) throw UsageError("no stage '" + named.stage + "'");
  if (Status s = problem.check(); !s.ok()) throw UsageError(name + ": " + s.message());
  if (problem.is_empty() || problem.shape.k == 0) throw UsageError(name + ": nothing to multiply");

  check(stage->prepare());
  const Plan plan = stage->plan(problem, device::current(), named.configuration);
  check(plan.status());
  const Memory memory(problem, plan, nullptr, 1);
  memory.fill(verifier::Inputs::kUniform, 1);  // zeros draw less power: perhaps another clock
  memory.reset_result(verifier::Inputs::kUniform, 1);
  const auto launch_and_wait = [&] {
    check(plan.launch(memory.rung().front(), stream()));
    check(device::synchronize());
  };
  launch_and_wait();
  check(cudaProfilerStart(), "profiler");
  launch_and_wait();
  check(cudaProfilerStop(), "profiler");
}

int run(std::span<char*> arguments) try {
  const std::vector<std::string_view> words(arguments.begin(), arguments.end());
  if (words.size() == 1 && words[0] == "--device") {
    print_device();
  } else if (!words.empty()) {
    check(device::available());
    for (const std::string_view name : words) profile(std::string(name));
  } else {
    std::cerr << kUsage;
    return 2;
  }
  return 0;
} catch (const UsageError& error) {
  std::cerr << "profile_target: " << error.what() << '\n';
  return 2;
} catch (const std::exception& error) {
  std::cerr << "profile_target: " << error.what() << '\n';
  return 1;
}

}  // namespace
}  // namespace tilegate::bench

int main(int argc, char** argv) {
  return tilegate::bench::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
}
