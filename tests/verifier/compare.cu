// The comparison on the device: each block writes one record, and the host adds the records.
#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include <tilegate/device.hpp>
#include <tilegate/device/device.cuh>
#include <tilegate/stage.hpp>

#include "verifier/oracle.hpp"
#include "verifier/oracle_math.cuh"

namespace tilegate::verifier {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kPerThread = 16;
constexpr std::int64_t kMaxBlocks = 4096;

struct Record {
  std::int64_t mismatches;
  std::int64_t first;  // row·n + column; -1: none
};

__host__ __device__ void add(Record& total, const Record& part) {
  total.mismatches += part.mismatches;
  if (part.first >= 0 && (total.first < 0 || part.first < total.first)) total.first = part.first;
}

struct SharedStorage {
  Record records[kThreads];
};

}  // namespace

// One row of op(A) or column of op(B) per thread.
__global__ void largest_kernel(Product product, double* largest) {
  const std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (line < product.shape.m + product.shape.n) largest[line] = largest_of(product, line);
}

// `scale` and `largest` are not read if the tolerance does not use them.
__global__ void compare_kernel(Product product, const double* value, const double* scale,
                               const double* largest, Tolerance tolerance, Record* records) {
  auto& shared = device::shared_storage<SharedStorage>();
  const std::int64_t count = product.shape.m * product.shape.n;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  Record mine{0, -1};
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride) {
    const std::int64_t row = i / product.shape.n, col = i % product.shape.n;
    const double both =
        tolerance.operands == 0.0 ? 0.0 : largest[row] * largest[product.shape.m + col];
    const double bound = tolerance.gamma == 0.0 ? 0.0 : scale[i];
    const float got = product.c[row * product.c_row + col];
    if (!is_within(got, value[i], bound, tolerance, both)) add(mine, {1, i});
  }
  shared.records[threadIdx.x] = mine;
  __syncthreads();  // all records are written; the first thread adds them
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kThreads; ++i) add(mine, shared.records[i]);
  records[blockIdx.x] = mine;
}

Status compare_on_device(const Product& product, const double* value, const double* scale,
                         const Tolerance& tolerance, Comparison* result) try {
  *result = {};
  const std::int64_t count = product.shape.m * product.shape.n;
  if (count == 0) return {};
  const std::int64_t blocks = std::min((count - 1) / (kThreads * kPerThread) + 1, kMaxBlocks);
  const device::LaunchConfig launch{.kernel = "compare",
                                    .blocks = blocks,
                                    .threads_x = kThreads,
                                    .shared_bytes = sizeof(SharedStorage)};
  const device::Buffer buffer(static_cast<std::size_t>(blocks) * sizeof(Record));
  auto* on_device = reinterpret_cast<Record*>(buffer.data());
  const std::int64_t lines = tolerance.operands == 0.0 ? 0 : product.shape.m + product.shape.n;
  const device::Buffer largest(static_cast<std::size_t>(lines) * sizeof(double));
  auto* largest_data = reinterpret_cast<double*>(largest.data());
  if (Status s = device::synchronize(); !s.ok()) return s;  // C may come from any stream
  if (lines > 0) {
    const device::LaunchConfig each{
        .kernel = "largest", .blocks = (lines - 1) / kThreads + 1, .threads_x = kThreads};
    if (Status s = device::launch(each, nullptr, largest_kernel, product, largest_data); !s.ok()) {
      return s;
    }
  }
  if (Status s = device::launch(launch, nullptr, compare_kernel, product, value, scale,
                                largest_data, tolerance, on_device);
      !s.ok()) {
    return s;
  }
  if (Status s = device::synchronize(); !s.ok()) return s;
  std::vector<Record> records(static_cast<std::size_t>(blocks));
  if (Status s = device::copy_to_host(records.data(), on_device, records.size() * sizeof(Record));
      !s.ok()) {
    return s;
  }
  Record total{0, -1};
  for (const Record& record : records) add(total, record);
  result->mismatches = total.mismatches;
  if (total.first >= 0) {
    result->first_row = total.first / product.shape.n;
    result->first_col = total.first % product.shape.n;
  }
  return {};
} catch (const std::bad_alloc&) {
  return Status::device_error("no device memory left for the comparison");
}

}  // namespace tilegate::verifier
