#include "verifier/reference_values.hpp"

#include <cstddef>

#include <tilegate/device.hpp>

#include "verifier/oracle.hpp"

namespace tilegate::verifier {
namespace {

constexpr double kHostReference = 1 << 24;  // multiplications; a GPU computes larger references

// One product of the problem on the host images.
Product host_product(Problem problem, const Images& images, std::int64_t index) {
  const auto& [a, b, c] = images;
  problem.lda = a.pitch();
  problem.ldb = b.pitch();
  problem.ldc = c.pitch();
  problem.stride_a = problem.stride_a == 0 ? 0 : a.image_stride();
  problem.stride_b = problem.stride_b == 0 ? 0 : b.image_stride();
  problem.stride_c = c.image_stride();
  return product_of(problem,
                    {.a = a.expected(), .b = b.expected(), .c = const_cast<float*>(c.expected())},
                    index);
}

}  // namespace

Status ReferenceValues::find(const Problem& problem, const Images& images,
                             const Operands& operands) {
  const auto [m, n, k] = problem.shape;
  const auto count = static_cast<std::size_t>(m * n);
  value.resize(count * static_cast<std::size_t>(problem.batch));
  scale.resize(value.size());
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const bool on_host = !device::current().is_cuda || work <= kHostReference;
  const std::size_t bytes = on_host ? 0 : count * sizeof(double);
  const device::Buffer device_value(bytes);
  const device::Buffer device_scale(bytes);
  auto* const value_data = reinterpret_cast<double*>(device_value.data());
  auto* const scale_data = reinterpret_cast<double*>(device_scale.data());
  for (std::int64_t index = 0; index < problem.batch; ++index) {
    double* to_value = value.data() + static_cast<std::size_t>(index) * count;
    double* to_scale = scale.data() + static_cast<std::size_t>(index) * count;
    if (on_host) {
      reference_on_host(host_product(problem, images, index), to_value, to_scale);
      continue;
    }
    const Product product = product_of(problem, operands, index);
    if (Status s = reference_on_device(product, value_data, scale_data, nullptr); !s.ok()) return s;
    if (Status s = device::synchronize(); !s.ok()) return s;
    if (Status s = device::copy_to_host(to_value, value_data, bytes); !s.ok()) return s;
    if (Status s = device::copy_to_host(to_scale, scale_data, bytes); !s.ok()) return s;
  }
  return {};
}

void ReferenceValues::find_largest(const Problem& problem, const Images& images) {
  const auto [m, n, k] = problem.shape;
  std::vector<double> lines(static_cast<std::size_t>(m + n));
  for (std::int64_t index = 0; index < problem.batch; ++index) {
    largest_on_host(host_product(problem, images, index), lines.data());
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        largest.push_back(lines[static_cast<std::size_t>(i)] *
                          lines[static_cast<std::size_t>(m + j)]);
      }
    }
  }
}

}  // namespace tilegate::verifier
