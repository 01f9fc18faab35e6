// Seeded inputs from a counter-based generator: each element depends only on seed and index.
#include <algorithm>
#include <cstdint>

#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"
#include "verifier/oracle_math.cuh"

namespace tilegate::verifier {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kPerThread = 16;
constexpr std::int64_t kMaxBlocks = 1 << 16;

}  // namespace

__global__ void fill_kernel(float* data, std::int64_t count, Inputs inputs, std::uint64_t seed) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    data[i] = value_at(inputs, seed, static_cast<std::uint64_t>(i));
  }
}

float input_value(Inputs inputs, std::uint64_t seed, std::uint64_t index) {
  return value_at(inputs, seed, index);
}

Status fill(float* data, std::int64_t count, Inputs inputs, std::uint64_t seed, Stream stream) {
  if (count <= 0) return {};
  const std::int64_t blocks = (count - 1) / (kThreads * kPerThread) + 1;
  const device::LaunchConfig launch{
      .kernel = "fill", .blocks = std::min(blocks, kMaxBlocks), .threads_x = kThreads};
  return device::launch(launch, stream, fill_kernel, data, count, inputs, seed);
}

}  // namespace tilegate::verifier
