#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <cuda_runtime.h>

#include <tilegate/device.hpp>

#include "accuracy.hpp"
#include "cuda_check.hpp"

namespace tilegate::bench {
namespace {

constexpr int kThreads = 128;
constexpr std::int64_t kSample = 1 << 16;  // elements of which the median is taken, or more

// SplitMix64 (G. Steele, D. Lea and C. Flood, Fast Splittable Pseudorandom Number Generators).
__device__ std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
  x = (x ^ x >> 27) * 0x94D049BB133111EBU;
  return x ^ x >> 31;
}

// (0, 1), of 32 bits.
__device__ double uniform(std::uint32_t bits) { return (bits + 0.5) * 0x1p-32; }

__device__ double normal(std::uint64_t bits) {  // Box and Muller
  return sqrt(-2.0 * log(uniform(static_cast<std::uint32_t>(bits)))) *
         cospi(2.0 * uniform(static_cast<std::uint32_t>(bits >> 32)));
}

__device__ double exponent(std::uint64_t bits, int most) {
  return exp2(static_cast<double>(bits % (2 * most + 1)) - most);
}

__device__ double element(Input input, std::uint64_t bits) {
  const double u = uniform(static_cast<std::uint32_t>(bits));
  const std::uint64_t more = mixed(bits);
  const double either = more >> 63 != 0 ? 1.0 + u : -1.0 - u;
  switch (input) {
    case Input::kUniform:
      return u;
    case Input::kSigned:
      return 2.0 * u - 1.0;
    case Input::kHalf:
      return (u - 0.5) * exp(0.5 * normal(more));
    case Input::kWide:
      return (u - 0.5) * exp(normal(more));
    case Input::kWider:
      return (u - 0.5) * exp(2.0 * normal(more));
    case Input::kExponents8:
      return either * exponent(more & 0xFFFFFFFFU, 8);
    case Input::kExponents40:
      return either * exponent(more & 0xFFFFFFFFU, 40);
    case Input::kOutliers:
      return normal(bits) * (more >> 53 == 0 ? 1e6 : 1.0);
    case Input::kSoftmax:
      return more >> 52 == 0 ? -1.0 : exp(normal(bits)) / 50257.0;
    case Input::kFlat:
      return 1.0 + 1e-7 * normal(bits);
    default:
      return normal(bits);
  }
}

__global__ void fill_matrix(float* to, std::int64_t cols, std::int64_t count, Input input,
                            bool scales_rows, std::uint64_t seed) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    double v = element(input, mixed(mixed(seed) ^ static_cast<std::uint64_t>(i)));
    if (scales_rows) v *= exponent(mixed(seed ^ ~static_cast<std::uint64_t>(i / cols)), 30);
    to[i] = static_cast<float>(v);
  }
}

// Of one result.
struct Sums {
  double error, product;     // of squares
  double weighted, largest;  // non-negative: their bits are ordered as they are
};

__device__ void raise(double* to, double value) {
  atomicMax(reinterpret_cast<unsigned long long*>(to),
            static_cast<unsigned long long>(__double_as_longlong(value)));
}

// An element of the product per thread, in every `row_step`th row; that of every result.
__global__ void measure(Shape shape, const float* a, const float* b, const float* const* results,
                        int count, std::int64_t row_step, std::int64_t sample_step, Sums* sums,
                        float* sample, std::int64_t sample_size) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = i / shape.n * row_step, col = i % shape.n;
  if (row >= shape.m) return;
  double exact = 0.0, scale = 0.0;
  for (std::int64_t k = 0; k < shape.k; ++k) {
    const double product = static_cast<double>(a[row * shape.k + k]) * b[k * shape.n + col];
    exact += product;
    scale += fabs(product);
  }
  for (int r = 0; r < count; ++r) {
    const double error = fabs(results[r][row * shape.n + col] - exact);
    const double relative = error == 0.0 ? 0.0 : error / fabs(exact);
    atomicAdd(&sums[r].error, error * error);
    atomicAdd(&sums[r].product, exact * exact);
    raise(&sums[r].weighted, error == 0.0 ? 0.0 : error / scale);
    raise(&sums[r].largest, relative);
    if (i % sample_step == 0) sample[r * sample_size + i / sample_step] = relative;
  }
}

template <typename T>
std::vector<T> to_host(const device::Buffer& from, std::size_t count) {
  std::vector<T> to(count);
  check(cudaMemcpy(to.data(), from.data(), count * sizeof(T), cudaMemcpyDeviceToHost), "errors");
  return to;
}

}  // namespace

Status fill(float* to, std::int64_t rows, std::int64_t cols, Input input, bool scales_rows,
            std::uint64_t seed, Stream stream) {
  constexpr int kBlocks = 2048;
  fill_matrix<<<kBlocks, kThreads, 0, stream>>>(to, cols, rows * cols, input, scales_rows, seed);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return {};
  return Status::device_error(std::string("inputs: ") + cudaGetErrorString(error));
}

std::vector<Errors> errors_of(const Shape& shape, const float* a, const float* b,
                              std::span<const float* const> results, std::int64_t row_step,
                              Stream stream) {
  const std::int64_t elements = (shape.m + row_step - 1) / row_step * shape.n;
  const std::int64_t sample_step = std::max<std::int64_t>(elements / kSample, 1);
  const std::int64_t sample_size = (elements + sample_step - 1) / sample_step;
  const device::Buffer sums(results.size() * sizeof(Sums)), where(results.size_bytes()),
      sample(results.size() * static_cast<std::size_t>(sample_size) * sizeof(float));
  check(cudaMemsetAsync(sums.data(), 0, sums.size(), stream), "errors");
  check(cudaMemcpyAsync(where.data(), results.data(), results.size_bytes(), cudaMemcpyHostToDevice,
                        stream),
        "errors");
  measure<<<static_cast<unsigned>((elements + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      shape, a, b, reinterpret_cast<const float* const*>(where.data()),
      static_cast<int>(results.size()), row_step, sample_step, reinterpret_cast<Sums*>(sums.data()),
      reinterpret_cast<float*>(sample.data()), sample_size);
  check(cudaGetLastError(), "errors");
  check(cudaStreamSynchronize(stream), "errors");

  const auto found = to_host<Sums>(sums, results.size());
  auto relative = to_host<float>(sample, results.size() * static_cast<std::size_t>(sample_size));
  std::vector<Errors> errors;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const auto first = relative.begin() + static_cast<std::ptrdiff_t>(r) * sample_size;
    const auto middle = first + sample_size / 2;
    std::nth_element(first, middle, first + sample_size);
    errors.push_back({std::sqrt(found[r].error / found[r].product), found[r].weighted, *middle,
                      found[r].largest});
  }
  return errors;
}

}  // namespace tilegate::bench
