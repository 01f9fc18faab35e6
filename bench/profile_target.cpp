// The program that ci/profile runs under Nsight Compute: one stage, launched once to warm up and
// once between cudaProfilerStart and cudaProfilerStop, so that `ncu --profile-from-start off` sees
// its kernels and no other.
//
//   build/gpu/bench/profile_target Warptile 4096x4096x4096
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_profiler_api.h>

#include <tilegate/sgemm.hpp>
#include <tilegate/simt/device.hpp>

#include "cuda_check.hpp"
#include "errors.hpp"
#include "platform.hpp"
#include "shapes.hpp"
#include "verifier/oracle.hpp"

namespace tilegate::bench {
namespace {

constexpr std::string_view kUsage =
    "usage: profile_target <rung> <MxNxK>   one launch, between cudaProfilerStart and -Stop\n"
    "       profile_target --list           the names of the stages, a line each\n"
    "       profile_target --device         the GPU and its software: name, tab, value\n";

void list() {
  for (const Stage* stage : stages()) std::cout << stage->name << '\n';
}

void print_device() {
  check(device::available());
  for (const auto& [key, value] : device_context()) std::cout << key << '\t' << value << '\n';
}

// Random, because zeros draw less power, and so may run at another clock.
device::Buffer filled(std::int64_t elements, std::uint64_t seed) {
  device::Buffer buffer(static_cast<std::size_t>(elements) * sizeof(float));
  check(verifier::fill(reinterpret_cast<float*>(buffer.data()), elements,
                       verifier::Inputs::kUniform, seed, nullptr));
  return buffer;
}

void launch_and_wait(const Stage& stage, const SgemmArgs& args) {
  check(stage.launch(args));
  check(device::synchronize());
}

void profile(std::string_view rung, std::string_view text) {
  const Stage* stage = find_stage(rung);
  if (stage == nullptr) throw UsageError("no stage '" + std::string(rung) + "'");
  const std::vector<Problem> problems = parse_shapes(text);
  const Shape shape = problems.front().shape;
  if (problems.size() != 1 || problems.front() != Problem::dense(shape)) {
    throw UsageError("'" + std::string(text) + "' is not one shape MxNxK");
  }

  check(device::available());
  const device::Buffer a = filled(shape.m * shape.k, 1);
  const device::Buffer b = filled(shape.k * shape.n, 2);
  const device::Buffer c(static_cast<std::size_t>(shape.m * shape.n) * sizeof(float));
  const device::Buffer workspace(stage->workspace_bytes(shape));
  const SgemmArgs args{.shape = shape,
                       .a = reinterpret_cast<const float*>(a.data()),
                       .lda = shape.k,
                       .b = reinterpret_cast<const float*>(b.data()),
                       .ldb = shape.n,
                       .c = reinterpret_cast<float*>(c.data()),
                       .ldc = shape.n,
                       .workspace = workspace.data(),
                       .workspace_bytes = workspace.size()};
  check(stage->prepare());
  launch_and_wait(*stage, args);

  check(cudaProfilerStart(), "profiler");
  launch_and_wait(*stage, args);
  check(cudaProfilerStop(), "profiler");
}

int run(std::span<char*> arguments) try {
  const std::vector<std::string_view> words(arguments.begin(), arguments.end());
  if (words.size() == 1 && words[0] == "--list") {
    list();
  } else if (words.size() == 1 && words[0] == "--device") {
    print_device();
  } else if (words.size() == 2) {
    profile(words[0], words[1]);
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
